package remote

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"hotspare.io/hotspare/internal/bootstrap"
	"hotspare.io/hotspare/internal/helmchart"
)

// chartAPI is the API of a cluster in which chart x is installed.
type chartAPI struct {
	*applyAPI
	record *corev1.Secret
}

const recordPath = "/api/v1/namespaces/hotspare-bootstrap/secrets"

func (a *chartAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	answers := map[string]any{
		"/version": map[string]string{"gitVersion": "v1.36.3"},
		"/apis":    metav1.APIGroupList{Groups: []metav1.APIGroup{{Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "apps/v1"}}}}},
	}
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	switch {
	case r.Method == http.MethodGet && answers[r.URL.Path] != nil:
		_ = json.NewEncoder(w).Encode(answers[r.URL.Path])
	case r.Method == http.MethodGet && r.URL.Path == recordPath+"/x" && a.record != nil:
		_ = json.NewEncoder(w).Encode(a.record)
	case r.Method == http.MethodPost && r.URL.Path == recordPath && a.record != nil:
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: http.StatusConflict, Reason: metav1.StatusReasonAlreadyExists})
	case r.Method == http.MethodPost && r.URL.Path == recordPath:
		a.record = &corev1.Secret{}
		_ = json.Unmarshal(body, a.record)
		_, _ = w.Write(body)
	case r.Method == http.MethodPatch && r.URL.Path == recordPath+"/x":
		var change struct {
			Data map[string][]byte `json:"data"`
		}
		_ = json.Unmarshal(body, &change)
		for key, value := range change.Data {
			if value == nil {
				delete(a.record.Data, key)
				continue
			}
			a.record.Data[key] = value
		}
		_ = json.NewEncoder(w).Encode(a.record)
	default:
		a.applyAPI.ServeHTTP(w, r)
	}
}

// newChartAPI returns a cluster, what installs charts in it, and how often a chart was rendered.
func newChartAPI(t *testing.T, phases []helmchart.Phase, err error) (*chartAPI, manifestApplier, *[]helmchart.Request) {
	t.Helper()
	a := &chartAPI{applyAPI: &applyAPI{refusals: map[string]metav1.Status{}, statuses: map[string]map[string]any{}}}
	server := httptest.NewTLSServer(a)
	t.Cleanup(server.Close)
	c, problem := newSpokeClient([]byte(kubeconfig(server, token(secret))))
	if problem != nil {
		t.Fatal(problem)
	}
	var rendered []helmchart.Request
	return a, manifestApplier{
		spokeClient: c, secrets: []string{"hunter22"}, resources: map[schema.GroupVersionKind]metav1.APIResource{},
		render: func(_ context.Context, r helmchart.Request) ([]helmchart.Phase, error) {
			rendered = append(rendered, r)
			return phases, err
		},
	}, &rendered
}

func configMapNamed(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n"
}

var chart = bootstrap.Chart{Record: "x", Version: "v1", Release: "shop", Namespace: "shops"}

func TestAChartIsInstalledPhaseByPhase(t *testing.T) {
	a, applier, rendered := newChartAPI(t, []helmchart.Phase{
		{Name: "pre-install hooks of weight 0", Manifests: []string{configMapNamed("before")}, Hooks: true},
		{Name: "objects", Manifests: []string{configMapNamed("a"), configMapNamed("b")}},
	}, nil)
	if got := applier.installChart(t.Context(), chart); got.Done || got.Failed || !strings.Contains(got.Message, "it was rendered") {
		t.Fatalf("got %+v", got)
	}
	if r := (*rendered)[0]; r.KubernetesVersion != "v1.36.3" || !slices.Contains(r.APIVersions, "apps/v1/Deployment") || !slices.Contains(r.APIVersions, "v1/ConfigMap") || slices.Contains(r.APIVersions, "v1/namespaces/status") {
		t.Errorf("it was rendered with %+v", r)
	}
	if version := a.record.Labels["hotspare.io/bootstrap-version"]; version != "v1" {
		t.Errorf("its record has version %q", version)
	}
	for range 2 { // again after a kill
		if got := applier.installChart(t.Context(), chart); !got.Done {
			t.Fatalf("got %+v", got)
		}
	}
	const query = " fieldManager=hotspare&force=true&timeout=10s"
	want := []string{
		"PATCH /api/v1/namespaces/hotspare-bootstrap" + query, "PATCH /api/v1/namespaces/shops" + query,
		"PATCH /api/v1/namespaces/shops/configmaps/before" + query, "PATCH /api/v1/namespaces/shops/configmaps/a" + query, "PATCH /api/v1/namespaces/shops/configmaps/b" + query,
	}
	if !slices.Equal(a.paths, want) {
		t.Errorf("got %q", a.paths)
	}
	if len(*rendered) != 1 || string(a.record.Data["installed"]) != "all" || a.record.Data["phases.json.gz"] != nil {
		t.Errorf("it was rendered %d times, and its record is %q", len(*rendered), a.record.Data)
	}
}

