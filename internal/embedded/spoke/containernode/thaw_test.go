//go:build linux

package containernode

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const (
	downStatus  = `{"status":{"conditions":[{"type":"Ready","status":"False","message":"container runtime is down"}]}}`
	readyStatus = `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`
)

// statusServer notes the node statuses that it receives.
type statusServer struct{ got []string }

func (s *statusServer) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	s.got = append(s.got, string(body))
	return &http.Response{StatusCode: http.StatusOK}, err
}

func sendStatus(t *testing.T, transport http.RoundTripper, body string) error {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, "https://api/api/v1/nodes/a/status", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(r)
	if response != nil && response.Body != nil {
		_ = response.Body.Close()
	}
	return err
}

// Goroutines of a frozen process do not run. Here, they run only in noteRuns.
func TestAThawedNodeDoesNotSayThatItsRuntimeIsDownBeforeTheCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var server statusServer
		d := &thawDetector{}
		transport := d.wrapTransport(&server)
		awake := func(span time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), span)
			defer cancel()
			d.noteRuns(ctx)
		}
		awake(time.Minute)
		if err := sendStatus(t, transport, downStatus); err != nil || len(server.got) != 1 || server.got[0] != downStatus {
			t.Fatalf("a runtime that is down, without a thaw: %v, %q", err, server.got)
		}
		awake(time.Minute)
		<-time.After(40 * time.Second) // frozen
		began := time.Now()
		if err := sendStatus(t, transport, downStatus); !errors.Is(err, errNotCheckedSinceThaw) || time.Since(began) != settlePause || len(server.got) != 1 {
			t.Errorf("after the thaw: %v after %s, %q", err, time.Since(began), server.got)
		}
		if err := sendStatus(t, transport, readyStatus); err != nil || len(server.got) != 2 || server.got[1] != readyStatus {
			t.Errorf("the next status: %v, %q", err, server.got)
		}
		awake(settleTime)
		if err := sendStatus(t, transport, downStatus); err != nil || len(server.got) != 3 {
			t.Errorf("a runtime that is still down: %v, %q", err, server.got)
		}
	})
}
