package pullthrough

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/distribution/reference"
	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"hotspare.io/hotspare/internal/embedded/imagestore/blobcache"
	"hotspare.io/hotspare/internal/embedded/imagestore/registryapi"
	"hotspare.io/hotspare/internal/embedded/imagestore/upstream"
)

// stallTimeout is the value of Source.stall outside of tests.
const stallTimeout = time.Minute

// errStalled is the cause of the end of a download that stalled.
var errStalled = errors.New("the registry sends nothing")

// stallReader ends a response that stalls.
type stallReader struct {
	io.ReadCloser
	limit  time.Duration
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

func (r *stallReader) Read(p []byte) (int, error) {
	r.timer.Reset(r.limit)
	defer r.timer.Stop()
	return r.ReadCloser.Read(p)
}

// Close ends the response.
func (r *stallReader) Close() error {
	r.timer.Stop()
	r.cancel(context.Canceled)
	return r.ReadCloser.Close()
}

// fetch opens an item of the registry with the cluster's credentials. ctx ends the reading.
func (s *Source) fetch(ctx context.Context, item upstream.Item) (io.ReadCloser, upstream.Descriptor, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var body io.ReadCloser
	var d upstream.Descriptor
	err := s.attempt(item.Repository, func(c authn.AuthConfig) (err error) {
		body, d, err = s.options.Client.Open(ctx, item, c)
		return err
	})
	if err != nil {
		cancel(err)
		return nil, d, err
	}
	timer := time.AfterFunc(s.stall, func() { cancel(errStalled) })
	return &stallReader{ReadCloser: body, limit: s.stall, timer: timer, cancel: cancel}, d, nil
}

// download opens content of the registry and stores it as it arrives. If a process receives the same
// content from the registry already, the content is read from that download.
func (s *Source) download(ctx context.Context, item upstream.Item, r registryapi.Request) (*registryapi.Content, error) {
	// A cluster without access must not begin a download: others would wait for it in vain.
	if age, accepted := s.accessAge(r.Repository); !accepted || age >= remembered {
		if _, err := s.stat(ctx, item); err != nil {
			return nil, err
		}
	}
	registry := reference.Domain(r.Repository)
	download, reader, err := s.cache.Begin(ctx, registry, r.Digest)
	if err != nil {
		return s.stream(ctx, item, r.Digest, err)
	}
	if reader != nil {
		if _, err := s.authorize(ctx, item, r.Digest); err != nil {
			return nil, errors.Join(err, reader.Close())
		}
		return &registryapi.Content{Digest: r.Digest, Size: -1, Body: s.newBody(ctx, item, r.Digest, reader)}, nil
	}
	body, d, err := s.fetch(s.ctx, item) //nolint:contextcheck // it goes on when its client has gone
	if err != nil {
		download.Cancel()
		return nil, err
	}
	s.logRecord(s.records.recordContent(r.Repository, r.Digest))
	content := &registryapi.Content{Digest: r.Digest, Size: d.Size}
	if err := download.MakeRoom(ctx, d.Size); err != nil {
		download.Cancel()
		s.logNotStored(item, err)
		content.Body = s.newBody(ctx, item, r.Digest, body)
		return content, nil
	}
	if reader, err = download.Reader(ctx); err != nil {
		download.Cancel()
		return nil, errors.Join(err, body.Close())
	}
	s.downloads.Go(func() { s.receive(item, r.Digest, download, body) })
	content.Body = s.newBody(ctx, item, r.Digest, reader)
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
func (s *Source) stream(ctx context.Context, item upstream.Item, digest v1.Hash, reason error) (*registryapi.Content, error) {
	s.logNotStored(item, reason)
	body, d, err := s.fetch(ctx, item)
	if err != nil {
		return nil, err
	}
	return &registryapi.Content{Digest: digest, Size: d.Size, Body: s.newBody(ctx, item, digest, body)}, nil
}

// body is content that is verified as it is read. If the download that it reads is interrupted, for
// example because the disk is full, it reads the rest from the registry.
type body struct {
	ctx    context.Context //nolint:containedctx // that of the request, which reads the body
	source *Source
	item   upstream.Item
	digest v1.Hash

	from     io.ReadCloser
	hash     hash.Hash
	offset   int64
	isSecond bool
}

func (s *Source) newBody(ctx context.Context, item upstream.Item, digest v1.Hash, from io.ReadCloser) *body {
	return &body{ctx: ctx, source: s, item: item, digest: digest, from: from, hash: sha256.New()}
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
	rest, _, err := b.source.fetch(b.ctx, b.item)
	if err != nil {
		return err
	}
	_ = b.from.Close() // it was read
	b.from = rest
	_, err = io.CopyN(io.Discard, rest, b.offset)
	return err
}
