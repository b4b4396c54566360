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
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// +optional
	// +nullable
	Conditions []Condition `json:"conditions,omitempty"`
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	MachineSets []runtime.RawExtension `json:"machineSets,omitempty"`
}

// MachinePoolList is a list of MachinePools.
//
// +kubebuilder:object:root=true
type MachinePoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MachinePool `json:"items"`
}
