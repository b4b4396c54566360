package imagestore

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// layoutIndex is the file of an OCI image layout that lists its images.
const layoutIndex = "index.json"

// candidate is an image that a source contains, with the names that the source gives it.
type candidate struct {
	names   []string
	content *imageContent
}

// readLayout finds the images of an OCI image layout. If the images have no names and all belong to
// one image, as tools write them that store an index of platforms as the layout itself, the result
// is that image.
func readLayout(src source) ([]candidate, error) {
	raw, err := readDocument(src, layoutIndex)
	if err != nil {
		return nil, err
	}
	var index v1.IndexManifest
	if err := parseDocument(src, layoutIndex, &index); err != nil {
		return nil, err
	}
	if len(index.Manifests) == 0 {
		return nil, fmt.Errorf("%s lists no images: %s NAME", layoutIndex, saveAgain)
	}
	dockerNames, err := readDockerNames(src)
	if err != nil {
		return nil, err
	}
	var candidates []candidate
	for _, d := range index.Manifests {
		content, err := resolveImage(src, d)
		var missing *missingBlobError
		if errors.As(err, &missing) {
			err = fmt.Errorf("the image is not complete: %w: copy it again, or %s", err, saveAgain)
		}
		if err != nil {
			return nil, err
		}
		candidates = append(candidates, candidate{names: layoutNames(d, content, dockerNames), content: content})
	}
	if candidates = mergeSameImages(candidates); isOneIndex(candidates) {
		return []candidate{mergeIndex(raw, candidates)}, nil
	}
	return candidates, nil
}

// layoutNames returns the names of an image of a layout.
func layoutNames(d v1.Descriptor, content *imageContent, dockerNames map[string][]string) []string {
	if name := annotatedName(d.Annotations); name != "" {
		return []string{name}
	}
	for _, b := range content.blobs {
		if names := dockerNames[b.digest.Hex]; len(names) > 0 {
			return names
		}
	}
	return nil
}

// readDockerNames returns the names in the manifest.json of an archive that is also a layout, by the
// digest of the image's configuration.
func readDockerNames(src source) (map[string][]string, error) {
	if exists, err := has(src, dockerManifest); !exists || err != nil {
		return nil, err
	}
	images, err := readDockerImages(src)
	if err != nil {
		return nil, err
	}
	names := map[string][]string{}
	for _, image := range images {
		raw, err := readDocument(src, image.Config)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a name of an image that the layout does not list
		}
		if err != nil {
			return nil, err
		}
		names[digestOf(raw).Hex] = append(names[digestOf(raw).Hex], image.RepoTags...)
	}
	return names, nil
}

// mergeSameImages merges images that differ only in their names.
func mergeSameImages(all []candidate) []candidate {
	var merged []candidate
	for _, c := range all {
		i := slices.IndexFunc(merged, func(m candidate) bool { return m.content.root.Digest == c.content.root.Digest })
		if i < 0 {
			merged = append(merged, c)
			continue
		}
		merged[i].names = append(merged[i].names, c.names...)
	}
	return merged
}

// isOneIndex reports whether all images are manifests without names for different platforms.
func isOneIndex(all []candidate) bool {
	seen := map[string]bool{}
	for _, c := range all {
		names := c.content.platformNames()
		if len(c.names) > 0 || c.content.root.MediaType.IsIndex() || len(names) > 1 {
			return false
		}
		for _, name := range names {
			if seen[name] {
				return false
			}
			seen[name] = true
		}
	}
	return len(all) > 1
}

// mergeIndex returns the image that has the index of the layout as its index.
func mergeIndex(raw []byte, all []candidate) candidate {
	c := &imageContent{seen: map[v1.Hash]bool{}}
	for _, part := range all {
		for _, b := range part.content.blobs {
			c.add(b)
		}
		c.platforms = append(c.platforms, part.content.platforms...)
	}
	c.root = c.addBytes(types.OCIImageIndex, raw)
	return candidate{content: c}
}
