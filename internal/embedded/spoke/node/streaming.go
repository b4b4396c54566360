package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

// Limits of a connection for kubectl exec, attach or port-forward, which only explain why they fail.
const (
	streamIdleTimeout     = time.Minute
	streamCreationTimeout = 10 * time.Second
	// cannotExecute is the exit code of a command that cannot be executed, as in a shell.
	cannotExecute = 126
)

// podServer serves requests for simulated pods: it explains why they cannot be answered.
type podServer struct {
	// cause is why pods are simulated, and what to do about it; "" if that was requested.
	cause string
}

// newHandler returns the handler of kubectl logs, exec, attach and port-forward.
func (s podServer) newHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", s.serveContainerLogs)
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", s.serveExec)
	mux.HandleFunc("/exec/{namespace}/{pod}/{uid}/{container}", s.serveExec)
	mux.HandleFunc("/attach/{namespace}/{pod}/{container}", s.serveAttach)
	mux.HandleFunc("/attach/{namespace}/{pod}/{uid}/{container}", s.serveAttach)
	mux.HandleFunc("/portForward/{namespace}/{pod}", s.servePortForward)
	mux.HandleFunc("/portForward/{namespace}/{pod}/{uid}", s.servePortForward)
	return mux
}

// simulatedPod explains that it is not a container, wherever kubectl prints it.
type simulatedPod struct {
	namespace, name, cause string
}

func (s podServer) podOf(r *http.Request) simulatedPod {
	return simulatedPod{namespace: r.PathValue("namespace"), name: r.PathValue("pod"), cause: s.cause}
}

// explain returns what users read.
func (p simulatedPod) explain() string {
	return fmt.Sprintf("pod %s/%s is not a container: %s", p.namespace, p.name, explainSimulation(p.cause))
}

// explainSimulation returns a clause that says that pods are simulated, and why.
func explainSimulation(cause string) string {
	const fact = "the nodes of this local cluster only report that pods run"
	if cause == "" {
		return fact
	}
	return fact + ", because " + cause
}

func (s podServer) serveContainerLogs(w http.ResponseWriter, r *http.Request) {
	_, _ = fmt.Fprintln(w, s.podOf(r).explain()) // the client may have disconnected
}

// ExecInContainer implements remotecommand.Executor.
func (p simulatedPod) ExecInContainer(_ context.Context, _, _, _ string, _ []string, _ io.Reader, out, err io.WriteCloser,
	_ bool, _ <-chan remotecommand.TerminalSize, _ time.Duration,
) error {
	p.print(out, err)
	return utilexec.CodeExitError{Code: cannotExecute, Err: errors.New(p.explain())}
}

// AttachContainer implements remotecommand.Attacher.
func (p simulatedPod) AttachContainer(_ context.Context, _, _, _ string, _ io.Reader, out, err io.WriteCloser,
	_ bool, _ <-chan remotecommand.TerminalSize,
) error {
	p.print(out, err)
	return nil
}

// print writes the explanation to the error stream, or to the output if there is no error stream, as
// with a terminal.
func (p simulatedPod) print(out, err io.Writer) {
	to, end := err, "\n"
	if to == nil {
		to, end = out, "\r\n"
	}
	if to != nil {
		_, _ = io.WriteString(to, p.explain()+end) // the client may have disconnected
	}
}

// PortForward implements portforward.PortForwarder.
func (p simulatedPod) PortForward(_ context.Context, _, _ string, _ int32, stream io.ReadWriteCloser) error {
	return errors.Join(errors.New(p.explain()), stream.Close())
}

func (s podServer) serveExec(w http.ResponseWriter, r *http.Request) {
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	remotecommand.ServeExec(w, r, s.podOf(r), r.PathValue("pod"), "", r.PathValue("container"), r.URL.Query()["command"], options,
		streamIdleTimeout, streamCreationTimeout, remotecommand.SupportedStreamingProtocols)
}

func (s podServer) serveAttach(w http.ResponseWriter, r *http.Request) {
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	remotecommand.ServeAttach(w, r, s.podOf(r), r.PathValue("pod"), "", r.PathValue("container"), options,
		streamIdleTimeout, streamCreationTimeout, remotecommand.SupportedStreamingProtocols)
}

func (s podServer) servePortForward(w http.ResponseWriter, r *http.Request) {
	options, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, r, s.podOf(r), r.PathValue("pod"), "", options, streamIdleTimeout, streamCreationTimeout,
		portforward.SupportedProtocols)
}
