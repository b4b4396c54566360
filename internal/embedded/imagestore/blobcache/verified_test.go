package blobcache

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/iotest"
)

// openVerified opens content that the cache has.
func openVerified(t *testing.T, c *Cache, content string) *VerifiedBlob {
	t.Helper()
	b, err := c.OpenVerified(digestOf([]byte(content)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// damage changes a byte of content that the cache has.
func damage(t *testing.T, c *Cache, content string, at int) {
	t.Helper()
	raw := []byte(content)
	raw[at] ^= 1
	if err := os.WriteFile(c.blobPath(digestOf([]byte(content))), raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestVerifiedContentIsReadAsItIs(t *testing.T) {
	c, _ := newCache(t, 1<<30)
	for _, content := range []string{"", "x", strings.Repeat("abc", 100_000)} {
		store(t, c, content)
		if err := iotest.TestReader(openVerified(t, c, content), []byte(content)); err != nil {
			t.Errorf("%d bytes: %v", len(content), err)
		}
		if !c.Has(digestOf([]byte(content))) {
			t.Errorf("%d bytes were deleted", len(content))
		}
	}
}

func TestTheEndOfDamagedContentIsNotRead(t *testing.T) {
	content := strings.Repeat("abc", 100_000)
	for _, at := range []int{0, 150_000, len(content) - 1} {
		c, _ := newCache(t, 1<<30)
		store(t, c, content)
		damage(t, c, content, at)
		b := openVerified(t, c, content)
		var got bytes.Buffer
		_, err := io.CopyBuffer(struct{ io.Writer }{&got}, struct{ io.Reader }{b}, make([]byte, 1000))
		if !errors.Is(err, ErrDigest) || got.Len() != len(content)-1000 {
			t.Errorf("damage at %d: %d bytes, %v", at, got.Len(), err)
		}
		if _, err := b.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Read(make([]byte, 10)); !errors.Is(err, ErrDigest) {
			t.Errorf("the content is read again: %v", err)
		}
		if _, err := c.OpenVerified(digestOf([]byte(content))); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the content stays: %v", err)
		}
	}
}

func TestASlowReaderOfDamagedContentDoesNotDeleteItsReplacement(t *testing.T) {
	const content = "some content"
	c, _ := newCache(t, 1<<30)
	store(t, c, content)
	damage(t, c, content, 3)
	first, second := openVerified(t, c, content), openVerified(t, c, content)
	if _, err := io.ReadAll(first); !errors.Is(err, ErrDigest) {
		t.Errorf("got %v", err)
	}
	store(t, c, content)
	if _, err := io.ReadAll(second); !errors.Is(err, ErrDigest) {
		t.Errorf("got %v", err)
	}
	if got, err := io.ReadAll(openVerified(t, c, content)); err != nil || string(got) != content {
		t.Errorf("got %q, %v", got, err)
	}
}
