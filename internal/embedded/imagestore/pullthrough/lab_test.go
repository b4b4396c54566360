package pullthrough

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"

	"hotspare.io/hotspare/internal/embedded/imagestore/pullsecret"
	"hotspare.io/hotspare/internal/embedded/imagestore/registryapi"
	"hotspare.io/hotspare/internal/embedded/imagestore/registrytest"
	"hotspare.io/hotspare/internal/embedded/imagestore/upstream"
)

// lab is a registry, a folder, and clusters that pull. team/app is alice's.
type lab struct {
	t        *testing.T
	registry *registrytest.Registry
	dir      string
	image    v1.Image
	others   []string // further registries that clusters may pull from

	mu  sync.Mutex
	now time.Time
	log []string
}

const (
	alice = "alice:a-hush"
	bob   = "bob:b-hush"
	wrong = "alice:wrong-hush"
)

func newLab(t *testing.T) *lab {
	t.Helper()
	return newLabWith(t, registrytest.Token)
}

func newLabWith(t *testing.T, auth registrytest.Auth) *lab {
	t.Helper()
	l := &lab{t: t, registry: registrytest.New(t, auth), dir: filepath.Join(t.TempDir(), "cache"), now: time.Now()}
	l.image = newImage(t, 2)
	for _, repository := range []string{"open/app", "team/app"} {
		l.registry.Push(t, repository+":v1", l.image)
	}
	l.registry.Set(func(s *registrytest.Settings) {
		s.Users = map[string]string{"alice": "a-hush", "bob": "b-hush"}
		s.Owners = map[string]string{"team/app": "alice"}
	})
	return l
}

