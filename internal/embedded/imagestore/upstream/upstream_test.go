package upstream

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/distribution/reference"
	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"

	"hotspare.io/hotspare/internal/embedded/imagestore/registrytest"
)

var (
	nobody  = authn.AuthConfig{}
	alice   = authn.AuthConfig{Username: "alice", Password: "a:hush"}
	mallory = authn.AuthConfig{Username: "alice", Password: "wrong-hush"}
	bob     = authn.AuthConfig{Username: "bob", Password: "b-hush"}
)

// lab is a registry with the images open/app:v1 and team/app:v1, which is alice's, and a client.
type lab struct {
	t        *testing.T
	registry *registrytest.Registry
	image    v1.Image
	client   *Client
	now      time.Time
}

func newLab(t *testing.T, auth registrytest.Auth) *lab {
	t.Helper()
	l := &lab{t: t, registry: registrytest.New(t, auth), now: time.Now()}
	var err error
	if l.image, err = random.Image(500, 1); err != nil {
		t.Fatal(err)
	}
	l.registry.Push(t, "open/app:v1", l.image)
	l.registry.Push(t, "team/app:v1", l.image)
	l.registry.Set(func(s *registrytest.Settings) {
		s.Users = map[string]string{alice.Username: alice.Password, bob.Username: bob.Password}
		s.Owners = map[string]string{"team/app": alice.Username}
	})
	l.client = New(Options{IsAllowed: refuseAll, Insecure: []string{l.registry.Host}, Now: func() time.Time { return l.now }})
	return l
}

func refuseAll(netip.Addr) bool { return false }

func allowAll(netip.Addr) bool { return true }

func (l *lab) item(repository, ref string) Item {
	return itemOf(l.t, l.registry.Host+"/"+repository, ref)
}

func itemOf(t *testing.T, repository, ref string) Item {
	t.Helper()
	named, err := reference.ParseNormalizedNamed(repository)
	if err != nil {
		t.Fatal(err)
	}
	return Item{Repository: named, Reference: ref, IsBlob: strings.Contains(ref, ":")}
}

// layer returns the digest of the image's layer.
func (l *lab) layer() v1.Hash {
	l.t.Helper()
	layers, err := l.image.Layers()
	if err != nil {
		l.t.Fatal(err)
	}
	digest, err := layers[0].Digest()
	if err != nil {
		l.t.Fatal(err)
	}
	return digest
}

// outcome describes an error: its kind, or OK.
func outcome(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return "OK"
	}
	if strings.Contains(err.Error(), "hush") {
		t.Errorf("the error contains a secret: %v", err)
	}
	kind, ok := KindOf(err)
	if !ok {
		return err.Error()
	}
	return []string{"Unreachable", "Denied", "Missing", "Limited", "Forbidden"}[kind]
}

func TestUsersPullWhatTheyMayPull(t *testing.T) {
	for _, auth := range []registrytest.Auth{registrytest.Basic, registrytest.Token} {
		t.Run(fmt.Sprint(auth), func(t *testing.T) {
			l := newLab(t, auth)
			for _, tc := range []struct {
				repository, ref string
				as              authn.AuthConfig
				want            string
			}{
				{"open/app", "v1", nobody, "OK"},
				{"open/app", "v1", alice, "OK"},
				{"open/app", "v1", mallory, "Denied"},
				{"team/app", "v1", alice, "OK"},
				{"team/app", "v1", bob, "Denied"},
				{"team/app", "v1", nobody, "Denied"},
				{"team/app", "v1", mallory, "Denied"},
				{"open/app", "v2", nobody, "Missing"},
				{"other/app", "v1", alice, "Missing"},
				{"open/app", l.layer().String(), nobody, "OK"},
				{"team/app", l.layer().String(), alice, "OK"},
				{"team/app", l.layer().String(), bob, "Denied"},
			} {
				i := l.item(tc.repository, tc.ref)
				d, err := l.client.Stat(t.Context(), i, tc.as)
				if got := outcome(t, err); got != tc.want {
					t.Errorf("%s asks for %s: %s (%v), want %s", tc.as.Username, i, got, err, tc.want)
				}
				body, opened, err := l.client.Open(t.Context(), i, tc.as)
				if got := outcome(t, err); got != tc.want {
					t.Errorf("%s opens %s: %s (%v), want %s", tc.as.Username, i, got, err, tc.want)
				}
				if err == nil {
					checkContent(t, i, body, opened, d)
				}
			}
		})
	}
}

