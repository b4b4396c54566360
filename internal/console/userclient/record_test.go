package userclient_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/console/userclient"
)

// The console reads one ConfigMap of a pool, if it is its record, and no other.
func TestOnlyRecordsAreRead(t *testing.T) {
	var asked []string
	maps := map[string]*corev1.ConfigMap{}
	for name, label := range map[string]string{"ci.demand": "ci", "dev.demand": "", "other.demand": "ci"} {
		maps[name] = &corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{v1alpha1.LabelDemandRecord: label}},
		}
	}
	write := func(w http.ResponseWriter, code int, o any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if err := json.NewEncoder(w).Encode(o); err != nil {
			t.Error(err)
		}
	}
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path)
		name := strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/ns/configmaps/")
		switch cm := maps[name]; {
		case strings.HasSuffix(r.URL.Path, "/selfsubjectreviews"):
			write(w, http.StatusCreated, &authenticationv1.SelfSubjectReview{
				TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"},
				Status:   authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: "alice"}},
			})
		case r.Header.Get("Authorization") == "Bearer t-alice" && cm != nil:
			write(w, http.StatusOK, cm)
		default:
			status := metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound}
			write(w, http.StatusNotFound, &status)
		}
	}))
	defer served.Close()
	cfg := &rest.Config{Host: served.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	p, err := userclient.NewHub(cfg, nil, "test", clocktesting.NewFakeClock(start)).UserForToken(t.Context(), t.Context(), "t-alice")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	read := func(pool string) error {
		_, err := p.ReadRecord(t.Context(), types.NamespacedName{Namespace: "ns", Name: pool})
		return err
	}
	if err := read("ci"); err != nil {
		t.Error(err)
	}
	for _, pool := range []string{"dev", "other"} {
		if err := read(pool); !errors.Is(err, userclient.ErrNotRecord) {
			t.Errorf("%s: %v", pool, err)
		}
	}
	if err := read("none"); !apierrors.IsNotFound(err) {
		t.Errorf("none: %v", err)
	}
	if !slices.Contains(asked, "GET /api/v1/namespaces/ns/configmaps/ci.demand") {
		t.Errorf("asked %v", asked)
	}
	before := len(asked)
	if err := p.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "ci.demand"}, &corev1.ConfigMap{}); err == nil || len(asked) > before {
		t.Errorf("pages can read ConfigMaps: %v, %v", err, asked[before:])
	}
}
