package hub

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
)

// An API server does not apply a binding at once: the first requests of an administrator were refused, and the hub ended.
func TestTheRightsOfAdministratorsAreAwaited(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		if asked == 1 {
			http.Error(w, "no binding yet", http.StatusForbidden)
			return
		}
		review := authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: asked == 3}}
		review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SelfSubjectAccessReview"
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review) // the client reports an incomplete response
	}))
	t.Cleanup(s.Close)
	config := &rest.Config{Host: s.URL}
	config.ContentType = "application/json"
	if err := waitForAccess(t.Context(), config); err != nil || asked != 3 {
		t.Errorf("asked %d times: %v", asked, err)
	}
}