func checkContent(t *testing.T, i Item, body io.ReadCloser, opened, stat Descriptor) {
	t.Helper()
	raw, err := io.ReadAll(body)
	if err != nil || body.Close() != nil {
		t.Fatal(err)
	}
	digest, size, err := v1.SHA256(strings.NewReader(string(raw)))
	if err != nil || digest != opened.Digest || digest != stat.Digest || size != opened.Size || size != stat.Size {
		t.Errorf("%s: read %s with %d bytes, opened %v, stat %v (%v)", i, digest, size, opened, stat, err)
	}
	if !i.IsBlob && (opened.MediaType != stat.MediaType || !opened.MediaType.IsImage()) {
		t.Errorf("%s: media types %q and %q", i, opened.MediaType, stat.MediaType)
	}
}

func TestALimitedRegistryIsLeftAloneForTheTimeItNames(t *testing.T) {
	l := newLab(t, registrytest.Basic)
	i := l.item("open/app", "v1")
	if _, err := l.client.Stat(t.Context(), i, nobody); err != nil {
		t.Fatal(err)
	}
	l.registry.Set(func(s *registrytest.Settings) { s.Status, s.RetryAfter = 429, 90 })
	_, err := l.client.Stat(t.Context(), i, nobody)
	var limited *Error
	if !errors.As(err, &limited) || limited.Kind != Limited || limited.RetryAfter != 90*time.Second || !strings.Contains(err.Error(), "429") {
		t.Fatalf("got %v", err)
	}
	l.registry.Set(func(s *registrytest.Settings) { s.Status = 0 })
	l.now = l.now.Add(80 * time.Second)
	if _, err = l.client.Stat(t.Context(), i, alice); !errors.As(err, &limited) || limited.RetryAfter != 10*time.Second {
		t.Errorf("before its time: %v", err)
	}
	l.now = l.now.Add(10 * time.Second)
	if _, err = l.client.Stat(t.Context(), i, nobody); err != nil {
		t.Errorf("after its time: %v", err)
	}
}

func TestALimitIsNotForever(t *testing.T) {
	l := newLab(t, registrytest.Basic)
	l.registry.Set(func(s *registrytest.Settings) { s.Status, s.RetryAfter = 429, 1e9 })
	var limited *Error
	if _, err := l.client.Stat(t.Context(), l.item("open/app", "v1"), nobody); !errors.As(err, &limited) || limited.RetryAfter > maxLimitPause {
		t.Errorf("got %v after %v", err, limited.RetryAfter)
	}
}

func TestARegistryThatIsDownIsAskedAgainLater(t *testing.T) {
	for name, status := range map[string]int{"an internal error": 500, "no service": 503, "no gateway": 502} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, registrytest.Basic)
			i := l.item("open/app", "v1")
			l.registry.Set(func(s *registrytest.Settings) { s.Status = status })
			if got := outcome(t, statError(t, l.client, i)); got != "Unreachable" {
				t.Errorf("got %s", got)
			}
			l.registry.Set(func(s *registrytest.Settings) { s.Status = 0 })
			if got := outcome(t, statError(t, l.client, i)); got != "Unreachable" {
				t.Errorf("at once: %s", got)
			}
			l.now = l.now.Add(unreachablePause)
			if got := outcome(t, statError(t, l.client, i)); got != "OK" {
				t.Errorf("later: %s", got)
			}
		})
	}
}

func statError(t *testing.T, c *Client, i Item) error {
	t.Helper()
	_, err := c.Stat(t.Context(), i, nobody)
	return err
}

func TestARegistryWithoutServerIsUnreachable(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host := listener.Addr().String()
	listener.Close()
	c := New(Options{IsAllowed: refuseAll, Insecure: []string{host}})
	if got := outcome(t, statError(t, c, itemOf(t, host+"/a", "v1"))); got != "Unreachable" {
		t.Errorf("got %s", got)
	}
}

func TestAClientThatGoesAwayMakesNoPause(t *testing.T) {
	l := newLab(t, registrytest.Basic)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.client.Stat(ctx, l.item("open/app", "v1"), nobody); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := statError(t, l.client, l.item("open/app", "v1")); err != nil {
		t.Errorf("the next client gets %v", err)
	}
}

