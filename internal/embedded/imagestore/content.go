package imagestore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"hotspare.io/hotspare/internal/embedded/imagestore/registryapi"
)

// blob is a blob of an image, and where it is read.
type blob struct {
	// name is the name of the file in the source, for errors.
	name   string
	digest v1.Hash
	size   int64
	open   func() (io.ReadCloser, error)
}

// imageContent are the blobs of an image that a source contains.
type imageContent struct {
	root v1.Descriptor
	// blobs are all blobs without duplicates, each after the blobs that it points to. A platform
	// that is not complete has none.
	blobs     []blob
	platforms []v1.Platform
	missing   []missingPlatform
	src       source
	seen      map[v1.Hash]bool
}

// missingPlatform is a platform of an index that the source lacks a blob of.
type missingPlatform struct {
	platform v1.Platform
	err      *missingBlobError
}

// missingBlobError reports a blob that a source lacks.
type missingBlobError struct{ digest v1.Hash }

func (e *missingBlobError) Error() string { return "blob " + e.digest.String() + " is missing" }

func (e *missingBlobError) Unwrap() error { return fs.ErrNotExist }

// resolveImage finds the blobs of an image in an OCI image layout. It verifies the digests of
// manifests and indexes; the digests of the other blobs are verified when they are copied.
func resolveImage(src source, root v1.Descriptor) (*imageContent, error) {
	c := &imageContent{root: root, src: src, seen: map[v1.Hash]bool{}}
	blobs, err := c.resolve(root, 0)
	c.blobs = blobs
	return c, err
}

// maxDepth is the maximum depth of indexes that contain indexes.
const maxDepth = 4

// resolve returns the blobs of a manifest or of an index.
func (c *imageContent) resolve(d v1.Descriptor, depth int) ([]blob, error) {
	if c.seen[d.Digest] {
		c.addPlatform(d.Platform) // of two platforms with the same manifest
		return nil, nil
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("index %s is more than %d levels deep", d.Digest, maxDepth)
	}
	raw, err := c.readManifest(d)
	if err != nil {
		return nil, err
	}
	var blobs []blob
	switch {
	case d.MediaType.IsIndex():
		blobs, err = c.resolveIndex(d, raw, depth)
	case d.MediaType.IsImage():
		blobs, err = c.resolveManifest(d, raw)
	default:
		err = fmt.Errorf("%s has the media type %q, which is not that of an image: specify an archive or a layout of a container image", d.Digest, d.MediaType)
	}
	if err != nil {
		return nil, err
	}
	c.seen[d.Digest] = true
	return append(blobs, blob{name: blobName(d.Digest), digest: d.Digest, size: int64(len(raw)), open: openBytes(raw)}), nil
}

func openBytes(raw []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil }
}

