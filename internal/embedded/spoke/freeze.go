package spoke

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"time"

	"k8s.io/klog/v2"

	"hotspare.io/hotspare/internal/embedded/controlplane/requestcounter"
	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/embedded/spoke/quiesce"
)

// quiesceTimeout is how long the parts of a control plane may take to come to rest. It is shorter than the time that
// the store of machines waits for it.
const quiesceTimeout = 8 * time.Second

// freezer prepares a control plane for being frozen, and wakes it up after the thaw.
type freezer struct {
	dir string
	// api is where the API listens: clients of a frozen cluster are refused, as those of a stopped one.
	api *quiesce.Listener
	// gate is where the parts run that must not be frozen: kube-controller-manager, the load balancer, and what
	// holds locks of the image cache.
	gate quiesce.Gate
	// requests counts the requests to the API.
	requests *requestcounter.Counter
}

// newFreezer returns the freezer of a control plane whose API listens by listen.
func newFreezer(m *runningMachine, listen func() (net.Listener, error)) (*freezer, error) {
	api, err := listen()
	if err != nil {
		return nil, err
	}
	f := &freezer{dir: m.dir, api: quiesce.NewListener(api, listen), requests: requestcounter.New()}
	return f, f.markAwake() // a process that was killed while it was frozen leaves the file
}

// supervise returns a function that runs the controllers through next, except while the control plane rests. A
// kube-controller-manager that was frozen would find that all nodes have missed their heartbeats; one that starts
// gives them time.
func (f *freezer) supervise(next superviseFunc) superviseFunc {
	return func(ctx context.Context, controllers func(context.Context) error) error {
		return f.gate.Run(ctx, func(ctx context.Context) error { return next(ctx, controllers) })
	}
}

type superviseFunc = func(ctx context.Context, controllers func(context.Context) error) error

// followCommands executes the commands of the store of machines until ctx ends.
func (f *freezer) followCommands(ctx context.Context, commands <-chan string) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case command := <-commands:
			if err := f.execute(ctx, command); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

func (f *freezer) execute(ctx context.Context, command string) error {
	switch command {
	case machine.CommandFreeze:
		if err := f.rest(ctx); err != nil { // the store of machines stops the machine instead
			klog.FromContext(ctx).Error(err, "this control plane cannot be frozen")
			return f.wake()
		}
		return nil
	case machine.CommandThaw:
		return f.wake()
	default:
		klog.FromContext(ctx).Info("ignored a command that does not exist", "command", command)
		return nil
	}
}

// rest brings the control plane to rest and says so.
func (f *freezer) rest(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, quiesceTimeout)
	defer cancel()
	if err := f.gate.Close(ctx); err != nil {
		return err
	}
	if err := f.api.Suspend(); err != nil {
		return fmt.Errorf("closing the port of the API: %w", err)
	}
	f.requests.CloseUnused()
	return os.WriteFile(machine.QuiescedPath(f.dir), nil, 0o600)
}

// wake ends the rest, if there was one. A cluster that wakes up counts as just used: its clock went on while it was
// frozen.
func (f *freezer) wake() error {
	f.requests.Restart()
	if err := f.api.Resume(); err != nil {
		return fmt.Errorf("opening the port of the API again: %w", err)
	}
	f.gate.Open()
	return f.markAwake()
}

func (f *freezer) markAwake() error {
	if err := os.Remove(machine.QuiescedPath(f.dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
