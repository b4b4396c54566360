package imagestore

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// maxDocument is the maximum size of a JSON document: registries accept manifests up to this size.
const maxDocument = 4 << 20

// source is a folder or an archive of which files are read. Names use slashes.
type source interface {
	// size returns the size of a file; fs.ErrNotExist if there is no such file.
	size(name string) (int64, error)
	open(name string) (io.ReadCloser, error)
	close() error
}

// readDocument reads a small file.
func readDocument(src source, name string) ([]byte, error) {
	size, err := src.size(name)
	if err != nil {
		return nil, err
	}
	if size > maxDocument {
		return nil, fmt.Errorf("%s has %d bytes, more than %d: it is no JSON document of an image", name, size, maxDocument)
	}
	f, err := src.open(name)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(f, size+1)) // a registry may send more than its manifest says
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return raw, nil
}

// parseDocument reads a small JSON file into a value.
func parseDocument(src source, name string, into any) error {
	raw, err := readDocument(src, name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s is not valid: %w", name, err)
	}
	return nil
}

// folder is a source. A symbolic link cannot leave it.
type folder struct{ root *os.Root }

func openFolder(dir string) (folder, error) {
	root, err := os.OpenRoot(dir)
	return folder{root: root}, err
}

func (f folder) size(name string) (int64, error) {
	info, err := f.root.Stat(name)
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, fmt.Errorf("%s is not a regular file", name)
	}
	return info.Size(), nil
}

func (f folder) open(name string) (io.ReadCloser, error) {
	if _, err := f.size(name); err != nil {
		return nil, err // also: a named pipe would block
	}
	return f.root.Open(name)
}

func (f folder) close() error { return f.root.Close() }

// has reports whether the source has a file.
func has(src source, name string) (bool, error) {
	_, err := src.size(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
