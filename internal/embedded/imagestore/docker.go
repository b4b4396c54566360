package imagestore

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"hotspare.io/hotspare/internal/embedded/imagestore/registryapi"
)

// dockerManifest is the file manifest.json of docker save.
const dockerManifest = "manifest.json"

// dockerImage is an image in manifest.json.
type dockerImage struct {
	Config   string
	RepoTags []string
	Layers   []string
}

func readDockerImages(src source) ([]dockerImage, error) {
	var images []dockerImage
	if err := parseDocument(src, dockerManifest, &images); err != nil {
		return nil, err
	}
	if len(images) == 0 {
		return nil, errors.New("the archive contains no images: " + saveAgain + " NAME")
	}
	return images, nil
}

// readDockerArchive finds the images of an archive of docker save that is no OCI layout. It writes
// their manifests, which such an archive lacks, and keeps the layers as they are: mostly not
// compressed, which is the fastest format for clusters on the same computer.
func readDockerArchive(src source) ([]candidate, error) {
	images, err := readDockerImages(src)
	if err != nil {
		return nil, err
	}
	var candidates []candidate
	for _, image := range images {
		content, err := convertDockerImage(src, image)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("the archive is not complete (%w): copy it again, or %s", err, saveAgain)
		}
		if err != nil {
			return nil, err
		}
		candidates = append(candidates, candidate{names: image.RepoTags, content: content})
	}
	return candidates, nil
}

func convertDockerImage(src source, image dockerImage) (*imageContent, error) {
	raw, err := readDocument(src, image.Config)
	if err != nil {
		return nil, err
	}
	var config v1.ConfigFile
	if err := json.Unmarshal(raw, &config); err != nil {
		return nil, fmt.Errorf("configuration %s is not valid: %w", image.Config, err)
	}
	if len(config.RootFS.DiffIDs) != len(image.Layers) {
		return nil, fmt.Errorf("%s names %d layers, but configuration %s has %d: %s", dockerManifest, len(image.Layers), image.Config, len(config.RootFS.DiffIDs), saveAgain)
	}
	manifest := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Layers: []v1.Descriptor{}}
	c := &imageContent{seen: map[v1.Hash]bool{}, platforms: []v1.Platform{{OS: config.OS, Architecture: config.Architecture, Variant: config.Variant}}}
	manifest.Config = c.addBytes(types.OCIConfigJSON, raw)
	for i, file := range image.Layers {
		layer, err := describeLayer(src, file, config.RootFS.DiffIDs[i])
		if err != nil {
			return nil, err
		}
		c.add(blob{name: file, digest: layer.Digest, size: layer.Size, open: func() (io.ReadCloser, error) { return src.open(file) }})
		manifest.Layers = append(manifest.Layers, layer)
	}
	encoded, err := json.Marshal(manifest)
	if err != nil {
		return nil, err
	}
	c.root = c.addBytes(types.OCIManifestSchema1, encoded)
	return c, nil
}

// add adds a blob unless the image has it already: images repeat empty layers.
func (c *imageContent) add(b blob) {
	if !c.seen[b.digest] {
		c.seen[b.digest] = true
		c.blobs = append(c.blobs, b)
	}
}

func (c *imageContent) addBytes(mediaType types.MediaType, raw []byte) v1.Descriptor {
	d := v1.Descriptor{MediaType: mediaType, Size: int64(len(raw)), Digest: digestOf(raw)}
	c.add(blob{name: string(mediaType), digest: d.Digest, size: d.Size, open: openBytes(raw)})
	return d
}

func digestOf(raw []byte) v1.Hash {
	sum := sha256.Sum256(raw)
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])}
}

func sumOf(h hash.Hash) v1.Hash {
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(h.Sum(nil))}
}

// describeLayer returns the descriptor of a layer. diffID is the digest of the layer without
// compression, as in the image's configuration.
func describeLayer(src source, file string, diffID v1.Hash) (v1.Descriptor, error) {
	if err := registryapi.ValidateDigest(diffID); err != nil {
		return v1.Descriptor{}, fmt.Errorf("layer %s: %w", file, err)
	}
	size, err := src.size(file)
	if err != nil {
		return v1.Descriptor{}, err
	}
	isCompressed, err := isGzip(src, file)
	if err != nil {
		return v1.Descriptor{}, err
	}
	if !isCompressed {
		return v1.Descriptor{MediaType: types.OCIUncompressedLayer, Size: size, Digest: diffID}, nil
	}
	digest, uncompressed, err := hashCompressedLayer(src, file)
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("reading layer %s: %w", file, explainReadError(err))
	}
	if uncompressed != diffID {
		return v1.Descriptor{}, newDigestError("layer "+file, uncompressed, diffID)
	}
	return v1.Descriptor{MediaType: types.OCILayer, Size: size, Digest: digest}, nil
}

func isGzip(src source, file string) (bool, error) {
	f, err := src.open(file)
	if err != nil {
		return false, err
	}
	start := make([]byte, 2)
	n, err := io.ReadFull(f, start)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return string(start[:n]) == string(compressions["gzip"]), errors.Join(err, f.Close())
}

// hashCompressedLayer returns the digests of a layer as it is, and without its compression.
func hashCompressedLayer(src source, file string) (compressed, uncompressed v1.Hash, err error) {
	f, err := src.open(file)
	if err != nil {
		return compressed, uncompressed, err
	}
	outer, inner := sha256.New(), sha256.New()
	in := io.TeeReader(f, outer)
	reader, err := gzip.NewReader(in)
	if err == nil {
		_, err = io.Copy(inner, reader)
	}
	if err == nil {
		_, err = io.Copy(io.Discard, in) // what follows the compressed data
	}
	return sumOf(outer), sumOf(inner), errors.Join(err, f.Close())
}
