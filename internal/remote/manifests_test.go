package remote

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"hotspare.io/hotspare/internal/bootstrap"
)

// applyAPI is the API of a cluster to which manifests are applied.
type applyAPI struct {
	// paths are those that were applied, with their parameters.
	paths []string
	// refusals are answers by path, and statuses are what the controllers of the cluster write.
	refusals map[string]metav1.Status
	statuses map[string]map[string]any
}

var servedKinds = map[string][]metav1.APIResource{
	"/api/v1": {
		{Name: "configmaps", Kind: "ConfigMap", Namespaced: true},
		{Name: "secrets", Kind: "Secret", Namespaced: true},
		{Name: "namespaces", Kind: "Namespace"},
		{Name: "namespaces/status", Kind: "Namespace"},
	},
	"/apis/apps/v1":  {{Name: "deployments", Kind: "Deployment", Namespaced: true}},
	"/apis/batch/v1": {{Name: "jobs", Kind: "Job", Namespaced: true}},
}

func (a *applyAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	fail := func(s metav1.Status) {
		s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		s.Status = metav1.StatusFailure
		w.WriteHeader(int(s.Code))
		_ = json.NewEncoder(w).Encode(s)
	}
	if r.Method == http.MethodGet {
		if kinds, found := servedKinds[r.URL.Path]; found {
			_ = json.NewEncoder(w).Encode(metav1.APIResourceList{APIResources: kinds})
			return
		}
		fail(metav1.Status{Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound})
		return
	}
	a.paths = append(a.paths, r.Method+" "+r.URL.Path+" "+r.URL.RawQuery)
	if s, found := a.refusals[r.URL.Path]; found {
		fail(s)
		return
	}
	if r.Method == http.MethodDelete {
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess})
		return
	}
	body, _ := io.ReadAll(r.Body)
	object := map[string]any{}
	if err := json.Unmarshal(body, &object); err != nil {
		panic(err)
	}
	if s := a.statuses[r.URL.Path]; s != nil {
		object["status"] = s
	}
	_ = json.NewEncoder(w).Encode(object)
}

// newApplyAPI returns a cluster, and what applies manifests to it.
func newApplyAPI(t *testing.T) (*applyAPI, manifestApplier) {
	t.Helper()
	a := &applyAPI{refusals: map[string]metav1.Status{}, statuses: map[string]map[string]any{}}
	server := httptest.NewTLSServer(a)
	t.Cleanup(server.Close)
	c, err := newSpokeClient([]byte(kubeconfig(server, token(secret))))
	if err != nil {
		t.Fatal(err)
	}
	return a, manifestApplier{spokeClient: c, secrets: []string{"hunter22"}, resources: map[schema.GroupVersionKind]metav1.APIResource{}}
}

func manifest(apiVersion, kind, namespace, name string) bootstrap.Manifest {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return bootstrap.Manifest{Object: u}
}

func secretManifest(m bootstrap.Manifest) bootstrap.Manifest {
	m.Secret = true
	return m
}

func TestManifestsAreAppliedInOrder(t *testing.T) {
	a, applier := newApplyAPI(t)
	list := []bootstrap.Manifest{
		manifest("v1", "Namespace", "ignored", "web"), manifest("v1", "ConfigMap", "", "settings"), manifest("v1", "Secret", "web", "s"),
	}
	for range 2 { // again after a kill
		if got := applier.applyManifests(t.Context(), list); !got.Done {
			t.Fatalf("got %+v", got)
		}
	}
	const query = " fieldManager=hotspare&force=true&timeout=10s"
	want := []string{
		"PATCH /api/v1/namespaces/web" + query, "PATCH /api/v1/namespaces/default/configmaps/settings" + query, "PATCH /api/v1/namespaces/web/secrets/s" + query,
	}
	if !slices.Equal(a.paths, append(want, want...)) {
		t.Errorf("got %q", a.paths)
	}
	if list[0].Object.GetNamespace() != "ignored" {
		t.Error("the manifest was changed")
	}
}

