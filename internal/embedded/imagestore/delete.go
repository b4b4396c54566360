package imagestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrNotFound reports that the store has no image with a name.
var ErrNotFound = errors.New("there is no such image")

// Delete deletes the image with this name, and the blobs that no other image needs. A cluster that has
// pulled the image keeps it.
func (s *Store) Delete(ctx context.Context, name string) error {
	n, err := parseName(name)
	if err != nil {
		return err
	}
	path := s.referencePath(n)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) { // do not create a store to delete from
		return fmt.Errorf("deleting image %s: %w", n, ErrNotFound)
	}
	err = s.withLock(ctx, func() error {
		err := os.Remove(path)
		if errors.Is(err, fs.ErrNotExist) {
			err = ErrNotFound
		}
		if err == nil {
			err = s.reportChange("removed %s", path)
		}
		if err != nil {
			return err
		}
		s.removeEmptyFolders(filepath.Dir(path))
		return errors.Join(s.removeTemporaryFiles(), s.removeUnreferencedBlobs())
	})
	if err != nil {
		return fmt.Errorf("deleting image %s: %w", n, err)
	}
	return nil
}

// removeEmptyFolders removes a folder of references and its parents, up to the first that is not
// empty. The lock must be held.
func (s *Store) removeEmptyFolders(dir string) {
	for dir != s.path(referencesFolder) && os.Remove(dir) == nil {
		dir = filepath.Dir(dir)
	}
}

// removeTemporaryFiles removes what an interrupted Load left behind. The lock must be held.
func (s *Store) removeTemporaryFiles() error {
	return filepath.WalkDir(s.dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the file of an archive that another process uncompresses
		}
		if err != nil || e.IsDir() || !strings.HasPrefix(e.Name(), temporaryPrefix) {
			return err
		}
		return removeFile(path)
	})
}

// removeUnreferencedBlobs removes the blobs that no reference needs. The lock must be held. It removes
// nothing if it cannot read all images.
func (s *Store) removeUnreferencedBlobs() error {
	needed, err := s.listNeededBlobs()
	if err != nil {
		return fmt.Errorf("removing unused blobs: %w", err)
	}
	entries, err := os.ReadDir(s.path(blobsFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing unused blobs: %w", err)
	}
	for _, e := range entries {
		if needed[e.Name()] {
			continue
		}
		if err := removeFile(filepath.Join(s.path(blobsFolder), e.Name())); err != nil {
			return fmt.Errorf("removing unused blobs: %w", err)
		}
		if err := s.reportChange("removed blob %s", e.Name()); err != nil {
			return err
		}
	}
	return nil
}

// listNeededBlobs returns the hexadecimal digests of the blobs of all images.
func (s *Store) listNeededBlobs() (map[string]bool, error) {
	references, err := s.listReferences()
	if err != nil {
		return nil, err
	}
	needed := map[string]bool{}
	for _, r := range references {
		content, err := s.resolveReference(r)
		if errors.Is(err, fs.ErrNotExist) {
			continue // without its manifest, the image needs nothing
		}
		if err != nil {
			return nil, err
		}
		for _, b := range content.blobs {
			needed[b.digest.Hex] = true
		}
	}
	return needed, nil
}
