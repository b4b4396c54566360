// Package capi hibernates clusters of Cluster API, which has no hibernation of its own.
//
// The machines of a cluster are the Machines of the Cluster whose name is the infraID, in the
// namespace of the ClusterDeployment. Each is started and stopped by its Machine.spec.providerID:
// instances of a cloud by that cloud's own actuator (cloud.InstanceSelector), hosts of Metal3 by
// BareMetalHost.spec.online, a control plane that Kamaji or k0smotron hosts by its replicas. Package
// plan decides about the order and the pause.
//
// Facts about Cluster API v1.14 that this package depends on:
//   - With spec.paused of the Cluster, the controllers of Machines, MachineSets, MachineDeployments,
//     MachineHealthChecks, KubeadmControlPlanes and the topology stop, and confirm it with condition
//     Paused. Providers of infrastructure stop as well, which matters where they would start a
//     stopped machine again (kubernetes-sigs/cluster-api-provider-vsphere#369). One that ignores the
//     pause, as the provider for Hetzner did (syself/cluster-api-provider-hetzner#1535), may undo a
//     hibernation.
//   - While a Cluster is paused, Machine.status does not follow its node. Whether nodes are ready is
//     therefore asked of the cluster itself, by the power controller, which calls CompleteResume.
//   - Nothing that is paused is deleted: see package install/capi.
package capi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/capi/plan"
	"hotspare.io/hotspare/internal/fault"
)

// waitDelay is the delay before a plan that waits is decided again.
const waitDelay = 5 * time.Second

// Provider starts and stops the instances of one cloud.
type Provider struct {
	// Key is the key of the settings in spec.platform.capi.providers; empty if it needs none.
	Key string
	// Scheme is the prefix of its provider IDs, before "://".
	Scheme string
	// Actuator controls the instances. It gets the settings of the provider as those of the platform.
	Actuator cloud.InstanceSelector
}

// Actuator implements cloud.Actuator for clusters of Cluster API.
type Actuator struct {
	hub       dynamic.Interface
	providers []Provider
	clock     clock.PassiveClock
}

var (
	_ cloud.Actuator        = (*Actuator)(nil)
	_ cloud.ResumeCompleter = (*Actuator)(nil)
)

// New returns an actuator that reads and writes the objects of Cluster API on the hub, and machines
// with providers. A nil clock is the computer's.
func New(hub dynamic.Interface, providers []Provider, c clock.PassiveClock) *Actuator {
	if c == nil {
		c = clock.RealClock{}
	}
	return &Actuator{hub: hub, providers: providers, clock: c}
}

// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=get;patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines;machinehealthchecks;machinepools,verbs=list
// +kubebuilder:rbac:groups=metal3.io,resources=baremetalhosts,verbs=get;patch
// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io,resources=kamajicontrolplanes,verbs=get;patch
// +kubebuilder:rbac:groups=k0smotron.io,resources=clusters,verbs=get;patch
// +kubebuilder:rbac:groups=k0smotron.io,resources=clusters/scale,verbs=patch

// Observe returns the Machines of the Cluster, with the states of their instances.
//
// A machine that is stopped although another user has removed the pause of the hibernation is
// reported as Failed: Cluster API may replace it. The next Stop pauses the Cluster again.
func (a *Actuator) Observe(ctx context.Context, ref cloud.Ref) (cloud.Machines, error) {
	seen, err := a.observe(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("observing the machines of Cluster %s: %w", ref.InfraID, err)
	}
	ms := make(cloud.Machines, 0, len(seen.Machines))
	for _, m := range seen.Machines {
		if seen.Marked && !seen.Paused && m.State == cloud.Stopped {
			m.State = cloud.Failed
			m.Reason = "it is stopped, and another user has unpaused the Cluster, so Cluster API may replace it: set spec.paused of Cluster " + ref.InfraID + " to true"
		}
		// The names of nodes and addresses stay empty: whoever writes Machines in this namespace must
		// not decide which certificates are signed.
		m.Node, m.ProviderID = "", ""
		ms = append(ms, m.Machine)
	}
	ms.SortByName()
	return ms, nil
}

// Start starts the control plane and, in a later call, the workers. The Cluster stays paused until
// CompleteResume.
func (a *Actuator) Start(ctx context.Context, ref cloud.Ref) error {
	if _, err := a.advance(ctx, ref, plan.Started, nil); err != nil {
		return fmt.Errorf("starting the machines of Cluster %s: %w", ref.InfraID, err)
	}
	return nil
}

// Stop pauses the Cluster, and in later calls stops the workers and the control plane. Workers whose
// stop is denied do not keep the control plane running.
func (a *Actuator) Stop(ctx context.Context, ref cloud.Ref) error {
	denied, err := a.advance(ctx, ref, plan.Stopped, nil)
	if len(denied) > 0 {
		_, later := a.advance(ctx, ref, plan.Stopped, denied)
		err = errors.Join(err, later)
	}
	if err != nil {
		return fmt.Errorf("stopping the machines of Cluster %s: %w", ref.InfraID, err)
	}
	return nil
}

