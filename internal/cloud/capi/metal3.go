package capi

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/capi/plan"
	"hotspare.io/hotspare/internal/clusterapi"
	"hotspare.io/hotspare/internal/fault"
)

// metal3 is the scheme of the provider IDs of Metal3.
const metal3 = "metal3"

// metal3ID matches metal3://namespace/host/metal3machine. Before v1.5, Metal3 wrote metal3://uid.
var metal3ID = regexp.MustCompile(`^metal3://([^/]+)/([^/]+)/([^/]+)$`)

// observeHosts reads the BareMetalHosts of the machines.
func (a *Actuator) observeHosts(ctx context.Context, seen *observation) error {
	for i := range seen.Machines {
		m := &seen.Machines[i]
		if m.Provider != metal3 {
			continue
		}
		host, err := a.readHost(ctx, seen, m)
		if err != nil {
			return err
		}
		seen.hosts[m.Name] = host
		m.State, m.Reason = hostState(host)
	}
	return nil
}

// readHost returns the BareMetalHost of a machine. It must be in the namespace of the cluster and be
// consumed by the Metal3Machine that the provider ID names: otherwise it serves another cluster.
func (a *Actuator) readHost(ctx context.Context, seen *observation, m *plan.Machine) (*unstructured.Unstructured, error) {
	parts := metal3ID.FindStringSubmatch(m.ProviderID)
	if parts == nil {
		return nil, fault.NewDenied("machine %s has the provider ID %q: hotspare supports metal3://namespace/host/metal3machine, which Metal3 1.5 and later write", m.Name, m.ProviderID)
	}
	namespace, name, consumer := parts[1], parts[2], parts[3]
	if namespace != seen.ref.Cluster.Namespace {
		return nil, fault.NewDenied("machine %s runs on BareMetalHost %s in namespace %s, which is not the namespace of the cluster: "+
			"move the host, because hotspare switches only hosts of namespace %s",
			m.Name, name, namespace, seen.ref.Cluster.Namespace)
	}
	host, err := a.hub.Resource(clusterapi.BareMetalHosts).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case clusterapi.IsKindMissing(err):
		return nil, clusterapi.NotInstalledError(clusterapi.BareMetalHosts)
	case apierrors.IsNotFound(err):
		return nil, fault.NewDenied("machine %s runs on BareMetalHost %s, which does not exist: restore it, or delete the Machine", m.Name, name)
	case err != nil:
		return nil, fmt.Errorf("reading BareMetalHost %s: %w", name, err)
	}
	kind, _, _ := unstructured.NestedString(host.Object, "spec", "consumerRef", "kind")
	used, _, _ := unstructured.NestedString(host.Object, "spec", "consumerRef", "name")
	if kind != "Metal3Machine" || used != consumer {
		return nil, fault.NewDenied("BareMetalHost %s has the consumer %s %s, and machine %s needs Metal3Machine %s: correct the host or the Machine", name, kind, used, m.Name, consumer)
	}
	return host, nil
}

// hostState returns the state of a host: what it should be from spec.online, what it is from
// status.poweredOn.
func hostState(host *unstructured.Unstructured) (cloud.State, string) {
	online, _, _ := unstructured.NestedBool(host.Object, "spec", "online")
	powered, _, _ := unstructured.NestedBool(host.Object, "status", "poweredOn")
	message, _, _ := unstructured.NestedString(host.Object, "status", "errorMessage")
	switch {
	case message != "":
		return cloud.Failed, "BareMetalHost " + host.GetName() + " reports: " + message
	case online && powered:
		return cloud.Running, ""
	case online:
		return cloud.Starting, ""
	case powered:
		return cloud.Stopping, ""
	}
	return cloud.Stopped, ""
}

// switchHosts sets spec.online of the hosts of a step.
func (a *Actuator) switchHosts(ctx context.Context, seen observation, st plan.Step) error {
	var errs []error
	for _, name := range slices.Sorted(slices.Values(st.Machines)) {
		host := seen.hosts[name]
		err := a.patchObject(ctx, clusterapi.BareMetalHosts, host, map[string]any{"spec": map[string]any{"online": st.Verb == plan.Start}})
		if err != nil {
			errs = append(errs, fmt.Errorf("switching BareMetalHost %s of machine %s: %w", host.GetName(), name, err))
		}
	}
	return errors.Join(errs...)
}
