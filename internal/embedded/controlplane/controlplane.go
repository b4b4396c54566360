// Package controlplane runs a Kubernetes control plane in this process: etcd, kube-apiserver, some
// controllers of kube-controller-manager, and optionally kube-scheduler.
//
// These programs keep global state (feature gates, metrics, their logger), so a process can run
// only one control plane in its lifetime. They listen on one loopback port only; etcd listens on a
// unix socket, and the API server calls it without one. There is no leader election: a component
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

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"hotspare.io/hotspare/internal/embedded/controlplane/etcdclient"
	"hotspare.io/hotspare/internal/embedded/controlplane/loopbacktoken"
	"hotspare.io/hotspare/internal/embedded/controlplane/readyz"
	"hotspare.io/hotspare/internal/embedded/controlplane/requestcounter"
	"hotspare.io/hotspare/internal/embedded/pki"
)

// certificateLifetime is the lifetime of the certificates that are issued at each start.
const certificateLifetime = 365 * 24 * time.Hour

// stopLimit is how long a component may take to stop. stopLimitBroken applies while not all
// components run: the running ones may wait for the others forever.
const (
	stopLimit       = 20 * time.Second
	stopLimitBroken = 2 * time.Second
)

// errStopped is the error of WaitUntilReady for a control plane that was stopped.
var errStopped = errors.New("the control plane was stopped")

// Options describe which control plane to run, and where.
type Options struct {
	// Dir contains its data (Dir/etcd) and the files that it rewrites at each start (Dir/run). The
	// caller holds a lock that keeps other processes out.
	Dir string
	// PKI is a folder filled by pki.EnsureCluster. If it contains a token file from
	// pki.WriteBootstrapToken, the API server uses that.
	PKI string
	// Listener, from Listen, is where the API is served. Start takes ownership of it.
	Listener net.Listener
	// AuthenticationConfig is the path of an AuthenticationConfiguration (apiserver.config.k8s.io) with the
	// issuers whose tokens the API server accepts; it uses a change of the file within a minute. Empty
	// accepts the tokens of this control plane only.
	AuthenticationConfig string
	// Controllers are the controllers of kube-controller-manager to run, by name.
	Controllers []string
	// ControllerFlags are additional flags of kube-controller-manager.
	ControllerFlags []string
	// Supervise, if not nil, receives the function that runs the controllers until its context
	// ends. Supervise calls it whenever, and for as long as, the controllers should run.
	Supervise func(ctx context.Context, controllers func(context.Context) error) error
	// Untracked, if not nil, reports which new custom resources are stored without a record of
	// field ownership (metadata.managedFields) until they are first applied server-side.
	Untracked func(*unstructured.Unstructured) bool
	// MutatedGroups are the group versions of custom resources that MutatingAdmissionPolicies match,
	// such as hive.openshift.io/v1. The API server applies the policies as soon as it serves a
	// group version; those of others up to five seconds later.
	MutatedGroups []string
	// DialCluster, if not nil, connects the API server to nodes, pods and Services: with the address
	// of an endpoint, which is an IP address and a port. Otherwise, the API server connects to them
	// as this process does.
	DialCluster func(ctx context.Context, network, address string) (net.Conn, error)
	// IsMeasured, if not nil, adds the resource metrics API (metrics.k8s.io): it reports whether the
	// kubelet of a node measures what its pods use.
	IsMeasured func(*corev1.Node) bool
	// Names are more names and addresses at which clients reach the API, for its certificate.
	Names []string
	// Requests, if not nil, counts the requests to the API, except those of clients in this process, and the
	// API server reports them at activity.Path.
	Requests *requestcounter.Counter
	// Scheduler enables kube-scheduler.
	Scheduler bool
	// Log receives the log of the components.
	Log io.Writer
}

func (o Options) superviseControllers(ctx context.Context, controllers func(context.Context) error) error {
	if o.Supervise == nil {
		return controllers(ctx)
	}
	return o.Supervise(ctx, controllers)
}

// A ControlPlane runs from Start until Stop, or until one of its components dies.
type ControlPlane struct {
	url            string
	ca             *pki.CA
	loopbackTokens loopbacktoken.Authenticator
	cancel         context.CancelCauseFunc // a nil cause means Stop
	probe          readyz.Probe
	ready          chan struct{} // closed when all components run and the API is ready
	done           chan struct{} // closed when everything has stopped
	err            error         // the reason, if not Stop; read it only after done is closed
}

// Start starts a control plane. Its components are still starting when Start returns: see
// WaitUntilReady. ctx bounds only the call.
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
	if err := f.issueCredentials(ca, c.url, time.Now(), o.Names); err != nil {
		return nil, err
	}
	admin := c.ClientConfig("hotspare-control-plane", "system:masters")
	store, err := startEtcd(ctx, filepath.Join(o.Dir, "etcd"), f.run, o.Log, cancel)
	if err != nil {
		return nil, err
	}
	etcdclient.Use(life, store.server.Server, store.url)
	go func() {
		defer close(c.done)
		defer store.stopAndClean()
		c.err = c.runComponents(life, o, f, store, admin)
	}()
	return c, nil
}

// runComponents runs all components above etcd until ctx ends or a component dies. It stops the
// components in reverse order: the controllers need the API server to release their resources, and
// the API server needs etcd.
func (c *ControlPlane) runComponents(ctx context.Context, o Options, f files, store *etcd, admin *rest.Config) error {
	api := startComponent(ctx, "kube-apiserver", func(ctx context.Context) error {
		return runAPIServer(ctx, o, f, store.url, &c.loopbackTokens)
	})
	defer func() { api.stopWithin(c.currentStopLimit(ctx)) }()
	// The other components start when the API is ready. If they started with it, they would poll it
	// while it needs the processor, and give up after ten seconds, which the API server may take to
	// start on a busy computer.
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
		return fmt.Errorf("etcd ended unexpectedly: %w", err)
	case <-api.done:
		return api.unexpectedExitError()
	case <-controllers.done:
		return controllers.unexpectedExitError()
	case <-scheduler.done:
		return scheduler.unexpectedExitError()
	}
}

// currentStopLimit returns how long a component may take to stop at the moment.
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

// WaitUntilReady waits until the API is ready and all components have been started. The error says
// what was missing when ctx ended, or why the control plane died.
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

// Done returns a channel that is closed when the control plane has stopped, by Stop or on its own,
// and has released all its resources.
func (c *ControlPlane) Done() <-chan struct{} {
	return c.done
}

// Err returns the reason why the control plane stopped on its own. It is nil before Done is closed,
// and after Stop.
func (c *ControlPlane) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// Stop stops the control plane and returns when all of it has stopped. It may be called more than
// once.
func (c *ControlPlane) Stop() {
	c.cancel(nil)
	<-c.done
}

// ClientConfig returns a config for a client in this process that reaches the API as user, a member
// of groups. The client authenticates with its own token, which is valid until the control plane
// stops. The client does not limit its rate, because the API server distributes its capacity
// fairly.
func (c *ControlPlane) ClientConfig(user string, groups ...string) *rest.Config {
	return &rest.Config{
		Host:            c.url,
		QPS:             -1,
		BearerToken:     c.loopbackTokens.IssueToken(user, groups...),
		TLSClientConfig: rest.TLSClientConfig{CAData: c.ca.CertPEM()},
	}
}

// URL returns the URL of the API.
func (c *ControlPlane) URL() string {
	return c.url
}

// stopReason returns the cause for which ctx ended, nil if that was Stop, and err if ctx has not
// ended.
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
