package imagestore

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const busybox = "docker.io/library/busybox:1.36"

// summarize returns the names and the platforms of images, one on a line.
func summarize(images []Image) string {
	var lines []string
	for _, i := range images {
		lines = append(lines, i.Name+" "+strings.Join(i.Platforms, ","))
	}
	return strings.Join(lines, "\n")
}

// checkStore returns what breaks the store's promises: a reference without its blobs, a blob whose
// content does not have its digest, and, in a store at rest, files that no image needs.
func checkStore(t testing.TB, s *Store, atRest bool) {
	t.Helper()
	references, err := s.listReferences()
	if err != nil {
		t.Error(err)
	}
	needed := map[string]bool{}
	for _, r := range references {
		content, err := s.resolveReference(r)
		if err != nil {
			t.Errorf("a reference points to nothing: %v", err)
			continue
		}
		if err := content.checkPlatform("amd64"); err != nil {
			t.Errorf("%s is not complete: %v", r.name, err)
		}
		for _, b := range content.blobs {
			needed[b.digest.Hex] = true
		}
	}
	for _, path := range listFiles(t, s.dir) {
		name := filepath.Base(path)
		if strings.HasPrefix(path, blobsFolder) && !strings.HasPrefix(name, ".") {
			raw, err := os.ReadFile(s.path(path))
			if err != nil || digestOf(raw).Hex != name {
				t.Errorf("blob %s has digest %s (%v)", name, digestOf(raw).Hex, err)
			}
			if atRest && !needed[name] {
				t.Errorf("blob %s belongs to no image", name)
			}
		}
		if atRest && strings.HasPrefix(name, ".") {
			t.Errorf("temporary file %s is left", path)
		}
	}
}

func listFiles(t testing.TB, dir string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		below, err := filepath.Rel(dir, path)
		found = append(found, below)
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return found
}

// openUnsynced opens a store that does not wait for the disk.
func openUnsynced(dir string) *Store {
	s := Open(dir)
	s.syncFile = func(*os.File) error { return nil }
	return s
}

func newStore(t testing.TB) *Store {
	t.Helper()
	return openUnsynced(filepath.Join(t.TempDir(), "machines", ".images"))
}

