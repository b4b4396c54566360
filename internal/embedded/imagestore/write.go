package imagestore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"hotspare.io/hotspare/internal/embedded/controlplane/flock"
)

// withLock calls change while no other process changes the store. It creates the store.
func (s *Store) withLock(ctx context.Context, change func() error) error {
	lock, err := flock.Wait(ctx, s.path("lock"))
	if err != nil {
		return s.explainWriteError(err)
	}
	return errors.Join(change(), lock.Release())
}

// writeImages writes blobs first and references last. If it fails, it removes the blobs that it wrote.
func (s *Store) writeImages(ctx context.Context, named []namedContent) ([]Image, error) {
	images := []Image{}
	err := s.withLock(ctx, func() error {
		if err := s.removeTemporaryFiles(); err != nil {
			return err
		}
		if err := s.confirmSpace(s.sumMissing(named)); err != nil {
			return err
		}
		if err := s.writeBlobs(ctx, named); err != nil {
			return errors.Join(err, s.removeUnreferencedBlobs())
		}
		for _, n := range named {
			image, err := s.writeReference(ctx, n)
			if err != nil {
				return errors.Join(err, s.removeUnreferencedBlobs())
			}
			images = append(images, image)
		}
		return s.removeUnreferencedBlobs() // of the images that had these names before
	})
	return images, err
}

func (s *Store) writeBlobs(ctx context.Context, named []namedContent) error {
	if err := os.MkdirAll(s.path(blobsFolder), 0o700); err != nil {
		return s.explainWriteError(err)
	}
	for _, n := range named {
		for _, b := range n.content.blobs {
			if err := s.writeBlob(ctx, b); err != nil {
				return err
			}
		}
	}
	return s.syncFolders(s.path(blobsFolder))
}

// writeBlob copies a blob, unless the store has it already.
func (s *Store) writeBlob(ctx context.Context, b blob) (err error) {
	if s.hasBlob(ctx, b) {
		return nil
	}
	in, err := b.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	hash := sha256.New()
	// A registry may send more than its manifest says, and so more than there is space for.
	reader := &trackingReader{ctx: ctx, r: io.TeeReader(io.LimitReader(in, b.size+1), hash)}
	verify := func() error {
		if got := sumOf(hash); got != b.digest {
			return newDigestError(b.name, got, b.digest)
		}
		return nil
	}
	return s.writeFile(s.path(blobName(b.digest)), reader, verify)
}

// hasBlob reports whether the store has the blob with its right content. A damaged one is written
// again.
func (s *Store) hasBlob(ctx context.Context, b blob) bool {
	f, err := os.Open(s.path(blobName(b.digest)))
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // read only
	hash := sha256.New()
	_, err = io.Copy(hash, &trackingReader{ctx: ctx, r: f})
	return err == nil && sumOf(hash) == b.digest
}

// writeFile writes a file so that it exists with its whole content or not at all, also if the computer
// loses power. verify runs when everything was read.
func (s *Store) writeFile(path string, in *trackingReader, verify func() error) error {
	f, err := os.CreateTemp(filepath.Dir(path), temporaryPrefix+"*")
	if err != nil {
		return s.explainWriteError(err)
	}
	_, err = io.Copy(changeWriter{s: s, f: f}, in)
	switch {
	case in.err != nil:
		err = explainReadError(in.err)
	case err != nil:
		err = s.explainWriteError(err)
	default:
		if err = verify(); err == nil {
			err = s.explainWriteError(s.sync(f))
		}
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = s.explainWriteError(os.Rename(f.Name(), path))
	}
	if err != nil {
		return errors.Join(err, removeFile(f.Name()))
	}
	return s.explainWriteError(s.reportChange("renamed %s", path))
}

// changeWriter writes to a file and reports each write.
type changeWriter struct {
	s *Store
	f *os.File
}

func (w changeWriter) Write(p []byte) (int, error) {
	n, err := w.f.Write(p)
	if err == nil {
		err = w.s.reportChange("wrote %s", w.f.Name())
	}
	return n, err
}

func (s *Store) writeReference(ctx context.Context, n namedContent) (Image, error) {
	root := n.content.root
	raw, err := json.Marshal(tagReference{MediaType: root.MediaType, Digest: root.Digest, Size: root.Size})
	if err != nil {
		return Image{}, err
	}
	path := s.referencePath(n.name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return Image{}, s.explainWriteError(err)
	}
	in := &trackingReader{ctx: ctx, r: bytes.NewReader(raw)}
	if err := s.writeFile(path, in, func() error { return nil }); err != nil {
		return Image{}, err
	}
	if err := s.syncFolders(filepath.Dir(path)); err != nil {
		return Image{}, err
	}
	return n.content.describe(n.name.String()), nil
}

func (s *Store) sync(f *os.File) error {
	if err := s.syncFile(f); err != nil {
		return err
	}
	return s.reportChange("synced %s", f.Name())
}

// syncFolders makes the names in a folder, and in its parents up to the store, survive a loss of power.
func (s *Store) syncFolders(dir string) error {
	for {
		f, err := os.Open(dir)
		if err != nil {
			return err
		}
		if err := errors.Join(s.sync(f), f.Close()); err != nil {
			return s.explainWriteError(err)
		}
		if dir == s.dir || dir == filepath.Dir(dir) {
			return nil
		}
		dir = filepath.Dir(dir)
	}
}

// explainWriteError adds the remedy to the error of a full disk.
func (s *Store) explainWriteError(err error) error {
	if err == nil || !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return err
	}
	return fmt.Errorf("%w: free space on the disk of %s, or delete images with: hotspare image delete", err, s.dir)
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
