package plan

import (
	"encoding/json"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// Kinds of objects on a data plane.
var (
	Namespace         = corev1.SchemeGroupVersion.WithKind("Namespace")
	Deployment        = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	ManagedKafka      = schema.GroupVersionKind{Group: "managedkafka.bf2.org", Version: "v1alpha1", Kind: "ManagedKafka"}
	ManagedKafkaAgent = schema.GroupVersionKind{Group: "managedkafka.bf2.org", Version: "v1alpha1", Kind: "ManagedKafkaAgent"}
)

// Labels and annotations of the agent's objects. The agent does not touch objects without its
// label.
const (
	LabelManagedBy = "app.kubernetes.io/managed-by"
	ManagedBy      = "hotspare-agent"
	// LabelInstance is the ID of the instance that an object belongs to.
	LabelInstance = "hotspare.io/instance"
	// annotationApplied is the hash of the rendering that an object was created from.
	annotationApplied = "hotspare.io/applied"
	annotationOwner   = "hotspare.io/service-instance"
)

// Key identifies an object.
type Key struct{ Kind, Namespace, Name string }

// World has the objects on a data plane that are labeled as the agent's, and the operators'
// ManagedKafkaAgents.
type World map[Key]*unstructured.Unstructured

// Add puts an object into the world.
func (w World) Add(u *unstructured.Unstructured) {
	w[Key{u.GetKind(), u.GetNamespace(), u.GetName()}] = u
}

// Snapshot is the input of Decide.
type Snapshot struct {
	Spec  v1alpha1.DataPlaneAgentSpec
	World World
	// StandIn is set when the agent also acts as the operator.
	StandIn bool
	// Pause is the image of placeholders.
	Pause string
	// Now is the time for the conditions that the stand-in writes.
	Now metav1.Time
}

func (s Snapshot) findNamespace(name string) *unstructured.Unstructured {
	return s.World[Key{Kind: Namespace.Kind, Name: name}]
}

func (s Snapshot) findDeployment(namespace string, reserved bool) *unstructured.Unstructured {
	return s.World[Key{Deployment.Kind, namespace, deploymentName(reserved)}]
}

func (s Snapshot) findManagedKafka(namespace, name string) *managedKafka {
	return parseManagedKafka(s.World[Key{ManagedKafka.Kind, namespace, name}])
}

// managedKafka has the fields of a ManagedKafka that the agent uses.
type managedKafka struct {
	*unstructured.Unstructured
	managedKafkaFields
	// readError says which part of the object does not have the expected form.
	readError string
}

type managedKafkaFields struct {
	Spec struct {
		Deleted bool `json:"deleted"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition        `json:"conditions"`
		Versions   v1alpha1.InstanceVersions `json:"versions"`
		Routes     []v1alpha1.InstanceRoute  `json:"routes"`
	} `json:"status"`
}

// parseManagedKafka returns the parsed object; nil for nil.
func parseManagedKafka(u *unstructured.Unstructured) *managedKafka {
	if u == nil {
		return nil
	}
	k := &managedKafka{Unstructured: u}
	raw, err := json.Marshal(u.Object)
	if err == nil {
		err = json.Unmarshal(raw, &k.managedKafkaFields)
	}
	if err != nil {
		k.readError = fmt.Sprintf("the status of its ManagedKafka cannot be read: %v", err)
		k.Spec.Deleted, _, _ = unstructured.NestedBool(u.Object, "spec", "deleted") // as far as it can be read
	}
	return k
}

func (k *managedKafka) placementID() string {
	return k.GetAnnotations()[v1alpha1.AnnotationPlacementID]
}

func (k *managedKafka) instanceType() string { return k.GetLabels()[v1alpha1.LabelInstanceType] }

func (k *managedKafka) isReserved() bool {
	return k.GetLabels()[v1alpha1.LabelDeployment] == v1alpha1.DeploymentReserved
}

// unitCount returns the number of units of the instance; 1 if its label does not say, as its
// operator counts it.
func (k *managedKafka) unitCount() int32 {
	n, err := strconv.ParseInt(k.GetLabels()[v1alpha1.LabelUnits], 10, 32)
	if err != nil || n < 1 {
		return 1
	}
	return int32(n)
}

// readyCondition returns the condition Ready; the zero value if there is none.
func (k *managedKafka) readyCondition() metav1.Condition {
	for _, c := range k.Status.Conditions {
		if c.Type == "Ready" {
			return c
		}
	}
	return metav1.Condition{}
}

// isDeleted reports whether the operator has deleted the instance.
func (k *managedKafka) isDeleted() bool {
	return k.Spec.Deleted && k.readyCondition().Reason == reasonDeleted
}

// Reasons of the condition Ready of a ManagedKafka.
const (
	reasonInstalling = "Installing"
	reasonDeleted    = "Deleted"
	reasonError      = "Error"
	reasonRejected   = "Rejected"
)

// IsLive reports whether an object is a ManagedKafka that must not be lost: a real one that is not
// marked as deleted.
func IsLive(u *unstructured.Unstructured) bool {
	k := parseManagedKafka(u)
	return !k.isReserved() && !k.Spec.Deleted
}

func isTerminating(u *unstructured.Unstructured) bool { return u.GetDeletionTimestamp() != nil }

// availableReplicas returns the numbers of running and of wanted pods of a Deployment.
func availableReplicas(u *unstructured.Unstructured) (run, of int64) {
	if u == nil {
		return 0, 0
	}
	run, _, _ = unstructured.NestedInt64(u.Object, "status", "availableReplicas") // absent while 0
	of, _, _ = unstructured.NestedInt64(u.Object, "spec", "replicas")
	seen, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	if seen < u.GetGeneration() {
		run = 0 // of an older generation
	}
	return run, of
}
