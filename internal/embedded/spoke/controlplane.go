package spoke

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"hotspare.io/hotspare/internal/embedded/controlplane"
	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/embedded/pki"
	"hotspare.io/hotspare/internal/embedded/spoke/loadbalancer"
	"hotspare.io/hotspare/internal/embedded/spoke/node"
	"hotspare.io/hotspare/internal/embedded/spoke/openshiftfacade"
	"hotspare.io/hotspare/internal/embedded/spoke/signer"
	"hotspare.io/hotspare/internal/embedded/spoke/volumes"
)

// controllers are the controllers that a small cluster needs. None of them evicts pods from an unreachable node: without
// containers, it may only be suspended.
var controllers = []string{
	"bootstrap-signer-controller",
	"certificatesigningrequest-approving-controller",
	"certificatesigningrequest-cleaner-controller",
	"certificatesigningrequest-signing-controller",
	"clusterrole-aggregation-controller",
	"cronjob-controller",
	"daemonset-controller",
	"deployment-controller",
	"disruption-controller",
	"endpointslice-controller",
	"garbage-collector-controller",
	"job-controller",
	"namespace-controller",
	"node-lifecycle-controller",
	"pod-garbage-collector-controller",
	"replicaset-controller",
	"root-ca-certificate-publisher-controller",
	"serviceaccount-controller",
	"serviceaccount-token-controller",
	"statefulset-controller",
	"token-cleaner-controller",
}

// containerControllers are the further controllers of a cluster whose workers run containers.
var containerControllers = []string{
	"endpoints-controller",
	"endpointslice-mirroring-controller",
	"ephemeral-volume-controller",
	"horizontal-pod-autoscaler-controller",
	"persistentvolume-attach-detach-controller",
	"persistentvolume-binder-controller",
	"persistentvolume-protection-controller",
	"persistentvolumeclaim-protection-controller",
	"replicationcontroller-controller",
	"resourcequota-controller",
	"taint-eviction-controller",
	"ttl-after-finished-controller",
	"volumeattributesclass-protection-controller",
}

// idleGCPercent keeps a control plane small after its start: many share a computer and are mostly
// idle. During the start, this value would cost half a second.
const idleGCPercent = 25

// settleDelay is how long the components of a cluster continue their start after the API is ready. After that, or before
// it is frozen, a control plane returns the memory that its start took.
const settleDelay = 5 * time.Second

// runControlPlane runs a control plane and its node until ctx ends.
func runControlPlane(ctx context.Context, m *runningMachine) error {
	f, err := newQuiescer(m, m.listenAPI)
	if err != nil {
		return fmt.Errorf("starting machine %s: %w", m.Name, err)
	}
	keys := machine.PKIPath(m.dir)
	options := controlplane.Options{
		Dir:             machine.DiskPath(m.dir),
		PKI:             keys,
		Listener:        f.requests.WrapListener(m.faults.WrapListener(ctx, f.api)),
		Requests:        f.requests,
		Controllers:     controllers,
		ControllerFlags: controllerFlags(keys),
		Supervise:       f.supervise(m.faults.SuspendWhileInjected(machine.ControllerManagerDead)),
		Scheduler:       true,
		Log:             os.Stderr,
	}
	var pods *podNetwork
	if m.Containers {
		if pods, err = newPodNetwork(ctx, m.dir); err != nil {
			return fmt.Errorf("starting machine %s: %w", m.Name, errors.Join(err, f.api.Close()))
		}
		defer pods.Close()
		options.DialCluster = pods.dialCluster
		options.IsMeasured = node.MeasuresPods
		options.Names = []string{machine.Gateway.String()}
		options.Controllers = slices.Concat(controllers, containerControllers)
	}
	cp, err := controlplane.Start(ctx, options)
	if err != nil {
		return fmt.Errorf("starting machine %s: %w", m.Name, err)
	}
	defer cp.Stop()
	if err := cp.WaitUntilReady(ctx); err != nil {
		return err
	}
	settled := time.AfterFunc(settleDelay, f.shrink)
	defer settled.Stop()
	return runClusterComponents(ctx, cp, m, clusterParts{pods: pods, quiescer: f})
}

// clusterParts are parts of a cluster that were created before its control plane.
type clusterParts struct {
	// pods is nil unless the workers run containers.
	pods     *podNetwork
	quiescer *quiescer
}

// controllerFlags returns the flags that mark a node unreachable after 16 seconds, and that make
// kube-controller-manager sign all certificates except those of nodes, which the Authority of
// package csr signs.
func controllerFlags(keys string) []string {
	return []string{
		"--node-monitor-grace-period=16s",
		"--node-monitor-period=2s",
		"--cluster-signing-kube-apiserver-client-cert-file=" + filepath.Join(keys, pki.ClusterCA+".crt"),
		"--cluster-signing-kube-apiserver-client-key-file=" + filepath.Join(keys, pki.ClusterCA+".key"),
	}
}

