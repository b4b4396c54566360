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
func (t *TimedTransport) RequestCount() int { return int(t.seen.Load()) }

// RoundTrip sends the request through the wrapped transport.
func (t *TimedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	t.seen.Add(1)
	at, bounded := r.Context().Deadline()
	if left := time.Until(at); !bounded || left > t.limit {
		t.tb.Errorf("%s %s has a deadline: %t, in %s; it should be within %s", r.Method, r.URL.Path, bounded, left, t.limit)
	}
	return t.via.RoundTrip(r)
}
