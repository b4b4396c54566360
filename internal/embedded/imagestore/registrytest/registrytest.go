// Package registrytest is a container registry in this process, for tests: with users, with counts of
// what was requested, and with the ways in which registries fail.
package registrytest

import (
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Auth is how a registry authenticates its users.
type Auth int

// The ways of authentication.
const (
	// Basic expects passwords.
	Basic Auth = iota
	// Token expects tokens of its own server of tokens, which expects passwords.
	Token
)

// Registry is a registry. Its fields may be changed while it serves, with Set.
type Registry struct {
	// Host is its address, as host:port.
	Host string
	// URL is its address, as a URL.
	URL string

	images http.Handler
	auth   Auth

	mu       sync.Mutex
	settings Settings
	requests []string
	headers  map[string]http.Header
	sent     []string
}

// Settings are what tests change.
type Settings struct {
	// Users are the passwords of users.
	Users map[string]string
	// Owners are the users who may pull a repository. All may pull other repositories.
	Owners map[string]string
	// Realm replaces the address of the server of tokens.
	Realm string
	// Status, if not 0, is the answer to all requests, with RetryAfter.
	Status     int
	RetryAfter int
	// Missing are paths below /v2/ of content that the registry does not have.
	Missing []string
	// RedirectBlobs is a URL to which blobs are redirected, with their path.
	RedirectBlobs string
	// Body, if not nil, replaces the writing of a blob's content.
	Body func(w http.ResponseWriter, content []byte)
	// OmitDigest omits the header with the digest.
	OmitDigest bool
	// RefuseHead refuses HEAD requests for blobs, as servers with signed addresses do.
	RefuseHead bool
	// BeforeHead, if not nil, is called before a HEAD request for content is answered.
	BeforeHead func()
}

// New starts a registry, and stops it at the end of the test.
func New(t testing.TB, auth Auth) *Registry {
	t.Helper()
	r := NewHandler(auth)
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.URL, r.Host = server.URL, strings.TrimPrefix(server.URL, "http://")
	return r
}

// NewHandler returns a registry that is not served yet.
func NewHandler(auth Auth) *Registry {
	return &Registry{auth: auth, images: registry.New(registry.Logger(log.New(io.Discard, "", 0))), headers: map[string]http.Header{}}
}

// Set changes the settings.
func (r *Registry) Set(change func(*Settings)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.settings)
}

// Push stores an image or an index, without authentication and without being counted.
func (r *Registry) Push(t testing.TB, tag string, image remote.Taggable) {
	t.Helper()
	server := httptest.NewServer(r.images)
	defer server.Close()
	ref, err := name.NewTag(strings.TrimPrefix(server.URL, "http://") + "/" + tag)
	if err != nil {
		t.Fatal(err)
	}
	switch image := image.(type) {
	case v1.ImageIndex:
		err = remote.WriteIndex(ref, image, remote.WithContext(t.Context()))
	case v1.Image:
		err = remote.Write(ref, image, remote.WithContext(t.Context()))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Take returns the requests for content since the last call, sorted, as in
// "GET team/app/manifests/v1". It omits refused ones.
func (r *Registry) Take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.requests
	r.requests = nil
	slices.Sort(taken)
	return taken
}

// Header returns the header of the last request for a path.
func (r *Registry) Header(path string) http.Header {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.headers[path]
}

// Authorizations returns the headers Authorization of all requests, those for tokens included, in their
// order. A request without one has "".
func (r *Registry) Authorizations() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.sent)
}

// ServeHTTP serves the API of registries.
func (r *Registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	s := r.settings
	if s.BeforeHead == nil {
		s.BeforeHead = func() {}
	}
	r.headers[request.URL.Path] = request.Header.Clone()
	r.sent = append(r.sent, request.Header.Get("Authorization"))
	r.mu.Unlock()
	switch {
	case s.Status != 0:
		if s.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(s.RetryAfter))
		}
		w.WriteHeader(s.Status)
	case request.URL.Path == "/token":
		serveToken(w, request, s)
	case r.authorize(w, request, s):
		r.serveContent(w, request, s)
	}
}

