package pki

import (
	"fmt"
	"os"
	"path/filepath"
)

// WriteFile replaces the file at path by one with mode 0600 and this content. A concurrent reader,
// and a reader after a crash, sees either the old content or the new one. WriteFile creates the
// folder, accessible to its owner only, if needed.
func WriteFile(path string, content []byte) error {
	if err := replaceFileAtomically(path, content); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

func replaceFileAtomically(path string, content []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*") // CreateTemp creates it with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // finds nothing after the rename
	if err := writeAndClose(f, content); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// writeAndClose writes content, syncs it to disk and closes f.
func writeAndClose(f *os.File, content []byte) error {
	_, err := f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
