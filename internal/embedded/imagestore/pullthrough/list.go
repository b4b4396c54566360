package pullthrough

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"hotspare.io/hotspare/internal/embedded/imagestore/blobcache"
	"hotspare.io/hotspare/internal/embedded/imagestore/registryapi"
)

// Image is an image of which the cache has at least the manifest.
type Image struct {
	// Name is the full name with a tag, or with a digest if it was pulled by its digest.
	Name string `json:"name"`
	// Digest is the digest of the manifest or of the index.
	Digest string `json:"digest"`
	// Size is the number of bytes that the cache has of the image.
	Size int64 `json:"size"`
	// Used is when the image was pulled last, to the minute.
	Used time.Time `json:"used"`
}

// List returns the images in the cache in dir, sorted by name, and the number of bytes of all content,
// which images share.
func List(dir string) (images []Image, size int64, err error) {
	blobs, err := blobcache.Open(dir, 0, time.Now).List()
	if err != nil {
		return nil, 0, err
	}
	l := &lister{dir: dir, blobs: map[string]blobcache.Blob{}, roots: map[string]root{}, parts: map[string]map[string]bool{}}
	for _, b := range blobs {
		l.blobs[b.Hex] = b
		size += b.Size
	}
	if err := (&records{dir: dir, now: time.Now}).walk(l.visit); err != nil {
		return nil, size, err
	}
	return l.images(), size, nil
}

// root is a manifest or an index in a repository.
type root struct {
	name, repository, hex string
	isTag                 bool
}

type lister struct {
	dir   string
	blobs map[string]blobcache.Blob
	roots map[string]root
	// parts are the manifests that indexes and tags of a repository contain, by repository and
	// hexadecimal digest: they are no images of their own.
	parts map[string]map[string]bool
}

func (l *lister) visit(path, folder string, info fs.FileInfo) {
	relative, err := filepath.Rel(filepath.Join(l.dir, repositoriesFolder), filepath.Dir(filepath.Dir(path)))
	if err != nil || folder != tagsFolder && folder != contentsFolder {
		return
	}
	r := root{repository: filepath.ToSlash(relative), hex: info.Name(), isTag: folder == tagsFolder}
	r.name = r.repository + "@sha256:" + r.hex
	if r.isTag {
		raw, err := os.ReadFile(path)
		t, ok := parseTag(raw)
		if err != nil || !ok {
			return
		}
		r.name, r.hex = r.repository+":"+info.Name(), t.Digest.Hex
	}
	manifest := l.readManifest(r.hex)
	if manifest == nil {
		return
	}
	l.roots[r.name] = r
	if r.isTag {
		l.addPart(r.repository, r.hex)
	}
	for _, m := range manifest.Manifests {
		l.addPart(r.repository, m.Digest.Hex)
	}
}

func (l *lister) addPart(repository, hex string) {
	if l.parts[repository] == nil {
		l.parts[repository] = map[string]bool{}
	}
	l.parts[repository][hex] = true
}

// manifest is what a manifest or an index points to.
type manifest struct {
	Config    v1.Descriptor   `json:"config"`
	Layers    []v1.Descriptor `json:"layers"`
	Manifests []v1.Descriptor `json:"manifests"`
}

// readManifest returns a manifest or an index of the cache; nil if the content is none, or is missing.
func (l *lister) readManifest(hex string) *manifest {
	if b, ok := l.blobs[hex]; !ok || b.Size > maxManifest {
		return nil
	}
	f, err := os.Open(filepath.Join(l.dir, "blobs", hex))
	if err != nil {
		return nil
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxManifest))
	if errors.Join(err, f.Close()) != nil || registryapi.DetectMediaType(raw) == "" {
		return nil
	}
	var m manifest
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return &m
}

func (l *lister) images() []Image {
	images := []Image{}
	for _, r := range l.roots {
		if !r.isTag && l.parts[r.repository][r.hex] {
			continue
		}
		counted := map[string]bool{}
		image := Image{Name: r.name, Digest: "sha256:" + r.hex, Used: l.blobs[r.hex].Used}
		image.Size = l.countBytes(r.hex, counted)
		images = append(images, image)
	}
	slices.SortFunc(images, func(a, b Image) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Digest, b.Digest))
	})
	return images
}

// countBytes returns the bytes that the cache has of a manifest and of what it points to, without what
// was counted.
func (l *lister) countBytes(hex string, counted map[string]bool) int64 {
	b, ok := l.blobs[hex]
	if !ok || counted[hex] {
		return 0
	}
	counted[hex] = true
	total := b.Size
	m := l.readManifest(hex)
	if m == nil {
		return total
	}
	for _, part := range slices.Concat([]v1.Descriptor{m.Config}, m.Layers, m.Manifests) {
		total += l.countBytes(part.Digest.Hex, counted)
	}
	return total
}

// Prune deletes all content of the cache in dir, and returns how many bytes became free. Clusters may
// use the cache at the same time.
func Prune(ctx context.Context, dir string) (int64, error) {
	freed, err := blobcache.Open(dir, 0, time.Now).Prune(ctx)
	if err != nil {
		return freed, err
	}
	return freed, (&records{dir: dir, now: time.Now}).forgetAll()
}