func TestRedirectsOfBlobsGetNoCredentials(t *testing.T) {
	for _, auth := range []registrytest.Auth{registrytest.Basic, registrytest.Token} {
		l := newLab(t, auth)
		storage := registrytest.New(t, registrytest.Basic)
		storage.Push(t, "team/app:v1", l.image)
		storage.Set(func(s *registrytest.Settings) { s.RefuseHead = true })
		l.client.insecure[storage.Host] = true
		l.registry.Set(func(s *registrytest.Settings) { s.RedirectBlobs = storage.URL })
		i := l.item("team/app", l.layer().String())
		if _, err := l.client.Stat(t.Context(), i, alice); err != nil {
			t.Errorf("a redirect of HEAD: %v", err)
		}
		body, d, err := l.client.Open(t.Context(), i, alice)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(body)
		if err != nil || int64(len(raw)) != d.Size || body.Close() != nil {
			t.Errorf("read %d of %d bytes, %v", len(raw), d.Size, err)
		}
		header := storage.Header("/v2/team/app/blobs/" + l.layer().String())
		if header == nil || header.Get("Authorization") != "" {
			t.Errorf("the storage got %v", header)
		}
	}
}

func TestAddressesThatRegistriesNameAreChecked(t *testing.T) {
	other := registrytest.New(t, registrytest.Token) // on the loopback network, not listed
	t.Run("a redirect", func(t *testing.T) {
		l := newLab(t, registrytest.Basic)
		for _, to := range []string{other.URL, strings.Replace(other.URL, "http", "https", 1), "https://169.254.169.254"} {
			l.registry.Set(func(s *registrytest.Settings) { s.RedirectBlobs = to })
			_, _, err := l.client.Open(t.Context(), l.item("open/app", l.layer().String()), nobody)
			if got := outcome(t, err); got != "Forbidden" {
				t.Errorf("%s: %s (%v)", to, got, err)
			}
		}
	})
	t.Run("a server of tokens", func(t *testing.T) {
		l := newLab(t, registrytest.Token)
		l.registry.Set(func(s *registrytest.Settings) { s.Realm = other.URL + "/token" })
		_, err := l.client.Stat(t.Context(), l.item("team/app", "v1"), alice)
		if got := outcome(t, err); got != "Forbidden" {
			t.Errorf("%s (%v)", got, err)
		}
	})
	if got := other.Header("/token"); got != nil {
		t.Errorf("the other server got %v", got)
	}
}

func TestNamesOfRegistriesAreChecked(t *testing.T) {
	registry := registrytest.New(t, registrytest.Basic)
	_, port, err := net.SplitHostPort(registry.Host)
	if err != nil {
		t.Fatal(err)
	}
	proxied := func(*url.URL) (*url.URL, error) { return url.Parse(registry.URL) }
	for name, proxy := range map[string]func(*url.URL) (*url.URL, error){"directly": nil, "by a proxy": proxied} {
		t.Run(name, func(t *testing.T) {
			c := New(Options{IsAllowed: func(a netip.Addr) bool { return a.IsGlobalUnicast() }, Proxy: proxy})
			for _, host := range []string{"127.0.0.1:" + port, "localhost:" + port, "169.254.169.254", "0.0.0.0:" + port} {
				i := itemOf(t, host+"/a", "v1")
				if got := outcome(t, statError(t, c, i)); got != "Forbidden" {
					t.Errorf("%s: %s", host, got)
				}
			}
		})
	}
	if got := registry.Header("/v2/"); got != nil {
		t.Errorf("the registry was asked: %v", got)
	}
}

