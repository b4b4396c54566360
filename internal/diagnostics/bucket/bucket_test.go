package bucket

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/diagnostics"
	"hotspare.io/hotspare/internal/diagnostics/retention"
)

const (
	secretKey = "wJalrXUtnFEMI-not-a-real-key"
	name      = "c-gate-20260301T120000Z-0a1b2c3d.tar.gz"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// object is a stored object.
type object struct {
	content  []byte
	modified time.Time
}

// service speaks the part of S3 that the package needs, for one bucket. It refuses requests that are not signed.
type service struct {
	t    *testing.T
	mu   sync.Mutex
	kept map[string]object
	now  time.Time
	// fail, if not nil, answers a request, and reports that it has.
	fail     func(http.ResponseWriter, *http.Request) bool
	requests []string
}

// newService starts a service, and returns it with an opened bucket at bundles/hub/.
func newService(t *testing.T, limits retention.Limits) (*service, *Bucket) {
	t.Helper()
	setEnvironment(t, map[string]string{"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": secretKey})
	s := &service{t: t, kept: map[string]object{}, now: noon}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	l, err := ParseLocation("s3://bundles/hub?endpoint=" + server.URL)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Open(t.Context(), l, limits)
	if err != nil {
		t.Fatal(err)
	}
	return s, b
}

// setEnvironment gives the AWS SDK an environment without anything else of this computer.
func setEnvironment(t *testing.T, variables map[string]string) {
	t.Helper()
	for _, unset := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ENDPOINT_URL", "AWS_CA_BUNDLE"} {
		t.Setenv(unset, "")
	}
	for key, value := range map[string]string{"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_EC2_METADATA_DISABLED": "true", "AWS_MAX_ATTEMPTS": "1"} {
		t.Setenv(key, value)
	}
	for key, value := range variables {
		t.Setenv(key, value)
	}
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	fail := s.fail
	s.mu.Unlock()
	if fail != nil && fail(w, r) {
		return
	}
	if !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/") || !strings.Contains(r.Header.Get("Authorization"), "/us-east-1/s3/aws4_request") {
		refuse(w, http.StatusForbidden, "AccessDenied")
		return
	}
	key, inBucket := strings.CutPrefix(r.URL.Path, "/bundles/")
	switch {
	case !inBucket && r.URL.Path != "/bundles":
		refuse(w, http.StatusNotFound, "NoSuchBucket")
	case r.Method == http.MethodGet && (key == "" || !inBucket) && r.URL.Query().Get("list-type") == "2":
		s.list(w, r)
	case r.Method == http.MethodPut && inBucket:
		s.put(w, r, key)
	case r.Method == http.MethodDelete && inBucket:
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.kept, key)
		w.WriteHeader(http.StatusNoContent)
	default:
		refuse(w, http.StatusMethodNotAllowed, "MethodNotAllowed")
	}
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>not with key %s</Message><RequestId>4442587FB7D0A2F9</RequestId></Error>", code, secretKey)
}

// put stores an object if its content has the length and the sum of the signed headers.
func (s *service) put(w http.ResponseWriter, r *http.Request, key string) {
	content, err := io.ReadAll(r.Body)
	sum := sha256.Sum256(content)
	switch {
	case err != nil || int64(len(content)) != r.ContentLength:
		refuse(w, http.StatusBadRequest, "IncompleteBody")
		return
	case r.Header.Get("X-Amz-Content-Sha256") != hex.EncodeToString(sum[:]):
		refuse(w, http.StatusBadRequest, "XAmzContentSHA256Mismatch")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[key] = object{content, s.now}
}

// page is the number of keys of a page of a list.
const page = 2

func (s *service) list(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	type content struct {
		Key, LastModified string
		Size              int
	}
	var out struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		IsTruncated           bool
		NextContinuationToken string
		Contents              []content
	}
	q := r.URL.Query()
	most := page
	if n, err := strconv.Atoi(q.Get("max-keys")); err == nil {
		most = min(n, page)
	}
	for _, key := range s.keys() {
		rest, found := strings.CutPrefix(key, q.Get("prefix"))
		if !found || key <= q.Get("continuation-token") || q.Get("delimiter") != "" && strings.Contains(rest, q.Get("delimiter")) {
			continue
		}
		if len(out.Contents) == most {
			out.IsTruncated, out.NextContinuationToken = true, out.Contents[most-1].Key
			break
		}
		o := s.kept[key]
		out.Contents = append(out.Contents, content{key, o.modified.Format(time.RFC3339), len(o.content)})
	}
	raw, err := xml.Marshal(out)
	if err != nil {
		s.t.Error(err)
	}
	_, _ = w.Write(raw) // the client has gone
}

