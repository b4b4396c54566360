// Package controlplane runs a Kubernetes control plane in this process: etcd,
// kube-apiserver, some controllers of kube-controller-manager, and kube-scheduler
// if wanted.
//
// These programs keep global state (feature gates, metrics, their logger), so a
// process can hold one control plane in its life. They listen on one loopback
// port only; etcd is on a unix socket. There is no leader election: a component
// that lost an election would end the process, and etcd with it.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"hotspare.io/hotspare/internal/controlplane/known"
	"hotspare.io/hotspare/internal/controlplane/readyz"
	"hotspare.io/hotspare/internal/pki"
)

// certificateLifetime is that of the certificates that are made anew at each start.
const certificateLifetime = 365 * 24 * time.Hour

// stopLimit bounds how long a component may take to stop, and stopLimitBroken how long
// while not all of them run: those that do may wait for the others for ever.
const (
	stopLimit       = 20 * time.Second
	stopLimitBroken = 2 * time.Second
)

// errStopped answers those who wait for a control plane that was stopped.
var errStopped = errors.New("the control plane was stopped")

// Options say what control plane to run, and where.
type Options struct {
	// Dir is where it keeps its data (Dir/etcd) and what it makes anew at each
	// start (Dir/run). The caller holds a lock that keeps other processes out.
	Dir string
	// PKI is a folder filled by pki.EnsureCluster. A token file that
	// pki.WriteTokens has put there is used.
	PKI string
	// Listener, from Listen, is where the API is served. Start takes it over.
	Listener net.Listener
	// Controllers are the controllers of kube-controller-manager to run, by name.
	Controllers []string
	// ControllerFlags are further flags of kube-controller-manager.
	ControllerFlags []string
	// Supervise, if not nil, is handed what runs the controllers until its context
	// ends, and calls it as long, and as often, as they are to run.
	Supervise func(ctx context.Context, controllers func(context.Context) error) error
	// Untracked, if not nil, says which new custom resources are kept without an account
	// of who owns their fields (metadata.managedFields) until they are first applied
	// server-side.
	Untracked func(*unstructured.Unstructured) bool
	// MutatedGroup, if not empty, is the group version of custom resources that
	// MutatingAdmissionPolicies match. They are applied as soon as the API server serves it.
	MutatedGroup string
	// Scheduler says whether pods are assigned to nodes.
	Scheduler bool
	// Log takes what the components have to say to an operator.
	Log io.Writer
}

func (o Options) superviseControllers(ctx context.Context, controllers func(context.Context) error) error {
	if o.Supervise == nil {
		return controllers(ctx)
	}
	return o.Supervise(ctx, controllers)
}

// A ControlPlane runs from Start until Stop, or until a part of it dies.
type ControlPlane struct {
	url            string
	ca             *pki.CA
	loopbackTokens known.Authenticator
	cancel         context.CancelCauseFunc // nil stands for Stop
	probe          readyz.Probe
	ready          chan struct{} // closed when all components run and the API is ready
	done           chan struct{} // closed when everything has stopped
	err            error         // why, if not because of Stop; to be read after done
}

// Start starts a control plane. Its components are still starting up when it
// returns: see Ready. ctx bounds the call only.
func Start(ctx context.Context, o Options) (*ControlPlane, error) {
	c, err := newControlPlane(ctx, o)
	if err != nil {
		return nil, errors.Join(err, ignoreClosed(o.Listener.Close()))
	}
	return c, nil
}

func newControlPlane(ctx context.Context, o Options) (*ControlPlane, error) {
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	if err := prepareProcess(o.Log, cancel); err != nil {
		return nil, err
	}
	ca, err := pki.LoadCA(o.PKI, pki.ClusterCA)
	if err != nil {
		return nil, err
	}
	c := &ControlPlane{
		url:    "https://" + o.Listener.Addr().String(),
		ca:     ca,
		cancel: cancel,
		ready:  make(chan struct{}),
		done:   make(chan struct{}),
	}
	f := files{run: filepath.Join(o.Dir, "run"), pki: o.PKI}
	if err := f.issueCredentials(ca, c.url, time.Now()); err != nil {
		return nil, err
	}
	admin := c.ClientConfig("hotspare-control-plane", "system:masters")
	store, err := startEtcd(ctx, filepath.Join(o.Dir, "etcd"), f.run, o.Log, cancel)
	if err != nil {
		return nil, err
	}
	go func() {
		defer close(c.done)
		defer store.stopAndClean()
		c.err = c.runComponents(life, o, f, store, admin)
	}()
	return c, nil
}

