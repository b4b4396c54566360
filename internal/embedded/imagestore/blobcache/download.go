package blobcache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"hotspare.io/hotspare/internal/embedded/controlplane/flock"
)

// ErrInterrupted reports that a download ended before its content was complete.
var ErrInterrupted = errors.New("the download was interrupted")

// ErrDigest reports that content is not what its digest says.
var ErrDigest = errors.New("the content does not have its digest")

// roomStep is how much room is made at once for content whose size is not known.
const roomStep = 64 << 20

// chunkSize is how much of a download is read at once.
const chunkSize = 256 << 10

// maxAttempts bounds how often a file that others replace is opened again.
const maxAttempts = 100

// Download is content that this process receives. End it with Receive or Cancel.
type Download struct {
	cache  *Cache
	digest v1.Hash
	file   *os.File // locked
	room   int64    // how many bytes of the content have room
	ended  bool
}

// Begin begins the download of content from a source, which is a name without slashes. If a download of
// the same content from the same source is going on, in this process or in another one, Begin returns
// a reader of it instead. The caller must end the download, or close the reader.
func (c *Cache) Begin(ctx context.Context, source string, digest v1.Hash) (*Download, *Reader, error) {
	for _, dir := range []string{c.downloadsPath(), c.blobsPath()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, nil, fmt.Errorf("creating the image cache: %w", err)
		}
	}
	path := filepath.Join(c.downloadsPath(), digest.Hex+"@"+source)
	for range maxAttempts {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, nil, fmt.Errorf("starting a download: %w", err)
		}
		locked, err := flock.TryFile(f)
		if err != nil {
			return nil, nil, errors.Join(err, f.Close())
		}
		if !locked {
			return nil, c.newReader(ctx, f, digest), nil
		}
		info, err := f.Stat()
		if err == nil && info.Size() == 0 && isAt(f, path) {
			return &Download{cache: c, digest: digest, file: f}, nil, nil
		}
		if err == nil && isAt(f, path) {
			err = ignoreMissing(os.Remove(path)) // left by a process that was killed
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, nil, fmt.Errorf("starting a download: %w", err)
		}
	}
	return nil, nil, fmt.Errorf("starting a download: others replace %s all the time", path)
}

// isAt reports whether an open file is the one at a path.
func isAt(f *os.File, path string) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(opened, there)
}

// Reader returns a reader of the content as it arrives. ctx ends its waiting.
func (d *Download) Reader(ctx context.Context) (*Reader, error) {
	f, err := os.Open(d.file.Name())
	if err != nil {
		return nil, fmt.Errorf("reading a download: %w", err)
	}
	return d.cache.newReader(ctx, f, d.digest), nil
}

// MakeRoom makes room for the download, whose size is -1 if it is not known. The error is ErrNoRoom if it
// does not fit.
func (d *Download) MakeRoom(ctx context.Context, size int64) error {
	if size <= 0 {
		return nil // Receive makes room
	}
	if err := d.cache.makeRoom(ctx, size); err != nil {
		return err
	}
	d.room = size
	return nil
}

// Cancel ends the download without its content, unless it has ended.
func (d *Download) Cancel() {
	if d.ended {
		return
	}
	d.ended = true
	// The name is removed before the lock is released: nobody takes what is left for a download. An
	// error leaves a file that the next download removes.
	_, _ = os.Remove(d.file.Name()), d.file.Close()
}

// Receive reads the content, and ends the download. It calls record with the size of the content after
// it has verified it, and before others find it under its digest. The error is ErrDigest if the content
// is wrong, and ErrNoRoom if the content does not fit on the disk.
func (d *Download) Receive(ctx context.Context, from io.Reader, record func(size int64) error) error {
	defer d.Cancel()
	size, err := d.copyVerified(ctx, from)
	if err == nil {
		err = record(size)
	}
	if err != nil {
		return err
	}
	if err := d.cache.sync(d.file); err != nil {
		return noRoom(err)
	}
	now := d.cache.now()
	if err := os.Chtimes(d.file.Name(), now, now); err != nil {
		return fmt.Errorf("storing an image: %w", err)
	}
	if err := os.Rename(d.file.Name(), d.cache.blobPath(d.digest)); err != nil {
		return fmt.Errorf("storing an image: %w", err)
	}
	d.ended = true
	err = d.cache.makeRoom(ctx, 0)
	if errors.Is(err, ErrNoRoom) {
		err = nil // others have filled the disk, and nothing can be deleted: the content is stored
	}
	return errors.Join(err, d.file.Close())
}

// copyVerified writes the content, and returns its size. It writes the last part after it has verified
// the whole.
func (d *Download) copyVerified(ctx context.Context, from io.Reader) (total int64, err error) {
	hash := sha256.New()
	next, held := make([]byte, chunkSize), make([]byte, 0, chunkSize)
	for {
		n, err := from.Read(next)
		if n > 0 {
			if err := d.writeHeld(held); err != nil {
				return total, err
			}
			hash.Write(next[:n])
			if total += int64(n); total > d.room {
				step := max(int64(n), min(roomStep, d.cache.limit/2))
				if err := d.cache.makeRoom(ctx, step); err != nil {
					return total, err
				}
				d.room = total + step
			}
			held, next = next[:n], held[:chunkSize]
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return total, fmt.Errorf("%w: %w", ErrInterrupted, err)
		}
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != d.digest.Hex {
		return total, fmt.Errorf("%w %s: it is sha256:%s", ErrDigest, d.digest, got)
	}
	return total, d.writeHeld(held)
}

func (d *Download) writeHeld(p []byte) error {
	_, err := d.cache.Write(d.file, p)
	return noRoom(err)
}

// noRoom makes ErrNoRoom of an error of a write.
func noRoom(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrNoRoom, err)
}

// Reader reads a download as it arrives.
type Reader struct {
	ctx      context.Context //nolint:containedctx // Read waits
	cache    *Cache
	digest   v1.Hash
	file     *os.File
	complete bool
	closing  sync.Once
}

func (c *Cache) newReader(ctx context.Context, f *os.File, digest v1.Hash) *Reader {
	return &Reader{ctx: ctx, cache: c, file: f, digest: digest}
}

// Close closes the reader. It does not end the download.
func (r *Reader) Close() (err error) {
	r.closing.Do(func() { err = r.file.Close() })
	return err
}

// Read waits for more content. The error is ErrInterrupted if the download has ended without all of it.
func (r *Reader) Read(p []byte) (int, error) {
	for {
		n, err := r.file.Read(p)
		if n > 0 || len(p) == 0 || err != nil && !errors.Is(err, io.EOF) {
			return n, err
		}
		if r.complete {
			return 0, io.EOF
		}
		// What is complete now was written before: the next Read reads it.
		if r.complete = r.isComplete(); r.complete {
			continue
		}
		if !r.isGoingOn() {
			// It may have ended successfully in between.
			if r.complete = r.isComplete(); r.complete {
				continue
			}
			return 0, ErrInterrupted
		}
		select {
		case <-r.ctx.Done():
			return 0, context.Cause(r.ctx)
		case <-time.After(r.cache.poll):
		}
	}
}

func (r *Reader) isComplete() bool { return isAt(r.file, r.cache.blobPath(r.digest)) }

// isGoingOn reports whether a process receives the content.
func (r *Reader) isGoingOn() bool {
	f, err := os.Open(r.file.Name())
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // it was not changed
	if !isAt(r.file, r.file.Name()) {
		return false
	}
	locked, err := flock.TryFile(f)
	return err == nil && !locked
}
