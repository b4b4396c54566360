package pullthrough

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"sync"
	"time"

	"github.com/distribution/reference"
	"github.com/go-logr/logr"
	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"hotspare.io/hotspare/internal/embedded/imagestore/blobcache"
	"hotspare.io/hotspare/internal/embedded/imagestore/pullsecret"
	"hotspare.io/hotspare/internal/embedded/imagestore/registryapi"
	"hotspare.io/hotspare/internal/embedded/imagestore/upstream"
)

const (
	// remembered is how long the answer of a registry about an access or a tag counts.
	remembered = time.Minute
	// maxManifest is the maximum size of a manifest: registries accept manifests up to this size.
	maxManifest = 4 << 20
	// manifestUnknown is the code of an error of a manifest that does not exist.
	manifestUnknown = "MANIFEST_UNKNOWN"
	// maxAttempts bounds how often content is opened again that others store or delete.
	maxAttempts = 3
)

// errAgain reports that others stored or deleted content since it was looked up.
var errAgain = errors.New("the content was stored or deleted by others while it was opened")

// Options configure a Source.
type Options struct {
	// Dir is the folder of the cache, which all clusters of this computer share. Limit is its maximum
	// size in bytes.
	Dir   string
	Limit int64
	// Secret are the registry credentials of the cluster.
	Secret pullsecret.Secret
	// Client reads from registries.
	Client *upstream.Client
	Log    logr.Logger
	// Now is the current time; nil means time.Now.
	Now func() time.Time
}

// Source serves the images of other registries to one cluster.
type Source struct {
	ctx     context.Context //nolint:containedctx // downloads outlive the requests that begin them
	options Options
	cache   *blobcache.Cache
	records *records
	// stall is how long a registry may send nothing in the middle of content.
	stall time.Duration
	// free returns the free bytes of the disk of a folder. Tests replace it.
	free func(dir string) (int64, error)
	// downloads counts the downloads that go on.
	downloads sync.WaitGroup
}

var _ registryapi.Source = (*Source)(nil)

// New returns a source. Its downloads end with ctx. It removes what killed processes have left in the
// folder.
func New(ctx context.Context, o Options) (*Source, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Source{ctx: ctx, options: o, cache: blobcache.Open(o.Dir, o.Limit, o.Now), stall: upstream.StallTimeout, free: blobcache.MeasureFree}
	var err error
	if s.records, err = openRecords(o.Dir, o.Now, o.Log); err != nil {
		return nil, err
	}
	has := func(hex string) bool { return s.cache.Has(v1.Hash{Algorithm: "sha256", Hex: hex}) }
	return s, errors.Join(s.cache.RemoveLeftovers(), s.records.sweep(has))
}

// Wait waits until no download goes on. Call it after the context of New has ended.
func (s *Source) Wait() { s.downloads.Wait() }

// OpenBlob opens a blob of a repository.
func (s *Source) OpenBlob(ctx context.Context, r registryapi.Request) (*registryapi.Content, error) {
	content, err := s.newPull(r).open(ctx, upstream.Item{Repository: r.Repository, IsBlob: true, Reference: r.Digest.String()}, r)
	if err == nil && !r.HeadOnly {
		err = s.confirmPull(content)
	}
	return content, s.toAPIError(r, "BLOB_UNKNOWN", err)
}

// confirmPull returns an error unless the disk, to which nodes pull, has room for content. It then closes the
// content.
func (s *Source) confirmPull(c *registryapi.Content) error {
	free, err := s.free(s.options.Dir)
	if err == nil {
		err = registryapi.ConfirmSpace(c.Digest, c.Size, free)
	}
	if err == nil {
		return nil
	}
	s.options.Log.Info("did not pull", "reason", err.Error())
	return errors.Join(err, c.Body.Close())
}

// OpenManifest opens a manifest or an index of a repository.
func (s *Source) OpenManifest(ctx context.Context, r registryapi.Request) (*registryapi.Content, error) {
	content, err := s.newPull(r).openManifest(ctx, r)
	return content, s.toAPIError(r, manifestUnknown, err)
}

