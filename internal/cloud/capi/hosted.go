package capi

import (
	"context"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/capi/plan"
	"hotspare.io/hotspare/internal/clusterapi"
)

// hostedControlPlane is the provider of control planes that run in pods.
const hostedControlPlane = "replicas"

// hostedKind is a kind of control plane that runs in pods, and stops when it is scaled to zero.
type hostedKind struct {
	// resources are the versions of the resource with spec.replicas, the preferred version first.
	resources []schema.GroupVersionResource
	// namedAfterCluster reports whether that object has the name of the Cluster; otherwise, it is the
	// object that spec.controlPlaneRef names.
	namedAfterCluster bool
	// defaultReplicas is the number of replicas of an object without spec.replicas.
	defaultReplicas int64
	// subresource is where spec.replicas is written; empty for the object itself.
	subresource string
	// obstacle returns why the control plane would not survive a scale to zero, with the remedy; "" if
	// it would.
	obstacle func(o *unstructured.Unstructured, replicas int64) string
}

// hostedKinds are the kinds in Cluster.spec.controlPlaneRef.
//
// Kamaji: the replicas are those of the KamajiControlPlane, and not of its TenantControlPlane: the
// provider copies the number to the TenantControlPlane on every pass, and does not respect the pause
// of the Cluster (clastix/cluster-api-control-plane-provider-kamaji,
// controllers/kamajicontrolplane_controller_tcp.go).
//
// k0smotron: the provider copies spec of the K0smotronControlPlane to a Cluster of k0smotron.io with
// the name of the Cluster, and respects the pause; the controller of k0smotron.io does not. So the
// replicas are those of the Cluster of k0smotron.io. They are written through the subresource scale,
// because k0smotron's webhook replaces 0 by 1 in every other update, and in the version that is
// stored, because its conversion drops a 0.
var hostedKinds = map[string]hostedKind{
	"KamajiControlPlane": {
		resources: []schema.GroupVersionResource{clusterapi.KamajiControlPlanes}, defaultReplicas: 2,
	},
	"K0smotronControlPlane": {
		resources:         []schema.GroupVersionResource{clusterapi.K0smotronClusters, clusterapi.K0smotronClustersV1beta1},
		namedAfterCluster: true, defaultReplicas: 1, subresource: "scale", obstacle: describeK0smotronObstacle,
	},
}

// hosted is the object with the replicas of a hosted control plane.
type hosted struct {
	*unstructured.Unstructured
	hostedKind
	resource schema.GroupVersionResource
}

// observeHostedControlPlane adds the control plane to the machines if it runs in pods.
func (a *Actuator) observeHostedControlPlane(ctx context.Context, seen *observation) error {
	kind, _, _ := unstructured.NestedString(seen.cluster.Object, "spec", "controlPlaneRef", "kind")
	name, _, _ := unstructured.NestedString(seen.cluster.Object, "spec", "controlPlaneRef", "name")
	known, ok := hostedKinds[kind]
	if !ok {
		return nil
	}
	at := name
	if known.namedAfterCluster {
		at = seen.Name
	}
	o, err := a.readHosted(ctx, known, seen.ref.Cluster.Namespace, at)
	if err != nil || o == nil {
		return err
	}
	seen.hosted = o
	m := plan.Machine{
		Machine:  cloud.Machine{Name: kind + " " + name, ControlPlane: true, State: o.state()},
		Provider: hostedControlPlane, Provisioned: true, Paused: true,
	}
	if replicas := o.replicas(); replicas > 0 && known.obstacle != nil {
		if m.Reason = known.obstacle(o.Unstructured, replicas); m.Reason != "" {
			m.Provider = ""
		}
	}
	seen.Machines = append(seen.Machines, m)
	return nil
}

// readHosted reads the object with the replicas, in the first version that the hub serves; nil if the
// provider has not created it yet.
func (a *Actuator) readHosted(ctx context.Context, kind hostedKind, namespace, name string) (*hosted, error) {
	for _, r := range kind.resources {
		o, err := a.hub.Resource(r).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case clusterapi.IsKindMissing(err):
			continue
		case apierrors.IsNotFound(err):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("reading %s %s: %w", r.GroupResource(), name, err)
		}
		return &hosted{Unstructured: o, hostedKind: kind, resource: r}, nil
	}
	return nil, clusterapi.NotInstalledError(kind.resources[0])
}