func (c *imageContent) readManifest(d v1.Descriptor) ([]byte, error) {
	if err := registryapi.ValidateDigest(d.Digest); err != nil {
		return nil, err
	}
	raw, err := readDocument(c.src, blobName(d.Digest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &missingBlobError{digest: d.Digest}
	}
	if err != nil {
		return nil, err
	}
	if digest, _, err := v1.SHA256(bytes.NewReader(raw)); err != nil || digest != d.Digest {
		return nil, errors.Join(err, newDigestError(blobName(d.Digest), digest, d.Digest))
	}
	return raw, nil
}

// newDigestError reports a blob with a wrong content.
func newDigestError(what string, got, want v1.Hash) error {
	return fmt.Errorf("%s is damaged: its digest is %s instead of %s: copy the image again, or %s", what, got, want, saveAgain)
}

// resolveIndex returns the blobs of an index, without those of platforms that are not complete.
func (c *imageContent) resolveIndex(d v1.Descriptor, raw []byte, depth int) ([]blob, error) {
	var index v1.IndexManifest
	if err := json.Unmarshal(raw, &index); err != nil {
		return nil, fmt.Errorf("index %s is not valid: %w", d.Digest, err)
	}
	var all []blob
	for _, child := range index.Manifests {
		blobs, err := c.resolve(child, depth+1)
		var missing *missingBlobError
		if errors.As(err, &missing) {
			if child.Platform != nil {
				c.missing = append(c.missing, missingPlatform{platform: *child.Platform, err: missing})
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, blobs...)
	}
	return all, nil
}

// resolveManifest returns the configuration and the layers of a manifest.
func (c *imageContent) resolveManifest(d v1.Descriptor, raw []byte) ([]blob, error) {
	var manifest v1.Manifest
	if err := json.Unmarshal(raw, &manifest); err != nil {
		return nil, fmt.Errorf("manifest %s is not valid: %w", d.Digest, err)
	}
	parts := append([]v1.Descriptor{manifest.Config}, manifest.Layers...)
	for _, part := range parts {
		if err := c.checkPresence(part); err != nil {
			return nil, err
		}
	}
	if err := c.findPlatform(d, manifest.Config); err != nil {
		return nil, err
	}
	var blobs []blob
	for _, part := range parts {
		if c.seen[part.Digest] {
			continue
		}
		c.seen[part.Digest] = true
		open := func() (io.ReadCloser, error) { return c.src.open(blobName(part.Digest)) }
		blobs = append(blobs, blob{name: blobName(part.Digest), digest: part.Digest, size: part.Size, open: open})
	}
	return blobs, nil
}

func (c *imageContent) checkPresence(d v1.Descriptor) error {
	if err := registryapi.ValidateDigest(d.Digest); err != nil {
		return err
	}
	size, err := c.src.size(blobName(d.Digest))
	if errors.Is(err, fs.ErrNotExist) {
		return &missingBlobError{digest: d.Digest}
	}
	if err == nil && size != d.Size {
		err = fmt.Errorf("blob %s has %d bytes instead of %d: copy the image again, or %s", blobName(d.Digest), size, d.Size, saveAgain)
	}
	return err
}

// findPlatform records the platform of a manifest, which its descriptor or its configuration names.
func (c *imageContent) findPlatform(d, config v1.Descriptor) error {
	platform := d.Platform
	if platform == nil && config.MediaType.IsConfig() {
		var file v1.ConfigFile
		if err := parseDocument(c.src, blobName(config.Digest), &file); err != nil {
			return err
		}
		platform = file.Platform()
	}
	c.addPlatform(platform)
	return nil
}

// addPlatform records a platform, unless it is that of an attestation, which is "unknown".
func (c *imageContent) addPlatform(p *v1.Platform) {
	if p != nil && p.OS != "" && p.OS != "unknown" {
		c.platforms = append(c.platforms, *p)
	}
}

// describe returns the image with this name.
func (c *imageContent) describe(name string) Image {
	image := Image{Name: name, Digest: c.root.Digest.String(), Platforms: c.platformNames()}
	for _, b := range c.blobs {
		image.Size += b.size
	}
	return image
}

// platformNames returns the complete platforms, sorted.
func (c *imageContent) platformNames() []string {
	names := []string{}
	for _, p := range c.platforms {
		names = append(names, p.String())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// checkPlatform returns an error unless the image can run on a Linux computer of the architecture.
func (c *imageContent) checkPlatform(architecture string) error {
	runs := func(p v1.Platform) bool { return p.OS == "linux" && p.Architecture == architecture }
	if slices.ContainsFunc(c.platforms, runs) {
		return nil
	}
	want := "linux/" + architecture
	if i := slices.IndexFunc(c.missing, func(m missingPlatform) bool { return runs(m.platform) }); i >= 0 {
		return fmt.Errorf("the image is not complete: of platform %s, %w: pull the image for that platform, and save it again", want, c.missing[i].err)
	}
	contained := strings.Join(c.platformNames(), ", ")
	if contained == "" {
		contained = "no platform"
	}
	return fmt.Errorf("the image is for %s, but the clusters of this computer need %s: pull or build it with --platform %s, and save it again", contained, want, want)
}