// pull answers the requests that have the same credentials.
type pull struct {
	*Source
	// pod are the credentials of the client, which come from the imagePullSecrets of a pod; empty if there
	// are none. They are used for these requests only.
	pod authn.AuthConfig
}

func (s *Source) newPull(r registryapi.Request) *pull { return &pull{Source: s, pod: r.Credentials} }

func (p *pull) openManifest(ctx context.Context, r registryapi.Request) (*registryapi.Content, error) {
	age := time.Duration(0)
	if r.Tag != "" {
		t, err := p.resolveTag(ctx, r.Repository, r.Tag)
		if err != nil {
			return nil, err
		}
		if now := p.options.Now(); now.Sub(t.Checked) >= remembered {
			age = now.Sub(t.Checked)
			p.options.Log.Info("served a tag as it was", "image", r.Repository.Name()+":"+r.Tag, "age", age.Round(time.Second).String())
		}
		if r.HeadOnly && t.MediaType != "" && t.Size > 0 {
			return &registryapi.Content{MediaType: t.MediaType, Digest: t.Digest, Size: t.Size, Age: age}, nil
		}
		r.Digest = t.Digest
	}
	content, err := p.open(ctx, upstream.Item{Repository: r.Repository, Reference: r.Digest.String()}, r)
	if err != nil || content.Body == nil {
		return content, err
	}
	content.Age = max(content.Age, age)
	return p.readManifest(content)
}

// memory is content that was read.
type memory struct{ *bytes.Reader }

// Close does nothing.
func (memory) Close() error { return nil }

