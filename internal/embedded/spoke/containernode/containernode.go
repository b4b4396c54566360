//go:build linux

// Package containernode is a node of a local cluster that runs containers: a kubelet, kube-proxy and
// containerd in namespaces of their own.
//
// The process of the machine is the first process of its namespaces (processes, mounts, network, IPC,
// host name and control groups), in which everything of the node lives: containerd, the containers,
// their mounts, their interfaces and their firewall rules. The kernel removes all of it when that
// process ends, however it ends. Only the control groups outlive it; see machine.RemoveCgroups.
//
// The node has a root folder of its own. It contains this computer's programs, read-only, and
// devices; everything else is empty at each start, except /var, which is a folder on the
// machine's disk.
package containernode

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/embedded/spoke/containernode/runtimesocket"
	"hotspare.io/hotspare/internal/embedded/spoke/containernode/runtimesupervisor"
	"hotspare.io/hotspare/internal/embedded/spoke/node"
)

// Options describe the node to run.
type Options struct {
	// Machine is the machine whose node this is.
	Machine machine.Config
	// Dir is the machine's folder.
	Dir string
	// Bootstrap is the config with which the node requests its first certificate. Its address is
	// that of the gateway.
	Bootstrap *rest.Config
	// ClusterDNS is the address of the cluster's DNS server.
	ClusterDNS netip.Addr
	// Alive, if not nil, receives the function that lets the node's heartbeats pass until its
	// context ends. Alive calls it whenever, and for as long as, the node should send heartbeats.
	Alive func(ctx context.Context, signs func(context.Context) error) error
}

func (o Options) taints() []corev1.Taint { return o.Machine.Taints }

// Run runs the node until ctx ends. Enter must have prepared the process.
func Run(ctx context.Context, o Options) error {
	if os.Getpid() != 1 {
		return fmt.Errorf("starting machine %s: a worker that runs containers must be the first process of its namespaces", o.Machine.Name)
	}
	found, err := findPrograms(ctx)
	if err != nil {
		return fmt.Errorf("starting machine %s: %w", o.Machine.Name, err)
	}
	if err := machine.WriteProblem(o.Dir, ""); err != nil { // that of the last run
		return fmt.Errorf("starting machine %s: %w", o.Machine.Name, err)
	}
	if err := writeConfiguration(o, found); err != nil {
		return fmt.Errorf("starting machine %s: %w", o.Machine.Name, err)
	}
	tap, err := configureNetwork(o.Machine)
	if err != nil {
		return fmt.Errorf("starting machine %s: configuring its network: %w", o.Machine.Name, err)
	}
	// The network outlives ctx: containers that are being stopped may need it to end well.
	network, disconnect := context.WithCancel(context.WithoutCancel(ctx))
	disconnected := make(chan struct{})
	go func() {
		defer close(disconnected)
		connectNetwork(network, tap, networkSocket(o))
	}()
	defer func() { disconnect(); <-disconnected }()
	health, problems := runtimesupervisor.NewHealth(), &problems{dir: o.Dir}
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error { reapOrphans(ctx); return nil })
	work.Go(func() error { return superviseContainerd(ctx, found, health, problems) })
	work.Go(func() error { return runKubernetes(ctx, o, found, health, problems) })
	return work.Wait()
}

// networkSocket returns the path of the control plane's socket for the network of pods.
func networkSocket(o Options) string {
	return machine.NetworkSocketPath(controlPlaneDir(o.Dir, o.Machine))
}

func controlPlaneDir(dir string, c machine.Config) string {
	return filepath.Join(filepath.Dir(dir), machine.ControlPlaneName(c.InfraID))
}

// runKubernetes runs the kubelet and kube-proxy when containerd answers and the node has a
// certificate. When ctx ends, it separates the kubelet from containerd, so that the kubelet restarts nothing, and stops
// the containers. Until it returns, the node has a condition about the health of containerd.
func runKubernetes(ctx context.Context, o Options, found programs, health *runtimesupervisor.Health, problems *problems) error {
	prepared := make(chan error, 1)
	go func() { prepared <- prepareContainerd(ctx, found, health) }()
	member, err := node.Join(ctx, node.Options{Name: o.Machine.Name, Dir: machine.PKIPath(o.Dir), Bootstrap: o.Bootstrap})
	if err != nil {
		return ignoreCancellation(ctx, err)
	}
	defer member.Close()
	klog.FromContext(ctx).Info("joined", "node", o.Machine.Name)
	stopPublishing, err := startPublishing(ctx, o.Machine.Name, member, health)
	if err != nil {
		return err
	}
	defer stopPublishing()
	if err := <-prepared; err != nil {
		return ignoreCancellation(ctx, err)
	}
	if err := pullFirstImages(ctx, o, problems); err != nil {
		return ignoreCancellation(ctx, err)
	}
	runtime, err := runtimesocket.Listen(kubeletSocket, containerdSocket)
	if err != nil {
		return err
	}
	heartbeats := &heartbeatGate{}
	work, inner := errgroup.WithContext(ctx)
	work.Go(func() error { return runtime.Serve(inner) })
	work.Go(func() error { return member.CloseStaleConnections(inner) })
	work.Go(func() error { return o.runWhileAlive(inner, heartbeats.openUntilDone) })
	work.Go(func() error { return runKubelet(inner, o, member, heartbeats) })
	work.Go(func() error { return runProxy(inner, member) })
	work.Go(func() error { return pullMissingImages(inner, o) })
	work.Go(func() error { return collectImages(inner, o) })
	err = work.Wait()
	stopContainers(ctx)
	return ignoreCancellation(ctx, err)
}

// startPublishing keeps the condition of the node about containerd until the returned function is called, which waits for
// its end.
func startPublishing(ctx context.Context, name string, member *node.Membership, health *runtimesupervisor.Health) (stop func(), err error) {
	client, err := kubernetes.NewForConfig(member.ClientConfig())
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() { health.Publish(ctx, client, name, clock.RealClock{}) })
	return func() { cancel(); work.Wait() }, nil
}

func (o Options) runWhileAlive(ctx context.Context, signs func(context.Context) error) error {
	if o.Alive == nil {
		return signs(ctx)
	}
	return o.Alive(ctx, signs)
}

// ignoreCancellation returns err, or nil if ctx has ended: a node is stopped by ending ctx.
func ignoreCancellation(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it was stopped
	}
	return err
}

// errNotPrepared is the error of a process that is not in namespaces of its own.
var errNotPrepared = errors.New("the process is not in namespaces of its own")