// CompleteResume unpauses the Cluster. It leaves the pause of another user alone.
func (a *Actuator) CompleteResume(ctx context.Context, ref cloud.Ref, readyNodes []string) error {
	seen, err := a.observe(ctx, ref)
	if err == nil {
		seen.Goal, seen.ReadyNodes = plan.Resumed, readyNodes
		_, err = a.execute(ctx, seen, plan.Decide(seen.Snapshot))
	}
	if err != nil {
		return fmt.Errorf("completing the resume of Cluster %s: %w", ref.InfraID, err)
	}
	return nil
}

// advance observes, decides and executes once. Machines in given count as stopped. It returns those
// whose step was denied.
func (a *Actuator) advance(ctx context.Context, ref cloud.Ref, goal plan.Goal, given []string) (denied []string, err error) {
	seen, err := a.observe(ctx, ref)
	if err != nil {
		return nil, err
	}
	seen.Goal = goal
	for i := range seen.Machines {
		if slices.Contains(given, seen.Machines[i].Name) {
			seen.Machines[i].State = cloud.Stopped
		}
	}
	return a.execute(ctx, seen, plan.Decide(seen.Snapshot))
}

// execute executes a plan. An error for one step does not stop the others.
func (a *Actuator) execute(ctx context.Context, seen observation, p plan.Plan) (denied []string, err error) {
	var errs []error
	for _, st := range p.Steps {
		var err error
		switch st.Verb {
		case plan.Pause:
			err = a.pause(ctx, seen)
		case plan.Unpause:
			err = a.unpause(ctx, seen)
		default:
			err = a.switchMachines(ctx, seen, st)
		}
		if fault.KindOf(err) == fault.Denied {
			denied = append(denied, st.Machines...)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	if p.Wait != "" {
		errs = append(errs, fault.NewWait(waitDelay, "%s", p.Wait))
	}
	if p.Denied != "" {
		errs = append(errs, fault.NewDenied("%s", p.Denied))
	}
	return denied, errors.Join(errs...)
}

// switchMachines starts or stops the machines of a step.
func (a *Actuator) switchMachines(ctx context.Context, seen observation, st plan.Step) error {
	switch st.Provider {
	case metal3:
		return a.switchHosts(ctx, seen, st)
	case hostedControlPlane:
		return a.scaleControlPlane(ctx, seen, st.Verb)
	}
	var some []cloud.Instance
	for _, m := range seen.Machines {
		if slices.Contains(st.Machines, m.Name) {
			some = append(some, cloud.Instance{ProviderID: m.ProviderID, Name: m.Name, ControlPlane: m.ControlPlane})
		}
	}
	p := a.providerOf(st.Provider)
	selected, err := p.Actuator.ForInstances(some)
	if err != nil {
		return err
	}
	ref, err := p.refFor(seen.ref)
	if err != nil {
		return err
	}
	if st.Verb == plan.Start {
		return p.renameField(selected.Start(ctx, ref))
	}
	return p.renameField(selected.Stop(ctx, ref))
}

// providerOf returns the provider with that scheme; nil if there is none.
func (a *Actuator) providerOf(scheme string) *Provider {
	i := slices.IndexFunc(a.providers, func(p Provider) bool { return p.Scheme == scheme })
	if i < 0 {
		return nil
	}
	return &a.providers[i]
}

// refFor returns the Ref with which the provider's actuator acts for a cluster: its platform is the
// provider's, and its depth of sleep is stop.
func (p *Provider) refFor(ref cloud.Ref) (cloud.Ref, error) {
	ref.Depth, ref.RefusedDepths = "", nil
	if p.Key == "" {
		return ref, nil
	}
	var providers *hivev1.CAPIProviders
	if ref.Platform.CAPI != nil {
		providers = ref.Platform.CAPI.Providers
	}
	for _, platform := range providers.Platforms() {
		if platform.Name() == p.Key {
			ref.Platform = platform
			return ref, nil
		}
	}
	return ref, fault.NewDenied("the cluster has machines with provider IDs %s://, and spec.platform.capi.providers.%s of ClusterDeployment %s is empty: "+
		"set it, with the credentials that may stop and start them", p.Scheme, p.Key, ref.Cluster)
}

// renameField returns an error of the provider's actuator that names the field in which the user has
// written the settings: spec.platform.capi.providers.aws instead of spec.platform.aws.
func (p *Provider) renameField(err error) error {
	if err == nil || p.Key == "" {
		return err
	}
	return renamedError{error: err, key: p.Key}
}

// renamedError is the error of an actuator, which names the field of another platform.
type renamedError struct {
	error
	key string
}

func (e renamedError) Error() string {
	return strings.ReplaceAll(e.error.Error(), "spec.platform."+e.key, "spec.platform.capi.providers."+e.key)
}

func (e renamedError) Unwrap() error { return e.error }

// schemeOf returns the part of a provider ID before "://".
func schemeOf(providerID string) string {
	scheme, _, found := strings.Cut(providerID, "://")
	if !found {
		return ""
	}
	return scheme
}
