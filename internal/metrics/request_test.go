package metrics_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hotspare.io/hotspare/internal/metrics"
)

// answer is a round tripper that responds with a status, or fails if it is 0.
type answer int

func (a answer) RoundTrip(*http.Request) (*http.Response, error) {
	if a == 0 {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: int(a), Body: http.NoBody}, nil
}

func TestRequests(t *testing.T) {
	const hive = "/apis/hive.openshift.io/v1"
	tests := map[string]struct {
		method, url string
		status      answer
		want        string // method, verb, resource, status
	}{
		"a list":                        {"GET", hive + "/clusterpools?limit=500", 200, "GET list clusterpools 200"},
		"a list in a namespace":         {"GET", hive + "/namespaces/ci/clusterclaims", 200, "GET list clusterclaims 200"},
		"a watch":                       {"GET", hive + "/clusterpools?watch=true&resourceVersion=1", 200, "GET watch clusterpools 200"},
		"a watch that is spelt 1":       {"GET", hive + "/clusterpools?watch=1", 200, "GET watch clusterpools 200"},
		"a get":                         {"GET", hive + "/namespaces/ci/clusterclaims/x", 404, "GET get clusterclaims 404"},
		"a patch of the status":         {"PATCH", hive + "/namespaces/d/clusterdeployments/d/status", 409, "PATCH patch clusterdeployments/status 409"},
		"a creation":                    {"POST", "/api/v1/namespaces/d/secrets", 201, "POST create secrets 201"},
		"an update":                     {"PUT", "/api/v1/namespaces/d/secrets/x", 200, "PUT update secrets 200"},
		"a deletion":                    {"DELETE", hive + "/namespaces/d/clusterdeployments/d", 200, "DELETE delete clusterdeployments 200"},
		"a deletion of many":            {"DELETE", "/api/v1/namespaces/d/secrets", 200, "DELETE deletecollection secrets 200"},
		"namespaces":                    {"GET", "/api/v1/namespaces", 200, "GET list namespaces 200"},
		"a namespace":                   {"GET", "/api/v1/namespaces/x", 200, "GET get namespaces 200"},
		"the finalizers of a namespace": {"PUT", "/api/v1/namespaces/x/finalize", 200, "PUT update namespaces/finalize 200"},
		"discovery":                     {"GET", hive, 200, "GET get  200"},
		"the version":                   {"GET", "/version", 200, "GET get  200"},
		"no answer":                     {"GET", hive + "/clusterpools", 0, "GET list clusterpools error"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m, reg := newMetrics()
			req := httptest.NewRequest(tc.method, "https://hub"+tc.url, nil)
			if res, err := m.WrapTransport(tc.status).RoundTrip(req); err == nil {
				_ = res.Body.Close()
			}
			want := strings.Split(tc.want, " ")
			same(t, series(t, reg), `hive_kube_client_requests_total{controller="",method="`+want[0]+`",resource="`+want[2]+`",status="`+want[3]+`",verb="`+want[1]+`"} 1`)
		})
	}
}

func TestPassesOfControllers(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	clock := clocktesting.NewFakeClock(noon)
	m := metrics.New(reg, clock)
	pass := func(res reconcile.Result, err error) {
		r := m.WrapReconciler("clusterpool", reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
			clock.Step(2 * time.Second)
			req := httptest.NewRequestWithContext(ctx, "POST", "https://hub/api/v1/namespaces/d/secrets", nil)
			if res, err := m.WrapTransport(answer(201)).RoundTrip(req); err == nil {
				_ = res.Body.Close()
			}
			return res, err
		}))
		got, gotErr := r.Reconcile(t.Context(), reconcile.Request{})
		if got != res || !errors.Is(gotErr, err) {
			t.Errorf("returned %v, %v, want %v, %v", got, gotErr, res, err)
		}
	}
	pass(reconcile.Result{}, nil)
	pass(reconcile.Result{RequeueAfter: time.Minute}, nil)
	pass(reconcile.Result{}, errors.New("no"))
	same(t, series(t, reg), `
hive_controller_reconcile_seconds_count{controller="clusterpool",outcome="error"} 1
hive_controller_reconcile_seconds_count{controller="clusterpool",outcome="requeue"} 1
hive_controller_reconcile_seconds_count{controller="clusterpool",outcome="success"} 1
hive_controller_reconcile_seconds_sum{controller="clusterpool",outcome="error"} 2
hive_controller_reconcile_seconds_sum{controller="clusterpool",outcome="requeue"} 2
hive_controller_reconcile_seconds_sum{controller="clusterpool",outcome="success"} 2
hive_kube_client_requests_total{controller="clusterpool",method="POST",resource="secrets",status="201",verb="create"} 3
`)
}

func TestOnlyScrapesAreAnswered(t *testing.T) {
	for ask, want := range map[string]int{"GET /metrics": 200, "POST /metrics": 405, "GET /": 404, "GET /debug/pprof/": 404} {
		method, path, _ := strings.Cut(ask, " ")
		res := httptest.NewRecorder()
		metrics.NewHandler(prometheus.NewRegistry()).ServeHTTP(res, httptest.NewRequest(method, path, nil))
		if res.Code != want {
			t.Errorf("%s answers %d, want %d", ask, res.Code, want)
		}
	}
}