// runClusterComponents runs the components that turn a control plane into a cluster, until ctx ends
// or the control plane dies.
func runClusterComponents(ctx context.Context, cp *controlplane.ControlPlane, m *runningMachine, parts clusterParts) error {
	root := cp.ClientConfig("hotspare-machine", "system:masters")
	authority, err := newCSRAuthority(root, m)
	if err != nil {
		return err
	}
	// The same account as the one of the workers, with its own token.
	bootstrap := cp.ClientConfig(pki.NodeBootstrapperUser, pki.NodeBootstrapperGroups()...)
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error { return waitForControlPlaneExit(ctx, cp) })
	work.Go(func() error { return ensureNodeRBAC(ctx, root) })
	work.Go(func() error { return parts.quiescer.followCommands(ctx, m.commands) })
	if pods := parts.pods; pods != nil {
		work.Go(func() error { return pods.run(ctx, m.APIPort) })
		work.Go(func() error { return ensureMetricsRBAC(ctx, root) })
		work.Go(func() error { return maintainServices(ctx, root) })
		work.Go(func() error { return runDNS(ctx, root, pods) })
		work.Go(func() error { return runVolumes(ctx, root, m) })
		work.Go(func() error {
			return parts.quiescer.gate.Run(ctx, func(ctx context.Context) error { return runLoadBalancer(ctx, root, m, pods) })
		})
		work.Go(func() error { return serveImages(ctx, m.dir, pods, &parts.quiescer.gate) })
	}
	work.Go(func() error { authority.Run(ctx); return nil })
	work.Go(func() error {
		return openshiftfacade.Run(ctx, root, openshiftfacade.Options{
			InfraID: m.InfraID, ControlPlane: m.Name, OpenShiftVersion: m.OpenShiftVersion,
		})
	})
	work.Go(func() error {
		return node.Run(ctx, node.Options{
			Name: m.Name, Dir: machine.PKIPath(m.dir), Pods: machine.PodsPath(m.dir), Bootstrap: bootstrap, Taints: controlPlaneTaints(m.Workers),
			SimulationCause: m.simulationCause(),
			Alive:           m.faults.SuspendWhileInjected(machine.NodeNeverReady),
		})
	})
	return work.Wait()
}

// runVolumes provides the PersistentVolumes of a cluster until ctx ends.
func runVolumes(ctx context.Context, root *rest.Config, m *runningMachine) error {
	client, err := kubernetes.NewForConfig(root)
	if err != nil {
		return fmt.Errorf("creating a client of the API: %w", err)
	}
	return volumes.Run(ctx, client, filepath.Dir(m.dir))
}

// runLoadBalancer gives the Services of type LoadBalancer addresses of this computer until ctx ends.
func runLoadBalancer(ctx context.Context, root *rest.Config, m *runningMachine, pods *podNetwork) error {
	client, err := kubernetes.NewForConfig(root)
	if err != nil {
		return fmt.Errorf("creating a client of the API: %w", err)
	}
	return loadbalancer.Run(ctx, client, loadbalancer.Options{Cluster: m.InfraID, Dial: pods.DialEndpoint})
}

func newCSRAuthority(root *rest.Config, m *runningMachine) (*signer.Authority, error) {
	client, err := kubernetes.NewForConfig(root)
	if err != nil {
		return nil, fmt.Errorf("creating a client of the API: %w", err)
	}
	ca, err := pki.LoadCA(machine.PKIPath(m.dir), pki.ClusterCA)
	if err != nil {
		return nil, err
	}
	return &signer.Authority{
		Client:  client,
		CA:      ca,
		Life:    m.CertificateDuration.Duration,
		InfraID: m.InfraID,
		Installing: func() bool {
			_, err := os.Stat(machine.InstalledPath(m.dir))
			return errors.Is(err, fs.ErrNotExist)
		},
	}, nil
}

// waitForControlPlaneExit returns the reason why the control plane died, or nil if ctx ends first.
func waitForControlPlaneExit(ctx context.Context, cp *controlplane.ControlPlane) error {
	select {
	case <-ctx.Done():
		return nil
	case <-cp.Done():
		return cp.Err()
	}
}

// controlPlaneTaints returns the taints that keep pods off the control plane if there are workers
// to run them.
func controlPlaneTaints(workers int) []corev1.Taint {
	if workers == 0 {
		return nil
	}
	return []corev1.Taint{{Key: "node-role.kubernetes.io/master", Effect: corev1.TaintEffectNoSchedule}}
}
