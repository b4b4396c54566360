package metricsauthz_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr/testr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"hotspare.io/hotspare/internal/manager/metricsauthz"
)

// hub knows the token prometheus, whose user may get /metrics, and the token visitor. It answers 403
// to requests whose path ends with broken, if that is set.
type hub struct {
	asked  atomic.Int32
	broken atomic.Pointer[string]
}

func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.asked.Add(1)
	w.Header().Set("Content-Type", "application/json")
	if b := h.broken.Load(); b != nil && strings.HasSuffix(r.URL.Path, *b) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
		return
	}
	switch {
	case strings.HasSuffix(r.URL.Path, "/tokenreviews"):
		var review authenticationv1.TokenReview
		_ = json.NewDecoder(r.Body).Decode(&review) // an empty review has no user
		review.TypeMeta = metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenReview"}
		if who := review.Spec.Token; who == "prometheus" || who == "visitor" {
			review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: who}}
		} else {
			review.Status.Error = "[invalid bearer token, token lookup failed]" // like an API server
		}
		_ = json.NewEncoder(w).Encode(review) // the client reports the error
	case strings.HasSuffix(r.URL.Path, "/subjectaccessreviews"):
		var review authorizationv1.SubjectAccessReview
		_ = json.NewDecoder(r.Body).Decode(&review) // an empty review is denied
		review.TypeMeta = metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"}
		on := review.Spec.NonResourceAttributes
		review.Status.Allowed = review.Spec.User == "prometheus" && on != nil && on.Path == "/metrics" && on.Verb == "get"
		_ = json.NewEncoder(w).Encode(review) // the client reports the error
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// guarded serves a page behind a guard that asks h.
func guarded(t *testing.T, h *hub) http.Handler {
	t.Helper()
	api := httptest.NewServer(h)
	t.Cleanup(api.Close)
	g, err := metricsauthz.New(&rest.Config{Host: api.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, testr.New(t))
	if err != nil {
		t.Fatal(err)
	}
	return g.WrapHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "the page") }))
}

func ask(page http.Handler, method, path, authorization string) (int, string) {
	req := httptest.NewRequest(method, path, nil)
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	res := httptest.NewRecorder()
	page.ServeHTTP(res, req)
	return res.Code, res.Body.String()
}

func TestOnlyWhoMayIsLetIn(t *testing.T) {
	for name, c := range map[string]struct {
		method, path, authorization string
		code                        int
		says                        string
	}{
		"who may":                           {"GET", "/metrics", "Bearer prometheus", 200, "the page"},
		"however it is spelt":               {"GET", "/metrics", "bearer  prometheus", 200, "the page"},
		"nobody":                            {"GET", "/metrics", "", 401, "send a token of the hub"},
		"who made up a token":               {"GET", "/metrics", "Bearer made-up", 401, "send a token of the hub"},
		"an empty token":                    {"GET", "/metrics", "Bearer ", 401, "send a token of the hub"},
		"who brings a password":             {"GET", "/metrics", "Basic prometheus", 401, "send a token of the hub"},
		"who may not":                       {"GET", "/metrics", "Bearer visitor", 403, "visitor may not get /metrics"},
		"who may, but not there":            {"GET", "/debug", "Bearer prometheus", 403, "prometheus may not get /debug"},
		"who may, but not do this with it ": {"DELETE", "/metrics", "Bearer prometheus", 403, "prometheus may not delete /metrics"},
	} {
		t.Run(name, func(t *testing.T) {
			if code, text := ask(guarded(t, &hub{}), c.method, c.path, c.authorization); code != c.code || !strings.Contains(text, c.says) {
				t.Errorf("got %d %q, want %d %q", code, text, c.code, c.says)
			}
		})
	}
}

func TestWhileTheHubCannotBeAskedNobodyIsLetIn(t *testing.T) {
	for _, broken := range []string{"/tokenreviews", "/subjectaccessreviews"} {
		t.Run(broken, func(t *testing.T) {
			h := &hub{}
			page := guarded(t, h)
			h.broken.Store(&broken)
			if code, text := ask(page, "GET", "/metrics", "Bearer prometheus"); code != http.StatusServiceUnavailable || strings.Contains(text, "page") {
				t.Errorf("got %d %q", code, text)
			}
			h.broken.Store(nil)
			if code, text := ask(page, "GET", "/metrics", "Bearer prometheus"); code != http.StatusOK {
				t.Errorf("it is not asked again: %d %q", code, text)
			}
		})
	}
}

func TestTheHubIsAskedOnceForAWhile(t *testing.T) {
	for _, who := range []string{"prometheus", "visitor", "made-up"} {
		h := &hub{}
		page := guarded(t, h)
		first, _ := ask(page, "GET", "/metrics", "Bearer "+who)
		asked := h.asked.Load()
		if again, _ := ask(page, "GET", "/metrics", "Bearer "+who); again != first {
			t.Errorf("%s: first %d, then %d", who, first, again)
		}
		if now := h.asked.Load(); now != asked {
			t.Errorf("%s: the hub was asked %d times, then %d", who, asked, now)
		}
	}
}
