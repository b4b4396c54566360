package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// requestCounts counts API requests by verb and resource.
type requestCounts map[string]int

// readRequests reads the API server's own request counts. Watches are counted when they end, so
// they are left out.
func (b *bench) readRequests(ctx context.Context) (requestCounts, error) {
	raw, err := b.rest.Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(raw)))
	if err != nil {
		return nil, fmt.Errorf("parsing the API server's metrics: %w", err)
	}
	out := requestCounts{}
	for _, m := range families["apiserver_request_total"].GetMetric() {
		label := map[string]string{}
		for _, l := range m.GetLabel() {
			label[l.GetName()] = l.GetValue()
		}
		if label["verb"] == "WATCH" || label["resource"] == "" {
			continue
		}
		what := label["verb"] + " " + label["resource"]
		if sub := label["subresource"]; sub != "" {
			what += "/" + sub
		}
		out[what] += int(m.GetCounter().GetValue())
	}
	return out, nil
}

// countSince returns the requests since the counts in before.
func (r requestCounts) countSince(before requestCounts) requestCounts {
	out := requestCounts{}
	for what, n := range r {
		if more := n - before[what]; more > 0 {
			out[what] = more
		}
	}
	return out
}

// countWrites returns the number of requests that change something. It omits the API server's own
// lease, with which the API server reports that it is alive.
func (r requestCounts) countWrites() int {
	n := 0
	for what, m := range r {
		if !strings.HasPrefix(what, "GET ") && !strings.HasPrefix(what, "LIST ") && what != "PUT leases" {
			n += m
		}
	}
	return n
}

// formatRequestsPer formats the number of requests per item for n items, the most frequent first.
func (r requestCounts) formatRequestsPer(n int) string {
	names := slices.SortedFunc(maps.Keys(r), func(a, b string) int {
		if r[a] != r[b] {
			return r[b] - r[a]
		}
		return strings.Compare(a, b)
	})
	var out []string
	for _, what := range names {
		if each := float64(r[what]) / float64(n); each >= 0.05 {
			out = append(out, fmt.Sprintf("%.1f %s", each, what))
		}
	}
	return strings.Join(out, ", ")
}
