package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// MachinePool is a group of equal worker machines of a cluster.
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

// MachinePoolSpec is the group.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.replicas) && has(self.autoscaling))",message="replicas and autoscaling exclude each other: keep one"
type MachinePoolSpec struct {
	// ClusterDeploymentRef names the cluster, in the same namespace.
	ClusterDeploymentRef corev1.LocalObjectReference `json:"clusterDeploymentRef"`
	// Name is the pool's name in the cluster, such as worker.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Replicas is the number of machines. Absent without autoscaling: 1.
	// +optional
	// +nullable
	// +kubebuilder:validation:Minimum=0
	Replicas *int64 `json:"replicas,omitempty"`
	// Autoscaling bounds the number of machines instead.
	// +optional
	// +nullable
	Autoscaling *MachinePoolAutoscaling `json:"autoscaling,omitempty"`
	// Platform is the machines' settings on their platform.
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	Platform *runtime.RawExtension `json:"platform,omitempty"`
	// Labels are put on the nodes.
	// +optional
	// +nullable
	Labels map[string]string `json:"labels,omitempty"`
	// MachineLabels are put on the machines.
	// +optional
	// +nullable
	MachineLabels map[string]string `json:"machineLabels,omitempty"`
	// Taints are put on the nodes.
	// +optional
	// +nullable
	Taints []corev1.Taint `json:"taints,omitempty"`
}

// MachinePoolAutoscaling bounds a MachinePool.
//
// +kubebuilder:validation:XValidation:rule="self.minReplicas <= self.maxReplicas",message="minReplicas is above maxReplicas"
type MachinePoolAutoscaling struct {
	// +kubebuilder:validation:Minimum=0
	MinReplicas int32 `json:"minReplicas"`
	// +kubebuilder:validation:Minimum=0
	MaxReplicas int32 `json:"maxReplicas"`
}

// MachinePoolStatus is what the group is.
type MachinePoolStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Replicas is the number of machines that the cluster was told to have in the pool.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// +optional
	// +nullable
	Conditions []Condition `json:"conditions,omitempty"`
	// MachineSets are the pool's MachineSets in the cluster. A local cluster has none:
	// one entry stands for its workers.
	// +optional
	// +nullable
	MachineSets []MachineSetStatus `json:"machineSets,omitempty"`
	// OwnedLabels are the keys of the node labels that this pool has set.
	// +optional
	// +nullable
	OwnedLabels []string `json:"ownedLabels,omitempty"`
	// OwnedMachineLabels are the keys of the machine labels that this pool has set.
	// +optional
	// +nullable
	OwnedMachineLabels []string `json:"ownedMachineLabels,omitempty"`
	// OwnedTaints are the taints that this pool has set.
	// +optional
	// +nullable
	OwnedTaints []TaintIdentifier `json:"ownedTaints,omitempty"`
}

// MachineSetStatus is what one MachineSet is.
type MachineSetStatus struct {
	// Name of the MachineSet.
	Name string `json:"name"`
	// Replicas is how many machines it should have.
	Replicas int32 `json:"replicas"`
	// ReadyReplicas is how many of them have a node that is ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// MinReplicas and MaxReplicas bound it; without autoscaling both are Replicas.
	// +optional
	MinReplicas int32 `json:"minReplicas"`
	// +optional
	MaxReplicas int32 `json:"maxReplicas"`
	// ErrorReason and ErrorMessage are what the cluster says is wrong with it.
	// +optional
	// +nullable
	ErrorReason *string `json:"errorReason,omitempty"`
	// +optional
	// +nullable
	ErrorMessage *string `json:"errorMessage,omitempty"`
}

// TaintIdentifier names a taint: there is one of each key and effect.
type TaintIdentifier struct {
	// +optional
	Key string `json:"key,omitempty"`
	// +optional
	Effect corev1.TaintEffect `json:"effect,omitempty"`
}

// Conditions of a MachinePool, with their reasons.
const (
	// MachinePoolSynced is True while the cluster has what the pool asks for. While it
	// is False the message says what is missing.
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

	// MachinePoolUnsupported is True while the pool asks for something that cannot be
	// had; nothing is changed in the cluster then.
	MachinePoolUnsupported    = "UnsupportedConfiguration"
	ReasonConfigSupported     = "ConfigurationSupported"
	ReasonUnsupportedPlatform = "UnsupportedPlatform"
	ReasonUnsupportedSetting  = "UnsupportedSetting"
	ReasonUnsupportedName     = "UnsupportedName"
	ReasonDuplicatePool       = "DuplicatePool"
	ReasonNoTemplate          = "NoTemplate"

	// MachinePoolNotEnough is True while the bounds of autoscaling are too low for the
	// number of MachineSets; nothing is changed in the cluster then.
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
