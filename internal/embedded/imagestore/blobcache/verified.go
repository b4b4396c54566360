package blobcache

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// A VerifiedBlob is content of the cache that is verified as it is read from its beginning to its end: a disk can damage
// content after it was stored. The last part of wrong content is not read, so that no reader takes it for the right one.
// It is an io.ReadSeekCloser. A reader of a part of the content gets what is stored.
type VerifiedBlob struct {
	cache  *Cache
	digest v1.Hash
	file   *os.File
	size   int64
	offset int64
	// hash is that of the first hashed bytes, which were read in order.
	hash   hash.Hash
	hashed int64
	// damage is the result of every Read after the content turned out to be wrong.
	damage error
}

// OpenVerified opens content and records its use. The error is fs.ErrNotExist if there is none.
func (c *Cache) OpenVerified(digest v1.Hash) (*VerifiedBlob, error) {
	f, err := c.OpenBlob(digest)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &VerifiedBlob{cache: c, digest: digest, file: f, size: info.Size(), hash: sha256.New()}, nil
}

// Size is the number of bytes of the content.
func (b *VerifiedBlob) Size() int64 { return b.size }

// Close closes the content.
func (b *VerifiedBlob) Close() error { return b.file.Close() }

// Seek sets the offset of the next Read.
func (b *VerifiedBlob) Seek(offset int64, whence int) (int64, error) {
	at, err := b.file.Seek(offset, whence)
	if err == nil {
		b.offset = at
	}
	return at, err
}

// Read reads the content. In place of the last part of content whose digest is wrong, it returns ErrDigest, and deletes
// the content from the cache.
func (b *VerifiedBlob) Read(p []byte) (int, error) {
	if b.damage != nil {
		return 0, b.damage
	}
	n, err := b.file.Read(p)
	if b.offset == b.hashed {
		b.hash.Write(p[:n])
		b.hashed += int64(n)
	}
	b.offset += int64(n)
	if n > 0 && b.hashed >= b.size {
		b.damage = b.verifyDigest()
	}
	if b.damage != nil {
		return 0, b.damage
	}
	return n, err
}

// verifyDigest returns an error if the content, which was read to its end, is wrong, and deletes it from the cache.
func (b *VerifiedBlob) verifyDigest() error {
	if hex.EncodeToString(b.hash.Sum(nil)) == b.digest.Hex {
		return nil
	}
	damage := fmt.Errorf("%w %s: the stored content is damaged", ErrDigest, b.digest)
	if !isAt(b.file, b.file.Name()) { // another reader has deleted it, and it may have arrived again
		return damage
	}
	return errors.Join(damage, b.cache.Remove(b.digest))
}
