package registryapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// source returns the same content or error for all requests.
type source struct {
	content func() *Content
	err     error
	asked   []Request
}

func (s *source) OpenManifest(_ context.Context, r Request) (*Content, error) {
	s.asked = append(s.asked, r)
	if s.err != nil {
		return nil, s.err
	}
	return s.content(), nil
}

func (s *source) OpenBlob(ctx context.Context, r Request) (*Content, error) {
	return s.OpenManifest(ctx, r)
}

var digest = v1.Hash{Algorithm: "sha256", Hex: strings.Repeat("0", 64)}

// streamed returns a source whose content can be read once.
func streamed(text string, size int64) *source {
	return &source{content: func() *Content {
		return &Content{Digest: digest, Size: size, Body: io.NopCloser(strings.NewReader(text))}
	}}
}

func get(t *testing.T, method, path string, sources ...Source) (*http.Response, string, error) {
	t.Helper()
	server := httptest.NewServer(Handler(sources...))
	t.Cleanup(server.Close)
	request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Range", "bytes=2-")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return &http.Response{Status: "none"}, "", err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	return response, string(raw), err
}

const blobPath = "/v2/team/app/blobs/sha256:0000000000000000000000000000000000000000000000000000000000000000?ns=quay.io"

func TestAStreamIsServedAsAWhole(t *testing.T) {
	response, body, err := get(t, http.MethodGet, blobPath, streamed("content", 7))
	if err != nil || response.StatusCode != 200 || body != "content" || response.ContentLength != 7 {
		t.Errorf("got %d %q, length %d, %v", response.StatusCode, body, response.ContentLength, err)
	}
	response, body, err = get(t, http.MethodHead, blobPath, streamed("content", 7))
	if err != nil || response.StatusCode != 200 || body != "" || response.ContentLength != 7 {
		t.Errorf("HEAD: got %d %q, length %d, %v", response.StatusCode, body, response.ContentLength, err)
	}
}

// failing ends with an error.
type failing struct{ io.Reader }

func (f failing) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = errors.New("the connection broke")
	}
	return n, err
}

func TestAClientNoticesAStreamThatBreaks(t *testing.T) {
	for name, size := range map[string]int64{"of a known size": 100, "of an unknown size": -1} {
		t.Run(name, func(t *testing.T) {
			s := &source{content: func() *Content {
				return &Content{Digest: digest, Size: size, Body: io.NopCloser(failing{strings.NewReader(strings.Repeat("x", 5000))})}
			}}
			if response, body, err := get(t, http.MethodGet, blobPath, s); err == nil {
				t.Errorf("got %d and %d bytes without an error", response.StatusCode, len(body))
			}
		})
	}
}

func TestSourcesAreAskedInTheirOrder(t *testing.T) {
	missing := &source{err: NotFound("BLOB_UNKNOWN", "nothing loaded")}
	denied := &source{err: &Error{Status: 403, Code: "DENIED", Message: "not allowed"}}
	broken := &source{err: errors.New("input/output error")}
	for name, tc := range map[string]struct {
		sources []Source
		want    string
	}{
		"the first that has it":                {[]Source{missing, streamed("a", 1), streamed("b", 1)}, "200 a"},
		"none":                                 {[]Source{missing, &source{err: NotFound("BLOB_UNKNOWN", "nothing upstream")}}, "404 nothing upstream"},
		"one that denies it is the last":       {[]Source{denied, streamed("a", 1)}, "403 not allowed"},
		"one that fails is the last":           {[]Source{broken, streamed("a", 1)}, "500 input/output error"},
		"one that denies it comes after a 404": {[]Source{missing, denied}, "403 not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			response, body, _ := get(t, http.MethodGet, blobPath, tc.sources...)
			status, text, _ := strings.Cut(tc.want, " ")
			if !strings.HasPrefix(response.Status, status) || !strings.Contains(body, text) {
				t.Errorf("got %s: %s", response.Status, body)
			}
		})
	}
}

func TestSourcesGetTheNameOfTheRegistry(t *testing.T) {
	s := &source{err: NotFound("MANIFEST_UNKNOWN", "x")}
	for path, want := range map[string]string{
		"/v2/library/busybox/manifests/1.36":                      "docker.io/library/busybox 1.36",
		"/v2/a/manifests/b/manifests/v1?ns=localhost:5000":        "localhost:5000/a/manifests/b v1",
		"/v2/library/busybox/manifests/1?ns=index.docker.io":      "docker.io/library/busybox 1",
		"/v2/library/busybox/manifests/1?ns=registry-1.docker.io": "docker.io/library/busybox 1",
		blobPath: "quay.io/team/app " + digest.String(),
	} {
		s.asked = nil
		if get(t, http.MethodGet, path, s); len(s.asked) != 1 || s.asked[0].Repository.Name()+" "+s.asked[0].Reference() != want || s.asked[0].HeadOnly {
			t.Errorf("%s: asked for %v", path, s.asked)
		}
	}
	s.asked = nil
	if get(t, http.MethodHead, blobPath, s); len(s.asked) != 1 || !s.asked[0].HeadOnly {
		t.Errorf("HEAD: asked for %v", s.asked)
	}
}

func TestHeadersOfContentAndErrors(t *testing.T) {
	s := streamed("{}", 2)
	old := &source{content: func() *Content {
		c := s.content()
		c.Age, c.MediaType = 90*time.Second, types.OCIManifestSchema1
		return c
	}}
	response, _, _ := get(t, http.MethodGet, "/v2/a/manifests/v1?ns=quay.io", old)
	if h := response.Header; h.Get("Age") != "90" || h.Get("Content-Type") != string(types.OCIManifestSchema1) || h.Get("Docker-Content-Digest") != digest.String() {
		t.Errorf("headers of an old manifest: %v", response.Header)
	}
	limited := &source{err: &Error{Status: 429, Code: "TOOMANYREQUESTS", Message: "slow down", RetryAfter: 1500 * time.Millisecond}}
	response, body, _ := get(t, http.MethodGet, blobPath, limited)
	if response.StatusCode != 429 || response.Header.Get("Retry-After") != "2" || body != `{"errors":[{"code":"TOOMANYREQUESTS","message":"slow down"}]}` {
		t.Errorf("got %d, Retry-After %q: %s", response.StatusCode, response.Header.Get("Retry-After"), body)
	}
}