// keys returns the keys of all objects, sorted.
func (s *service) keys() []string {
	var keys []string
	for key := range s.kept {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func (s *service) setFailure(fail func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = fail
}

func newBundle() *diagnostics.Bundle {
	b := diagnostics.NewBundle(diagnostics.Subject{Namespace: "n", Name: "c", At: noon}, diagnostics.DefaultLimits, diagnostics.NewScrubber())
	b.AddText("conditions.txt", "all is well\n")
	return b
}

func TestABundleIsStoredUnderItsPrefix(t *testing.T) {
	s, b := newService(t, retention.DefaultLimits)
	s.kept["hub/"+name+".old"] = object{nil, noon} // its key begins with that of the bundle
	for _, want := range []bool{false, true} {
		stored, err := b.Has(t.Context(), name)
		if err != nil || stored != want {
			t.Fatalf("stored: %t, %v", stored, err)
		}
		if err := b.Write(t.Context(), name, newBundle()); err != nil {
			t.Fatal(err)
		}
	}
	var want bytes.Buffer
	if _, err := newBundle().WriteTo(&want); err != nil || !bytes.Equal(s.kept["hub/"+name].content, want.Bytes()) {
		t.Errorf("the service has %d bytes of %d, %v", len(s.kept["hub/"+name].content), want.Len(), err)
	}
	for _, bad := range []string{"../" + name, "", "a/b-c.tar.gz", ".hidden-a.tar.gz"} {
		if err := b.Write(t.Context(), bad, newBundle()); err == nil {
			t.Errorf("%q was written", bad)
		}
	}
}

// Old bundles are deleted, on all pages of the list, and nothing else.
func TestPrune(t *testing.T) {
	s, b := newService(t, retention.Limits{MaxAge: time.Hour})
	for i := range 7 {
		s.kept[fmt.Sprintf("hub/c%d-gate-20260301T120000Z-a%d.tar.gz", i, i)] = object{nil, noon.Add(-time.Duration(i%2) * 2 * time.Hour)}
	}
	old := noon.Add(-100 * time.Hour)
	others := []string{"hub/mine.txt", "hub/other/" + name, name, "hub2/" + name, "hub/.c-a.tar.gz"}
	for _, key := range others {
		s.kept[key] = object{nil, old}
	}
	s.kept["hub/"+name] = object{nil, noon} // an old one below another prefix has its name
	others = append(others, "hub/"+name)
	if err := b.Prune(t.Context(), noon); err != nil {
		t.Fatal(err)
	}
	want := append([]string{
		"hub/c0-gate-20260301T120000Z-a0.tar.gz", "hub/c2-gate-20260301T120000Z-a2.tar.gz",
		"hub/c4-gate-20260301T120000Z-a4.tar.gz", "hub/c6-gate-20260301T120000Z-a6.tar.gz",
	}, others...)
	slices.Sort(want)
	if got := s.keys(); !slices.Equal(got, want) {
		t.Errorf("left are %q, want %q", got, want)
	}
	t.Log("by size, as in a folder")
	b.limits = retention.Limits{MaxSize: 10}
	s.kept["hub/x-gate-20260301T120000Z-b.tar.gz"] = object{make([]byte, 10), noon}
	s.kept["hub/y-gate-20260301T120000Z-c.tar.gz"] = object{make([]byte, 1), noon.Add(-time.Minute)}
	if err := b.Prune(t.Context(), noon); err != nil {
		t.Fatal(err)
	}
	if got := s.keys(); slices.Contains(got, "hub/y-gate-20260301T120000Z-c.tar.gz") || !slices.Contains(got, "hub/x-gate-20260301T120000Z-b.tar.gz") {
		t.Errorf("left are %q", got)
	}
}

// operations are all that a store does.
func operations(t *testing.T, b *Bucket) map[string]func() error {
	return map[string]func() error{
		"has":   func() error { _, err := b.Has(t.Context(), name); return err },
		"write": func() error { return b.Write(t.Context(), name, newBundle()) },
		"prune": func() error { return b.Prune(t.Context(), noon) },
	}
}

// expectMessage checks the message for a condition, and that it has no secret.
func expectMessage(t *testing.T, err error, parts ...string) {
	t.Helper()
	var explained *diagnostics.StoreError
	if !errors.As(err, &explained) {
		t.Errorf("got %v", err)
		return
	}
	for _, part := range parts {
		if !strings.Contains(explained.Message, part) {
			t.Errorf("the message is %q, want %q in it", explained.Message, part)
		}
	}
	if strings.Contains(explained.Error(), secretKey) || strings.Contains(explained.Message, "RequestId") || strings.Contains(explained.Message, "%!") {
		t.Errorf("the message is %q", explained.Message)
	}
}

func TestRefusalsAreExplained(t *testing.T) {
	s, b := newService(t, retention.DefaultLimits)
	for code, want := range map[string]string{
		"NoSuchBucket":                 "does not exist: create it",
		"AccessDenied":                 "was denied: grant hotspare s3:",
		"InvalidAccessKeyId":           "refused the credentials: renew them",
		"ExpiredToken":                 "refused the credentials: renew them",
		"AuthorizationHeaderMalformed": "is in another region: set ?region=",
		"SlowDown":                     "is busy",
		"QuotaExceeded":                "has no more room",
		"SomethingNew":                 "refused the request with code SomethingNew",
		secretKey + " is no code":      "refused the request",
	} {
		s.setFailure(func(w http.ResponseWriter, _ *http.Request) bool { refuse(w, http.StatusForbidden, code); return true })
		for operation, do := range operations(t, b) {
			t.Run(operation+" "+code, func(t *testing.T) { expectMessage(t, do(), "bucket bundles at http://127.0.0.1:", want) })
		}
	}
	t.Log("the message names the right that is missing")
	s.setFailure(func(w http.ResponseWriter, r *http.Request) bool {
		denied := r.Method != http.MethodGet
		if denied {
			refuse(w, http.StatusForbidden, "AccessDenied")
		}
		return denied
	})
	s.kept["hub/c-gate-20260301T120000Z-a.tar.gz"] = object{nil, noon.Add(-100 * 24 * time.Hour)}
	expectMessage(t, b.Write(t.Context(), name, newBundle()), "grant hotspare s3:PutObject")
	expectMessage(t, b.Prune(t.Context(), noon), "grant hotspare s3:DeleteObject")
}

func TestARedirectIsExplained(t *testing.T) {
	s, b := newService(t, retention.DefaultLimits)
	s.setFailure(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusMovedPermanently)
		return true
	})
	_, err := b.Has(t.Context(), name)
	expectMessage(t, err, "is in another region")
}

