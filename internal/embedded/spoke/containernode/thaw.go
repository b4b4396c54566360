//go:build linux

package containernode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// thawTick is how often a process notes that it runs; one that has not noted it for frozenFor was frozen.
	thawTick  = time.Second
	frozenFor = 5 * time.Second
	// settleTime is how long after a thaw the kubelet may take for its next check of the container runtime, which
	// it makes every five seconds.
	settleTime = 15 * time.Second
	// settlePause is the time between two attempts of the kubelet meanwhile. After five it waits for its next heartbeat.
	settlePause = 200 * time.Millisecond
)

// runtimeDown is what the kubelet writes into condition Ready of its node when its last check of the container runtime
// is older than 30 seconds. After a thaw the check is as old as the freeze was long, whatever the runtime does.
const runtimeDown = "container runtime is down"

// errNotCheckedSinceThaw is the error of a node status that says what was true before the thaw.
var errNotCheckedSinceThaw = errors.New("the node was thawed: the kubelet checks the container runtime again before it says that it is down")

// thawDetector notices that the process was frozen and thawed.
type thawDetector struct {
	mu              sync.Mutex
	ranAt, thawedAt time.Time
}

// noteRuns notes every thawTick that the process runs, until ctx ends.
func (d *thawDetector) noteRuns(ctx context.Context) {
	ticker := time.NewTicker(thawTick)
	defer ticker.Stop()
	for ctx.Err() == nil {
		d.noteRun(time.Now())
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// noteRun notes that the process runs now, and that it was thawed if it has not run for frozenFor.
func (d *thawDetector) noteRun(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.ranAt.IsZero() && now.Sub(d.ranAt) > frozenFor {
		d.thawedAt = now
	}
	d.ranAt = now
}

// isSettling reports whether the process was thawed within settleTime. noteRuns may not have run since the thaw.
func (d *thawDetector) isSettling() bool {
	now := time.Now()
	d.noteRun(now)
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.thawedAt.IsZero() && now.Sub(d.thawedAt) < settleTime
}

// wrapTransport returns a transport of node statuses that refuses, for settleTime after a thaw, those that say that the
// container runtime is down. The kubelet tries again, with what it has found out meanwhile. Otherwise the node would
// not be ready for a moment after some thaws, and its pods would get no connections.
func (d *thawDetector) wrapTransport(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodPatch || !strings.HasSuffix(r.URL.Path, "/status") || !d.isSettling() {
			return next.RoundTrip(r)
		}
		body, err := readBody(r)
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(body, []byte(runtimeDown)) {
			return next.RoundTrip(r)
		}
		select {
		case <-r.Context().Done():
			return nil, r.Context().Err()
		case <-time.After(settlePause):
			return nil, errNotCheckedSinceThaw
		}
	})
}

// readBody returns the body of a request and leaves it there.
func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(r.Body)
	if err := errors.Join(err, r.Body.Close()); err != nil {
		return nil, fmt.Errorf("reading the node status: %w", err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, nil
}