// serveToken serves a token that is the name of its user.
func serveToken(w http.ResponseWriter, request *http.Request, s Settings) {
	user, password, has := request.BasicAuth()
	if has && (s.Users[user] == "" || s.Users[user] != password) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	fmt.Fprintf(w, `{"token":%q}`, base64.StdEncoding.EncodeToString([]byte("user "+user)))
}

// authorize reports whether a request is allowed. Otherwise it writes the response.
func (r *Registry) authorize(w http.ResponseWriter, request *http.Request, s Settings) bool {
	user, known := r.userOf(request, s)
	repository, _, _ := strings.Cut(strings.TrimPrefix(request.URL.Path, "/v2/"), "/manifests/")
	repository, _, _ = strings.Cut(repository, "/blobs/")
	owner := s.Owners[repository]
	isPing := request.URL.Path == "/v2/"
	if known && (owner == "" || owner == user) && (!isPing || request.Header.Get("Authorization") != "") {
		return true
	}
	status := http.StatusUnauthorized
	if known && user != "" {
		status = http.StatusForbidden
	}
	if r.auth == Token {
		realm := "http://" + request.Host + "/token"
		if s.Realm != "" {
			realm = s.Realm
		}
		w.Header().Set("Www-Authenticate", fmt.Sprintf(`Bearer realm=%q,service="registry"`, realm))
	} else {
		w.Header().Set("Www-Authenticate", `Basic realm="registry"`)
	}
	w.WriteHeader(status)
	fmt.Fprint(w, `{"errors":[{"code":"DENIED","message":"hush"}]}`)
	return false
}

// userOf returns the user of a request, "" for nobody; false if the credentials are wrong.
func (r *Registry) userOf(request *http.Request, s Settings) (string, bool) {
	if token, ok := strings.CutPrefix(request.Header.Get("Authorization"), "Bearer "); ok {
		raw, err := base64.StdEncoding.DecodeString(token)
		user, ok := strings.CutPrefix(string(raw), "user ")
		return user, err == nil && ok
	}
	user, password, has := request.BasicAuth()
	if has && (s.Users[user] == "" || s.Users[user] != password) {
		return "", false
	}
	return user, r.auth == Basic
}

func (r *Registry) serveContent(w http.ResponseWriter, request *http.Request, s Settings) {
	path := strings.TrimPrefix(request.URL.Path, "/v2/")
	isBlob := strings.Contains(path, "/blobs/")
	if path == "" {
		return // the ping
	}
	r.mu.Lock()
	r.requests = append(r.requests, request.Method+" "+path)
	r.mu.Unlock()
	if request.Method == http.MethodHead {
		s.BeforeHead()
	}
	switch {
	case slices.Contains(s.Missing, path):
		w.WriteHeader(http.StatusNotFound)
		return
	case isBlob && s.RedirectBlobs != "":
		http.Redirect(w, request, s.RedirectBlobs+request.URL.Path+"?signature=hush", http.StatusTemporaryRedirect)
		return
	case isBlob && s.RefuseHead && request.Method == http.MethodHead:
		w.WriteHeader(http.StatusForbidden)
		return
	}
	recorder := httptest.NewRecorder()
	r.images.ServeHTTP(recorder, request)
	for key, values := range recorder.Header() {
		w.Header()[key] = values
	}
	if s.OmitDigest {
		w.Header().Del("Docker-Content-Digest")
	}
	if isBlob && s.Body != nil && request.Method == http.MethodGet && recorder.Code == http.StatusOK {
		s.Body(w, recorder.Body.Bytes())
		return
	}
	w.WriteHeader(recorder.Code)
	_, _ = w.Write(recorder.Body.Bytes()) // the client has gone
}
