package spoke

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"hotspare.io/hotspare/internal/embedded/controlplane/requestcounter"
	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/embedded/programpages"
	"hotspare.io/hotspare/internal/embedded/spoke/quiesce"
)

// quiesceTimeout is how long the parts of a control plane may take to come to rest. It is shorter than the time that
// the store of machines waits for it.
const quiesceTimeout = 8 * time.Second

// quiescer prepares a control plane for being frozen, and resumes it after the thaw.
type quiescer struct {
	dir string
	// api is where the API listens: clients of a frozen cluster are refused, as those of a stopped one.
	api *quiesce.Listener
	// gate is where the parts run that must not be frozen: kube-controller-manager, the load balancer, and what
	// holds locks of the image cache.
	gate quiesce.Gate
	// requests counts the requests to the API.
	requests *requestcounter.Counter
	// shrink returns the memory that the start took to the operating system: a frozen process keeps what it has. Only
	// the first call has an effect.
	shrink func()
}

// newQuiescer returns the quiescer of a control plane whose API listens by listen.
func newQuiescer(m *runningMachine, listen func() (net.Listener, error)) (*quiescer, error) {
	api, err := listen()
	if err != nil {
		return nil, err
	}
	f := &quiescer{dir: m.dir, api: quiesce.NewListener(api, listen), requests: requestcounter.New(), shrink: sync.OnceFunc(endStart)}
	return f, f.markAwake() // a process that was killed while it was frozen leaves the file
}

// endStart sets how a control plane collects garbage after its start, and returns the memory that the start took.
func endStart() {
	debug.SetGCPercent(idleGCPercent)
	debug.FreeOSMemory()
	programpages.ReleaseAndLog()
}

// supervise returns a function that runs the controllers through next, except while the control plane rests. A
// kube-controller-manager that was frozen would find that all nodes have missed their heartbeats; one that starts
// gives them time.
func (q *quiescer) supervise(next superviseFunc) superviseFunc {
	return func(ctx context.Context, controllers func(context.Context) error) error {
		return q.gate.Run(ctx, func(ctx context.Context) error { return next(ctx, controllers) })
	}
}

type superviseFunc = func(ctx context.Context, controllers func(context.Context) error) error

// followCommands executes the commands of the store of machines until ctx ends.
func (q *quiescer) followCommands(ctx context.Context, commands <-chan string) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case command := <-commands:
			if err := q.execute(ctx, command); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

func (q *quiescer) execute(ctx context.Context, command string) error {
	switch command {
	case machine.CommandFreeze:
		if err := q.quiesce(ctx); err != nil { // the store of machines stops the machine instead
			klog.FromContext(ctx).Error(err, "this control plane cannot be frozen")
			return q.resume()
		}
		return nil
	case machine.CommandThaw:
		return q.resume()
	default:
		klog.FromContext(ctx).Info("ignored a command that does not exist", "command", command)
		return nil
	}
}

// quiesce brings the control plane to rest and says so.
func (q *quiescer) quiesce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, quiesceTimeout)
	defer cancel()
	if err := q.gate.Close(ctx); err != nil {
		return err
	}
	if err := q.api.Suspend(); err != nil {
		return fmt.Errorf("closing the port of the API: %w", err)
	}
	q.requests.CloseUnused()
	q.shrink()
	return os.WriteFile(machine.QuiescedPath(q.dir), nil, 0o600)
}

// resume ends the rest, if there was one. A cluster that wakes up counts as just used: its clock went on while it was
// frozen.
func (q *quiescer) resume() error {
	q.requests.Restart()
	if err := q.api.Resume(); err != nil {
		return fmt.Errorf("opening the port of the API again: %w", err)
	}
	q.gate.Open()
	return q.markAwake()
}

func (q *quiescer) markAwake() error {
	if err := os.Remove(machine.QuiescedPath(q.dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