func newImage(t *testing.T, layers int64) v1.Image {
	t.Helper()
	image, err := random.Image(3000, layers)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func (l *lab) Now() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

func (l *lab) step(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = l.now.Add(d)
}

// cluster is the registry that one cluster's workers pull from.
type cluster struct {
	t      *testing.T
	lab    *lab
	source *Source
	url    string
	// pod is the user with password in the imagePullSecrets of the pod; "" means none.
	pod string
}

// newCluster returns a cluster with the password of a user in its pull secret; "" means no pull secret.
func (l *lab) newCluster(user string) *cluster {
	l.t.Helper()
	return l.newClusterWith(user, 1<<30)
}

func (l *lab) newClusterWith(user string, limit int64) *cluster {
	l.t.Helper()
	var secret pullsecret.Secret
	if user != "" {
		var err error
		raw := fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, l.registry.Host, base64.StdEncoding.EncodeToString([]byte(user)))
		if secret, err = pullsecret.Parse([]byte(raw)); err != nil {
			l.t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(l.t.Context())
	source, err := New(ctx, Options{
		Dir: l.dir, Limit: limit, Secret: secret, Log: l.logger(), Now: l.Now,
		Client: upstream.New(upstream.Options{IsAllowed: func(netip.Addr) bool { return false }, Insecure: append([]string{l.registry.Host}, l.others...), Now: l.Now}),
	})
	if err != nil {
		l.t.Fatal(err)
	}
	server := httptest.NewServer(registryapi.Handler(source))
	l.t.Cleanup(func() {
		server.Close()
		cancel()
		source.Wait()
	})
	return &cluster{t: l.t, lab: l, source: source, url: server.URL}
}

func (l *lab) logger() logr.Logger {
	return funcr.New(func(_, args string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.log = append(l.log, args)
	}, funcr.Options{Verbosity: 1})
}

// logged reports whether a line of the log contains a text. It fails the test if the log contains a
// secret.
func (l *lab) logged(text string) bool {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	all := strings.Join(l.log, "\n")
	if strings.Contains(all, "hush") {
		l.t.Errorf("the log contains a secret: %s", all)
	}
	return strings.Contains(all, text)
}

// answer is a response to a request for content.
type answer struct {
	status int
	header http.Header
	body   []byte
	// err is why the body ended too early.
	err error
}

func (c *cluster) request(method, path string) answer {
	c.t.Helper()
	return c.requestFrom(c.lab.registry, method, path)
}

// requestFrom requests content of a registry.
func (c *cluster) requestFrom(registry *registrytest.Registry, method, path string) answer {
	c.t.Helper()
	address := c.url + "/v2/" + path + "?ns=" + url.QueryEscape(registry.Host)
	request, err := http.NewRequestWithContext(c.t.Context(), method, address, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	if user, password, has := strings.Cut(c.pod, ":"); has {
		request.SetBasicAuth(user, password)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer{err: err, header: http.Header{}}
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if strings.Contains(string(raw), "hush") {
		c.t.Errorf("the answer contains a secret: %s", raw)
	}
	return answer{status: response.StatusCode, header: response.Header, body: raw, err: err}
}

func (c *cluster) get(path string) answer { c.t.Helper(); return c.request(http.MethodGet, path) }

// pull pulls an image as a worker does, and verifies each digest. The result is OK, or the first
// status that is not 200.
func (c *cluster) pull(repository, reference string) string {
	c.t.Helper()
	head := c.request(http.MethodHead, repository+"/manifests/"+reference)
	if head.status != http.StatusOK {
		return fmt.Sprint(head.status)
	}
	return c.pullDigest(repository, head.header.Get("Docker-Content-Digest"))
}

func (c *cluster) pullDigest(repository, digest string) string {
	c.t.Helper()
	got := c.get(repository + "/manifests/" + digest)
	if got.status != http.StatusOK || got.err != nil {
		return fmt.Sprint(got.status, got.err)
	}
	c.verify(digest, got)
	var m manifest
	if err := json.Unmarshal(got.body, &m); err != nil {
		c.t.Fatal(err)
	}
	for _, part := range m.Manifests {
		if result := c.pullDigest(repository, part.Digest.String()); result != "OK" {
			return result
		}
	}
	if m.Config.Digest.Hex == "" {
		return "OK"
	}
	for _, part := range append(m.Layers, m.Config) {
		got := c.get(repository + "/blobs/" + part.Digest.String())
		if got.status != http.StatusOK || got.err != nil {
			return strings.TrimSuffix(fmt.Sprint(got.status, " ", got.err), " <nil>")
		}
		c.verify(part.Digest.String(), got)
	}
	c.source.Wait() // a cluster that pulls later finds all of it
	return "OK"
}

func (c *cluster) verify(digest string, got answer) {
	c.t.Helper()
	if is, _, err := v1.SHA256(strings.NewReader(string(got.body))); err != nil || is.String() != digest || got.header.Get("Docker-Content-Digest") != digest {
		c.t.Errorf("got %s (%v) for %s", is, err, digest)
	}
}

// want pulls an image and compares the result.
func (c *cluster) want(result, repository, reference string) {
	c.t.Helper()
	if got := c.pull(repository, reference); got != result {
		c.t.Errorf("pulling %s:%s: %s, want %s", repository, reference, got, result)
	}
}

// requests returns the requests to the registry since the last call, without digests:
// "3 GET blobs, 1 HEAD manifests".
func (l *lab) requests() string {
	counts := map[string]int{}
	for _, r := range l.registry.Take() {
		method, path, _ := strings.Cut(r, " ")
		kind := "manifests"
		if strings.Contains(path, "/blobs/") {
			kind = "blobs"
		}
		counts[method+" "+kind]++
	}
	var parts []string
	for _, k := range []string{"GET blobs", "GET manifests", "HEAD blobs", "HEAD manifests"} {
		if counts[k] > 0 {
			parts = append(parts, fmt.Sprint(counts[k], " ", k))
		}
	}
	return strings.Join(parts, ", ")
}

func (l *lab) wantRequests(want string) {
	l.t.Helper()
	if got := l.requests(); got != want {
		l.t.Errorf("the registry was asked for %q, want %q", got, want)
	}
}

// layers returns the paths of an image's layers in a repository.
func (l *lab) layers(repository string) []string {
	l.t.Helper()
	layers, err := l.image.Layers()
	if err != nil {
		l.t.Fatal(err)
	}
	var paths []string
	for _, layer := range layers {
		digest, err := layer.Digest()
		if err != nil {
			l.t.Fatal(err)
		}
		paths = append(paths, repository+"/blobs/"+digest.String())
	}
	return paths
}

type authConfig = authn.AuthConfig
