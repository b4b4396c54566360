package imagestore

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// files are the files of an archive or of a folder, in order.
type files []file

type file struct{ name, content string }

func (f *files) add(name string, content []byte) {
	*f = append(*f, file{name, string(content)})
}

// addBlob adds a blob of a layout, unless it is there.
func (f *files) addBlob(mediaType types.MediaType, raw []byte) v1.Descriptor {
	d := v1.Descriptor{MediaType: mediaType, Size: int64(len(raw)), Digest: digestOf(raw)}
	for _, known := range *f {
		if known.name == blobName(d.Digest) {
			return d
		}
	}
	f.add(blobName(d.Digest), raw)
	return d
}

func (f files) without(name string) files {
	var rest files
	for _, one := range f {
		if one.name != name {
			rest = append(rest, one)
		}
	}
	return rest
}

// with replaces the content of a file.
func (f files) with(name, content string) files {
	return append(f.without(name), file{name, content})
}

func toJSON(t testing.TB, value any) []byte {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func compress(t testing.TB, raw []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(raw); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// toTar returns an archive of the files. Names that end with "->" are symbolic links.
func toTar(t testing.TB, all files) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range all {
		h := &tar.Header{Name: f.name, Mode: 0o644, Size: int64(len(f.content)), Typeflag: tar.TypeReg}
		if name, isLink := cutLink(f.name); isLink {
			h.Name, h.Linkname, h.Size, h.Typeflag = name, f.content, 0, tar.TypeSymlink
			f.content = ""
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(f.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func cutLink(name string) (string, bool) {
	if l := len(name) - len("->"); l > 0 && name[l:] == "->" {
		return name[:l], true
	}
	return name, false
}

func writeTemp(t testing.TB, name string, raw []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func writeFolder(t testing.TB, all files) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range all {
		path := filepath.Join(dir, f.name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(f.content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// layer returns a layer with one file.
func layer(t testing.TB, text string) []byte {
	t.Helper()
	return toTar(t, files{{"etc/motd", text}})
}

func config(t testing.TB, architecture string, layers ...[]byte) []byte {
	t.Helper()
	c := v1.ConfigFile{OS: "linux", Architecture: architecture, RootFS: v1.RootFS{Type: "layers"}}
	for _, l := range layers {
		c.RootFS.DiffIDs = append(c.RootFS.DiffIDs, digestOf(l))
	}
	return toJSON(t, c)
}

// dockerArchive is an archive as docker save wrote it before version 25.
func dockerArchive(t testing.TB, architecture string, names ...string) files {
	t.Helper()
	one, two := layer(t, "one"), layer(t, "two")
	c := config(t, architecture, one, two)
	f := files{{digestOf(c).Hex + ".json", string(c)}, {"1/layer.tar", string(one)}, {"2/layer.tar", string(two)}}
	f.add(dockerManifest, toJSON(t, []dockerImage{{Config: digestOf(c).Hex + ".json", RepoTags: names, Layers: []string{"1/layer.tar", "2/layer.tar"}}}))
	return f
}

// addManifest adds an image with one layer to a layout.
func (f *files) addManifest(t testing.TB, architecture, text string) v1.Descriptor {
	t.Helper()
	l := layer(t, text)
	m := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1}
	m.Config = f.addBlob(types.OCIConfigJSON, config(t, architecture, l))
	m.Layers = []v1.Descriptor{f.addBlob(types.OCILayer, compress(t, l))}
	return f.addBlob(types.OCIManifestSchema1, toJSON(t, m))
}

// addIndex adds an index of images to a layout.
func (f *files) addIndex(t testing.TB, children ...v1.Descriptor) v1.Descriptor {
	t.Helper()
	return f.addBlob(types.OCIImageIndex, toJSON(t, v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: children}))
}

func on(d v1.Descriptor, architecture string) v1.Descriptor {
	d.Platform = &v1.Platform{OS: "linux", Architecture: architecture}
	return d
}

func called(d v1.Descriptor, annotation, name string) v1.Descriptor {
	d.Annotations = map[string]string{annotation: name}
	return d
}

// finish adds the files that make a layout of blobs.
func (f *files) finish(t testing.TB, images ...v1.Descriptor) files {
	t.Helper()
	f.add("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
	f.add(layoutIndex, toJSON(t, v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: images}))
	return *f
}

// layoutOf is a layout with one image for one architecture.
func layoutOf(t testing.TB, architecture, name string) files {
	t.Helper()
	var f files
	return f.finish(t, called(f.addManifest(t, architecture, name), nameAnnotation, name))
}

// multiLayout is a layout with an image for amd64 and arm64.
func multiLayout(t testing.TB, name string) (layout files, index, amd64, arm64 v1.Descriptor) {
	t.Helper()
	var f files
	amd64, arm64 = on(f.addManifest(t, "amd64", "a"), "amd64"), on(f.addManifest(t, "arm64", "b"), "arm64")
	index = f.addIndex(t, amd64, arm64)
	return f.finish(t, called(index, nameAnnotation, name)), index, amd64, arm64
}
