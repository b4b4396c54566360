package capi

import (
	"context"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/capi/plan"
	"hotspare.io/hotspare/internal/clusterapi"
)

// kamaji stands for the provider of a control plane that Kamaji hosts in pods.
const kamaji = "kamaji"

// defaultReplicas is the number of replicas of a KamajiControlPlane without spec.replicas.
const defaultReplicas = 2

// observeHostedControlPlane adds the control plane to the machines if Kamaji hosts it.
//
// Its replicas are those of the KamajiControlPlane, and not of its TenantControlPlane: the provider
// copies the number to the TenantControlPlane on every pass, and does not respect the pause of the
// Cluster (clastix/cluster-api-control-plane-provider-kamaji, controllers/kamajicontrolplane_controller_tcp.go).
func (a *Actuator) observeHostedControlPlane(ctx context.Context, seen *observation) error {
	kind, _, _ := unstructured.NestedString(seen.cluster.Object, "spec", "controlPlaneRef", "kind")
	name, _, _ := unstructured.NestedString(seen.cluster.Object, "spec", "controlPlaneRef", "name")
	if kind != "KamajiControlPlane" {
		return nil
	}
	o, err := a.hub.Resource(clusterapi.KamajiControlPlanes).Namespace(seen.ref.Cluster.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case clusterapi.IsKindMissing(err):
		return clusterapi.NotInstalledError(clusterapi.KamajiControlPlanes)
	case apierrors.IsNotFound(err):
		return nil // the Cluster has not created it yet
	case err != nil:
		return fmt.Errorf("reading KamajiControlPlane %s: %w", name, err)
	}
	seen.hosted = o
	seen.Machines = append(seen.Machines, plan.Machine{
		Machine:  cloud.Machine{Name: "KamajiControlPlane " + name, ControlPlane: true, State: hostedState(o)},
		Provider: kamaji, Provisioned: true, Paused: true,
	})
	return nil
}

// hostedState returns the state of a control plane by its desired and its ready replicas.
func hostedState(o *unstructured.Unstructured) cloud.State {
	wanted := replicasOf(o)
	ready, _, _ := unstructured.NestedInt64(o.Object, "status", "readyReplicas")
	there, _, _ := unstructured.NestedInt64(o.Object, "status", "replicas")
	switch {
	case wanted == 0 && there == 0:
		return cloud.Stopped
	case wanted == 0:
		return cloud.Stopping
	case ready > 0:
		return cloud.Running
	}
	return cloud.Starting
}

func replicasOf(o *unstructured.Unstructured) int64 {
	n, found, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
	if !found {
		return defaultReplicas
	}
	return n
}

// switchControlPlane scales the control plane to zero, or back to the number that it had before. The
// number is recorded in the write that changes it.
func (a *Actuator) switchControlPlane(ctx context.Context, seen observation, verb plan.Verb) error {
	var replicas int64
	var record any = strconv.FormatInt(replicasOf(seen.hosted), 10)
	if verb == plan.Start {
		record = nil
		before, err := strconv.ParseInt(seen.hosted.GetAnnotations()[clusterapi.AnnotationReplicas], 10, 32)
		if replicas = before; err != nil || before < 1 {
			replicas = defaultReplicas
		}
	}
	err := a.patchObject(ctx, clusterapi.KamajiControlPlanes, seen.hosted, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{clusterapi.AnnotationReplicas: record}},
		"spec":     map[string]any{"replicas": replicas},
	})
	if err != nil {
		return fmt.Errorf("scaling KamajiControlPlane %s to %d: %w", seen.hosted.GetName(), replicas, err)
	}
	return nil
}