// runComponents runs everything above etcd until ctx ends or a component dies. What was
// started last is stopped first: the controllers need the API server to let go
// of what they hold, and the API server needs etcd.
func (c *ControlPlane) runComponents(ctx context.Context, o Options, f files, store *etcd, admin *rest.Config) error {
	api := startComponent(ctx, "kube-apiserver", func(ctx context.Context) error {
		return runAPIServer(ctx, o, f, store.url, &c.loopbackTokens)
	})
	defer func() { api.stopWithin(c.currentStopLimit(ctx)) }()
	// The others wait for the API. Started with it they would poll it while it
	// needs the processor, and give up on it after ten seconds, which a busy
	// computer may take.
	err := c.probe.WaitUntilReady(ctx, admin, api.done)
	if errors.Is(err, readyz.ErrGone) {
		return api.unexpectedExitError()
	}
	if err != nil {
		return stopReason(ctx, err)
	}
	controllers := startComponent(ctx, "kube-controller-manager", func(ctx context.Context) error {
		return o.superviseControllers(ctx, func(ctx context.Context) error {
			return runControllers(ctx, f, o.Controllers, o.ControllerFlags)
		})
	})
	defer func() { controllers.stopWithin(c.currentStopLimit(ctx)) }()
	scheduler := startComponent(ctx, "kube-scheduler", func(ctx context.Context) error {
		if !o.Scheduler {
			<-ctx.Done()
			return nil
		}
		return runScheduler(ctx, f)
	})
	defer func() { scheduler.stopWithin(c.currentStopLimit(ctx)) }()

	close(c.ready)
	select {
	case <-ctx.Done():
		return stopReason(ctx, nil)
	case err := <-store.failureChannel():
		return fmt.Errorf("etcd ended by itself: %w", err)
	case <-api.done:
		return api.unexpectedExitError()
	case <-controllers.done:
		return controllers.unexpectedExitError()
	case <-scheduler.done:
		return scheduler.unexpectedExitError()
	}
}

// currentStopLimit is how long a component may take to stop, now.
func (c *ControlPlane) currentStopLimit(ctx context.Context) time.Duration {
	select {
	case <-c.ready:
		if stopReason(ctx, nil) == nil {
			return stopLimit
		}
	default:
	}
	return stopLimitBroken
}

// WaitUntilReady waits until the API is ready and all components have been started. The
// error tells what was missing when ctx ended, or why the control plane died.
func (c *ControlPlane) WaitUntilReady(ctx context.Context) error {
	select {
	case <-c.ready:
		return nil
	case <-c.done:
		if c.err != nil {
			return c.err
		}
		return errStopped
	case <-ctx.Done():
		return fmt.Errorf("waiting for the API at %s: %w (%s)", c.url, ctx.Err(), c.probe.LastAnswer())
	}
}

// Done is closed when the control plane has stopped, by Stop or by itself, and
// has let go of everything it held.
func (c *ControlPlane) Done() <-chan struct{} {
	return c.done
}

// Err returns why the control plane stopped by itself. It is nil before Done is
// closed, and after Stop.
func (c *ControlPlane) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// Stop stops the control plane and returns when all of it has stopped. It may be
// called more than once.
func (c *ControlPlane) Stop() {
	c.cancel(nil)
	<-c.done
}

// ClientConfig returns how a client in this process reaches the API as user, a member of
// groups: by a token that nobody else has, until the control plane stops. The client
// does not limit its own rate: the API server shares itself out fairly.
func (c *ControlPlane) ClientConfig(user string, groups ...string) *rest.Config {
	return &rest.Config{
		Host:            c.url,
		QPS:             -1,
		BearerToken:     c.loopbackTokens.IssueToken(user, groups...),
		TLSClientConfig: rest.TLSClientConfig{CAData: c.ca.CertPEM()},
	}
}

// URL returns where the API is served.
func (c *ControlPlane) URL() string {
	return c.url
}

// stopReason returns the reason that ctx ended for, nil if that was Stop, and err if it
// has not ended.
func stopReason(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return err
	case errors.Is(cause, context.Canceled):
		return nil
	default:
		return cause
	}
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