func TestLoadReadsEachFormat(t *testing.T) {
	docker := dockerArchive(t, "amd64", "busybox:1.36")
	multi, _, _, arm64 := multiLayout(t, busybox)
	var compressed files // as go-containerregistry writes them
	one := layer(t, "one")
	c := config(t, "amd64", one)
	compressed.add("config", c)
	compressed.add("one.tar.gz", compress(t, one))
	compressed.add(dockerManifest, toJSON(t, []dockerImage{{Config: "config", RepoTags: []string{"busybox:1.36"}, Layers: []string{"one.tar.gz"}}}))

	var tagOnly, attested, split, twoNames, dockerNames, nested files
	tagOnly.finish(t, called(tagOnly.addManifest(t, "amd64", "x"), refNameAnnotation, "1.36"))
	full := files{}
	full.finish(t, called(full.addManifest(t, "amd64", "x"), refNameAnnotation, "busybox:1.36"))
	attestation := on(attested.addManifest(t, "", "y"), "unknown")
	attestation.Platform.OS = "unknown"
	attested.finish(t, called(attested.addIndex(t, on(attested.addManifest(t, "amd64", "x"), "amd64"), attestation), nameAnnotation, busybox))
	split.finish(t, on(split.addManifest(t, "amd64", "a"), "amd64"), split.addManifest(t, "arm64", "b"))
	both := twoNames.addManifest(t, "amd64", "a")
	twoNames.finish(t, called(both, nameAnnotation, busybox), called(both, nameAnnotation, "quay.io/a/b:c"))
	manifest := dockerNames.addManifest(t, "amd64", "a")
	configName := blobName(digestOf(config(t, "amd64", layer(t, "a"))))
	dockerNames.finish(t, called(manifest, refNameAnnotation, "1.36"))
	dockerNames.add(dockerManifest, toJSON(t, []dockerImage{{Config: configName, RepoTags: []string{"busybox:1.36", "localhost:5000/x"}}}))
	nested.finish(t, called(nested.addIndex(t, nested.addIndex(t, on(nested.addManifest(t, "amd64", "a"), "amd64"))), nameAnnotation, busybox))

	linked := docker.without("2/layer.tar")
	linked = linked.with("2/layer.tar->", "../1/layer.tar")
	same := config(t, "amd64", layer(t, "one"), layer(t, "one"))
	linked = linked.with("same.json", string(same))
	linked = linked.with(dockerManifest, string(toJSON(t, []dockerImage{{Config: "same.json", RepoTags: []string{"busybox:1.36"}, Layers: []string{"1/layer.tar", "2/layer.tar"}}})))

	for name, c := range map[string]struct {
		path, name, want string
	}{
		"an archive of docker save":                       {writeTemp(t, "a.tar", toTar(t, docker)), "", busybox + " linux/amd64"},
		"a compressed archive of docker save":             {writeTemp(t, "a.tar.gz", compress(t, toTar(t, docker))), "", busybox + " linux/amd64"},
		"an archive with compressed layers":               {writeTemp(t, "a.tar", toTar(t, compressed)), "", busybox + " linux/amd64"},
		"a layer that is a link to another":               {writeTemp(t, "a.tar", toTar(t, linked)), "", busybox + " linux/amd64"},
		"an archive with another name":                    {writeTemp(t, "a.tar", toTar(t, docker)), "quay.io/team/app", "quay.io/team/app:latest linux/amd64"},
		"an OCI archive":                                  {writeTemp(t, "a.tar", toTar(t, multi)), "", busybox + " linux/amd64,linux/arm64"},
		"a compressed OCI archive":                        {writeTemp(t, "a.tgz", compress(t, toTar(t, multi))), "", busybox + " linux/amd64,linux/arm64"},
		"a layout":                                        {writeFolder(t, multi), "", busybox + " linux/amd64,linux/arm64"},
		"an index without one platform":                   {writeFolder(t, multi.without(blobName(arm64.Digest))), "", busybox + " linux/amd64"},
		"an index without a layer of another platform":    {writeFolder(t, multi.without(blobName(layerOf(t, multi, arm64)))), "", busybox + " linux/amd64"},
		"an annotation with the tag only needs --name":    {writeFolder(t, tagOnly), "busybox:1.36", busybox + " linux/amd64"},
		"an annotation of OCI with the whole name":        {writeFolder(t, full), "", busybox + " linux/amd64"},
		"an attestation is no platform":                   {writeFolder(t, attested), "", busybox + " linux/amd64"},
		"a layout that is the index of one image":         {writeFolder(t, split), "busybox:1.36", busybox + " linux/amd64,linux/arm64"},
		"an index in an index":                            {writeFolder(t, nested), "", busybox + " linux/amd64"},
		"one image with two names":                        {writeFolder(t, twoNames), "", busybox + " linux/amd64\nquay.io/a/b:c linux/amd64"},
		"a layout with the names in docker's manifest":    {writeTemp(t, "a.tar", toTar(t, dockerNames)), "", busybox + " linux/amd64\nlocalhost:5000/x:latest linux/amd64"},
		"--name names one image that has two names":       {writeFolder(t, twoNames), "x", "docker.io/library/x:latest linux/amd64"},
		"a platform in two descriptors of the same image": {writeFolder(t, samePlatforms(t)), "", busybox + " linux/amd64,linux/arm64"},
		"an archive whose entries begin with a dot slash": {writeTemp(t, "a.tar", toTar(t, dotted(multi))), "", busybox + " linux/amd64,linux/arm64"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			loaded, err := s.Load(t.Context(), c.path, LoadOptions{Name: c.name, Architecture: "amd64"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, summarize(loaded)); diff != "" {
				t.Error(diff)
			}
			listed, err := s.List()
			if diff := cmp.Diff(loaded, listed); err != nil || diff != "" {
				t.Errorf("List returns something else (%v): %s", err, diff)
			}
			checkStore(t, s, true)
			if again, err := s.Load(t.Context(), c.path, LoadOptions{Name: c.name, Architecture: "amd64"}); err != nil || !cmp.Equal(again, loaded) {
				t.Errorf("loading again returns %v, %v", again, err)
			}
		})
	}
}

func dotted(all files) files {
	var out files
	for _, f := range all {
		out.add("./"+f.name, []byte(f.content))
	}
	return out
}

func samePlatforms(t testing.TB) files {
	t.Helper()
	var f files
	m := f.addManifest(t, "amd64", "a")
	return f.finish(t, called(f.addIndex(t, on(m, "arm64"), on(m, "amd64")), nameAnnotation, busybox))
}

