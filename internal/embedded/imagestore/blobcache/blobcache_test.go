package blobcache

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// clock is a time that tests step.
type clock struct{ time.Time }

// newCache returns a cache on a disk that is large.
func newCache(t testing.TB, limit int64) (*Cache, *clock) {
	t.Helper()
	now := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	c := Open(filepath.Join(t.TempDir(), "cache"), limit, func() time.Time { return now.Time })
	c.free = func(string) (int64, error) { return 1 << 50, nil }
	c.sync = func(*os.File) error { return nil }
	c.poll = time.Millisecond
	return c, now
}

func ignoreSize(int64) error { return nil }

func digestOf(content []byte) v1.Hash {
	sum := sha256.Sum256(content)
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])}
}

// begin begins a download that nobody else receives.
func begin(t testing.TB, c *Cache, digest v1.Hash) *Download {
	t.Helper()
	d, r, err := c.Begin(t.Context(), "quay.io", digest)
	if err != nil || r != nil {
		t.Fatalf("got reader %v, %v", r, err)
	}
	return d
}

func store(t testing.TB, c *Cache, content string) {
	t.Helper()
	d := begin(t, c, digestOf([]byte(content)))
	if err := d.MakeRoom(t.Context(), int64(len(content))); err != nil {
		t.Fatal(err)
	}
	if err := d.Receive(t.Context(), strings.NewReader(content), ignoreSize); err != nil {
		t.Fatal(err)
	}
}

