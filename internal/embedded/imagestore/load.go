package imagestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"github.com/distribution/reference"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// LoadOptions configure Load.
type LoadOptions struct {
	// Name names the image instead of the names in the archive; required if the archive contains none.
	Name string
	// Architecture is the architecture that each image must support, in Go's words. The default is
	// that of this computer.
	Architecture string
}

// Load copies the images of an archive or of a folder into the store and returns them. It reads
// archives of docker save and OCI archives, also if they are compressed with gzip, and folders with
// an OCI image layout. A program for Linux that is linked statically becomes an image. If it returns an error, it returns the images that it loaded nevertheless:
// none, except if writing a later one failed, or removing what the former images with these names
// needed.
func (s *Store) Load(ctx context.Context, path string, o LoadOptions) ([]Image, error) {
	if o.Architecture == "" {
		o.Architecture = runtime.GOARCH
	}
	images, err := s.load(ctx, path, o)
	if err != nil {
		return images, fmt.Errorf("loading %s: %w", path, err)
	}
	return images, nil
}

func (s *Store) load(ctx context.Context, path string, o LoadOptions) (images []Image, err error) {
	candidates, closeSource, err := s.readPath(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeSource()) }()
	named, err := nameImages(candidates, o.Name)
	if err != nil {
		return nil, err
	}
	for _, n := range named {
		if err := n.content.checkPlatform(o.Architecture); err != nil {
			return nil, err
		}
	}
	return s.writeImages(ctx, named)
}

// readPath finds the images of an archive, a folder or a program. The caller calls closeSource after it
// has copied them.
func (s *Store) readPath(ctx context.Context, path string) (candidates []candidate, closeSource func() error, err error) {
	if isProgram(path) {
		return readProgram(path)
	}
	src, err := s.openSource(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	if candidates, err = readCandidates(src); err != nil {
		return nil, nil, errors.Join(err, src.close())
	}
	return candidates, src.close, nil
}

func (s *Store) openSource(ctx context.Context, path string) (source, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("there is no such file: specify an archive of docker save, an OCI archive, the folder of an OCI image layout, or the name of an image with its tag")
	}
	if err != nil {
		return nil, err
	}
	switch {
	case info.IsDir():
		return openFolder(path)
	case info.Mode().IsRegular():
		return s.openArchive(ctx, path)
	}
	return nil, errors.New("it is not a regular file: write the archive into a file first")
}

// readCandidates finds the images of a source. An archive can be both an OCI layout and an archive of
// docker save; the layout keeps the digests of the registry.
func readCandidates(src source) ([]candidate, error) {
	isLayout, err := has(src, layoutIndex)
	if err != nil {
		return nil, err
	}
	if isLayout {
		return readLayout(src)
	}
	if _, isFolder := src.(folder); isFolder {
		return nil, fmt.Errorf("the folder is no OCI image layout: it contains no file %s; specify an archive, or the folder that contains %s", layoutIndex, layoutIndex)
	}
	isDocker, err := has(src, dockerManifest)
	if err != nil {
		return nil, err
	}
	if !isDocker {
		return nil, fmt.Errorf("the archive contains no image: it has neither %s nor %s; %s NAME", dockerManifest, layoutIndex, saveAgain)
	}
	return readDockerArchive(src)
}

// namedContent is an image with one of its names.
type namedContent struct {
	name    reference.NamedTagged
	content *imageContent
}

// nameImages names the images: each can have several names.
func nameImages(candidates []candidate, name string) ([]namedContent, error) {
	if name != "" {
		return nameImage(candidates, name)
	}
	var named []namedContent
	digests := map[string]v1.Hash{}
	for _, c := range candidates {
		if len(c.names) == 0 {
			return nil, fmt.Errorf("it contains an image without a name (%s): specify the name with --name", c.content.root.Digest)
		}
		for _, text := range c.names {
			n, err := parseName(text)
			if err != nil {
				return nil, fmt.Errorf("the name of an image is not valid: %w; specify another name with --name", err)
			}
			digest, exists := digests[n.String()]
			if exists && digest != c.content.root.Digest {
				return nil, fmt.Errorf("it contains two images with the name %s: save each image into an archive of its own, and specify their names with --name", n)
			}
			if !exists {
				digests[n.String()] = c.content.root.Digest
				named = append(named, namedContent{name: n, content: c.content})
			}
		}
	}
	return named, nil
}

func nameImage(candidates []candidate, name string) ([]namedContent, error) {
	n, err := parseName(name)
	if err != nil {
		return nil, fmt.Errorf("--name: %w", err)
	}
	if len(candidates) != 1 {
		return nil, fmt.Errorf("it contains %d images, and --name names one: save each image into an archive of its own, or omit --name", len(candidates))
	}
	return []namedContent{{name: n, content: candidates[0].content}}, nil
}
