// Package upstream reads images from the registries where they were published.
//
// A Client connects to no address that it is not allowed to, whatever a registry's name, a redirect or
// an authentication challenge says, except for registries that the administrator lists. It sends
// credentials only to the registry and to the server of tokens that the registry names.
package upstream

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/distribution/reference"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	// checkTimeout bounds a request without content, with all that authentication needs.
	checkTimeout = 20 * time.Second
	// maxAnswer bounds what is read of an answer that is no content.
	maxAnswer = 1 << 20
	// maxSessions bounds the memory for authentication.
	maxSessions = 500
)

// Options configure a Client.
type Options struct {
	// IsAllowed reports whether the client may connect to an address.
	IsAllowed func(netip.Addr) bool
	// Insecure are registries, as host or host:port, to which the client may connect by plain HTTP and
	// at any address.
	Insecure []string
	// Roots are the certificates of authorities that are trusted; nil means those of the system.
	Roots *x509.CertPool
	// Proxy returns the proxy for a URL; nil means the one that the environment names.
	Proxy func(*url.URL) (*url.URL, error)
	// Now is the current time; nil means time.Now.
	Now func() time.Time
}

// Client reads from registries. Its methods are safe for concurrent use.
type Client struct {
	transport http.RoundTripper
	insecure  map[string]bool
	now       func() time.Time

	mu       sync.Mutex
	sessions map[sessionKey]http.RoundTripper
	pauses   map[string]pause // by registry
}

// sessionKey identifies what an authentication is valid for.
type sessionKey struct {
	repository  string
	credentials authn.AuthConfig
}

// New returns a client.
func New(o Options) *Client {
	c := &Client{now: o.Now, insecure: map[string]bool{}, sessions: map[sessionKey]http.RoundTripper{}, pauses: map[string]pause{}}
	if c.now == nil {
		c.now = time.Now
	}
	for _, registry := range o.Insecure {
		c.insecure[strings.ToLower(registry)] = true
	}
	c.transport = newGuard(o, c.insecure)
	return c
}

// IsInsecure reports whether the administrator lists a registry as insecure.
func (c *Client) IsInsecure(registry string) bool { return c.insecure[strings.ToLower(registry)] }

// Item is a manifest or a blob of a repository.
type Item struct {
	Repository reference.Named
	// IsBlob is true for a blob. Reference is its digest, or the tag or digest of a manifest.
	IsBlob    bool
	Reference string
}

func (i Item) String() string {
	switch {
	case i.IsBlob:
		return "blob " + i.Reference + " of " + i.Repository.Name()
	case strings.Contains(i.Reference, ":"):
		return i.Repository.Name() + "@" + i.Reference
	}
	return i.Repository.Name() + ":" + i.Reference
}

func (i Item) registry() string { return reference.Domain(i.Repository) }

// Descriptor is what a registry says about an item.
type Descriptor struct {
	MediaType types.MediaType
	// Digest is empty if the registry does not name it.
	Digest v1.Hash
	// Size is the number of bytes; -1 if the registry does not name it.
	Size int64
}

// Stat asks the registry for an item. Without an error, the credentials, which may be empty, give access
// to the repository, and the repository has the item. The error is an *Error, or that of ctx.
func (c *Client) Stat(ctx context.Context, i Item, credentials authn.AuthConfig) (Descriptor, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	response, err := c.do(ctx, http.MethodHead, i, credentials)
	if err != nil {
		return Descriptor{}, err
	}
	_ = response.Body.Close() // it is empty
	if response.StatusCode != http.StatusOK {
		return Descriptor{Size: -1}, nil // a redirect
	}
	return descriptorOf(response), nil
}

// Open reads an item. The caller must close the reader. The error is an *Error, or that of ctx.
func (c *Client) Open(ctx context.Context, i Item, credentials authn.AuthConfig) (io.ReadCloser, Descriptor, error) {
	response, err := c.do(ctx, http.MethodGet, i, credentials)
	if err != nil {
		return nil, Descriptor{}, err
	}
	return response.Body, descriptorOf(response), nil
}

