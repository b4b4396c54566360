package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition is one observation about an object, in the form that Hive's kinds use.
type Condition struct {
	// Type names what is observed.
	Type string `json:"type"`
	// Status is True, False or Unknown.
	// +kubebuilder:validation:Enum="True";"False";"Unknown"
	Status corev1.ConditionStatus `json:"status"`
	// LastProbeTime is when status, reason or message last changed.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	LastProbeTime metav1.Time `json:"lastProbeTime,omitempty"`
	// LastTransitionTime is when status last changed.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	// Reason is one word for the status, for programs.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message is a sentence, for people.
	// +optional
	Message string `json:"message,omitempty"`
}

// ReasonInitialized is the reason of a condition that nothing is known about yet; its status is Unknown.
const ReasonInitialized = "Initialized"

// Conditions of every kind that hotspare reports on, as kstatus defines them (Flux, Helm, kpt
// and Argo CD judge objects by it). An object has at most one of them, with status True; a
// settled object, and one that is being deleted, has neither.
const (
	// ConditionReconciling is True while hotspare works on the object, or while the object
	// waits for something that happens without a person; the message names it.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True while a person must act; the message says who, and how.
	ConditionStalled = "Stalled"
)
