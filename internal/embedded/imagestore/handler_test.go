package imagestore

import (
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// serveStore returns a store with one image for two architectures, and the address of its registry.
func serveStore(t *testing.T) (s *Store, address string, index, amd64 v1.Descriptor, layerDigest v1.Hash) {
	t.Helper()
	layout, index, amd64, _ := multiLayout(t, busybox)
	s = newStore(t)
	load(t, s, layout)
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	return s, server.URL, index, amd64, layerOf(t, layout, amd64)
}

func load(t testing.TB, s *Store, layout files) []Image {
	t.Helper()
	images, err := s.Load(t.Context(), writeFolder(t, layout), LoadOptions{Architecture: "amd64"})
	if err != nil {
		t.Fatal(err)
	}
	return images
}

// call sends a request with headers in the form "Name: value".
func call(t *testing.T, method, address string, headers ...string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		key, value, _ := strings.Cut(h, ": ")
		request.Header.Set(key, value)
	}
	response, err := http.DefaultTransport.RoundTrip(request) // without redirects
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response, string(raw)
}

func TestAnIndependentClientPullsWhatWasLoaded(t *testing.T) {
	s := newStore(t)
	multi, index, _, _ := multiLayout(t, busybox)
	load(t, s, multi)
	docker, err := s.Load(t.Context(), writeTemp(t, "a.tar", toTar(t, dockerArchive(t, "amd64", "library/app:v1"))), LoadOptions{Architecture: "amd64"})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	for _, reference := range []string{"library/busybox:1.36", "library/busybox@" + index.Digest.String()} {
		pulled, err := remote.Index(parse(t, host+"/"+reference), remote.WithContext(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		if digest, err := pulled.Digest(); err != nil || digest != index.Digest {
			t.Errorf("pulled %s, %v; want %s", digest, err, index.Digest)
		}
		if err := validate.Index(pulled); err != nil {
			t.Error(err)
		}
	}
	pulled, err := remote.Image(parse(t, host+"/library/app:v1"), remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if digest, err := pulled.Digest(); err != nil || digest.String() != docker[0].Digest {
		t.Errorf("pulled %s, %v; want %s", digest, err, docker[0].Digest)
	}
	checkLayers(t, pulled)
}

// checkLayers compares the layers of a pulled image with its configuration. validate.Image would
// expect all layers to be compressed.
func checkLayers(t *testing.T, pulled v1.Image) {
	t.Helper()
	config, err := pulled.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	layers, err := pulled.Layers()
	if err != nil || len(layers) != len(config.RootFS.DiffIDs) || len(layers) == 0 {
		t.Fatalf("pulled %d layers, %v; want %d", len(layers), err, len(config.RootFS.DiffIDs))
	}
	for i, l := range layers {
		content, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		digest, _, err := v1.SHA256(content)
		if err != nil || digest != config.RootFS.DiffIDs[i] {
			t.Errorf("layer %d is %s, %v; want %s", i, digest, err, config.RootFS.DiffIDs[i])
		}
	}
}

func parse(t *testing.T, text string) name.Reference {
	t.Helper()
	r, err := name.ParseReference(text, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRequests(t *testing.T) {
	_, address, index, amd64, layerDigest := serveStore(t)
	indexType, manifestType := string(types.OCIImageIndex), string(types.OCIManifestSchema1)
	blobs := "/v2/library/busybox/blobs/"
	for line, want := range map[string]struct {
		status                int
		mediaType, digest, in string
	}{
		"GET /v2/":  {200, "application/json", "", "{}"},
		"HEAD /v2/": {200, "application/json", "", ""},
		"GET /v2":   {200, "application/json", "", "{}"},
		"GET /v2/library/busybox/manifests/1.36?ns=docker.io":                        {200, indexType, index.Digest.String(), amd64.Digest.String()},
		"HEAD /v2/library/busybox/manifests/1.36?ns=docker.io":                       {200, indexType, index.Digest.String(), ""},
		"GET /v2/library/busybox/manifests/1.36":                                     {200, indexType, index.Digest.String(), amd64.Digest.String()},
		"GET /v2/library/busybox/manifests/" + index.Digest.String():                 {200, indexType, index.Digest.String(), amd64.Digest.String()},
		"GET /v2/library/busybox/manifests/" + amd64.Digest.String():                 {200, manifestType, amd64.Digest.String(), layerDigest.String()},
		"HEAD " + blobs + layerDigest.String():                                       {200, "application/octet-stream", layerDigest.String(), ""},
		"GET /v2/library/busybox/manifests/1.37?ns=docker.io":                        {404, "application/json", "", `"code":"MANIFEST_UNKNOWN"`},
		"HEAD /v2/library/busybox/manifests/1.37":                                    {404, "application/json", "", ""},
		"GET /v2/library/busybox/manifests/1.36?ns=quay.io":                          {404, "application/json", "", `"code":"MANIFEST_UNKNOWN"`},
		"GET /v2/library/busybox/manifests/.tmp-x":                                   {404, "application/json", "", `"code":"MANIFEST_UNKNOWN"`},
		"GET /v2/library/busybox/manifests/" + layerDigest.String():                  {404, "application/json", "", `"code":"MANIFEST_UNKNOWN"`},
		"GET /v2/library/busybox/manifests/sha256:" + strings.Repeat("0", 64):        {404, "application/json", "", `"code":"MANIFEST_UNKNOWN"`},
		"GET /v2/library/busybox/manifests/sha256:00":                                {404, "application/json", "", `"code":"DIGEST_INVALID"`},
		"GET /v2/library/busybox/manifests/sha512:" + strings.Repeat("0", 128):       {404, "application/json", "", `"code":"DIGEST_INVALID"`},
		"GET " + blobs + "sha256:" + strings.Repeat("0", 64):                         {404, "application/json", "", `"code":"BLOB_UNKNOWN"`},
		"GET " + blobs + "sha256:..":                                                 {404, "application/json", "", `"code":"DIGEST_INVALID"`},
		"GET /v2/..%2f..%2fx/manifests/1.36":                                         {404, "application/json", "", `"code":"NAME_INVALID"`},
		"GET /v2/../manifests/1.36":                                                  {404, "application/json", "", `"code":"NAME_INVALID"`},
		"GET /v2/library/busybox/_tags/manifests/1.36":                               {404, "application/json", "", `"code":"NAME_INVALID"`},
		"GET /v2/library/busybox:1.36/manifests/1.36":                                {404, "application/json", "", `"code":"NAME_INVALID"`},
		"GET /v2/library/busybox/manifests/1.36?ns=..":                               {404, "application/json", "", `"code":"NAME_INVALID"`},
		"GET /v2/busybox/manifests/1.36?ns=docker.io/library":                        {404, "application/json", "", `"code":"NAME_INVALID"`},
		"GET /v2/library/busybox/tags/list":                                          {404, "application/json", "", `"code":"UNSUPPORTED"`},
		"GET /v2/_catalog":                                                           {404, "application/json", "", `"code":"UNSUPPORTED"`},
		"GET /v2/manifests/1.36":                                                     {404, "application/json", "", `"code":"UNSUPPORTED"`},
		"GET /":                                                                      {404, "application/json", "", `"code":"UNSUPPORTED"`},
		"POST " + blobs + "uploads/":                                                 {405, "application/json", "", `"code":"UNSUPPORTED"`},
		"PUT /v2/library/busybox/manifests/1.36":                                     {405, "application/json", "", "this registry is read-only"},
		"DELETE /v2/library/busybox/manifests/1.36":                                  {405, "application/json", "", `"code":"UNSUPPORTED"`},
		"GET /v2/manifests/manifests/blobs/manifests/1.36":                           {404, "application/json", "", `"code":"MANIFEST_UNKNOWN"`},
		"GET /v2/library/busybox/manifests/1.36?ns=docker.io&ns=quay.io&unknown=%00": {200, indexType, index.Digest.String(), amd64.Digest.String()},
	} {
		t.Run(line, func(t *testing.T) {
			method, path, _ := strings.Cut(line, " ")
			response, body := call(t, method, address+path)
			h := response.Header
			if response.StatusCode != want.status || h.Get("Content-Type") != want.mediaType || h.Get("Docker-Content-Digest") != want.digest || !strings.Contains(body, want.in) {
				t.Errorf("got %d %s %s: %s", response.StatusCode, h.Get("Content-Type"), h.Get("Docker-Content-Digest"), body)
			}
			if method == http.MethodHead && body != "" {
				t.Errorf("a HEAD request returns %q", body)
			}
			if want.status == 200 && response.ContentLength <= 0 {
				t.Errorf("the length is %d", response.ContentLength)
			}
			if want.status == 405 && h.Get("Allow") != "GET, HEAD" {
				t.Errorf("the allowed methods are %q", h.Get("Allow"))
			}
			if want.status >= 400 && method != http.MethodHead {
				var list struct {
					Errors []struct{ Code, Message string }
				}
				if err := json.Unmarshal([]byte(body), &list); err != nil || len(list.Errors) != 1 || list.Errors[0].Message == "" {
					t.Errorf("the body is no list of errors: %v", err)
				}
			}
		})
	}
}

func TestBlobsAreServedInParts(t *testing.T) {
	_, address, _, _, digest := serveStore(t)
	url := address + "/v2/library/busybox/blobs/" + digest.String() + "?ns=docker.io"
	whole, want := call(t, http.MethodGet, url)
	if whole.StatusCode != 200 || digestOf([]byte(want)) != digest || whole.ContentLength != int64(len(want)) {
		t.Fatalf("got %d with %d bytes", whole.StatusCode, len(want))
	}
	part, got := call(t, http.MethodGet, url, "Range: bytes=10-19")
	if part.StatusCode != http.StatusPartialContent || got != want[10:20] || !strings.HasPrefix(part.Header.Get("Content-Range"), "bytes 10-19/") {
		t.Errorf("got %d %s: %q", part.StatusCode, part.Header.Get("Content-Range"), got)
	}
	rest, got := call(t, http.MethodGet, url, "Range: bytes=10-")
	if rest.StatusCode != http.StatusPartialContent || got != want[10:] {
		t.Errorf("got %d with %d bytes", rest.StatusCode, len(got))
	}
	outside, _ := call(t, http.MethodGet, url, "Range: bytes=1000000-")
	if outside.StatusCode != http.StatusRequestedRangeNotSatisfiable {
		t.Errorf("got %d", outside.StatusCode)
	}
}

func TestRegistriesAreSeparate(t *testing.T) {
	s := newStore(t)
	hub := load(t, s, layoutOf(t, "amd64", "team/app:v1"))
	other := load(t, s, layoutOf(t, "amd64", "localhost:5000/team/app:v1"))
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	for ns, want := range map[string]string{"": hub[0].Digest, "docker.io": hub[0].Digest, "localhost:5000": other[0].Digest, "quay.io": ""} {
		response, _ := call(t, http.MethodHead, server.URL+"/v2/team/app/manifests/v1?ns="+url.QueryEscape(ns))
		if got := response.Header.Get("Docker-Content-Digest"); got != want {
			t.Errorf("registry %q serves %q, want %q", ns, got, want)
		}
	}
}

func TestAStoreThatDoesNotExistServesNothing(t *testing.T) {
	s := newStore(t)
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	if response, _ := call(t, http.MethodGet, server.URL+"/v2/library/busybox/manifests/1.36"); response.StatusCode != 404 {
		t.Errorf("got %d", response.StatusCode)
	}
	if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
		t.Errorf("serving created the folder: %v", err)
	}
}

// Whatever the request, the response is a blob of the store, or an error: no other file.
func FuzzRequestsStayInTheStore(f *testing.F) {
	outside := filepath.Join(f.TempDir(), "store")
	s := openUnsynced(filepath.Join(outside, "images"))
	layout, _, _, _ := multiLayout(f, busybox)
	load(f, s, layout)
	const secret = "secret outside of the store"
	descriptor := `{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:` + strings.Repeat("0", 64) + `","size":1}`
	for _, path := range []string{filepath.Join(outside, "secret"), filepath.Join(outside, "_tags", "secret"), filepath.Join(s.dir, "secret"), s.path("blobs/secret"), s.path("references/secret")} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			f.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(secret+descriptor), 0o600); err != nil {
			f.Fatal(err)
		}
	}
	handler := s.Handler()
	seed := rand.Uint64() //nolint:gosec // a test
	f.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test
	parts := []string{"..", ".", "/", "%2e", "secret", "_tags", "library", "busybox", "manifests", "blobs", "1.36", "sha256:", "v2", "\x00", "docker.io", "@", ":", "\\"}
	for range 2000 {
		path, ns := "/v2/", ""
		for range random.IntN(8) {
			path += parts[random.IntN(len(parts))] + strings.Repeat("/", random.IntN(2))
		}
		for range random.IntN(4) {
			ns += parts[random.IntN(len(parts))]
		}
		f.Add(path, ns)
	}
	f.Fuzz(func(t *testing.T, path, ns string) {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		request.URL = &url.URL{Path: path, RawQuery: url.Values{"ns": {ns}}.Encode()}
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		body := recorder.Body.String()
		switch recorder.Code {
		case 200:
			if body != "{}" && recorder.Header().Get("Docker-Content-Digest") != digestOf([]byte(body)).String() {
				t.Errorf("%q, %q: serves %q", path, ns, body)
			}
		case 404:
			if strings.Contains(body, secret) {
				t.Errorf("%q, %q: %q", path, ns, body)
			}
		default:
			t.Errorf("%q, %q: status %d: %s", path, ns, recorder.Code, body)
		}
	})
}

func TestNamesAreNormalized(t *testing.T) {
	for text, want := range map[string]string{
		"busybox":                       "docker.io/library/busybox:latest",
		"busybox:1.36":                  busybox,
		"team/app":                      "docker.io/team/app:latest",
		"index.docker.io/busybox:1.36":  busybox,
		"localhost/app":                 "localhost/app:latest",
		"quay.io:8443/a/b/c:D_e.f-g":    "quay.io:8443/a/b/c:D_e.f-g",
		"":                              "",
		"busybox:":                      "",
		"a/_tags/b":                     "",
		"a/../b":                        "",
		"/a":                            "",
		"a:b/c":                         "",
		"Busybox":                       "",
		strings.Repeat("a", 300):        "",
		"a:" + strings.Repeat("b", 129): "",
		strings.Repeat("0", 64):         "",
	} {
		got := ""
		if n, err := parseName(text); err == nil {
			got = n.String()
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}
