package metrics_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"hotspare.io/hotspare/internal/metrics"
)

// scrape asks as Prometheus does.
func scrape(t *testing.T, sources ...prometheus.Gatherer) string {
	t.Helper()
	res := httptest.NewRecorder()
	metrics.NewHandler(sources...).ServeHTTP(res, httptest.NewRequest(http.MethodGet, metrics.Path, nil))
	if res.Code != http.StatusOK {
		t.Fatalf("answered %d: %s", res.Code, res.Body)
	}
	return res.Body.String()
}

// series are the lines of a scrape that begin with one of these, or all but the
// comments; sorted. Buckets, which the tests of histograms name, are left out.
func series(t *testing.T, source prometheus.Gatherer, beginnings ...string) []string {
	t.Helper()
	var out []string
	for line := range strings.Lines(scrape(t, source)) {
		line = strings.TrimSpace(line)
		begins := func(with string) bool { return strings.HasPrefix(line, with) }
		switch {
		case begins("#"), strings.Contains(line, "_bucket{"):
		case len(beginnings) == 0 || slices.ContainsFunc(beginnings, begins):
			out = append(out, line)
		}
	}
	slices.Sort(out)
	return out
}

// same compares lines, whatever their order.
func same(t *testing.T, got []string, want string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(want), "\n")
	slices.Sort(lines)
	if diff := cmp.Diff(lines, got); diff != "" {
		t.Error(diff)
	}
}
