package state

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
)

// unpackedLimit bounds the size of unpacked data, so that a damaged archive cannot fill the disk.
const unpackedLimit = 64 << 20

// PackFolder packs the files below dir, except those named. Equal folders give equal bytes.
func PackFolder(dir string, except ...string) ([]byte, error) {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	archive := tar.NewWriter(zip)
	leave := map[string]bool{}
	for _, name := range except {
		leave[name] = true
	}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || leave[name] {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		header := &tar.Header{Name: filepath.ToSlash(name), Mode: 0o600, Size: int64(len(content)), Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		_, err = archive.Write(content)
		return err
	})
	if err := errors.Join(err, archive.Close(), zip.Close()); err != nil {
		return nil, fmt.Errorf("packing the installer's folder: %w", err)
	}
	return out.Bytes(), nil
}

// UnpackFolder writes packed files below dir.
func UnpackFolder(packed []byte, dir string) error {
	zip, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return fmt.Errorf("unpacking the installer's folder: %w", err)
	}
	archive := tar.NewReader(io.LimitReader(zip, unpackedLimit))
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = unpackFile(archive, header.Name, dir)
		}
		if err != nil {
			return fmt.Errorf("unpacking the installer's folder: %w", err)
		}
	}
}

func unpackFile(from io.Reader, name, dir string) error {
	if !filepath.IsLocal(name) {
		return fmt.Errorf("file %q is outside the folder", name)
	}
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	content, err := io.ReadAll(from)
	if err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}
