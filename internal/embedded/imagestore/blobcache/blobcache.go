// Package blobcache is a folder of content that is named by its digest, with a limit of its size. Any
// number of processes use it at the same time.
//
//	DIR/blobs/HEX               verified content; its time of modification is that of its last use
//	DIR/downloads/HEX@SOURCE    content that arrives; locked (flock) by the process that receives it
//	DIR/lock                    locked by a process that deletes content
//
// A download gets its final name after its digest was verified and it was synced to the disk. Others
// read it while it arrives; its last part is written after the verification, so that none of them
// reads wrong content as a whole. If the process that receives it ends, however it ends, the kernel
// releases the lock: readers get ErrInterrupted, and the next download removes what is left.
package blobcache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"hotspare.io/hotspare/internal/embedded/controlplane/flock"
)

// Reserve is how many bytes of the disk the cache leaves free.
const Reserve = 1 << 30

// useGranularity is how exactly the last use of content is recorded.
const useGranularity = time.Minute

// ErrNoRoom reports that content is not stored: it is larger than the limit, or the disk is full.
var ErrNoRoom = errors.New("the image cache has no room")

// Cache is a folder of content. Its methods are safe for concurrent use.
type Cache struct {
	dir   string
	limit int64
	now   func() time.Time
	// free returns the free bytes of the disk. Tests replace it.
	free func(dir string) (int64, error)
	// Write writes to a file, and sync makes it survive a loss of power. Tests replace them.
	Write func(f *os.File, p []byte) (int, error)
	sync  func(f *os.File) error
	// poll is how often a reader of a download checks for more.
	poll time.Duration
}

// Open returns the cache in dir, with at most limit bytes of content. It creates nothing.
func Open(dir string, limit int64, now func() time.Time) *Cache {
	return &Cache{
		dir: dir, limit: limit, now: now, free: MeasureFree, Write: (*os.File).Write, sync: (*os.File).Sync, poll: 20 * time.Millisecond,
	}
}

// MeasureFree returns the free bytes of the disk of a folder.
func MeasureFree(dir string) (int64, error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return 0, fmt.Errorf("reading the free space of %s: %w", dir, err)
	}
	return int64(disk.Bavail) * int64(disk.Bsize), nil //nolint:unconvert // the types differ on darwin
}

func (c *Cache) blobsPath() string     { return filepath.Join(c.dir, "blobs") }
func (c *Cache) downloadsPath() string { return filepath.Join(c.dir, "downloads") }

func (c *Cache) blobPath(digest v1.Hash) string { return filepath.Join(c.blobsPath(), digest.Hex) }

// OpenBlob opens content and records its use. The error is fs.ErrNotExist if there is none.
func (c *Cache) OpenBlob(digest v1.Hash) (*os.File, error) {
	f, err := os.Open(c.blobPath(digest))
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if now := c.now(); err == nil && now.Sub(info.ModTime()) >= useGranularity {
		err = os.Chtimes(f.Name(), now, now)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // deleted since it was opened
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Has reports whether the cache has content.
func (c *Cache) Has(digest v1.Hash) bool {
	_, err := os.Stat(c.blobPath(digest))
	return err == nil
}

// Remove deletes content that turned out to be damaged.
func (c *Cache) Remove(digest v1.Hash) error { return ignoreMissing(os.Remove(c.blobPath(digest))) }

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Blob is content of the cache.
type Blob struct {
	Hex  string
	Size int64
	// Used is when it was used last.
	Used time.Time
}

// List returns all content, that which was not used for the longest time first.
func (c *Cache) List() ([]Blob, error) {
	blobs, err := listFiles(c.blobsPath())
	slices.SortFunc(blobs, func(a, b Blob) int {
		return cmp.Or(a.Used.Compare(b.Used), strings.Compare(a.Hex, b.Hex))
	})
	return blobs, err
}

func listFiles(dir string) ([]Blob, error) {
	entries, err := os.ReadDir(dir)
	if err := ignoreMissing(err); err != nil {
		return nil, fmt.Errorf("listing the image cache: %w", err)
	}
	var files []Blob
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() { // otherwise it was deleted since
			files = append(files, Blob{Hex: e.Name(), Size: info.Size(), Used: info.ModTime()})
		}
	}
	return files, nil
}

// decideDeletions returns the content to delete so that at least need bytes become free, that which
// was not used for the longest time first. The list is in that order. It returns false, and nothing to
// delete, if that is impossible.
func decideDeletions(blobs []Blob, need int64) ([]Blob, bool) {
	for i, b := range blobs {
		if need <= 0 {
			return blobs[:i], true
		}
		need -= b.Size
	}
	if need > 0 {
		return nil, false
	}
	return blobs, true
}

// makeRoom deletes content that was not used for long, until size more bytes fit. The error is
// ErrNoRoom if they cannot fit.
func (c *Cache) makeRoom(ctx context.Context, size int64) (err error) {
	if size > c.limit {
		return fmt.Errorf("%w: %d bytes are more than its limit of %d", ErrNoRoom, size, c.limit)
	}
	lock, err := flock.Wait(ctx, filepath.Join(c.dir, "lock"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	blobs, err := c.List()
	if err != nil {
		return err
	}
	arriving, err := listFiles(c.downloadsPath())
	if err != nil {
		return err
	}
	total := int64(0)
	for _, b := range slices.Concat(blobs, arriving) {
		total += b.Size
	}
	free, err := c.free(c.dir)
	if err != nil {
		return err
	}
	doomed, possible := decideDeletions(blobs, max(total+size-c.limit, Reserve+size-free))
	if !possible {
		return fmt.Errorf("%w: the disk of %s has only %d bytes free", ErrNoRoom, c.dir, free)
	}
	for _, b := range doomed {
		if err := ignoreMissing(os.Remove(filepath.Join(c.blobsPath(), b.Hex))); err != nil {
			return err
		}
	}
	return nil
}

// RemoveLeftovers removes what downloads of processes that were killed have left.
func (c *Cache) RemoveLeftovers() error {
	files, err := listFiles(c.downloadsPath())
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := removeUnlessLocked(filepath.Join(c.downloadsPath(), file.Hex)); err != nil {
			return err
		}
	}
	return nil
}

func removeUnlessLocked(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return ignoreMissing(err)
	}
	locked, err := flock.TryFile(f)
	if err == nil && locked && isAt(f, path) {
		err = ignoreMissing(os.Remove(path))
	}
	return errors.Join(err, f.Close())
}

// Prune deletes all content that has arrived, and returns how many bytes became free.
func (c *Cache) Prune(ctx context.Context) (freed int64, err error) {
	if _, err := os.Stat(c.dir); errors.Is(err, fs.ErrNotExist) { // do not create a folder to delete from
		return 0, nil
	}
	lock, err := flock.Wait(ctx, filepath.Join(c.dir, "lock"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	blobs, err := c.List()
	if err != nil {
		return 0, err
	}
	for _, b := range blobs {
		if err := ignoreMissing(os.Remove(filepath.Join(c.blobsPath(), b.Hex))); err != nil {
			return freed, err
		}
		freed += b.Size
	}
	return freed, c.RemoveLeftovers()
}