// names lists the files below the cache's folder, without locks.
func names(t testing.TB, c *Cache) []string {
	t.Helper()
	found := []string{}
	err := filepath.WalkDir(c.dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && e.Name() != "lock" {
			relative, _ := filepath.Rel(c.dir, path)
			found = append(found, relative)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestContentIsStoredUnderItsDigest(t *testing.T) {
	for _, size := range []int{0, 1, chunkSize - 1, chunkSize, chunkSize + 1, 3*chunkSize + 17} {
		c, _ := newCache(t, 1<<30)
		content := bytes.Repeat([]byte("x"), size)
		digest := digestOf(content)
		if err := begin(t, c, digest).Receive(t.Context(), iotest.HalfReader(bytes.NewReader(content)), ignoreSize); err != nil {
			t.Fatal(err)
		}
		f, err := c.OpenBlob(digest)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(f)
		if err != nil || !bytes.Equal(got, content) || f.Close() != nil || !c.Has(digest) {
			t.Errorf("read %d of %d bytes, %v", len(got), size, err)
		}
		if diff := cmp.Diff([]string{"blobs/" + digest.Hex}, names(t, c)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestAReaderGetsAllButTheEndOfWrongContent(t *testing.T) {
	c, _ := newCache(t, 1<<30)
	content := bytes.Repeat([]byte("x"), 2*chunkSize)
	d := begin(t, c, digestOf([]byte("other")))
	r, err := d.Reader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Receive(t.Context(), bytes.NewReader(content), ignoreSize); !errors.Is(err, ErrDigest) {
		t.Errorf("got %v", err)
	}
	got, err := io.ReadAll(r)
	if !errors.Is(err, ErrInterrupted) || len(got) >= len(content) || len(got) == 0 {
		t.Errorf("read %d of %d bytes, %v", len(got), len(content), err)
	}
	if left := names(t, c); len(left) > 0 || r.Close() != nil {
		t.Errorf("left: %v", left)
	}
}

var errNotRecorded = errors.New("not recorded")

func TestFailedDownloadsLeaveNothing(t *testing.T) {
	content := bytes.Repeat([]byte("x"), 3*chunkSize)
	broken := errors.New("the connection broke")
	for name, tc := range map[string]struct {
		body    io.Reader
		prepare func(*Cache)
		want    error
	}{
		"truncated":        {bytes.NewReader(content[:2*chunkSize]), nil, ErrDigest},
		"empty":            {bytes.NewReader(nil), nil, ErrDigest},
		"not recorded":     {bytes.NewReader(content), func(c *Cache) { c.limit++ }, errNotRecorded},
		"broken":           {io.MultiReader(bytes.NewReader(content[:chunkSize]), iotest.ErrReader(broken)), nil, ErrInterrupted},
		"too long":         {io.MultiReader(bytes.NewReader(content), strings.NewReader("x")), nil, ErrDigest},
		"over the limit":   {bytes.NewReader(content), func(c *Cache) { c.limit = chunkSize }, ErrNoRoom},
		"full at the sync": {bytes.NewReader(content), func(c *Cache) { c.sync = func(*os.File) error { return syscall.EDQUOT } }, ErrNoRoom},
		"full": {bytes.NewReader(content), func(c *Cache) {
			written := 0
			c.Write = func(f *os.File, p []byte) (int, error) {
				if written += len(p); written > chunkSize {
					return 0, syscall.ENOSPC
				}
				return f.Write(p)
			}
		}, ErrNoRoom},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := newCache(t, 1<<30)
			if tc.prepare != nil {
				tc.prepare(c)
			}
			d := begin(t, c, digestOf(content))
			record := func(size int64) error {
				if size != int64(len(content)) || c.Has(digestOf(content)) {
					t.Errorf("recorded %d bytes", size)
				}
				if tc.want == errNotRecorded { //nolint:errorlint // it is a case of this table
					return errNotRecorded
				}
				return nil
			}
			if err := d.Receive(t.Context(), tc.body, record); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			if left := names(t, c); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

func TestReadersGetContentWhileItArrives(t *testing.T) {
	c, _ := newCache(t, 1<<30)
	content := make([]byte, 5*chunkSize+100)
	for i := range content {
		content[i] = byte(i * 7 / 3)
	}
	digest := digestOf(content)
	d := begin(t, c, digest)
	pr, pw := io.Pipe()
	var readers sync.WaitGroup
	for i := range 4 {
		// Another process opens the same folder.
		other := Open(c.dir, c.limit, c.now)
		own, r, err := other.Begin(t.Context(), "quay.io", digest)
		if err != nil || own != nil {
			t.Fatalf("a second download begins: %v", err)
		}
		readers.Go(func() {
			got, err := io.ReadAll(iotest.DataErrReader(r))
			if err != nil || !bytes.Equal(got, content) || r.Close() != nil {
				t.Errorf("reader %d: %d of %d bytes, %v", i, len(got), len(content), err)
			}
		})
	}
	early, err := d.Reader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	received := make(chan error)
	go func() { received <- d.Receive(t.Context(), pr, ignoreSize) }()
	if _, err := pw.Write(content[:3*chunkSize]); err != nil {
		t.Fatal(err)
	}
	part := make([]byte, chunkSize)
	if _, err := io.ReadFull(early, part); err != nil || !bytes.Equal(part, content[:chunkSize]) {
		t.Errorf("the first part does not arrive before the last one: %v", err)
	}
	if _, err := pw.Write(content[3*chunkSize:]); err != nil || pw.Close() != nil || early.Close() != nil {
		t.Fatal(err)
	}
	if err := <-received; err != nil {
		t.Error(err)
	}
	readers.Wait()
}

func TestAReaderWaitsNoLongerThanItsContext(t *testing.T) {
	c, _ := newCache(t, 1<<30)
	d := begin(t, c, digestOf(nil))
	defer d.Cancel()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := d.Reader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) || r.Close() != nil {
		t.Errorf("got %v", err)
	}
}

func TestDownloadsFromTwoSourcesDoNotMix(t *testing.T) {
	c, _ := newCache(t, 1<<30)
	digest := digestOf([]byte("content"))
	first := begin(t, c, digest)
	second, _, err := c.Begin(t.Context(), "localhost:5000", digest)
	if err != nil || second == nil {
		t.Fatalf("the second source has no download of its own: %v", err)
	}
	first.Cancel()
	if err := second.Receive(t.Context(), strings.NewReader("content"), ignoreSize); err != nil {
		t.Error(err)
	}
}

// helperVariable makes this test's program the process that TestAKilledDownload kills.
const helperVariable = "BLOBCACHE_TEST_DIR"

func TestMain(m *testing.M) {
	dir := os.Getenv(helperVariable)
	if dir == "" {
		os.Exit(m.Run())
	}
	c := Open(dir, 1<<30, time.Now)
	d, _, err := c.Begin(context.Background(), "quay.io", digestOf(killedContent))
	if err == nil {
		_ = d.Receive(context.Background(), io.MultiReader(bytes.NewReader(killedContent[:2*chunkSize]), waiting{}), ignoreSize) // it is killed
	}
	os.Exit(1)
}

// killedContent is what the killed process receives.
var killedContent = bytes.Repeat([]byte("y"), 3*chunkSize)

// waiting says that it waits, and blocks.
type waiting struct{}

func (waiting) Read([]byte) (int, error) {
	_, _ = os.Stdout.WriteString("waiting") // the parent has gone
	select {}
}

func TestAKilledDownloadIsRemoved(t *testing.T) {
	c, _ := newCache(t, 1<<30)
	digest := digestOf(killedContent)
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), helperVariable+"="+c.dir)
	out, err := child.StdoutPipe()
	if err != nil || child.Start() != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("waiting"))); err != nil {
		t.Fatal(err)
	}
	own, r, err := c.Begin(t.Context(), "quay.io", digest)
	if err != nil || own != nil {
		t.Fatalf("the download of another process is not seen: %v", err)
	}
	if err := c.RemoveLeftovers(); err != nil || len(names(t, c)) != 1 {
		t.Errorf("a download that goes on was removed: %v, %v", names(t, c), err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); !errors.Is(err, ErrInterrupted) || len(got) != chunkSize || r.Close() != nil {
		t.Errorf("the reader got %d bytes, %v", len(got), err)
	}
	_ = child.Wait() // it was killed
	again := begin(t, c, digest)
	if err := again.Receive(t.Context(), bytes.NewReader(killedContent), ignoreSize); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"blobs/" + digest.Hex}, names(t, c)); diff != "" {
		t.Error(diff)
	}
}

func TestLeftoversAreRemoved(t *testing.T) {
	c, _ := newCache(t, 1<<30)
	begin(t, c, digestOf([]byte("a"))).Cancel()
	for _, name := range []string{"a@quay.io", "b@localhost:5000"} {
		if err := os.WriteFile(filepath.Join(c.downloadsPath(), name), []byte("part"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.RemoveLeftovers(); err != nil {
		t.Fatal(err)
	}
	if left := names(t, c); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestADownloadContainsNothingOfALeftover(t *testing.T) {
	c, _ := newCache(t, 1<<30)
	digest := digestOf([]byte("content"))
	begin(t, c, digest).Cancel()
	if err := os.WriteFile(filepath.Join(c.downloadsPath(), digest.Hex+"@quay.io"), []byte("something longer"), 0o600); err != nil {
		t.Fatal(err)
	}
	store(t, c, "content")
	if raw, err := os.ReadFile(c.blobPath(digest)); err != nil || string(raw) != "content" {
		t.Errorf("stored %q, %v", raw, err)
	}
}

func TestTheLeastRecentlyUsedContentMakesRoom(t *testing.T) {
	c, now := newCache(t, 25)
	for _, content := range []string{"oldest....", "older....."} {
		store(t, c, content)
		now.Time = now.Add(time.Hour)
	}
	if f, err := c.OpenBlob(digestOf([]byte("oldest...."))); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	now.Time = now.Add(time.Hour)
	store(t, c, "newest....")
	for content, want := range map[string]bool{"oldest....": true, "older.....": false, "newest....": true} {
		if got := c.Has(digestOf([]byte(content))); got != want {
			t.Errorf("%s is stored: %v", content, got)
		}
	}
}

func TestContentThatDoesNotFitDeletesNothing(t *testing.T) {
	c, _ := newCache(t, 1<<20)
	store(t, c, "content")
	for name, tc := range map[string]struct {
		size, free int64
		want       error
	}{
		"larger than the limit":   {1<<20 + 1, 1 << 50, ErrNoRoom},
		"the disk is full":        {10, Reserve - 1<<20, ErrNoRoom},
		"the disk is almost full": {10, Reserve + 10, nil},
	} {
		c.free = func(string) (int64, error) { return tc.free, nil }
		d := begin(t, c, digestOf([]byte(name)))
		if err := d.MakeRoom(t.Context(), tc.size); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
		d.Cancel()
		if !c.Has(digestOf([]byte("content"))) {
			t.Errorf("%s: the content was deleted", name)
		}
	}
	c.free = func(string) (int64, error) { return Reserve + 5, nil }
	d := begin(t, c, digestOf(nil))
	defer d.Cancel()
	if err := d.MakeRoom(t.Context(), 10); err != nil || c.Has(digestOf([]byte("content"))) {
		t.Errorf("content does not make room on a disk that is almost full: %v", err)
	}
}

// Whatever is stored and used, the content fits, and what is deleted is what was used before all that
// is kept.
func TestTheLimitHolds(t *testing.T) {
	seed := rand.Uint64() //nolint:gosec // a test
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test
	const limit = 5000
	c, now := newCache(t, limit)
	used := map[string]time.Time{} // by hexadecimal digest
	for i := range 300 {
		now.Time = now.Add(time.Hour)
		content := fmt.Sprintf("%d%s", i%60, strings.Repeat(".", random.IntN(900)))
		digest := digestOf([]byte(content))
		if f, err := c.OpenBlob(digest); err == nil {
			used[digest.Hex] = now.Time
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		store(t, c, content)
		used[digest.Hex] = now.Time
		blobs, err := c.List()
		if err != nil {
			t.Fatal(err)
		}
		total := int64(0)
		for n, b := range blobs {
			total += b.Size
			if !b.Used.Equal(used[b.Hex]) || n > 0 && b.Used.Before(blobs[n-1].Used) {
				t.Fatalf("%s was used at %s, recorded %s", b.Hex, used[b.Hex], b.Used)
			}
			delete(used, b.Hex)
		}
		for hex, when := range used { // deleted now
			if when.After(blobs[0].Used) {
				t.Fatalf("%s was deleted, and is newer than %s", hex, blobs[0].Hex)
			}
		}
		clear(used)
		for _, b := range blobs {
			used[b.Hex] = b.Used
		}
		if total > limit || total < limit-2000 && i > 100 {
			t.Fatalf("the cache has %d bytes of %d", total, limit)
		}
	}
}

func TestContentOfUnknownSizeHasTheSameLimit(t *testing.T) {
	c, _ := newCache(t, 10*chunkSize)
	store(t, c, "old")
	for chunks, want := range map[int]error{3: nil, 20: ErrNoRoom} {
		content := bytes.Repeat([]byte("x"), chunks*chunkSize)
		d := begin(t, c, digestOf(content))
		if err := d.MakeRoom(t.Context(), -1); err != nil {
			t.Fatal(err)
		}
		if err := d.Receive(t.Context(), bytes.NewReader(content), ignoreSize); !errors.Is(err, want) {
			t.Errorf("%d chunks: %v", chunks, err)
		}
	}
}

func TestDecideDeletions(t *testing.T) {
	blobs := []Blob{{Hex: "a", Size: 10}, {Hex: "b", Size: 5}, {Hex: "c", Size: 20}}
	for need, want := range map[int64]string{-5: "", 0: "", 1: "a", 10: "a", 11: "ab", 15: "ab", 16: "abc", 35: "abc", 36: "impossible"} {
		doomed, possible := decideDeletions(blobs, need)
		got := ""
		for _, b := range doomed {
			got += b.Hex
		}
		if !possible {
			got += "impossible"
		}
		if got != want {
			t.Errorf("%d bytes: %q, want %q", need, got, want)
		}
	}
	if _, possible := decideDeletions(nil, 1); possible {
		t.Error("an empty cache can make room")
	}
}

func TestPrune(t *testing.T) {
	c, _ := newCache(t, 1<<20)
	if freed, err := c.Prune(t.Context()); freed != 0 || err != nil {
		t.Errorf("a cache that does not exist: %d, %v", freed, err)
	}
	if _, err := os.Stat(c.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("pruning created the folder: %v", err)
	}
	store(t, c, "content")
	store(t, c, "more")
	running := begin(t, c, digestOf([]byte("running")))
	if freed, err := c.Prune(t.Context()); freed != 11 || err != nil {
		t.Errorf("got %d, %v", freed, err)
	}
	if err := running.Receive(t.Context(), strings.NewReader("running"), ignoreSize); err != nil || len(names(t, c)) != 1 {
		t.Errorf("a download that went on: %v, %v", names(t, c), err)
	}
}
