package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// MachinePool is a group of worker machines of a cluster that have the same configuration.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas
// +kubebuilder:printcolumn:name="PoolName",type=string,JSONPath=`.spec.name`
// +kubebuilder:printcolumn:name="ClusterDeployment",type=string,JSONPath=`.spec.clusterDeploymentRef.name`
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.replicas`
type MachinePool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Reading           `json:"-"`

	Spec MachinePoolSpec `json:"spec"`
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status MachinePoolStatus `json:"status,omitempty"`
}

// MachinePoolSpec is the desired state of a MachinePool.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.replicas) && has(self.autoscaling))",message="replicas and autoscaling are mutually exclusive: set only one of them"
type MachinePoolSpec struct {
	// ClusterDeploymentRef is the name of the ClusterDeployment, in the same namespace.
	ClusterDeploymentRef corev1.LocalObjectReference `json:"clusterDeploymentRef"`
	// Name is the name of the machine pool in the cluster, such as worker.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Replicas is the number of machines. Set either replicas or autoscaling. If both are unset, it
	// is 1.
	// +optional
	// +nullable
	// +kubebuilder:validation:Minimum=0
	Replicas *int64 `json:"replicas,omitempty"`
	// Autoscaling limits the number of machines, which is then chosen automatically. Set either
	// replicas or autoscaling.
	// +optional
	// +nullable
	Autoscaling *MachinePoolAutoscaling `json:"autoscaling,omitempty"`
	// Platform contains the settings of the machines for the platform of the cluster.
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	Platform *runtime.RawExtension `json:"platform,omitempty"`
	// Labels are set on the nodes.
	// +optional
	// +nullable
	Labels map[string]string `json:"labels,omitempty"`
	// MachineLabels are set on the Machines.
	// +optional
	// +nullable
	MachineLabels map[string]string `json:"machineLabels,omitempty"`
	// Taints are set on the nodes.
	// +optional
	// +nullable
	Taints []corev1.Taint `json:"taints,omitempty"`
}

// MachinePoolAutoscaling limits the number of machines of a MachinePool.
//
// +kubebuilder:validation:XValidation:rule="self.minReplicas <= self.maxReplicas",message="minReplicas is above maxReplicas: raise maxReplicas, or lower minReplicas"
type MachinePoolAutoscaling struct {
	// MinReplicas is the minimum number of machines.
	// +kubebuilder:validation:Minimum=0
	MinReplicas int32 `json:"minReplicas"`
	// MaxReplicas is the maximum number of machines.
	// +kubebuilder:validation:Minimum=0
	MaxReplicas int32 `json:"maxReplicas"`
}

// MachinePoolStatus is the observed state of a MachinePool. hotspare writes it.
type MachinePoolStatus struct {
	// ObservedGeneration is the generation of the spec that this status describes. It is -1 until a
	// controller has processed the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Replicas is the number of machines that hotspare requested from the cluster.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// Conditions of the pool: Synced, UnsupportedConfiguration and NotEnoughReplicas. At most one
	// of Reconciling and Stalled is present, and only while it is True.
	// +optional
	// +nullable
	Conditions []Condition `json:"conditions,omitempty"`
	// MachineSets are the pool's MachineSets in the cluster. A local cluster has no MachineSets:
	// one entry represents its workers.
	// +optional
	// +nullable
	MachineSets []MachineSetStatus `json:"machineSets,omitempty"`
	// OwnedLabels lists the keys of the node labels that this pool has set.
	// +optional
	// +nullable
	OwnedLabels []string `json:"ownedLabels,omitempty"`
	// OwnedMachineLabels lists the keys of the Machine labels that this pool has set.
	// +optional
	// +nullable
	OwnedMachineLabels []string `json:"ownedMachineLabels,omitempty"`
	// OwnedTaints lists the taints that this pool has set.
	// +optional
	// +nullable
	OwnedTaints []TaintIdentifier `json:"ownedTaints,omitempty"`
}

// MachineSetStatus is the observed state of one MachineSet.
type MachineSetStatus struct {
	// Name is the name of the MachineSet.
	Name string `json:"name"`
	// Replicas is the desired number of machines.
	Replicas int32 `json:"replicas"`
	// ReadyReplicas is the number of machines whose node is ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// MinReplicas is the minimum number of machines. Without autoscaling it is equal to replicas.
	// +optional
	MinReplicas int32 `json:"minReplicas"`
	// MaxReplicas is the maximum number of machines. Without autoscaling it is equal to replicas.
	// +optional
	MaxReplicas int32 `json:"maxReplicas"`
	// ErrorReason is the error of the MachineSet, as one word that programs can compare. It is
	// unset if there is no error.
	// +optional
	// +nullable
	ErrorReason *string `json:"errorReason,omitempty"`
	// ErrorMessage is the error of the MachineSet, for people. It is unset if there is no error.
	// +optional
	// +nullable
	ErrorMessage *string `json:"errorMessage,omitempty"`
}

// TaintIdentifier identifies a taint. A node has at most one taint with a given key and effect.
type TaintIdentifier struct {
	// Key is the key of the taint.
	// +optional
	Key string `json:"key,omitempty"`
	// Effect is the effect of the taint.
	// +optional
	Effect corev1.TaintEffect `json:"effect,omitempty"`
}

// Conditions of a MachinePool, with their reasons.
const (
	// MachinePoolSynced is True while the cluster matches the pool's spec. While it is False, the
	// message describes the difference.
	MachinePoolSynced         = "Synced"
	ReasonSynced              = "SyncSucceeded"
	ReasonSyncing             = "Syncing"
	ReasonSyncFailed          = "SyncFailed"
	ReasonClusterNotFound     = "ClusterDeploymentNotFound"
	ReasonClusterNotInstalled = "ClusterNotInstalled"
	ReasonClusterAsleep       = "ClusterHibernating"
	ReasonClusterUnreachable  = "ClusterUnreachable"
	ReasonPaused              = "Paused"
	ReasonFakeCluster         = "FakeCluster"

	// MachinePoolUnsupported is True while the pool requests something that is not supported.
	// hotspare then changes nothing in the cluster.
	MachinePoolUnsupported    = "UnsupportedConfiguration"
	ReasonConfigSupported     = "ConfigurationSupported"
	ReasonUnsupportedPlatform = "UnsupportedPlatform"
	ReasonUnsupportedSetting  = "UnsupportedSetting"
	ReasonUnsupportedName     = "UnsupportedName"
	ReasonDuplicatePool       = "DuplicatePool"
	ReasonNoTemplate          = "NoTemplate"

	// MachinePoolNotEnough is True while the limits of autoscaling are too low for the number of
	// MachineSets. hotspare then changes nothing in the cluster.
	MachinePoolNotEnough = "NotEnoughReplicas"
	ReasonEnough         = "EnoughReplicas"
	ReasonMinTooSmall    = "MinReplicasTooSmall"
	ReasonMaxTooSmall    = "MaxReplicasTooSmall"
)

// MachinePoolList is a list of MachinePools.
//
// +kubebuilder:object:root=true
type MachinePoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MachinePool `json:"items"`
}