func descriptorOf(response *http.Response) Descriptor {
	d := Descriptor{Size: response.ContentLength}
	mediaType, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	d.MediaType = types.MediaType(strings.TrimSpace(mediaType))
	if digest, err := v1.NewHash(response.Header.Get("Docker-Content-Digest")); err == nil {
		d.Digest = digest
	}
	return d
}

// acceptManifests are the media types of manifests.
var acceptManifests = strings.Join([]string{
	string(types.OCIImageIndex), string(types.OCIManifestSchema1), string(types.DockerManifestList), string(types.DockerManifestSchema2),
}, ", ")

// do sends a request and returns the response if the status is 200, or a redirect of a HEAD request:
// servers that store blobs often refuse HEAD requests, and the registry has checked the access.
func (c *Client) do(ctx context.Context, method string, i Item, credentials authn.AuthConfig) (*http.Response, error) {
	if err := c.pauseOf(i.registry()); err != nil {
		return nil, err
	}
	named := &namedWait{}
	response, err := c.send(context.WithValue(ctx, namedWaitKey{}, named), method, i, credentials)
	if err == nil && (response.StatusCode == http.StatusOK || method == http.MethodHead && response.StatusCode/100 == 3) {
		return response, nil
	}
	if err == nil {
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(response.Body, maxAnswer), response.Body}
		err = transport.CheckError(response)
		_ = response.Body.Close() // it was read
	}
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		return nil, context.Cause(ctx)
	}
	known := classify(i, err)
	if known.Kind == Limited {
		known.RetryAfter = cmp.Or(time.Duration(named.wait.Load()), limitPause)
	}
	c.recordPause(i.registry(), known)
	return nil, known
}

