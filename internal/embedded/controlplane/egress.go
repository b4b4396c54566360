package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"hotspare.io/hotspare/internal/embedded/pki"
)

// egress connects the API server to nodes, pods and Services: a proxy on a Unix socket, because the
// API server accepts no function for that.
type egress struct {
	server  *http.Server
	tempDir string // a folder to remove, if the socket needed one
}

// egressHeaderTimeout is how long the API server may take to send a request after it has connected.
const egressHeaderTimeout = 10 * time.Second

func (f files) egressConfigPath() string { return filepath.Join(f.run, "egress.json") }

// startEgress starts the proxy, and writes the API server's configuration of it. It does nothing if
// dial is nil.
func startEgress(ctx context.Context, f files, dial func(ctx context.Context, network, address string) (net.Conn, error)) (*egress, error) {
	if dial == nil {
		return &egress{}, nil
	}
	dir, temp, err := socketFolder(f.run)
	if err != nil {
		return nil, err
	}
	e := &egress{tempDir: temp, server: &http.Server{
		Handler:           tunnel(dial),
		ReadHeaderTimeout: egressHeaderTimeout,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}}
	socket := filepath.Join(dir, "egress.sock")
	_ = os.Remove(socket) // of an earlier run
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", socket)
	if err != nil {
		e.close()
		return nil, fmt.Errorf("listening for connections to nodes: %w", err)
	}
	if err := writeEgressConfig(f.egressConfigPath(), socket); err != nil {
		e.close()
		return nil, errors.Join(err, listener.Close())
	}
	go func() {
		if err := e.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			klog.FromContext(ctx).Error(err, "the API server cannot reach nodes any more")
		}
	}()
	return e, nil
}

func (e *egress) close() {
	if e.server != nil {
		_ = e.server.Close() // open tunnels end with the API server
	}
	if e.tempDir != "" {
		_ = os.RemoveAll(e.tempDir) // an empty temporary folder is harmless
	}
}

func egressFlags(f files) []string {
	return []string{
		"--egress-selector-config-file=" + f.egressConfigPath(),
		// Addresses of Services exist on nodes only: the API server connects to endpoints.
		"--enable-aggregator-routing=true",
	}
}

func writeEgressConfig(path, socket string) error {
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "apiserver.k8s.io/v1beta1",
		"kind":       "EgressSelectorConfiguration",
		"egressSelections": []any{map[string]any{
			"name": "cluster",
			"connection": map[string]any{
				"proxyProtocol": "HTTPConnect",
				"transport":     map[string]any{"uds": map[string]any{"udsName": socket}},
			},
		}},
	})
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return pki.WriteFile(path, raw)
}

// tunnel answers CONNECT requests: it connects to the requested address and then copies both
// directions.
func tunnel(dial func(ctx context.Context, network, address string) (net.Conn, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			http.Error(w, "only CONNECT is supported", http.StatusMethodNotAllowed)
			return
		}
		to, err := dial(r.Context(), "tcp", r.Host)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer to.Close() //nolint:errcheck // the copies have ended
		from, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer from.Close() //nolint:errcheck // the copies have ended
		if _, err := io.WriteString(from, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
			return
		}
		copyTunnel(from, buffered, to)
	})
}

// copyTunnel copies both directions until both have ended. received contains what the API server has
// already sent.
func copyTunnel(from net.Conn, received io.Reader, to net.Conn) {
	var copies sync.WaitGroup
	copies.Go(func() {
		_, _ = io.Copy(to, received) // an error ends the other direction too
		closeWrite(to)
	})
	copies.Go(func() {
		_, _ = io.Copy(from, to)
		closeWrite(from)
	})
	copies.Wait()
}

// closeWrite closes the direction in which this side sends.
func closeWrite(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // it may be closed already
		return
	}
	_ = conn.Close() // it cannot be closed in one direction
}