// readManifest reads content that must be a manifest, and verifies it. It closes the content.
func (s *Source) readManifest(c *registryapi.Content) (*registryapi.Content, error) {
	raw, err := io.ReadAll(io.LimitReader(c.Body, maxManifest+1))
	if err = errors.Join(err, c.Body.Close()); err != nil {
		return nil, err
	}
	notManifest := registryapi.NotFound(manifestUnknown, c.Digest.String()+" is no manifest or index of an image")
	if len(raw) > maxManifest {
		return nil, notManifest
	}
	digest, size, err := v1.SHA256(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	if digest != c.Digest {
		return nil, errors.Join(blobcache.ErrDigest, s.cache.Remove(c.Digest))
	}
	if c.MediaType = registryapi.DetectMediaType(raw); c.MediaType == "" {
		return nil, notManifest
	}
	c.Size, c.Body = size, memory{bytes.NewReader(raw)}
	return c, nil
}

// identity are credentials that a cluster uses for a repository.
type identity struct {
	name        string
	credentials authn.AuthConfig
}

// identities returns the credentials for a repository in the order in which they are tried.
func (p *pull) identities(repository reference.Named) []identity {
	var all []identity
	if p.pod != (authn.AuthConfig{}) {
		all = append(all, identity{p.records.identity(p.pod), p.pod})
	}
	if own, ok := p.options.Secret.Find(repository); ok {
		all = append(all, identity{p.records.identity(own), own})
	}
	return append(all, identity{name: anonymous})
}

// accessAge returns how long ago the registry has given the cluster access to a repository; false if it
// has not.
func (p *pull) accessAge(repository reference.Named) (time.Duration, bool) {
	var last time.Time
	for _, i := range p.identities(repository) {
		if when, ok := p.records.lastAccess(repository, i.name); ok && when.After(last) {
			last = when
		}
	}
	return p.options.Now().Sub(last), !last.IsZero()
}

// attempt calls ask with the credentials for a repository until the registry accepts some, and records
// the access. The error is that of the first ones.
func (p *pull) attempt(repository reference.Named, ask func(authn.AuthConfig) error) error {
	var denied error
	for _, i := range p.identities(repository) {
		err := ask(i.credentials)
		if err == nil {
			p.logRecord(p.records.recordAccess(repository, i.name))
			return nil
		}
		if kind, known := upstream.KindOf(err); !known || kind != upstream.Denied {
			return err
		}
		p.records.forgetAccess(repository, i.name)
		denied = cmp.Or(denied, err)
	}
	return denied
}

// logRecord logs that a record could not be written: the registry is asked again.
func (s *Source) logRecord(err error) {
	if err != nil {
		s.options.Log.V(1).Info("did not record what a registry said", "reason", err.Error())
	}
}

// stat asks the registry for an item with the cluster's credentials.
func (p *pull) stat(ctx context.Context, item upstream.Item) (d upstream.Descriptor, err error) {
	err = p.attempt(item.Repository, func(c authn.AuthConfig) error {
		d, err = p.options.Client.Stat(ctx, item, c)
		return err
	})
	return d, err
}

// isTransient reports whether the registry could not say whether it would serve an item.
func isTransient(err error) bool {
	kind, known := upstream.KindOf(err)
	return known && (kind == upstream.Unreachable || kind == upstream.Limited)
}

// resolveTag returns what a tag is, or what it was if the registry does not answer.
func (p *pull) resolveTag(ctx context.Context, repository reference.Named, tag string) (tagRecord, error) {
	known, isKnown := p.records.tag(repository, tag)
	isKnown = isKnown && p.records.hasContent(repository, known.Digest)
	age, accepted := p.accessAge(repository)
	if now := p.options.Now(); isKnown && accepted && age < remembered && now.Sub(known.Checked) < remembered && !now.Before(known.Checked) {
		return known, nil
	}
	fresh, err := p.askForTag(ctx, upstream.Item{Repository: repository, Reference: tag})
	if isTransient(err) && isKnown && accepted && p.isStored(repository, known.Digest) {
		return known, nil
	}
	if err != nil {
		if kind, _ := upstream.KindOf(err); kind == upstream.Missing {
			p.records.forgetTag(repository, tag)
		}
		return tagRecord{}, err
	}
	p.logRecord(errors.Join(p.records.recordContent(repository, fresh.Digest), p.records.recordTag(repository, tag, fresh)))
	return fresh, nil
}

func (p *pull) askForTag(ctx context.Context, item upstream.Item) (tagRecord, error) {
	d, err := p.stat(ctx, item)
	if err != nil {
		return tagRecord{}, err
	}
	if !isSafe(d.Digest) { // some registries do not name it
		if d.Digest, err = p.computeDigest(ctx, item); err != nil {
			return tagRecord{}, err
		}
	}
	return tagRecord{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size, Checked: p.options.Now()}, nil
}

func (p *pull) computeDigest(ctx context.Context, item upstream.Item) (v1.Hash, error) {
	body, _, err := p.fetch(ctx, item)
	if err != nil {
		return v1.Hash{}, err
	}
	digest, size, err := v1.SHA256(io.LimitReader(body, maxManifest+1))
	if err == nil && size > maxManifest {
		err = registryapi.NotFound(manifestUnknown, item.String()+" is too large for a manifest")
	}
	return digest, errors.Join(err, body.Close())
}

// isStored reports whether the folder has content that the registry of a repository has served.
func (s *Source) isStored(repository reference.Named, digest v1.Hash) bool {
	_, ok := s.records.originSize(reference.Domain(repository), digest)
	return ok && s.cache.Has(digest)
}

// open opens content by its digest: from the folder if the cluster has access to it, and otherwise from
// the registry.
func (p *pull) open(ctx context.Context, item upstream.Item, r registryapi.Request) (content *registryapi.Content, err error) {
	err = errAgain
	for i := 0; i < maxAttempts && errors.Is(err, errAgain); i++ {
		switch {
		case p.isStored(r.Repository, r.Digest):
			content, err = p.openStored(ctx, item, r)
		case r.HeadOnly:
			content, err = p.statContent(ctx, item, r)
		default:
			content, err = p.download(ctx, item, r)
		}
	}
	return content, err
}

// statContent returns content without a body, as the registry describes it.
func (p *pull) statContent(ctx context.Context, item upstream.Item, r registryapi.Request) (*registryapi.Content, error) {
	d, err := p.stat(ctx, item)
	if err != nil {
		return nil, err
	}
	p.logRecord(p.records.recordContent(r.Repository, r.Digest))
	content := &registryapi.Content{Digest: r.Digest, Size: d.Size}
	if !item.IsBlob {
		content.MediaType = d.MediaType
	}
	return content, nil
}

// authorize returns an error unless the cluster may have content of a repository. It returns how long
// ago the registry has said so, if it does not answer now.
func (p *pull) authorize(ctx context.Context, item upstream.Item, digest v1.Hash) (time.Duration, error) {
	age, accepted := p.accessAge(item.Repository)
	known := p.records.hasContent(item.Repository, digest)
	if accepted && known && age < remembered {
		return 0, nil
	}
	_, err := p.stat(ctx, item)
	if isTransient(err) && accepted && known {
		p.options.Log.Info("served content without asking its registry", "item", item.String(), "age", age.Round(time.Second).String(), "reason", err.Error())
		return age, nil
	}
	if err == nil {
		p.logRecord(p.records.recordContent(item.Repository, digest))
	}
	return 0, err
}

// openStored opens content of the folder.
func (p *pull) openStored(ctx context.Context, item upstream.Item, r registryapi.Request) (*registryapi.Content, error) {
	age, err := p.authorize(ctx, item, r.Digest)
	if err != nil {
		return nil, err
	}
	blob, err := p.cache.OpenVerified(r.Digest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errAgain
	}
	if err != nil {
		return nil, err
	}
	want, ok := p.records.originSize(reference.Domain(r.Repository), r.Digest)
	if ok && blob.Size() != want {
		p.options.Log.Info("deleted damaged content", "digest", r.Digest.String(), "size", blob.Size(), "want", want)
		return nil, errors.Join(errAgain, blob.Close(), p.cache.Remove(r.Digest))
	}
	return &registryapi.Content{Digest: r.Digest, Size: blob.Size(), Age: age, Body: &storedBody{blob, p.options.Log}}, nil
}

// storedBody is content of the folder. It logs that the content turned out to be damaged.
type storedBody struct {
	*blobcache.VerifiedBlob
	log logr.Logger
}

func (b *storedBody) Read(p []byte) (int, error) {
	n, err := b.VerifiedBlob.Read(p)
	if errors.Is(err, blobcache.ErrDigest) {
		b.log.Info("deleted damaged content; the next pull downloads it again", "reason", err.Error())
	}
	return n, err
}

// toAPIError returns the error for the client of a pull. unknown is the code for what does not exist.
func (s *Source) toAPIError(r registryapi.Request, unknown string, err error) error {
	var known *upstream.Error
	if !errors.As(err, &known) {
		return err
	}
	e := &registryapi.Error{Status: http.StatusBadGateway, Code: "UNAVAILABLE", Message: known.Error()}
	switch known.Kind {
	case upstream.Missing:
		e.Status, e.Code = http.StatusNotFound, unknown
		if unknown == manifestUnknown && s.options.Client.IsInsecure(reference.Domain(r.Repository)) {
			// After 404, containerd would ask the registry itself, which a node often does not reach, and
			// report that instead.
			e.Status = http.StatusGone
		}
		return e // it is no news for the operator
	case upstream.Denied: // the client may have the credentials of a pod
		e.Status, e.Code = http.StatusUnauthorized, "UNAUTHORIZED"
	case upstream.Forbidden:
		e.Status, e.Code = http.StatusForbidden, "DENIED"
		if unknown == manifestUnknown { // a registry in the cluster, which the node reaches itself, or reports why not
			e.Status, e.Code = http.StatusNotFound, unknown
		}
	case upstream.Limited:
		e.Status, e.Code, e.RetryAfter = http.StatusTooManyRequests, "TOOMANYREQUESTS", known.RetryAfter
		e.Message = fmt.Sprintf("%s; hotspare asks again in %s", known, known.RetryAfter.Round(time.Second))
	}
	s.options.Log.Info("did not pull", "reason", e.Message)
	return e
}
