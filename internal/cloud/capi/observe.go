package capi

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/capi/plan"
	"hotspare.io/hotspare/internal/clusterapi"
	"hotspare.io/hotspare/internal/fault"
)

// observation is a snapshot, and what is needed to act on it.
type observation struct {
	plan.Snapshot
	ref     cloud.Ref
	cluster *unstructured.Unstructured
	// hosts are the BareMetalHosts, by the name of their Machine.
	hosts map[string]*unstructured.Unstructured
	// hosted is the control plane that runs in pods; nil for one of machines.
	hosted *hosted
}

// observe reads the Cluster, its Machines and MachineHealthChecks, and the instances.
func (a *Actuator) observe(ctx context.Context, ref cloud.Ref) (observation, error) {
	seen := observation{ref: ref, hosts: map[string]*unstructured.Unstructured{}}
	cluster, err := a.hub.Resource(clusterapi.Clusters).Namespace(ref.Cluster.Namespace).Get(ctx, ref.InfraID, metav1.GetOptions{})
	switch {
	case clusterapi.IsKindMissing(err):
		return seen, clusterapi.NotInstalledError(clusterapi.Clusters)
	case apierrors.IsNotFound(err):
		return seen, fault.NewDenied("Cluster %s in namespace %s does not exist: another user has deleted it; delete ClusterDeployment %s, too, or restore the Cluster",
			ref.InfraID, ref.Cluster.Namespace, ref.Cluster.Name)
	case err != nil:
		return seen, fmt.Errorf("reading Cluster %s: %w", ref.InfraID, err)
	}
	seen.cluster = cluster
	seen.Snapshot = plan.Snapshot{
		Name: cluster.GetName(), Deleting: cluster.GetDeletionTimestamp() != nil,
		Paused: clusterapi.IsPaused(cluster), PausedByHotspare: clusterapi.IsPausedByHotspare(cluster),
		PauseConfirmed: clusterapi.IsTrue(cluster, clusterapi.Paused),
		Marked:         cluster.GetAnnotations()[clusterapi.AnnotationPaused] != "",
	}
	if err := a.observeHealthChecks(ctx, &seen); err != nil {
		return seen, err
	}
	if err := a.observeHostedControlPlane(ctx, &seen); err != nil {
		return seen, err
	}
	if err := a.observeMachinePools(ctx, &seen); err != nil {
		return seen, err
	}
	return seen, a.observeMachines(ctx, &seen)
}

// listOfCluster lists the objects that carry the label of the Cluster.
func (a *Actuator) listOfCluster(ctx context.Context, seen *observation, r schema.GroupVersionResource) ([]unstructured.Unstructured, error) {
	list, err := a.hub.Resource(r).Namespace(seen.ref.Cluster.Namespace).List(ctx, metav1.ListOptions{LabelSelector: clusterapi.LabelCluster + "=" + seen.Name})
	if err != nil {
		return nil, fmt.Errorf("listing the %s of Cluster %s: %w", r.Resource, seen.Name, err)
	}
	return list.Items, nil
}

func (a *Actuator) observeHealthChecks(ctx context.Context, seen *observation) error {
	items, err := a.listOfCluster(ctx, seen, clusterapi.MachineHealthChecks)
	for i := range items {
		seen.HealthChecks = append(seen.HealthChecks, plan.HealthCheck{Name: items[i].GetName(), Paused: clusterapi.IsTrue(&items[i], clusterapi.Paused)})
	}
	return err
}

// observeMachinePools adds each MachinePool as a machine that hotspare cannot stop: the cloud keeps
// the number of its instances, and replaces those that stop. Without them, a hibernation would leave
// these instances running.
func (a *Actuator) observeMachinePools(ctx context.Context, seen *observation) error {
	items, err := a.listOfCluster(ctx, seen, clusterapi.MachinePools)
	if clusterapi.IsKindMissing(err) {
		return nil
	}
	for i := range items {
		if n, found, _ := unstructured.NestedInt64(items[i].Object, "spec", "replicas"); found && n == 0 {
			continue
		}
		seen.Machines = append(seen.Machines, plan.Machine{
			Machine: cloud.Machine{
				Name: "MachinePool " + items[i].GetName(), State: cloud.Running,
				Reason: "the cloud replaces instances of a MachinePool that stop: use a MachineDeployment, or set its replicas to 0",
			},
			Provisioned: true, Paused: true,
		})
	}
	return err
}

// observeMachines reads the Machines, and the states of their instances from their providers.
func (a *Actuator) observeMachines(ctx context.Context, seen *observation) error {
	items, err := a.listOfCluster(ctx, seen, clusterapi.Machines)
	if err != nil {
		return err
	}
	for i := range items {
		o := &items[i]
		id, _, _ := unstructured.NestedString(o.Object, "spec", "providerID")
		node, _, _ := unstructured.NestedString(o.Object, "status", "nodeRef", "name")
		m := plan.Machine{
			Machine:     cloud.Machine{Name: o.GetName(), ControlPlane: clusterapi.IsControlPlane(o), Node: node, ProviderID: id, State: cloud.Starting},
			Provisioned: id != "", Deleting: o.GetDeletionTimestamp() != nil, Paused: clusterapi.IsTrue(o, clusterapi.Paused),
		}
		a.assignProvider(&m)
		seen.Machines = append(seen.Machines, m)
	}
	if err := a.observeHosts(ctx, seen); err != nil {
		return err
	}
	for i := range a.providers {
		if err := observeInstances(ctx, seen, &a.providers[i]); err != nil {
			return err
		}
	}
	return nil
}

// assignProvider sets what starts and stops a machine. Without it, the state is Unknown.
func (a *Actuator) assignProvider(m *plan.Machine) {
	if !m.Provisioned {
		return
	}
	scheme := schemeOf(m.ProviderID)
	if scheme == metal3 || a.providerOf(scheme) != nil {
		m.Provider = scheme
		return
	}
	supported := []string{metal3 + "://"}
	for _, p := range a.providers {
		supported = append(supported, p.Scheme+"://")
	}
	slices.Sort(supported)
	m.State = cloud.Unknown
	m.Reason = fmt.Sprintf("its provider ID is %q, and hotspare stops and starts machines only with %s", m.ProviderID, strings.Join(supported, ", "))
}

// observeInstances sets the states of the machines of one provider.
func observeInstances(ctx context.Context, seen *observation, p *Provider) error {
	var some []cloud.Instance
	for _, m := range seen.Machines {
		if m.Provider == p.Scheme {
			some = append(some, cloud.Instance{ProviderID: m.ProviderID, Name: m.Name, ControlPlane: m.ControlPlane})
		}
	}
	if len(some) == 0 {
		return nil
	}
	selected, err := p.Actuator.ForInstances(some)
	if err != nil {
		return err
	}
	ref, err := p.refFor(seen.ref)
	if err != nil {
		return err
	}
	found, err := selected.Observe(ctx, ref)
	if err != nil {
		return p.renameField(err)
	}
	for i := range seen.Machines {
		m := &seen.Machines[i]
		if m.Provider != p.Scheme {
			continue
		}
		n := slices.IndexFunc(found, func(f cloud.Machine) bool { return f.ProviderID == m.ProviderID })
		if n < 0 {
			m.State = cloud.Unknown
			m.Reason = fmt.Sprintf("its instance %s does not exist: it was deleted outside Cluster API; delete the Machine, so that Cluster API creates another", m.ProviderID)
			continue
		}
		// Not the depth: machines of Cluster API are only stopped, and one that another user has suspended
		// counts as stopped.
		m.State, m.Reason = found[n].State, found[n].Reason
	}
	return nil
}
