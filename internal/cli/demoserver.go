package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
)

const demoServerTimeout = 10 * time.Second

// demoServerCommand returns the command of the container that the demo runs in a claimed cluster. The
// image of the container contains nothing but this program.
func (a commands) demoServerCommand() *cobra.Command {
	var address string
	cmd := &cobra.Command{
		Use:               "web-server",
		Short:             "Run the web server of the demo",
		Long:              "Run the web server that the demo runs as a container in a claimed cluster. It answers each\nrequest with the name of its pod.",
		Hidden:            true,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			listener, err := new(net.ListenConfig).Listen(cmd.Context(), "tcp", address)
			if err != nil {
				return fmt.Errorf("starting the web server: %w", err)
			}
			return serveDemo(cmd.Context(), listener)
		},
	}
	cmd.Flags().StringVar(&address, "address", "127.0.0.1:8080", "`address` to listen on")
	return cmd
}

// serveDemo answers requests until ctx ends. It closes the listener.
func serveDemo(ctx context.Context, listener net.Listener) error {
	name, err := os.Hostname()
	if err != nil {
		return errors.Join(fmt.Errorf("reading the name of the pod: %w", err), listener.Close())
	}
	var requests atomic.Int64
	server := &http.Server{ReadHeaderTimeout: demoServerTimeout, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "Hello from pod %s, a container in the cluster that you claimed. This is request %d.\n", name, requests.Add(1))
	})}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // the demo is over: nobody waits for an answer
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("running the web server: %w", err)
	}
	return nil
}
