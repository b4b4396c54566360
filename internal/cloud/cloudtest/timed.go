package cloudtest

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// TimedTransport is a transport that fails the test for a request without a deadline, or with one
// that is later than its limit.
type TimedTransport struct {
	tb    testing.TB
	via   http.RoundTripper
	limit time.Duration
	seen  atomic.Int32
}

// NewTimedTransport returns a transport that sends requests through via; most is its limit.
func NewTimedTransport(tb testing.TB, via http.RoundTripper, most time.Duration) *TimedTransport {
	tb.Helper()
	return &TimedTransport{tb: tb, via: via, limit: most}
}

// RequestCount returns the number of requests so far.
func (d *TimedTransport) RequestCount() int { return int(d.seen.Load()) }

// RoundTrip sends the request through the wrapped transport.
func (d *TimedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	d.seen.Add(1)
	at, bounded := r.Context().Deadline()
	if left := time.Until(at); !bounded || left > d.limit {
		d.tb.Errorf("%s %s has a deadline: %t, in %s; it should be within %s", r.Method, r.URL.Path, bounded, left, d.limit)
	}
	return d.via.RoundTrip(r)
}
