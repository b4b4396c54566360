// Package imagestore keeps container images in a folder from which local clusters pull them, without
// Docker and without a network.
//
//	DIR/blobs/sha256/HEX    manifests, configurations and layers, as in an OCI image layout
//	DIR/references/REGISTRY/REPOSITORY/_tags/TAG   reference: the descriptor of an image's manifest or
//	                        index as JSON; no component of a repository starts with "_"
//	DIR/lock                locked (flock) by Load and Delete, which run one at a time
//
// Names that start with "." are files that Load is writing. Load renames a blob to its final name
// after it has verified and synced the blob, and writes references last. Therefore a reference never
// points to missing blobs, wherever Load ends, and readers need no lock. The next Load or Delete
// removes what an interrupted one left behind.
package imagestore

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/distribution/reference"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"hotspare.io/hotspare/internal/embedded/imagestore/blobcache"
	"hotspare.io/hotspare/internal/embedded/imagestore/registryapi"
)

// Store is a folder of images. Any number of processes can use it at the same time.
type Store struct {
	dir string
	// afterChange is called after each change of the folder, with what changed. Tests set it to
	// simulate a crash or a full disk.
	afterChange func(change string) error
	// syncFile makes a file or a folder survive a loss of power. Tests replace it, because it takes
	// most of their time.
	syncFile func(*os.File) error
	// free returns the free bytes of the disk of a folder. Tests replace it.
	free func(dir string) (int64, error)
}

// Open returns the store in dir. It creates nothing: a folder that does not exist contains no images.
func Open(dir string) *Store {
	return &Store{dir: dir, syncFile: (*os.File).Sync, free: blobcache.MeasureFree}
}

// Image is an image of the store.
type Image struct {
	// Name is the full name with a tag, as in docker.io/library/busybox:1.36.
	Name string `json:"name"`
	// Digest is the digest of the manifest or of the index.
	Digest string `json:"digest"`
	// Size is the number of bytes of all blobs of the image.
	Size int64 `json:"size"`
	// Platforms are the platforms that the store has all blobs of, as in linux/amd64; sorted.
	Platforms []string `json:"platforms"`
}

// tagReference is the content of a reference.
type tagReference struct {
	MediaType types.MediaType `json:"mediaType"`
	Digest    v1.Hash         `json:"digest"`
	Size      int64           `json:"size"`
}

func (r tagReference) descriptor() v1.Descriptor {
	return v1.Descriptor{MediaType: r.MediaType, Digest: r.Digest, Size: r.Size}
}

const (
	blobsFolder      = "blobs/sha256"
	referencesFolder = "references"
	tagsFolder       = "_tags"
	temporaryPrefix  = ".tmp-"
)

func blobName(digest v1.Hash) string { return path.Join(blobsFolder, digest.Hex) }

func (s *Store) path(name string) string { return filepath.Join(s.dir, filepath.FromSlash(name)) }

func (s *Store) referencePath(name reference.NamedTagged) string {
	return s.path(path.Join(referencesFolder, reference.Domain(name), reference.Path(name), tagsFolder, name.Tag()))
}

// reportChange calls the hook of tests.
func (s *Store) reportChange(format string, values ...any) error {
	if s.afterChange == nil {
		return nil
	}
	return s.afterChange(fmt.Sprintf(format, values...))
}

// List returns all images, sorted by name. It returns the readable images also with an error.
func (s *Store) List() ([]Image, error) {
	references, err := s.listReferences()
	errs := []error{err}
	images := []Image{}
	for _, r := range references {
		image, err := s.describeImage(r)
		if errors.Is(err, fs.ErrNotExist) && !r.isCurrent() {
			continue // deleted or loaded again since it was listed
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		images = append(images, image)
	}
	return images, errors.Join(errs...)
}

// namedReference is a reference with the name of its image.
type namedReference struct {
	tagReference
	name, file string
}

// isCurrent reports whether the reference is still in the store.
func (r namedReference) isCurrent() bool {
	now, err := readReference(r.file)
	return err == nil && now == r.tagReference
}

// listReferences returns all references, sorted by name.
func (s *Store) listReferences() ([]namedReference, error) {
	var found []namedReference
	var errs []error
	top := s.path(referencesFolder)
	err := filepath.WalkDir(top, func(file string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case e.IsDir() || strings.HasPrefix(e.Name(), "."):
			return nil
		}
		below, err := filepath.Rel(top, file)
		if err != nil {
			return err
		}
		repository, tag := path.Split(filepath.ToSlash(below))
		name := strings.TrimSuffix(repository, "/"+tagsFolder+"/") + ":" + tag
		r, err := readReference(file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // deleted since its folder was read
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("reading image %s: %w: load the image again", name, err))
			return nil
		}
		found = append(found, namedReference{tagReference: r, name: name, file: file})
		return nil
	})
	slices.SortFunc(found, func(a, b namedReference) int { return strings.Compare(a.name, b.name) })
	return found, errors.Join(append(errs, err)...)
}

func readReference(file string) (tagReference, error) {
	var r tagReference
	raw, err := os.ReadFile(file)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return r, fmt.Errorf("%s is damaged: %w", file, err)
	}
	if err := registryapi.ValidateDigest(r.Digest); err != nil {
		return r, fmt.Errorf("%s is damaged: %w", file, err)
	}
	return r, nil
}

// describeImage reads the manifests of an image in the store.
func (s *Store) describeImage(r namedReference) (Image, error) {
	content, err := s.resolveReference(r)
	if err != nil {
		return Image{}, err
	}
	return content.describe(r.name), nil
}

// resolveReference finds the blobs of an image in the store.
func (s *Store) resolveReference(r namedReference) (*imageContent, error) {
	src, err := openFolder(s.dir)
	if err != nil {
		return nil, err
	}
	content, err := resolveImage(src, r.descriptor())
	if err := errors.Join(err, src.close()); err != nil {
		return nil, fmt.Errorf("reading image %s: %w: load the image again, or delete it", r.name, err)
	}
	return content, nil
}
