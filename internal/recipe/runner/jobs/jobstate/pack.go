package jobstate

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"hotspare.io/hotspare/internal/recipe"
)

// maxEntries is the maximum number of entries of a packed folder.
const maxEntries = 10_000

// ErrTooLarge means that a state folder is larger than a recipe may leave it.
var ErrTooLarge = fmt.Errorf("the state folder has more than %d bytes or %d files", recipe.MaxState, maxEntries)

// PackFolder packs the files, folders and symbolic links below dir, with the permissions of their
// owner, except those named. Equal folders give equal bytes. The folder may change meanwhile: an entry
// that disappears is left out.
func PackFolder(dir string, except ...string) ([]byte, error) {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	p := packer{dir: dir, archive: tar.NewWriter(zip)}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		name, relative := filepath.Rel(dir, path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || relative != nil:
			return errors.Join(err, relative)
		case name == "." || slices.Contains(except, name):
			return nil
		}
		if err := p.add(path, name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
	if err := errors.Join(err, p.archive.Close(), zip.Close()); err != nil {
		return nil, fmt.Errorf("packing the state folder: %w", err)
	}
	return out.Bytes(), nil
}

type packer struct {
	dir     string
	archive *tar.Writer
	size    int64
	entries int
}

// add adds one entry. Sockets, pipes and devices are left out.
func (p *packer) add(path, name string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if p.entries++; p.entries > maxEntries {
		return ErrTooLarge
	}
	header := &tar.Header{Name: filepath.ToSlash(name), Mode: int64(info.Mode().Perm() & 0o700)}
	var content []byte
	switch {
	case info.IsDir():
		header.Typeflag = tar.TypeDir
	case info.Mode()&fs.ModeSymlink != 0:
		header.Typeflag = tar.TypeSymlink
		if header.Linkname, err = os.Readlink(path); err != nil {
			return err
		}
	case info.Mode().IsRegular():
		if p.size += info.Size(); p.size > recipe.MaxState {
			return ErrTooLarge
		}
		if content, err = readAtMost(path, recipe.MaxState); err != nil {
			return err
		}
		header.Typeflag, header.Size = tar.TypeReg, int64(len(content))
	default:
		return nil
	}
	if err := p.archive.WriteHeader(header); err != nil {
		return err
	}
	_, err = p.archive.Write(content)
	return err
}

// readAtMost reads a file that may grow meanwhile.
func readAtMost(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was opened for reading only
	return io.ReadAll(io.LimitReader(f, most))
}

// UnpackFolder writes a packed folder below dir, and nothing elsewhere.
func UnpackFolder(packed []byte, dir string) error {
	if len(packed) == 0 {
		return nil
	}
	if err := unpackFolder(packed, dir); err != nil {
		return fmt.Errorf("unpacking the state folder: %w", err)
	}
	return nil
}

func unpackFolder(packed []byte, dir string) error {
	zip, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // everything was written through other handles
	modes := map[string]fs.FileMode{}
	archive := tar.NewReader(zip)
	size := int64(0)
	for entries := 0; ; entries++ {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if size += header.Size; size > 2*recipe.MaxState || entries > maxEntries {
			return ErrTooLarge
		}
		if err := unpackEntry(root, archive, header, modes); err != nil {
			return err
		}
	}
	for name, mode := range modes { // last, because a folder may be read-only
		if err := root.Chmod(name, mode); err != nil {
			return err
		}
	}
	return nil
}

func unpackEntry(root *os.Root, from io.Reader, header *tar.Header, modes map[string]fs.FileMode) error {
	name, mode := filepath.FromSlash(header.Name), fs.FileMode(header.Mode)&0o700
	switch header.Typeflag {
	case tar.TypeDir:
		modes[name] = mode
		return root.MkdirAll(name, 0o700)
	case tar.TypeSymlink:
		return root.Symlink(header.Linkname, name)
	case tar.TypeReg:
		out, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		modes[name] = mode
		_, err = io.Copy(out, from)
		return errors.Join(err, out.Close())
	}
	return fmt.Errorf("%q has an unknown type", header.Name)
}