// replicas returns the desired number of replicas.
func (h *hosted) replicas() int64 {
	n, found, _ := unstructured.NestedInt64(h.Object, "spec", "replicas")
	if !found {
		return h.defaultReplicas
	}
	return n
}

// state returns the state by the desired, the existing and the ready replicas. Versions of k0smotron
// without status.readyReplicas have status.ready, which stays true at zero replicas.
func (h *hosted) state() cloud.State {
	wanted := h.replicas()
	existing, _, _ := unstructured.NestedInt64(h.Object, "status", "replicas")
	ready, counted, _ := unstructured.NestedInt64(h.Object, "status", "readyReplicas")
	if isReady, _, _ := unstructured.NestedBool(h.Object, "status", "ready"); !counted && isReady {
		ready = existing
	}
	switch {
	case wanted == 0 && existing == 0:
		return cloud.Stopped
	case wanted == 0:
		return cloud.Stopping
	case ready > 0:
		return cloud.Running
	}
	return cloud.Starting
}

// scaleControlPlane scales the control plane to zero, or back to the number that it had before. The
// number is recorded before it changes.
func (a *Actuator) scaleControlPlane(ctx context.Context, seen observation, verb plan.Verb) error {
	h := seen.hosted
	before := h.GetAnnotations()[clusterapi.AnnotationReplicas]
	var replicas int64
	record := map[string]any{clusterapi.AnnotationReplicas: nil}
	if verb == plan.Start {
		recorded, err := strconv.ParseInt(before, 10, 32)
		if replicas = recorded; err != nil || recorded < 1 {
			replicas = h.defaultReplicas
		}
	} else {
		record[clusterapi.AnnotationReplicas] = strconv.FormatInt(h.replicas(), 10)
	}
	err := a.writeReplicas(ctx, h, record, replicas)
	if err != nil {
		return fmt.Errorf("scaling %s %s to %d: %w", h.GetKind(), h.GetName(), replicas, err)
	}
	return nil
}

// writeReplicas writes the record and the replicas: in one write, unless zero replicas need a
// subresource of their own. Then the record is written first, and a later call does the rest.
func (a *Actuator) writeReplicas(ctx context.Context, h *hosted, record map[string]any, replicas int64) error {
	patch := map[string]any{"metadata": map[string]any{"annotations": record}, "spec": map[string]any{"replicas": replicas}}
	if h.subresource == "" || replicas > 0 {
		return a.patchObject(ctx, h.resource, h.Unstructured, patch)
	}
	if h.GetAnnotations()[clusterapi.AnnotationReplicas] != record[clusterapi.AnnotationReplicas] {
		delete(patch, "spec")
		return a.patchObject(ctx, h.resource, h.Unstructured, patch)
	}
	delete(patch, "metadata")
	return a.patchObject(ctx, h.resource, h.Unstructured, patch, h.subresource)
}

// describeK0smotronObstacle returns why a control plane of k0smotron must not be scaled to zero.
//
// k0smotron runs an etcd of as many members as the control plane has replicas, of one member for
// zero replicas, and keeps its volumes. An etcd of one member therefore survives; one of several
// loses its quorum. Versions without etcd keep the data of a control plane without kine in its pod.
func describeK0smotronObstacle(o *unstructured.Unstructured, replicas int64) string {
	text := func(path ...string) string {
		s, _, _ := unstructured.NestedString(o.Object, append([]string{"spec"}, path...)...)
		return s
	}
	_, hasEtcd, _ := unstructured.NestedMap(o.Object, "spec", "etcd")
	_, hasStorage, _ := unstructured.NestedMap(o.Object, "spec", "storage")
	kine := text("storage", "type") == "kine" || text("kineDataSourceURL") != "" || text("kineDataSourceSecretName") != ""
	volume := text("persistence", "type")
	switch {
	case text("storage", "type") == "nats":
		return "its storage.type is nats, which does not support another number of replicas: use kine with a server of its own, or etcd with one replica"
	case kine:
		return ""
	case replicas > 1:
		return fmt.Sprintf("its etcd has %d members and loses its quorum when k0smotron scales it down: use one replica, or kine", replicas)
	case !hasEtcd && !hasStorage && volume != "pvc" && volume != "hostPath":
		return "it keeps its data in its pod: upgrade k0smotron to a version that runs etcd, or set persistence.type to pvc"
	}
	return ""
}
