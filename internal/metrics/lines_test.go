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

// scrape sends a scrape request as Prometheus does.
func scrape(t *testing.T, sources ...prometheus.Gatherer) string {
	t.Helper()
	res := httptest.NewRecorder()
	metrics.NewHandler(sources...).ServeHTTP(res, httptest.NewRequest(http.MethodGet, metrics.Path, nil))
	if res.Code != http.StatusOK {
		t.Fatalf("answered %d: %s", res.Code, res.Body)
	}
	return res.Body.String()
}

// series returns the sorted lines of a scrape that begin with one of beginnings, or all lines
// except comments. It leaves out buckets, which the histogram tests name.
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

// same compares lines in any order.
func same(t *testing.T, got []string, want string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(want), "\n")
	slices.Sort(lines)
	if diff := cmp.Diff(lines, got); diff != "" {
		t.Error(diff)
	}
}