// A phase that was recorded is not applied again after a kill, and nothing is rendered again.
func TestAChartGoesOnWhereItWas(t *testing.T) {
	phases := []helmchart.Phase{{Name: "one", Manifests: []string{configMapNamed("one")}}, {Name: "two", Manifests: []string{configMapNamed("two")}}}
	a, applier, rendered := newChartAPI(t, phases, nil)
	applier.installChart(t.Context(), chart)
	a.record.Data["installed"], a.paths = []byte("1"), nil
	if got := applier.installChart(t.Context(), chart); !got.Done || len(a.paths) != 1 || !strings.Contains(a.paths[0], "/two") || len(*rendered) != 1 {
		t.Errorf("got %+v, %q", got, a.paths)
	}
}

func TestADamagedRecordOfAChartIsNamed(t *testing.T) {
	for _, tc := range []struct{ key, value, want string }{
		{"installed", "x", "has no number of installed phases: delete it"},
		{"installed", "-1", "says that -1 of 1 phases are installed: delete it"},
		{"installed", "9", "says that 9 of 1 phases are installed: delete it"},
		{"phases.json.gz", "x", "has no rendered chart: delete it"},
	} {
		a, applier, _ := newChartAPI(t, []helmchart.Phase{{Name: "one", Manifests: []string{configMapNamed("one")}}}, nil)
		applier.installChart(t.Context(), chart)
		a.record.Data[tc.key] = []byte(tc.value)
		if got := applier.installChart(t.Context(), chart); !got.Failed || got.Message != "Secret hotspare-bootstrap/x "+tc.want {
			t.Errorf("%s is %q: got %+v", tc.key, tc.value, got)
		}
	}
}

func TestWhatAChartWaitsFor(t *testing.T) {
	const job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate}\n"
	condition := func(typ, reason string) map[string]any {
		return map[string]any{"startTime": "2026-01-01T00:00:00Z", "conditions": []any{map[string]any{"type": typ, "status": "True", "reason": reason}}}
	}
	for name, tc := range map[string]struct {
		status map[string]any
		hooks  bool
		want   string
	}{
		"a hook that runs":         {map[string]any{"startTime": "2026-01-01T00:00:00Z", "active": 1}, true, "waiting for Job shops/migrate: it is not complete"},
		"a hook that has failed":   {condition("Failed", "BackoffLimitExceeded"), true, "Job shops/migrate: "},
		"a hook that is done":      {condition("Complete", ""), true, ""},
		"a Job that is no hook":    {map[string]any{"startTime": "2026-01-01T00:00:00Z", "active": 1}, false, ""},
		"a Job that has not begun": {nil, false, "waiting for Job shops/migrate"},
	} {
		t.Run(name, func(t *testing.T) {
			a, applier, _ := newChartAPI(t, []helmchart.Phase{{Name: "p", Manifests: []string{job}, Hooks: tc.hooks}}, nil)
			a.statuses["/apis/batch/v1/namespaces/shops/jobs/migrate"] = tc.status
			applier.installChart(t.Context(), chart)
			got := applier.installChart(t.Context(), chart)
			if got.Done != (tc.want == "") || !strings.Contains(got.Message, tc.want) || got.Failed != strings.Contains(name, "failed") || got.Final != got.Failed {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
		})
	}
}

func TestWhyAChartIsNotRendered(t *testing.T) {
	secretChart := chart
	secretChart.Secret = true
	for name, tc := range map[string]struct {
		chart  bootstrap.Chart
		phases []helmchart.Phase
		err    error
		want   string
	}{
		"a template fails":        {chart, nil, errors.New("set host, not hunter22"), "the chart cannot be rendered: set host, not "},
		"a secret template fails": {secretChart, nil, errors.New("set host, not topsecret"), "render it with helm template to see it"},
		"it has no objects":       {chart, nil, nil, "it has no objects with these values"},
	} {
		t.Run(name, func(t *testing.T) {
			a, applier, _ := newChartAPI(t, tc.phases, tc.err)
			got := applier.installChart(t.Context(), tc.chart)
			if !got.Failed || !strings.Contains(got.Message, tc.want) || strings.Contains(got.Message, "hunter22") || strings.Contains(got.Message, "topsecret") || a.record != nil {
				t.Errorf("got %+v", got)
			}
		})
	}
	_, applier, _ := newChartAPI(t, []helmchart.Phase{{Name: "objects", Manifests: []string{"kind: hunter22"}}}, nil)
	applier.installChart(t.Context(), chart)
	if got := applier.installChart(t.Context(), chart); !got.Failed || !strings.Contains(got.Message, "the objects of the chart cannot be used: document 1: apiVersion is missing") {
		t.Errorf("got %+v", got)
	}
}