// layerOf returns the digest of the first layer of a manifest in a layout.
func layerOf(t testing.TB, layout files, manifest v1.Descriptor) v1.Hash {
	t.Helper()
	for _, f := range layout {
		if f.name == blobName(manifest.Digest) {
			m, err := v1.ParseManifest(strings.NewReader(f.content))
			if err != nil {
				t.Fatal(err)
			}
			return m.Layers[0].Digest
		}
	}
	t.Fatal("no such manifest")
	return v1.Hash{}
}

func TestLoadKeepsTheDigestsOfALayout(t *testing.T) {
	layout, index, _, arm64 := multiLayout(t, busybox)
	for name, f := range map[string]files{"whole": layout, "partial": layout.without(blobName(arm64.Digest))} {
		t.Run(name, func(t *testing.T) {
			images, err := newStore(t).Load(t.Context(), writeFolder(t, f), LoadOptions{Architecture: "amd64"})
			if err != nil || len(images) != 1 || images[0].Digest != index.Digest.String() {
				t.Errorf("got %v, %v; want digest %s", images, err, index.Digest)
			}
		})
	}
}

func TestTheSizeCountsEachBlobOnce(t *testing.T) {
	var f files
	a, b := on(f.addManifest(t, "amd64", "same"), "amd64"), on(f.addManifest(t, "arm64", "same"), "arm64")
	index := f.addIndex(t, a, b)
	want := int64(0)
	for _, blob := range f {
		want += int64(len(blob.content))
	}
	f.finish(t, called(index, nameAnnotation, busybox))
	images, err := newStore(t).Load(t.Context(), writeFolder(t, f), LoadOptions{Architecture: "amd64"})
	if err != nil || images[0].Size != want {
		t.Errorf("got %v, %v; want size %d", images, err, want)
	}
}

