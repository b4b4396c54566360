// Package healthz reports the health of a manager to kubelets and people: /healthz reports whether
// its process answers, and /readyz whether it can do its work, and if not, why.
package healthz

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// readHeaderTimeout is how long a client may take to send the headers of a request.
const readHeaderTimeout = 5 * time.Second

// Probe serves health checks. It is not ready at first. Its methods are safe for concurrent use.
type Probe struct {
	mu    sync.Mutex
	ready bool
	why   string
}

// SetReady makes /readyz report success.
func (p *Probe) SetReady() { p.setState(true, "") }

// SetUnready makes /readyz report failure with the reason why.
func (p *Probe) SetUnready(why string) { p.setState(false, why) }

func (p *Probe) setState(ready bool, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ready, p.why = ready, why
}

// Handler returns the handler of /healthz and /readyz.
func (p *Probe) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		ready, why := p.ready, p.why
		p.mu.Unlock()
		if ready {
			fmt.Fprintln(w, "ok")
			return
		}
		if why == "" {
			why = "starting"
		}
		http.Error(w, why, http.StatusServiceUnavailable)
	})
	return mux
}

// Serve serves Handler on l until ctx ends, and closes l.
func (p *Probe) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{Handler: p.Handler(), ReadHeaderTimeout: readHeaderTimeout}
	stop := context.AfterFunc(ctx, func() {
		_ = server.Close() // clients repeat an interrupted probe
	})
	defer stop()
	if err := server.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving health probes: %w", err)
	}
	return nil
}
