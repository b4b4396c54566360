package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition is one aspect of the state of an object, in the form that Hive's kinds use.
type Condition struct {
	// Type is the name of the condition.
	Type string `json:"type"`
	// Status is True, False or Unknown.
	// +kubebuilder:validation:Enum="True";"False";"Unknown"
	Status corev1.ConditionStatus `json:"status"`
	// LastProbeTime is when the status, reason or message last changed.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	LastProbeTime metav1.Time `json:"lastProbeTime,omitempty"`
	// LastTransitionTime is when the status last changed.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	// Reason is one CamelCase word that programs can compare.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message is a sentence for people.
	// +optional
	Message string `json:"message,omitempty"`
}

// ReasonInitialized is the reason of a condition with status Unknown: nothing has been observed
// yet.
const ReasonInitialized = "Initialized"

// Conditions of every kind, as kstatus defines them: Flux, Helm, kpt and Argo CD use them to
// evaluate objects. An object has at most one of them, with status True. An object whose state
// matches its spec has neither, nor has an object that is being deleted.
const (
	// ConditionReconciling is True while hotspare works on the object, or while the object waits
	// for something that needs no action by a person. The message names it.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True while a person must act. The message says who must act, and how.
	ConditionStalled = "Stalled"
)
