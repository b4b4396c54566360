package imagestore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"runtime"

	"github.com/distribution/reference"
	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"hotspare.io/hotspare/internal/embedded/imagestore/upstream"
)

// A Registry reads items of registries, as *upstream.Client does.
type Registry interface {
	Open(ctx context.Context, i upstream.Item, credentials authn.AuthConfig) (io.ReadCloser, upstream.Descriptor, error)
}

// Pull copies an image from its registry into the store, without what only other architectures need, and returns it. The
// image has the name o.Name, or else the one in its registry.
func (s *Store) Pull(ctx context.Context, name string, registry Registry, credentials authn.AuthConfig, o LoadOptions) ([]Image, error) {
	o.Architecture = cmp.Or(o.Architecture, runtime.GOARCH)
	named, err := pullImage(ctx, name, registry, credentials, o)
	if err != nil {
		return nil, fmt.Errorf("loading %s: %w", name, err)
	}
	images, err := s.writeImages(ctx, []namedContent{named})
	if err != nil {
		return images, fmt.Errorf("loading %s: %w", name, err)
	}
	return images, nil
}

func pullImage(ctx context.Context, name string, registry Registry, credentials authn.AuthConfig, o LoadOptions) (namedContent, error) {
	from, err := parseName(name)
	if err != nil {
		return namedContent{}, err
	}
	to := from
	if o.Name != "" {
		if to, err = parseName(o.Name); err != nil {
			return namedContent{}, fmt.Errorf("--name: %w", err)
		}
	}
	src := &registrySource{
		ctx: ctx, registry: registry, credentials: credentials, repository: reference.TrimNamed(from), architecture: o.Architecture,
		documents: map[string][]byte{}, sizes: map[string]int64{},
	}
	root, err := src.fetch(from.Tag(), 0)
	if err != nil {
		return namedContent{}, err
	}
	content, err := resolveImage(src, root)
	if err != nil {
		return namedContent{}, err
	}
	if content.checkPlatform(o.Architecture) != nil {
		return namedContent{}, fmt.Errorf("the registry has no such image for linux/%s, which the clusters of this computer need", o.Architecture)
	}
	return namedContent{name: to, content: content}, nil
}

// registrySource is a source with the blobs of an image in a registry. The manifests of other architectures are missing, as
// in an archive of one platform.
type registrySource struct {
	ctx          context.Context // that of Pull
	registry     Registry
	credentials  authn.AuthConfig
	repository   reference.Named
	architecture string
	// documents are the manifests and indexes, and sizes those of the blobs that they name, by file name.
	documents map[string][]byte
	sizes     map[string]int64
}

// fetch reads a manifest or an index, and those that it names.
func (r *registrySource) fetch(ref string, depth int) (v1.Descriptor, error) {
	body, d, err := r.registry.Open(r.ctx, upstream.Item{Repository: r.repository, Reference: ref}, r.credentials)
	if err != nil {
		return v1.Descriptor{}, err
	}
	raw, err := io.ReadAll(io.LimitReader(body, maxDocument+1))
	if err := errors.Join(err, body.Close()); err != nil {
		return v1.Descriptor{}, fmt.Errorf("reading %s: %w", ref, err)
	}
	if len(raw) > maxDocument {
		return v1.Descriptor{}, fmt.Errorf("%s has more than %d bytes: it is no manifest of an image", ref, maxDocument)
	}
	root := v1.Descriptor{MediaType: d.MediaType, Digest: digestOf(raw), Size: int64(len(raw))}
	r.documents[blobName(root.Digest)] = raw
	if root.MediaType.IsIndex() {
		return root, r.fetchPlatforms(raw, depth)
	}
	var manifest v1.Manifest
	if json.Unmarshal(raw, &manifest) != nil {
		return root, nil //nolint:nilerr // resolveImage reports it
	}
	for _, part := range append([]v1.Descriptor{manifest.Config}, manifest.Layers...) {
		r.sizes[blobName(part.Digest)] = part.Size
	}
	return root, nil
}

// fetchPlatforms reads the manifests in an index that the architecture needs.
func (r *registrySource) fetchPlatforms(raw []byte, depth int) error {
	var index v1.IndexManifest
	if json.Unmarshal(raw, &index) != nil || depth >= maxDepth {
		return nil //nolint:nilerr // resolveImage reports it
	}
	for _, child := range index.Manifests {
		if p := child.Platform; p != nil && (p.OS != "linux" || p.Architecture != r.architecture) {
			continue
		}
		if _, err := r.fetch(child.Digest.String(), depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (r *registrySource) size(name string) (int64, error) {
	if raw, exists := r.documents[name]; exists {
		return int64(len(raw)), nil
	}
	if size, exists := r.sizes[name]; exists {
		return size, nil
	}
	return 0, fs.ErrNotExist
}

func (r *registrySource) open(name string) (io.ReadCloser, error) {
	if raw, exists := r.documents[name]; exists {
		return openBytes(raw)()
	}
	digest := v1.Hash{Algorithm: "sha256", Hex: path.Base(name)}
	item := upstream.Item{Repository: r.repository, IsBlob: true, Reference: digest.String()}
	// The store is locked meanwhile: a registry that stalls must not block other changes of it.
	body, _, err := upstream.OpenWithStallTimeout(r.ctx, upstream.StallTimeout, func(ctx context.Context) (io.ReadCloser, upstream.Descriptor, error) {
		return r.registry.Open(ctx, item, r.credentials)
	})
	return body, err
}

func (r *registrySource) close() error { return nil }
