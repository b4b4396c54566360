package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ClusterProvision is one attempt at installing a ClusterDeployment.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="ClusterDeployment",type=string,JSONPath=`.spec.clusterDeploymentRef.name`
// +kubebuilder:printcolumn:name="Stage",type=string,JSONPath=`.spec.stage`
// +kubebuilder:printcolumn:name="InfraID",type=string,JSONPath=`.spec.infraID`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterProvision struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Reading           `json:"-"`

	Spec ClusterProvisionSpec `json:"spec"`
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status ClusterProvisionStatus `json:"status,omitempty"`
}

// ProvisionStage is how far an attempt is.
//
// +kubebuilder:validation:Enum=initializing;provisioning;complete;failed
type ProvisionStage string

// An attempt begins initializing, has its infraID recorded when provisioning,
// and ends complete or failed.
const (
	StageInitializing ProvisionStage = "initializing"
	StageProvisioning ProvisionStage = "provisioning"
	StageComplete     ProvisionStage = "complete"
	StageFailed       ProvisionStage = "failed"
)

// ClusterProvisionSpec is the attempt.
type ClusterProvisionSpec struct {
	// ClusterDeploymentRef names the cluster, in the same namespace.
	ClusterDeploymentRef corev1.LocalObjectReference `json:"clusterDeploymentRef"`
	// PodSpec is how Hive runs its installer. hotspare does not read it, and keeps the
	// names and images of its containers.
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	PodSpec *runtime.RawExtension `json:"podSpec,omitempty"`
	// Attempt counts from 0.
	Attempt int            `json:"attempt"`
	Stage   ProvisionStage `json:"stage"`
	// ClusterID and InfraID are the attempt's metadata.
	// +optional
	// +nullable
	ClusterID *string `json:"clusterID,omitempty"`
	// +optional
	// +nullable
	InfraID *string `json:"infraID,omitempty"`
	// MetadataJSON is the attempt's metadata.json, in base64.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$`
	MetadataJSON *MetadataJSON `json:"metadataJSON,omitempty"`
	// InstallLog is the end of the installer's log, secrets scrubbed; set on failure.
	// +optional
	// +nullable
	InstallLog *string `json:"installLog,omitempty"`
	// +optional
	// +nullable
	AdminKubeconfigSecretRef *corev1.LocalObjectReference `json:"adminKubeconfigSecretRef,omitempty"`
	// +optional
	// +nullable
	AdminPasswordSecretRef *corev1.LocalObjectReference `json:"adminPasswordSecretRef,omitempty"`
	// PrevClusterID, PrevInfraID and PrevProvisionName tell the attempt before, which is destroyed first.
	// +optional
	// +nullable
	PrevClusterID *string `json:"prevClusterID,omitempty"`
	// +optional
	// +nullable
	PrevInfraID *string `json:"prevInfraID,omitempty"`
	// +optional
	// +nullable
	PrevProvisionName *string `json:"prevProvisionName,omitempty"`
}

// ClusterProvisionStatus tells more.
type ClusterProvisionStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	// +nullable
	JobRef *corev1.LocalObjectReference `json:"jobRef,omitempty"`
	// Conditions: ClusterProvisionFailed; Reconciling or Stalled while it is True.
	// +optional
	// +nullable
	Conditions []Condition `json:"conditions,omitempty"`
}

// Conditions of a ClusterProvision.
const (
	ProvisionCompleted = "ClusterProvisionCompleted"
	ProvisionFailed    = "ClusterProvisionFailed"
)

// ClusterProvisionList is a list of ClusterProvisions.
//
// +kubebuilder:object:root=true
type ClusterProvisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterProvision `json:"items"`
}

// ClusterDeprovision tells how far the destruction of a cluster is.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=cdr
// +kubebuilder:printcolumn:name="InfraID",type=string,JSONPath=`.spec.infraID`
// +kubebuilder:printcolumn:name="ClusterID",type=string,JSONPath=`.spec.clusterID`
// +kubebuilder:printcolumn:name="Completed",type=boolean,JSONPath=`.status.completed`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterDeprovision struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Reading           `json:"-"`

	Spec ClusterDeprovisionSpec `json:"spec"`
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status ClusterDeprovisionStatus `json:"status,omitempty"`
}

// ClusterDeprovisionSpec names what is destroyed.
type ClusterDeprovisionSpec struct {
	InfraID string `json:"infraID"`
	// +optional
	ClusterID string `json:"clusterID,omitempty"`
	// +optional
	ClusterName string `json:"clusterName,omitempty"`
	// +optional
	BaseDomain string `json:"baseDomain,omitempty"`
	// +optional
	// +nullable
	MetadataJSONSecretRef *corev1.LocalObjectReference `json:"metadataJSONSecretRef,omitempty"`
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	Platform *runtime.RawExtension `json:"platform,omitempty"`
}

// ClusterDeprovisionStatus tells how far it is.
type ClusterDeprovisionStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	Completed bool `json:"completed,omitempty"`
	// Conditions: DeprovisionFailed; Reconciling or Stalled while it is True.
	// +optional
	// +nullable
	Conditions []Condition `json:"conditions,omitempty"`
}

// DeprovisionFailed is the condition of a ClusterDeprovision that is True while destroying fails.
const DeprovisionFailed = "DeprovisionFailed"

// ClusterDeprovisionList is a list of ClusterDeprovisions.
//
// +kubebuilder:object:root=true
type ClusterDeprovisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterDeprovision `json:"items"`
}