func TestLoadRefusesBadInput(t *testing.T) {
	docker := dockerArchive(t, "amd64", "busybox:1.36")
	multi, _, amd64, _ := multiLayout(t, busybox)
	raw, zipped := toTar(t, docker), compress(t, toTar(t, docker))
	configName := docker[0].name
	damagedLayer := strings.Replace(docker[1].content, "one", "eno", 1)
	amd64Layer := layerOf(t, multi, amd64)
	damagedZip := append([]byte{}, zipped...)
	damagedZip[len(damagedZip)-5] ^= 1
	var twins, deep, artifact, conflict, huge files
	twins.finish(t, twins.addManifest(t, "amd64", "a"), twins.addManifest(t, "amd64", "b"))
	d := deep.addManifest(t, "amd64", "a")
	for range maxDepth + 1 {
		d = deep.addIndex(t, d)
	}
	deep.finish(t, called(d, nameAnnotation, busybox))
	chart := artifact.addBlob("application/vnd.cncf.helm.config.v1+json", []byte("{}"))
	artifact.finish(t, called(artifact.addBlob(types.OCIManifestSchema1, toJSON(t, v1.Manifest{SchemaVersion: 2, Config: chart})), nameAnnotation, busybox))
	conflict.finish(t, called(conflict.addManifest(t, "amd64", "a"), nameAnnotation, busybox), called(conflict.addManifest(t, "amd64", "b"), refNameAnnotation, "busybox:1.36"))
	huge.add(layoutIndex, make([]byte, maxDocument+1))
	odd := multi.with(layoutIndex, strings.Replace(multi[len(multi)-1].content, string(types.OCIImageIndex)+`","size`, `text/plain","size`, 1))
	unreadable := t.TempDir() // a folder in place of a file
	if err := os.Mkdir(filepath.Join(unreadable, layoutIndex), 0o700); err != nil {
		t.Fatal(err)
	}

	for name, c := range map[string]struct {
		path string
		o    LoadOptions
		want string
	}{
		"a file that is missing":          {filepath.Join(t.TempDir(), "a.tar"), LoadOptions{}, "there is no such file: specify an archive of docker save"},
		"a file that is no archive":       {writeTemp(t, "a.tar", []byte(strings.Repeat("text ", 1000))), LoadOptions{}, "the file is not an image archive, or it is damaged"},
		"a short file":                    {writeTemp(t, "a.tar", []byte("text")), LoadOptions{}, "the archive is truncated"},
		"an empty file":                   {writeTemp(t, "a.tar", nil), LoadOptions{}, "the file is empty"},
		"a device":                        {os.DevNull, LoadOptions{}, "it is not a regular file"},
		"an archive without files":        {writeTemp(t, "a.tar", toTar(t, nil)), LoadOptions{}, "the archive contains no files"},
		"an archive of something else":    {writeTemp(t, "a.tar", toTar(t, files{{"x", "y"}})), LoadOptions{}, "it has neither manifest.json nor index.json"},
		"an archive that zstd compressed": {writeTemp(t, "a.tar.zst", []byte("\x28\xb5\x2f\xfdxxxxxxxx")), LoadOptions{}, "compressed with zstd, which is not supported: uncompress it first"},
		"a truncated archive":             {writeTemp(t, "a.tar", raw[:len(raw)/2]), LoadOptions{}, "the archive is truncated: copy it again"},
		"a truncated compressed archive":  {writeTemp(t, "a.tgz", zipped[:len(zipped)/2]), LoadOptions{}, "the archive is truncated: copy it again"},
		"a damaged compressed archive":    {writeTemp(t, "a.tgz", damagedZip), LoadOptions{}, "the compressed archive is damaged"},
		"a layer with a wrong digest":     {writeTemp(t, "a.tar", toTar(t, docker.with("1/layer.tar", damagedLayer))), LoadOptions{}, "1/layer.tar is damaged: its digest is sha256:"},
		"a compressed layer with a wrong digest": {
			writeTemp(t, "a.tar", toTar(t, docker.with("1/layer.tar", string(compress(t, []byte(damagedLayer)))))), LoadOptions{}, "layer 1/layer.tar is damaged: its digest is sha256:",
		},
		"a layer that is missing":         {writeTemp(t, "a.tar", toTar(t, docker.without("2/layer.tar"))), LoadOptions{}, "the archive is not complete (open 2/layer.tar: file does not exist)"},
		"a configuration that is missing": {writeTemp(t, "a.tar", toTar(t, docker.without(configName))), LoadOptions{}, "the archive is not complete (open " + configName},
		"a configuration that is not JSON": {
			writeTemp(t, "a.tar", toTar(t, docker.with(configName, "x"))), LoadOptions{}, "configuration " + configName + " is not valid",
		},
		"a configuration of another image": {
			writeTemp(t, "a.tar", toTar(t, docker.with(configName, string(config(t, "amd64"))))), LoadOptions{}, "manifest.json names 2 layers, but configuration " + configName + " has 0",
		},
		"a manifest.json without images":  {writeTemp(t, "a.tar", toTar(t, docker.with(dockerManifest, "[]"))), LoadOptions{}, "the archive contains no images"},
		"a manifest.json that is no JSON": {writeTemp(t, "a.tar", toTar(t, docker.with(dockerManifest, "{"))), LoadOptions{}, "manifest.json is not valid"},
		"an index.json without images":    {writeFolder(t, multi.with(layoutIndex, `{"schemaVersion":2,"manifests":[]}`)), LoadOptions{}, "index.json lists no images"},
		"an index.json that is too large": {writeFolder(t, huge), LoadOptions{}, "index.json has 4194305 bytes, more than 4194304"},
		"a blob with a wrong digest": {
			writeFolder(t, multi.with(blobName(amd64.Digest), "x")), LoadOptions{}, blobName(amd64.Digest) + " is damaged: its digest is sha256:",
		},
		"a blob with a wrong content": {
			writeFolder(t, multi.with(blobName(amd64Layer), strings.Repeat("x", len(contentOf(t, multi, amd64Layer))))), LoadOptions{}, blobName(amd64Layer) + " is damaged: its digest is sha256:",
		},
		"a blob with a wrong size":         {writeFolder(t, multi.with(blobName(amd64Layer), "x")), LoadOptions{}, blobName(amd64Layer) + " has 1 bytes instead of"},
		"a layer of the platform":          {writeFolder(t, multi.without(blobName(amd64Layer))), LoadOptions{}, "of platform linux/amd64, blob " + amd64Layer.String() + " is missing: pull the image"},
		"a manifest of the platform":       {writeFolder(t, multi.without(blobName(amd64.Digest))), LoadOptions{}, "of platform linux/amd64, blob " + amd64.Digest.String() + " is missing"},
		"an image of another architecture": {writeTemp(t, "a.tar", toTar(t, dockerArchive(t, "s390x", "x"))), LoadOptions{}, "the image is for linux/s390x, but the clusters of this computer need linux/amd64: pull or build it with --platform linux/amd64"},
		"an index of other architectures":  {writeFolder(t, multi), LoadOptions{Architecture: "riscv64"}, "the image is for linux/amd64, linux/arm64, but the clusters of this computer need linux/riscv64"},
		"an artifact that is no image":     {writeFolder(t, artifact), LoadOptions{}, "the image is for no platform, but"},
		"a media type of no image":         {writeFolder(t, odd), LoadOptions{}, `has the media type "text/plain", which is not that of an image`},
		"indexes that are too deep":        {writeFolder(t, deep), LoadOptions{}, "is more than 4 levels deep"},
		"an image without a name":          {writeTemp(t, "a.tar", toTar(t, dockerArchive(t, "amd64"))), LoadOptions{}, "specify the name with --name"},
		"two images without a name":        {writeFolder(t, twins), LoadOptions{}, "specify the name with --name"},
		"a name for two images":            {writeFolder(t, twins), LoadOptions{Name: "x"}, "it contains 2 images, and --name names one"},
		"two images with one name":         {writeFolder(t, conflict), LoadOptions{}, "it contains two images with the name " + busybox},
		"a name that is none":              {writeTemp(t, "a.tar", raw), LoadOptions{Name: "Busy Box"}, `--name: "Busy Box" is no image name (`},
		"a name with a digest":             {writeTemp(t, "a.tar", raw), LoadOptions{Name: "x@" + amd64.Digest.String()}, "contains a digest: specify a tag instead"},
		"a name in the archive that is none": {
			writeTemp(t, "a.tar", toTar(t, dockerArchive(t, "amd64", "../../x:y"))), LoadOptions{}, `the name of an image is not valid: "../../x:y" is no image name (`,
		},
		"an entry outside of the archive":       {writeTemp(t, "a.tar", toTar(t, docker.with("../x", "y"))), LoadOptions{}, `the archive contains "../x", which is outside of the archive`},
		"an absolute entry":                     {writeTemp(t, "a.tar", toTar(t, docker.with("/etc/x", "y"))), LoadOptions{}, `the archive contains "/etc/x", which is outside of the archive`},
		"a link out of the archive":             {writeTemp(t, "a.tar", toTar(t, docker.with("a/b->", "../../etc/passwd"))), LoadOptions{}, `a link from "a/b" to "../../etc/passwd", which is outside`},
		"an absolute link":                      {writeTemp(t, "a.tar", toTar(t, docker.with("a->", "/etc/passwd"))), LoadOptions{}, `a link from "a" to "/etc/passwd", which is outside`},
		"a link to itself":                      {writeTemp(t, "a.tar", toTar(t, docker.with("manifest.json->", "manifest.json").without("manifest.json"))), LoadOptions{}, "manifest.json is a link to a link"},
		"a folder that is no layout":            {t.TempDir(), LoadOptions{}, "the folder is no OCI image layout: it contains no file index.json"},
		"a folder in place of a file":           {unreadable, LoadOptions{}, "index.json is not a regular file"},
		"a layout that lacks its only manifest": {writeFolder(t, onlyIndex(t)), LoadOptions{}, "the image is not complete: blob sha256:"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			if c.o.Architecture == "" {
				c.o.Architecture = "amd64"
			}
			images, err := s.Load(t.Context(), c.path, c.o)
			if err == nil || len(images) > 0 {
				t.Fatalf("got %v, %v", images, err)
			}
			if want := "loading " + c.path + ": "; !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s...%s", err, want, c.want)
			}
			checkStore(t, s, true)
			if listed, err := s.List(); err != nil || len(listed) > 0 {
				t.Errorf("it left %v, %v", listed, err)
			}
		})
	}
}