func TestAServiceThatDoesNotAnswerIsGivenUp(t *testing.T) {
	s, b := newService(t, retention.DefaultLimits)
	b.times = times{list: 50 * time.Millisecond, upload: 50 * time.Millisecond, prune: 50 * time.Millisecond}
	s.setFailure(func(_ http.ResponseWriter, r *http.Request) bool {
		_, _ = io.Copy(io.Discard, r.Body) // only then the server notices that the client has gone
		<-r.Context().Done()
		return true
	})
	for operation, do := range operations(t, b) {
		t.Run(operation, func(t *testing.T) { expectMessage(t, do(), "did not answer in time") })
	}
}

func TestAServiceThatCannotBeReached(t *testing.T) {
	setEnvironment(t, map[string]string{"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": secretKey})
	b, err := Open(t.Context(), Location{Bucket: "bundles", Endpoint: "http://127.0.0.1:1"}, retention.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	for operation, do := range operations(t, b) {
		t.Run(operation, func(t *testing.T) { expectMessage(t, do(), "cannot be reached: check the endpoint") })
	}
}

// A half upload leaves nothing behind, and the bundle can be written again.
func TestHalfAnUpload(t *testing.T) {
	s, b := newService(t, retention.DefaultLimits)
	s.setFailure(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut {
			return false
		}
		_, _ = io.CopyN(io.Discard, r.Body, 10) // the connection breaks
		if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
			_ = conn.Close() // that is the failure
		}
		return true
	})
	expectMessage(t, b.Write(t.Context(), name, newBundle()), "cannot be reached")
	if stored, err := b.Has(t.Context(), name); stored || err != nil {
		t.Errorf("stored: %t, %v", stored, err)
	}
	s.setFailure(nil)
	if err := b.Write(t.Context(), name, newBundle()); err != nil || len(s.kept) != 1 {
		t.Errorf("%v, %q", err, s.keys())
	}
}

func TestAFailureThatPassesIsRetried(t *testing.T) {
	s, b := newService(t, retention.DefaultLimits)
	setEnvironment(t, map[string]string{"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": secretKey, "AWS_MAX_ATTEMPTS": "2"})
	b, err := Open(t.Context(), b.location, retention.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	s.setFailure(func(w http.ResponseWriter, _ *http.Request) bool {
		first := len(s.requests) == 1
		if first {
			refuse(w, http.StatusServiceUnavailable, "SlowDown")
		}
		return first
	})
	if err := b.Write(t.Context(), name, newBundle()); err != nil || len(s.kept) != 1 {
		t.Errorf("%v, %q", err, s.requests)
	}
}

func TestNoCredentials(t *testing.T) {
	setEnvironment(t, nil)
	b, err := Open(t.Context(), Location{Bucket: "bundles", Endpoint: "http://127.0.0.1:1"}, retention.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	for operation, do := range operations(t, b) {
		t.Run(operation, func(t *testing.T) {
			expectMessage(t, do(), "has no credentials for the bucket", "set AWS_ACCESS_KEY_ID")
		})
	}
}

func TestTheRegionIsKnownOrAskedFor(t *testing.T) {
	setEnvironment(t, nil)
	if _, err := Open(t.Context(), Location{Bucket: "bundles"}, retention.DefaultLimits); err == nil || !strings.Contains(err.Error(), "add ?region=") {
		t.Errorf("got %v", err)
	}
	for _, l := range []Location{{Bucket: "bundles", Region: "eu-west-1"}, {Bucket: "bundles", Endpoint: "http://127.0.0.1:1"}} {
		if _, err := Open(t.Context(), l, retention.DefaultLimits); err != nil {
			t.Errorf("%+v: %v", l, err)
		}
	}
	t.Setenv("AWS_REGION", "eu-west-1")
	if _, err := Open(t.Context(), Location{Bucket: "bundles"}, retention.DefaultLimits); err != nil {
		t.Error(err)
	}
}
