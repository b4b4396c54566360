package cloudtest

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// Timed is a transport that fails the test for a request that may take longer than most.
type Timed struct {
	tb   testing.TB
	via  http.RoundTripper
	most time.Duration
	seen atomic.Int32
}

// NewTimed returns a transport that hands requests to another one.
func NewTimed(tb testing.TB, via http.RoundTripper, most time.Duration) *Timed {
	tb.Helper()
	return &Timed{tb: tb, via: via, most: most}
}

// Seen is how many requests there have been.
func (d *Timed) Seen() int { return int(d.seen.Load()) }

// RoundTrip does what the transport behind it does.
func (d *Timed) RoundTrip(r *http.Request) (*http.Response, error) {
	d.seen.Add(1)
	at, bounded := r.Context().Deadline()
	if left := time.Until(at); !bounded || left > d.most {
		d.tb.Errorf("%s %s has a deadline: %t, in %s; it should be within %s", r.Method, r.URL.Path, bounded, left, d.most)
	}
	return d.via.RoundTrip(r)
}
