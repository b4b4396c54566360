// Package probe tells kubelets and people how a manager is: at /healthz whether its
// process answers, at /readyz whether it can do its work, and if not, why.
package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// readHeaderTimeout is how long a client may take to ask.
const readHeaderTimeout = 5 * time.Second

// Probe is not ready at first. Its methods may be called by several goroutines.
type Probe struct {
	mu    sync.Mutex
	ready bool
	why   string
}

// SetReady has /readyz say yes.
func (p *Probe) SetReady() { p.setState(true, "") }

// SetUnready has /readyz say no, and why.
func (p *Probe) SetUnready(why string) { p.setState(false, why) }

func (p *Probe) setState(ready bool, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ready, p.why = ready, why
}

// Handler answers at /healthz and /readyz.
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

// Serve answers on l until ctx ends, and closes it.
func (p *Probe) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{Handler: p.Handler(), ReadHeaderTimeout: readHeaderTimeout}
	stop := context.AfterFunc(ctx, func() {
		_ = server.Close() // an answer cut short is asked for again
	})
	defer stop()
	if err := server.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("answering probes: %w", err)
	}
	return nil
}
