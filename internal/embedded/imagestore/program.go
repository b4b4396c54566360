package imagestore

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// program is a program for Linux that needs no other file. It becomes an image that contains nothing
// else.
type program struct {
	file *os.File
	path string
	size int64
	// architecture is the program's architecture, in Go's words.
	architecture string
}

// architectures are the architectures of programs, in Go's words.
var architectures = map[elf.Machine]string{
	elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64", elf.EM_386: "386", elf.EM_ARM: "arm", elf.EM_RISCV: "riscv64", elf.EM_S390: "s390x",
	elf.EM_PPC64: "ppc64le",
}

// isProgram reports whether there is a program for Linux at path. It returns false for a file that it
// cannot read: the attempt to read it as an archive explains why.
func isProgram(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false // opening a named pipe would block
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // it was only read
	start := make([]byte, len(elf.ELFMAG))
	_, err = io.ReadFull(f, start)
	return err == nil && string(start) == elf.ELFMAG
}

// readProgram makes an image of the program at path.
func readProgram(path string) (candidates []candidate, closeSource func() error, err error) {
	p, err := openProgram(path)
	if err != nil {
		return nil, nil, err
	}
	content, err := p.makeImage()
	if err != nil {
		return nil, nil, errors.Join(err, p.file.Close())
	}
	return []candidate{{content: content}}, p.file.Close, nil
}

func openProgram(path string) (*program, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	p := &program{file: f, path: path}
	if err := p.inspect(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return p, nil
}

// inspect reads the size and the architecture of the program. It returns an error if the program needs
// other files.
func (p *program) inspect() error {
	info, err := p.file.Stat()
	if err != nil {
		return err
	}
	header, err := elf.NewFile(p.file)
	if err != nil {
		return fmt.Errorf("it is a damaged program: build it again: %w", err)
	}
	if header.Type != elf.ET_EXEC && header.Type != elf.ET_DYN {
		return errors.New("it is a part of a program: specify the program itself")
	}
	for _, segment := range header.Progs {
		if segment.Type == elf.PT_INTERP {
			return errors.New("it is a program that needs shared libraries, which its image would not contain: " +
				"link it statically (in Go: CGO_ENABLED=0 go build), or specify an archive of an image")
		}
	}
	p.size, p.architecture = info.Size(), architectures[header.Machine]
	if p.architecture == "" {
		return fmt.Errorf("it is a program for the unknown architecture %s: build it for this computer", header.Machine)
	}
	return nil
}

// makeImage returns the image of the program: one layer, which contains the program in the root folder.
func (p *program) makeImage() (*imageContent, error) {
	name := filepath.Base(p.path)
	layer, err := p.newLayer(name)
	if err != nil {
		return nil, err
	}
	platform := v1.Platform{OS: "linux", Architecture: p.architecture}
	config, err := json.Marshal(v1.ConfigFile{
		OS: platform.OS, Architecture: platform.Architecture,
		Config: v1.Config{Entrypoint: []string{"/" + name}, WorkingDir: "/", Env: []string{"PATH=/"}},
		RootFS: v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{layer.digest}},
	})
	if err != nil {
		return nil, err
	}
	c := &imageContent{seen: map[v1.Hash]bool{}, platforms: []v1.Platform{platform}}
	c.add(layer)
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1,
		Config: c.addBytes(types.OCIConfigJSON, config),
		Layers: []v1.Descriptor{{MediaType: types.OCIUncompressedLayer, Size: layer.size, Digest: layer.digest}},
	})
	if err != nil {
		return nil, err
	}
	c.root = c.addBytes(types.OCIManifestSchema1, manifest)
	return c, nil
}

// newLayer returns the layer with the program. It reads the program, and keeps nothing of it in memory.
func (p *program) newLayer(name string) (blob, error) {
	var start bytes.Buffer
	header := &tar.Header{Name: name, Mode: 0o755, Size: p.size, Typeflag: tar.TypeReg}
	if err := tar.NewWriter(&start).WriteHeader(header); err != nil {
		return blob{}, err
	}
	const block = 512
	end := make([]byte, (block-p.size%block)%block+2*block) // fills the last block, and ends the archive
	open := func() (io.ReadCloser, error) {
		content := io.NewSectionReader(p.file, 0, p.size)
		return io.NopCloser(io.MultiReader(bytes.NewReader(start.Bytes()), content, bytes.NewReader(end))), nil
	}
	reader, err := open()
	if err != nil {
		return blob{}, err
	}
	hash := sha256.New()
	size, err := io.Copy(hash, reader)
	if err != nil {
		return blob{}, err
	}
	if want := int64(start.Len()) + p.size + int64(len(end)); size != want {
		return blob{}, fmt.Errorf("%s changes while it is read: load it again when it is complete", p.path)
	}
	return blob{name: p.path, digest: sumOf(hash), size: size, open: open}, nil
}
