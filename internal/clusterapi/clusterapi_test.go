package clusterapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"hotspare.io/hotspare/internal/fault"
)

// An API server answers a request for a kind or a version that it does not serve with a page, and for
// an object that does not exist with a Status. Both are 404.
func TestAMissingKindIsDistinguishedFromAMissingObject(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   bool
	}{
		"a kind that is not served": {http.NotFound, true},
		"an object that does not exist": {func(w http.ResponseWriter, _ *http.Request) {
			status := apierrors.NewNotFound(Clusters.GroupResource(), "c").Status()
			status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(status) // the client of the test reads it
		}, false},
		"a server that fails": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(c.answer)
			defer server.Close()
			hub, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			_, err = hub.Resource(Clusters).Namespace("ns").Get(t.Context(), "c", metav1.GetOptions{})
			if err == nil || IsKindMissing(err) != c.want {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestTheErrorForAMissingKindNamesTheVersionAndTheRemedy(t *testing.T) {
	err := NotInstalledError(Clusters)
	if fault.KindOf(err) != fault.Denied {
		t.Errorf("%s", fault.KindOf(err))
	}
	for _, want := range []string{"clusters.cluster.x-k8s.io", "v1beta2", "1.11", "upgrade"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}
