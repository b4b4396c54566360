package pullthrough

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/distribution/reference"
	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"hotspare.io/hotspare/internal/embedded/imagestore/blobcache"
	"hotspare.io/hotspare/internal/embedded/imagestore/registryapi"
	"hotspare.io/hotspare/internal/embedded/imagestore/upstream"
)

// fetch opens an item of the registry with the credentials of the cluster or of the pod. ctx ends the reading.
func (p *pull) fetch(ctx context.Context, item upstream.Item) (io.ReadCloser, upstream.Descriptor, error) {
	return upstream.OpenWithStallTimeout(ctx, p.stall, func(ctx context.Context) (body io.ReadCloser, d upstream.Descriptor, err error) {
		err = p.attempt(item.Repository, func(c authn.AuthConfig) (err error) {
			body, d, err = p.options.Client.Open(ctx, item, c)
			return err
		})
		return body, d, err
	})
}

// download opens content of the registry and stores it as it arrives. If a process receives the same
// content from the registry already, the content is read from that download.
func (p *pull) download(ctx context.Context, item upstream.Item, r registryapi.Request) (*registryapi.Content, error) {
	// A cluster without access must not begin a download: others would wait for it in vain.
	if age, accepted := p.accessAge(r.Repository); !accepted || age >= remembered {
		if _, err := p.stat(ctx, item); err != nil {
			return nil, err
		}
	}
	registry := reference.Domain(r.Repository)
	download, reader, err := p.cache.Begin(ctx, registry, r.Digest)
	if err != nil {
		return p.stream(ctx, item, r.Digest, err)
	}
	if reader != nil {
		if _, err := p.authorize(ctx, item, r.Digest); err != nil {
			return nil, errors.Join(err, reader.Close())
		}
		return &registryapi.Content{Digest: r.Digest, Size: -1, Body: p.newBody(ctx, item, r.Digest, reader)}, nil
	}
	if p.isStored(r.Repository, r.Digest) { // by a download that ended after open had looked
		download.Cancel()
		return nil, errAgain
	}
	body, d, err := p.fetch(p.ctx, item) // it goes on when its client has gone
	if err != nil {
		download.Cancel()
		return nil, err
	}
	p.logRecord(p.records.recordContent(r.Repository, r.Digest))
	content := &registryapi.Content{Digest: r.Digest, Size: d.Size}
	if err := download.MakeRoom(ctx, d.Size); err != nil {
		download.Cancel()
		p.logNotStored(item, err)
		content.Body = p.newBody(ctx, item, r.Digest, body)
		return content, nil
	}
	if reader, err = download.Reader(ctx); err != nil {
		download.Cancel()
		return nil, errors.Join(err, body.Close())
	}
	p.downloads.Go(func() { p.receive(item, r.Digest, download, body) })
	content.Body = p.newBody(ctx, item, r.Digest, reader)
	return content, nil
}

// receive stores content as it arrives.
func (s *Source) receive(item upstream.Item, digest v1.Hash, download *blobcache.Download, body io.ReadCloser) {
	defer body.Close() //nolint:errcheck // it was read
	err := download.Receive(s.ctx, body, func(size int64) error {
		return s.records.recordOrigin(reference.Domain(item.Repository), digest, size)
	})
	if err != nil && s.ctx.Err() == nil {
		s.logNotStored(item, err)
	}
}

func (s *Source) logNotStored(item upstream.Item, err error) {
	s.options.Log.Info("did not store an image in the cache; it is pulled again the next time", "item", item.String(), "reason", err.Error())
}

// stream opens content of the registry without storing it, because of the reason.
func (p *pull) stream(ctx context.Context, item upstream.Item, digest v1.Hash, reason error) (*registryapi.Content, error) {
	p.logNotStored(item, reason)
	body, d, err := p.fetch(ctx, item)
	if err != nil {
		return nil, err
	}
	return &registryapi.Content{Digest: digest, Size: d.Size, Body: p.newBody(ctx, item, digest, body)}, nil
}

// body is content that is verified as it is read. If the download that it reads is interrupted, for
// example because the disk is full, it reads the rest from the registry.
type body struct {
	ctx    context.Context //nolint:containedctx // that of the request, which reads the body
	pull   *pull
	item   upstream.Item
	digest v1.Hash

	from     io.ReadCloser
	hash     hash.Hash
	offset   int64
	isSecond bool
}

func (p *pull) newBody(ctx context.Context, item upstream.Item, digest v1.Hash, from io.ReadCloser) *body {
	return &body{ctx: ctx, pull: p, item: item, digest: digest, from: from, hash: sha256.New()}
}

// Close closes what is read. It does not end the download.
func (b *body) Close() error { return b.from.Close() }

func (b *body) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.hash.Write(p[:n])
	b.offset += int64(n)
	switch {
	case errors.Is(err, io.EOF) && hex.EncodeToString(b.hash.Sum(nil)) != b.digest.Hex:
		return n, fmt.Errorf("%w %s", blobcache.ErrDigest, b.digest)
	case errors.Is(err, blobcache.ErrInterrupted) && !b.isSecond:
		return n, b.continueFromRegistry()
	}
	return n, err
}

// continueFromRegistry replaces the interrupted download by the rest of the content in the registry.
func (b *body) continueFromRegistry() error {
	b.isSecond = true
	rest, _, err := b.pull.fetch(b.ctx, b.item)
	if err != nil {
		return err
	}
	_ = b.from.Close() // it was read
	b.from = rest
	_, err = io.CopyN(io.Discard, rest, b.offset)
	return err
}