func (c *Client) send(ctx context.Context, method string, i Item, credentials authn.AuthConfig) (*http.Response, error) {
	session, registry, err := c.session(ctx, i.Repository, credentials)
	if err != nil {
		return nil, err
	}
	kind, accept := "manifests", acceptManifests
	if i.IsBlob {
		kind, accept = "blobs", "*/*"
	}
	address := url.URL{
		Scheme: "https", // the session knows better
		Host:   registry.RegistryStr(),
		Path:   "/v2/" + reference.Path(i.Repository) + "/" + kind + "/" + i.Reference,
	}
	request, err := http.NewRequestWithContext(context.WithValue(ctx, contentKey{}, true), method, address.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", accept)
	client := http.Client{Transport: session}
	if method == http.MethodHead {
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	return client.Do(request)
}

// contentKey marks the context of requests whose answers may be large.
type contentKey struct{}

// session returns a transport that authenticates for a repository.
func (c *Client) session(ctx context.Context, repository reference.Named, credentials authn.AuthConfig) (http.RoundTripper, name.Registry, error) {
	host := reference.Domain(repository)
	var options []name.Option
	if c.insecure[host] {
		options = append(options, name.Insecure)
	}
	registry, err := name.NewRegistry(host, options...)
	if err != nil {
		return nil, registry, err
	}
	key := sessionKey{repository.Name(), credentials}
	c.mu.Lock()
	session := c.sessions[key]
	c.mu.Unlock()
	if session != nil {
		return session, registry, nil
	}
	authenticator := authn.Anonymous
	if credentials != (authn.AuthConfig{}) {
		authenticator = authn.FromConfig(credentials)
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	scope := registry.Repo(reference.Path(repository)).Scope(transport.PullScope)
	session, err = transport.NewWithContext(ctx, registry, authenticator, c.transport, []string{scope})
	if err != nil {
		return nil, registry, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.sessions) >= maxSessions {
		clear(c.sessions)
	}
	c.sessions[key] = session
	return session, registry, nil
}

// namedWait is the time after which a registry, or its server of tokens, wants to be asked again. The
// guard records it, because the errors of package transport do not contain it.
type namedWait struct{ wait atomic.Int64 }

type namedWaitKey struct{}

func recordNamedWait(ctx context.Context, header string) {
	seconds, err := strconv.Atoi(header)
	if named, ok := ctx.Value(namedWaitKey{}).(*namedWait); ok && err == nil && seconds > 0 {
		named.wait.Store(int64(min(time.Duration(min(seconds, 1<<20))*time.Second, maxLimitPause)))
	}
}

// pause is a time during which a registry is not asked again.
type pause struct {
	until time.Time
	err   *Error
}

const (
	// limitPause is how long a registry is not asked after it has refused a request because of its rate
	// limit, unless it names another time; maxLimitPause bounds that.
	limitPause    = 30 * time.Second
	maxLimitPause = 10 * time.Minute
	// unreachablePause is how long a registry is not asked after it was not reached: otherwise, each of
	// the many requests of a pull would wait for the same timeout.
	unreachablePause = 5 * time.Second
)

func (c *Client) pauseOf(registry string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.pauses[registry]
	if !ok {
		return nil
	}
	left := p.until.Sub(c.now())
	if left <= 0 {
		delete(c.pauses, registry)
		return nil
	}
	again := *p.err
	if again.Kind == Limited {
		again.RetryAfter = left
	}
	return &again
}

func (c *Client) recordPause(registry string, err *Error) {
	var wait time.Duration
	switch err.Kind {
	case Limited:
		wait = err.RetryAfter
	case Unreachable:
		wait = unreachablePause
	default:
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pauses) >= maxSessions {
		clear(c.pauses)
	}
	c.pauses[registry] = pause{until: c.now().Add(wait), err: err}
}

// Kind says what an error means for the client of a pull.
type Kind int

// The kinds of errors.
const (
	// Unreachable means that the registry gave no useful answer.
	Unreachable Kind = iota
	// Denied means that the credentials do not give access to the repository.
	Denied
	// Missing means that the repository does not have the item, or that the registry hides it.
	Missing
	// Limited means that the registry limits the rate of requests.
	Limited
	// Forbidden means that the client may not connect to the registry.
	Forbidden
)

// Error is why a registry did not serve an item. Its message contains no credentials.
type Error struct {
	Kind Kind
	// RetryAfter is set if the kind is Limited.
	RetryAfter time.Duration
	message    string
}

func (e *Error) Error() string { return e.message }

// KindOf returns the kind of an error; false if it is no *Error.
func KindOf(err error) (Kind, bool) {
	var known *Error
	if !errors.As(err, &known) {
		return 0, false
	}
	return known.Kind, true
}

// classify returns the error for a failed request.
func classify(i Item, err error) *Error {
	var answer *transport.Error
	if errors.As(err, &answer) {
		return classifyAnswer(i, answer)
	}
	var forbidden *forbiddenError
	isForbidden := errors.As(err, &forbidden)
	var failed *url.Error
	if errors.As(err, &failed) { // the address may contain a signature; of HTTPS and HTTP, it is the one of HTTPS
		err = failed.Err
	}
	if isForbidden && errors.As(err, &forbidden) {
		return &Error{Kind: Forbidden, message: fmt.Sprintf("pulling %s: %s", i, forbidden)}
	}
	if isForbidden {
		err = fmt.Errorf("%w; %w", err, forbidden)
	}
	return &Error{Kind: Unreachable, message: fmt.Sprintf("pulling %s: registry %s is not reached: %v", i, i.registry(), err)}
}

func classifyAnswer(i Item, answer *transport.Error) *Error {
	e := &Error{message: fmt.Sprintf("pulling %s: registry %s answers %d %s%s", i, i.registry(), answer.StatusCode, http.StatusText(answer.StatusCode), quoteCodes(answer))}
	switch status := answer.StatusCode; {
	case status == http.StatusNotFound:
		e.Kind = Missing
	case status == http.StatusTooManyRequests:
		e.Kind = Limited
		e.message += ": it limits the rate of pulls; wait, or add credentials for it to the pull secret"
	case status >= 400 && status < 500 && status != http.StatusRequestTimeout:
		e.Kind = Denied
		e.message += ": check the credentials for it in the pull secret"
	}
	return e
}

// quoteCodes returns the codes of an answer. Its messages are the registry's, and may contain anything.
func quoteCodes(answer *transport.Error) string {
	var codes []string
	for _, d := range answer.Errors {
		codes = append(codes, strconv.Quote(string(d.Code[:min(len(d.Code), 40)])))
	}
	if len(codes) == 0 {
		return ""
	}
	return " (" + strings.Join(codes[:min(len(codes), 3)], ", ") + ")"
}
