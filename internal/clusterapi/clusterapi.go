// Package clusterapi contains what the executor and the actuator of platform capi share: the kinds
// of Cluster API, the marks that hotspare sets on its objects, and how their conditions are read.
//
// Objects are unstructured, in the version v1beta2 that Cluster API 1.11 and later serve: hotspare
// does not depend on Cluster API's Go types, and reads few fields.
package clusterapi

import (
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"hotspare.io/hotspare/internal/fault"
)

// Group is the API group of Cluster API's core, and Version the version that hotspare uses.
const (
	Group   = "cluster.x-k8s.io"
	Version = "v1beta2"
)

// The resources that hotspare reads or writes.
var (
	Clusters            = schema.GroupVersionResource{Group: Group, Version: Version, Resource: "clusters"}
	ClusterClasses      = schema.GroupVersionResource{Group: Group, Version: Version, Resource: "clusterclasses"}
	Machines            = schema.GroupVersionResource{Group: Group, Version: Version, Resource: "machines"}
	MachinePools        = schema.GroupVersionResource{Group: Group, Version: Version, Resource: "machinepools"}
	MachineHealthChecks = schema.GroupVersionResource{Group: Group, Version: Version, Resource: "machinehealthchecks"}
	BareMetalHosts      = schema.GroupVersionResource{Group: "metal3.io", Version: "v1alpha1", Resource: "baremetalhosts"}
	Secrets             = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	ConfigMaps          = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	KamajiControlPlanes = schema.GroupVersionResource{Group: "controlplane.cluster.x-k8s.io", Version: "v1alpha1", Resource: "kamajicontrolplanes"}
	// K0smotronClusters are not Clusters of Cluster API: k0smotron creates one for each
	// K0smotronControlPlane. Version 1 of k0smotron serves v1beta1 only.
	K0smotronClusters        = schema.GroupVersionResource{Group: "k0smotron.io", Version: "v1beta2", Resource: "clusters"}
	K0smotronClustersV1beta1 = schema.GroupVersionResource{Group: "k0smotron.io", Version: "v1beta1", Resource: "clusters"}
)

// Names that Cluster API defines.
const (
	// LabelCluster is the label of Machines and MachineHealthChecks with the name of their Cluster.
	LabelCluster = Group + "/cluster-name"
	// KubeconfigKey is the key of the kubeconfig in the Secret that KubeconfigSecret names.
	KubeconfigKey = "value"

	labelControlPlane = Group + "/control-plane"
	kubeconfigSuffix  = "-kubeconfig"
)

// The annotations that hotspare sets.
const (
	// AnnotationOwner is on each object that the executor creates. Its value is the UID of the
	// ClusterDeployment. The executor deletes no object without it.
	AnnotationOwner = "hotspare.io/cluster-deployment-uid"
	// AnnotationPaused is on a Cluster that hotspare has paused to hibernate it; its value is the time
	// (RFC 3339). hotspare removes it together with spec.paused. A pause without it is another user's.
	AnnotationPaused = "hotspare.io/paused-for-hibernation"
	// AnnotationReplicas is on a hosted control plane that hotspare has scaled to zero; its value is the
	// number of replicas before.
	AnnotationReplicas = "hotspare.io/replicas-before-hibernation"
)

// Types of conditions of Cluster API's objects.
const (
	Available = "Available"
	Paused    = "Paused"
	Deleting  = "Deleting"
)

// KubeconfigSecret returns the name of the Secret with the kubeconfig of a Cluster.
func KubeconfigSecret(cluster string) string { return cluster + kubeconfigSuffix }

// Condition returns a condition in status.conditions of an object; nil if the object has none of
// that type.
func Condition(o *unstructured.Unstructured, typ string) *metav1.Condition {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, item := range list {
		c, _ := item.(map[string]any)
		if c["type"] != typ {
			continue
		}
		text := func(key string) string { s, _ := c[key].(string); return s }
		return &metav1.Condition{Type: typ, Status: metav1.ConditionStatus(text("status")), Reason: text("reason"), Message: text("message")}
	}
	return nil
}

// IsTrue reports whether an object has a condition of that type with status True.
func IsTrue(o *unstructured.Unstructured, typ string) bool {
	c := Condition(o, typ)
	return c != nil && c.Status == metav1.ConditionTrue
}

// IsPaused reports whether spec.paused of a Cluster is true.
func IsPaused(cluster *unstructured.Unstructured) bool {
	paused, _, _ := unstructured.NestedBool(cluster.Object, "spec", "paused")
	return paused
}

// IsPausedByHotspare reports whether hotspare has paused a Cluster, and it is still paused.
func IsPausedByHotspare(cluster *unstructured.Unstructured) bool {
	return IsPaused(cluster) && cluster.GetAnnotations()[AnnotationPaused] != ""
}

// IsControlPlane reports whether a Machine belongs to the control plane.
func IsControlPlane(machine *unstructured.Unstructured) bool {
	_, found := machine.GetLabels()[labelControlPlane]
	return found
}

// IsKindMissing reports whether err says that the API server does not serve the resource at all.
// Such an error is not found, too, and must not be taken for a deleted object.
func IsKindMissing(err error) bool {
	if !apierrors.IsNotFound(err) {
		return false
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return true
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeUnexpectedServerResponse
	})
}

// NotInstalledError returns the error for a hub that does not serve a resource of Cluster API.
func NotInstalledError(r schema.GroupVersionResource) error {
	return fault.NewDenied("the hub does not serve the resource %s in version %s: install Cluster API 1.11 or later and its providers on the hub, or upgrade it",
		r.GroupResource(), r.Version)
}