func TestWhatAStepWaitsFor(t *testing.T) {
	deployment := manifest("apps/v1", "Deployment", "web", "web")
	const path = "/apis/apps/v1/namespaces/web/deployments/web"
	refuse := func(s metav1.Status) func(*applyAPI) { return func(a *applyAPI) { a.refusals[path] = s } }
	invalid := metav1.Status{
		Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Message: "Deployment.apps \"web\" is invalid: spec.replicas:\n Invalid value: \"hunter22\": it is not a number.",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
			{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec.replicas", Message: "Invalid value: hunter22"},
			{Type: metav1.CauseTypeFieldValueInvalid, Field: "metadata.labels[hunter22]"},
		}},
	}
	for name, tc := range map[string]struct {
		manifest bootstrap.Manifest
		change   func(*applyAPI)
		want     string
	}{
		"a Deployment that is not available": {deployment, func(a *applyAPI) { a.statuses[path] = map[string]any{"replicas": 1, "updatedReplicas": 1} }, "waiting for Deployment web/web: Available: 0/1"},
		"a Deployment that fails": {deployment, func(a *applyAPI) {
			a.statuses[path] = map[string]any{"conditions": []any{map[string]any{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}}}
		}, "failed: Deployment web/web: Progress deadline exceeded"},
		"a secret one that fails": {secretManifest(deployment), func(a *applyAPI) {
			a.statuses[path] = map[string]any{"conditions": []any{map[string]any{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}}}
		}, "failed: Deployment web/web: failed"},
		"a kind that comes with its definition": {manifest("x.io/v1", "X", "", "x"), nil, "waiting for X x: the cluster does not serve x.io/v1"},
		"another kind of a group":               {manifest("v1", "X", "", "x"), nil, "waiting for X x: the cluster does not serve kind X of v1"},
		"a namespace that comes later": {deployment, refuse(metav1.Status{
			Code: 404, Reason: metav1.StatusReasonNotFound, Message: `namespaces "web" not found`, Details: &metav1.StatusDetails{Kind: "namespaces", Name: "web"},
		}), "waiting for Deployment web/web: its namespace does not exist"},
		"another writer":     {deployment, refuse(metav1.Status{Code: 409, Reason: metav1.StatusReasonConflict}), "waiting for Deployment web/web: another writer changes it"},
		"an invalid field":   {deployment, refuse(invalid), `failed: Deployment web/web: the cluster refuses it: Deployment.apps "web" is invalid: spec.replicas: Invalid value: "REDACTED": it is not a number`},
		"and it is a secret": {secretManifest(deployment), refuse(invalid), "failed: Deployment web/web: the cluster refuses it: Invalid (FieldValueInvalid at spec.replicas); its message is not shown, because the manifest is secret"},
		"a field that does not exist": {
			secretManifest(deployment), refuse(metav1.Status{Code: 500, Message: "failed to create typed patch object: hunter22"}),
			"failed: Deployment web/web: the cluster refuses it: status 500; its message is not shown, because the manifest is secret",
		},
		"a long message":          {deployment, refuse(metav1.Status{Code: 400, Message: strings.Repeat("x", 400)}), "failed: Deployment web/web: the cluster refuses it: " + strings.Repeat("x", 300) + "…"},
		"a cluster that is busy":  {deployment, refuse(metav1.Status{Code: 503, Reason: metav1.StatusReasonServiceUnavailable}), "the cluster does not answer: it is not ready to serve"},
		"a kubeconfig of another": {deployment, refuse(metav1.Status{Code: 401, Reason: metav1.StatusReasonUnauthorized}), "the cluster does not answer: it does not accept the admin kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			a, applier := newApplyAPI(t)
			if tc.change != nil {
				tc.change(a)
			}
			got := applier.applyManifests(t.Context(), []bootstrap.Manifest{tc.manifest, manifest("v1", "ConfigMap", "", "after")})
			words := got.Message
			if got.Failed {
				words = "failed: " + words
			}
			if words != tc.want || got.Done || got.Final {
				t.Errorf("got  %q\nwant %q", words, tc.want)
			}
			applied := strings.Contains(strings.Join(a.paths, " "), "/configmaps/after")
			if answers := !strings.HasPrefix(tc.want, "the cluster does not answer"); applied != answers {
				t.Errorf("the next manifest was applied: %t", applied)
			}
		})
	}
}

func TestAFailureIsNamedBeforeWhatWaits(t *testing.T) {
	a, applier := newApplyAPI(t)
	var list []bootstrap.Manifest
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		list = append(list, manifest("v1", "ConfigMap", "", name))
		a.refusals["/api/v1/namespaces/default/configmaps/"+name] = metav1.Status{Code: 403, Message: "no"}
	}
	got := applier.applyManifests(t.Context(), append([]bootstrap.Manifest{manifest("x.io/v1", "X", "", "x")}, list...))
	if want := "ConfigMap a: the cluster refuses it: no; ConfigMap b: the cluster refuses it: no; ConfigMap c: the cluster refuses it: no; and 2 more"; got.Message != want || !got.Failed {
		t.Errorf("got %+v", got)
	}
}