func contentOf(t testing.TB, all files, digest v1.Hash) string {
	t.Helper()
	for _, f := range all {
		if f.name == blobName(digest) {
			return f.content
		}
	}
	t.Fatal("no such blob")
	return ""
}

func onlyIndex(t testing.TB) files {
	t.Helper()
	layout := layoutOf(t, "amd64", busybox)
	return layout.without(layout[2].name)
}

// A link inside of a folder must not make Load read files outside of it.
func TestALayoutCannotLinkToFilesOutside(t *testing.T) {
	layout := layoutOf(t, "amd64", busybox)
	dir := writeFolder(t, layout)
	layerFile := filepath.Join(dir, layout[1].name)
	outside := writeTemp(t, "outside", []byte(layout[1].content))
	if err := os.Remove(layerFile); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, layerFile); err != nil {
		t.Fatal(err)
	}
	s := newStore(t)
	if images, err := s.Load(t.Context(), dir, LoadOptions{Architecture: "amd64"}); err == nil || !strings.Contains(err.Error(), "escapes") {
		t.Errorf("got %v, %v", images, err)
	}
	checkStore(t, s, true)
}

func ExampleStore_List() {
	images, err := Open("/no/such/folder").List()
	fmt.Println(images, err)
	// Output: [] <nil>
}
