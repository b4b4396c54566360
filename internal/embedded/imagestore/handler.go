package imagestore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"

	"github.com/distribution/reference"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"hotspare.io/hotspare/internal/embedded/imagestore/registryapi"
)

var _ registryapi.Source = (*Store)(nil)

// Handler serves the images as a registry.
func (s *Store) Handler() http.Handler { return registryapi.Handler(s) }

// OpenBlob opens a blob of any image: its digest names its content, whatever the repository.
func (s *Store) OpenBlob(_ context.Context, r registryapi.Request) (*registryapi.Content, error) {
	f, err := os.Open(s.path(blobName(r.Digest)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, registryapi.NotFound("BLOB_UNKNOWN", "no image contains blob "+r.Digest.String())
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !r.HeadOnly {
		err = s.confirmPull(r.Digest, info.Size())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &registryapi.Content{Digest: r.Digest, Size: info.Size(), Body: f}, nil
}

// confirmPull returns an error unless the disk, to which nodes pull, has room for a blob.
func (s *Store) confirmPull(digest v1.Hash, size int64) error {
	free, err := s.free(s.dir)
	if err != nil {
		return err
	}
	return registryapi.ConfirmSpace(digest, size, free)
}

// memory is a content that was read.
type memory struct{ *bytes.Reader }

// Close does nothing.
func (memory) Close() error { return nil }

// OpenManifest opens the manifest or the index with a tag or with a digest.
func (s *Store) OpenManifest(_ context.Context, r registryapi.Request) (*registryapi.Content, error) {
	d, err := s.findManifest(r)
	if err != nil {
		return nil, err
	}
	unknown := registryapi.NotFound("MANIFEST_UNKNOWN", "the store has no image "+r.Repository.Name()+" with the tag or digest "+r.Reference())
	raw, err := s.readBlob(d.Digest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, unknown
	}
	if err != nil {
		return nil, err
	}
	if d.MediaType == "" {
		d.MediaType = registryapi.DetectMediaType(raw)
	}
	if !d.MediaType.IsImage() && !d.MediaType.IsIndex() {
		return nil, unknown
	}
	return &registryapi.Content{MediaType: d.MediaType, Digest: d.Digest, Size: int64(len(raw)), Body: memory{bytes.NewReader(raw)}}, nil
}

// findManifest returns the descriptor of a tag or of a digest; without a media type for a digest.
func (s *Store) findManifest(r registryapi.Request) (tagReference, error) {
	if r.Tag == "" {
		return tagReference{Digest: r.Digest}, nil
	}
	tagged, err := reference.WithTag(r.Repository, r.Tag)
	if err != nil {
		return tagReference{}, registryapi.NotFound("MANIFEST_UNKNOWN", "the tag is not valid: "+err.Error())
	}
	found, err := readReference(s.referencePath(tagged))
	if errors.Is(err, fs.ErrNotExist) {
		return found, registryapi.NotFound("MANIFEST_UNKNOWN", "the store has no image "+tagged.String()+": load it with: hotspare image load")
	}
	return found, err
}

// readBlob reads a blob that is small enough for a manifest. A larger one is none.
func (s *Store) readBlob(digest v1.Hash) ([]byte, error) {
	f, err := os.Open(s.path(blobName(digest)))
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxDocument+1))
	if err == nil && len(raw) > maxDocument {
		err = fs.ErrNotExist
	}
	return raw, errors.Join(err, f.Close())
}
