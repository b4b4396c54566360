package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ClusterProvision is one attempt to install a ClusterDeployment. hotspare creates it.
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
	Status ClusterProvisionStatus `json:"status,omitempty"`
}

// ProvisionStage is the stage of an install attempt.
//
// +kubebuilder:validation:Enum=initializing;provisioning;complete;failed
type ProvisionStage string

// The stages of an install attempt. It starts with initializing, changes to provisioning once its
// infraID is recorded, and ends with complete or failed.
const (
	StageInitializing ProvisionStage = "initializing"
	StageProvisioning ProvisionStage = "provisioning"
	StageComplete     ProvisionStage = "complete"
	StageFailed       ProvisionStage = "failed"
)

// ClusterProvisionSpec describes the install attempt.
type ClusterProvisionSpec struct {
	// ClusterDeploymentRef is the name of the ClusterDeployment, in the same namespace.
	ClusterDeploymentRef corev1.LocalObjectReference `json:"clusterDeploymentRef"`
	// PodSpec is the pod of Hive's installer. hotspare keeps the names and images of its
	// containers, and does not act on it.
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	PodSpec *runtime.RawExtension `json:"podSpec,omitempty"`
	// Attempt is the number of the attempt. The first one is 0.
	Attempt int `json:"attempt"`
	// Stage is the stage of the attempt: initializing, provisioning, complete or failed.
	Stage ProvisionStage `json:"stage"`
	// ClusterID is the ID of the cluster that this attempt installs.
	// +optional
	// +nullable
	ClusterID *string `json:"clusterID,omitempty"`
	// InfraID marks every resource that this attempt creates on the platform. hotspare records it
	// before the installer creates any resource.
	// +optional
	// +nullable
	InfraID *string `json:"infraID,omitempty"`
	// MetadataJSON is the metadata.json of the attempt, base64-encoded.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$`
	MetadataJSON *MetadataJSON `json:"metadataJSON,omitempty"`
	// InstallLog is the end of the installer's log, without secrets. hotspare sets it when the
	// attempt fails.
	// +optional
	// +nullable
	InstallLog *string `json:"installLog,omitempty"`
	// AdminKubeconfigSecretRef is the name of the Secret with the kubeconfig of the cluster's
	// administrator.
	// +optional
	// +nullable
	AdminKubeconfigSecretRef *corev1.LocalObjectReference `json:"adminKubeconfigSecretRef,omitempty"`
	// AdminPasswordSecretRef is the name of the Secret with the username and password of the
	// cluster's administrator.
	// +optional
	// +nullable
	AdminPasswordSecretRef *corev1.LocalObjectReference `json:"adminPasswordSecretRef,omitempty"`
	// PrevClusterID is the clusterID of the previous attempt. hotspare destroys what that attempt
	// created before it starts this one.
	// +optional
	// +nullable
	PrevClusterID *string `json:"prevClusterID,omitempty"`
	// PrevInfraID is the infraID of the previous attempt.
	// +optional
	// +nullable
	PrevInfraID *string `json:"prevInfraID,omitempty"`
	// PrevProvisionName is the name of the ClusterProvision of the previous attempt.
	// +optional
	// +nullable
	PrevProvisionName *string `json:"prevProvisionName,omitempty"`
}

// ClusterProvisionStatus is the observed state of a ClusterProvision. hotspare writes it.
type ClusterProvisionStatus struct {
	// ObservedGeneration is the generation of the spec that this status describes. It is unset for
	// an attempt that was complete before hotspare reported on it.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// JobRef is the name of the Job that runs the installer. It is unset if no Job installs the
	// cluster.
	// +optional
	// +nullable
	JobRef *corev1.LocalObjectReference `json:"jobRef,omitempty"`
	// Conditions of the attempt: ClusterProvisionFailed and ClusterProvisionDestroyed. At most one of
	// Reconciling and Stalled is present, and only while it is True.
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

// ClusterDeprovision records the destruction of a cluster. hotspare creates it.
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

// ClusterDeprovisionSpec identifies the cluster that is destroyed.
type ClusterDeprovisionSpec struct {
	// InfraID marks every resource of the cluster on its platform.
	InfraID string `json:"infraID"`
	// ClusterID is the unique ID of the cluster.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`
	// ClusterName is the name of the cluster.
	// +optional
	ClusterName string `json:"clusterName,omitempty"`
	// BaseDomain is the parent DNS domain of the cluster.
	// +optional
	BaseDomain string `json:"baseDomain,omitempty"`
	// MetadataJSONSecretRef is the name of the Secret with the key metadata.json of the cluster.
	// +optional
	// +nullable
	MetadataJSONSecretRef *corev1.LocalObjectReference `json:"metadataJSONSecretRef,omitempty"`
	// Platform is the platform of the cluster and its settings.
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	Platform *runtime.RawExtension `json:"platform,omitempty"`
}

// ClusterDeprovisionStatus is the observed state of a ClusterDeprovision. hotspare writes it.
type ClusterDeprovisionStatus struct {
	// ObservedGeneration is the generation of the spec that this status describes. It is -1 until a
	// controller has processed the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Completed is true once all resources of the cluster are deleted.
	// +optional
	Completed bool `json:"completed,omitempty"`
	// Conditions of the destruction: DeprovisionFailed. At most one of Reconciling and Stalled is
	// present, and only while it is True.
	// +optional
	// +nullable
	Conditions []Condition `json:"conditions,omitempty"`
}

// DeprovisionFailed is the condition of a ClusterDeprovision that is True while the destruction of
// the cluster fails.
const DeprovisionFailed = "DeprovisionFailed"

// ClusterDeprovisionList is a list of ClusterDeprovisions.
//
// +kubebuilder:object:root=true
type ClusterDeprovisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterDeprovision `json:"items"`
}
