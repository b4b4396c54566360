// Package readyz waits until an API server is ready, and reports what it is waiting for.
package readyz

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// pollInterval is the interval between two requests: an API server does not send a notification
// when it becomes ready.
const pollInterval = 100 * time.Millisecond

// ErrGone reports that the API server has ended and cannot become ready any more.
var ErrGone = errors.New("the API server has stopped")

// A Probe records the last answer of an API server about its readiness. The zero Probe has not sent
// a request yet. It is safe for concurrent use.
type Probe struct {
	mu     sync.Mutex
	answer string
}

// WaitUntilReady returns nil when the API server is ready. It returns ErrGone if gone is closed
// first, and another error if ctx ends first.
func (p *Probe) WaitUntilReady(ctx context.Context, config *rest.Config, gone <-chan struct{}) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("creating a client of the API: %w", err)
	}
	return wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		select {
		case <-gone:
			return false, ErrGone
		default:
		}
		body, err := client.RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		p.recordAnswer(summarizeChecks(body, err))
		return err == nil, nil
	})
}

// LastAnswer returns the reason why the API server was not ready at the last request.
func (p *Probe) LastAnswer() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answer
}

func (p *Probe) recordAnswer(answer string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = answer
}

// summarizeChecks returns the names of the failed checks, which /readyz lists as "[-]name failed:
// reason", or else the error of the request.
func summarizeChecks(body []byte, err error) string {
	var failed []string
	for line := range strings.Lines(string(body)) {
		if check, ok := strings.CutPrefix(line, "[-]"); ok {
			name, _, _ := strings.Cut(check, " ")
			failed = append(failed, name)
		}
	}
	if len(failed) > 0 {
		return "not ready: " + strings.Join(failed, ", ")
	}
	if err != nil {
		return err.Error()
	}
	return "ready"
}