func TestHostsOfProxies(t *testing.T) {
	addresses := map[string]string{"public.example.com": "203.0.113.1", "rebound.example.com": "127.0.0.1", "six.example.com": "2001:db8::1", "local6.example.com": "fd00:ec2::254"}
	g := newGuard(Options{IsAllowed: func(a netip.Addr) bool { return a.IsGlobalUnicast() }}, nil)
	g.lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
		if a := addresses[host]; a != "" {
			return []netip.Addr{netip.MustParseAddr(a)}, nil
		}
		return nil, errors.New("no such host")
	}
	for host, want := range map[string]bool{
		"public.example.com": true, "six.example.com": true, "only-the-proxy-knows.example.com": true, "203.0.113.1": true,
		"rebound.example.com": false, "local6.example.com": false, "127.1": false, "2130706433": false, "0x7f000001": false, "0177.0.0.1": false,
		"a.localhost": false, "::1": false, "64:ff9b::a9fe:a9fe": false, "::ffff:127.0.0.1": false, "fe80::1%lo": false,
	} {
		if err := g.checkTarget(t.Context(), host); (err == nil) != want {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// The names of hosts are resolved before addresses are checked, and the address that was checked is
// the one that is connected to.
func TestADirectConnectionChecksTheAddress(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "https://")
	var asked []netip.Addr
	c := New(Options{IsAllowed: func(a netip.Addr) bool { asked = append(asked, a); return false }})
	_, port, _ := net.SplitHostPort(address)
	if got := outcome(t, statError(t, c, itemOf(t, "localhost:"+port+"/a", "v1"))); got != "Forbidden" {
		t.Errorf("got %s", got)
	}
	if len(asked) == 0 || asked[0] != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("asked about %v", asked)
	}
}

func TestProxiesAreUsed(t *testing.T) {
	var connected []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connected = append(connected, r.Method+" "+r.Host)
		w.WriteHeader(http.StatusTeapot)
	}))
	defer proxy.Close()
	c := New(Options{IsAllowed: refuseAll, Proxy: func(u *url.URL) (*url.URL, error) {
		if u.Hostname() == "direct.invalid" {
			return nil, nil
		}
		return url.Parse(proxy.URL)
	}})
	if got := outcome(t, statError(t, c, itemOf(t, "registry.invalid/a", "v1"))); got != "Unreachable" {
		t.Errorf("by a proxy: %s", got)
	}
	if got := outcome(t, statError(t, c, itemOf(t, "direct.invalid/a", "v1"))); got != "Unreachable" {
		t.Errorf("without: %s", got)
	}
	if len(connected) != 1 || connected[0] != "CONNECT registry.invalid:443" {
		t.Errorf("the proxy got %v", connected)
	}
}

func TestAuthoritiesAreTrusted(t *testing.T) {
	registry := registrytest.NewHandler(registrytest.Basic)
	image, err := random.Image(10, 1)
	if err != nil {
		t.Fatal(err)
	}
	registry.Push(t, "open/app:v1", image)
	server := httptest.NewTLSServer(registry)
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	i := itemOf(t, strings.TrimPrefix(server.URL, "https://")+"/open/app", "v1")
	if err := statError(t, New(Options{IsAllowed: allowAll, Roots: roots}), i); err != nil {
		t.Errorf("with its authority: %v", err)
	}
	err = statError(t, New(Options{IsAllowed: allowAll}), i)
	if got := outcome(t, err); got != "Unreachable" || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("without its authority: %v", err)
	}
}

func TestPlainHTTPIsRefused(t *testing.T) {
	registry := registrytest.New(t, registrytest.Basic)
	c := New(Options{IsAllowed: allowAll})
	if err := statError(t, c, itemOf(t, registry.Host+"/a", "v1")); err == nil {
		t.Error("it is not refused")
	}
	if got := registry.Header("/v2/"); got != nil {
		t.Errorf("the registry was asked: %v", got)
	}
}

func TestAnEndlessTokenIsNotRead(t *testing.T) {
	l := newLab(t, registrytest.Token)
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 100 {
			if _, err := w.Write([]byte(strings.Repeat(" ", 1<<20))); err != nil {
				return
			}
		}
		fmt.Fprint(w, `{"token":"x"}`)
	}))
	defer endless.Close()
	l.client.insecure[strings.TrimPrefix(endless.URL, "http://")] = true
	l.registry.Set(func(s *registrytest.Settings) { s.Realm = endless.URL + "/token" })
	if got := outcome(t, statError(t, l.client, l.item("open/app", "v1"))); got != "Unreachable" {
		t.Errorf("got %s", got)
	}
}

func TestItemsHaveNames(t *testing.T) {
	const digest = "sha256:0"
	if got := itemOf(t, "busybox", "1").String(); got != "docker.io/library/busybox:1" {
		t.Error(got)
	}
	blob := itemOf(t, "busybox", digest)
	if got := blob.String(); got != "blob sha256:0 of docker.io/library/busybox" {
		t.Error(got)
	}
	blob.IsBlob = false
	if got := blob.String(); got != "docker.io/library/busybox@sha256:0" {
		t.Error(got)
	}
}
