package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ClusterDeploymentCustomization changes the install-config of the one cluster
// at a time that is made with it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=cdc
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=='Available')].status`
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.status.clusterDeploymentRef.name`
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.conditions[?(@.type=='ApplySucceeded')].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterDeploymentCustomization struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Reading           `json:"-"`

	Spec ClusterDeploymentCustomizationSpec `json:"spec"`
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status ClusterDeploymentCustomizationStatus `json:"status,omitempty"`
}

// ClusterDeploymentCustomizationSpec is what to change.
type ClusterDeploymentCustomizationSpec struct {
	// InstallConfigPatches are applied to the install-config in order (RFC 6902).
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=128
	InstallConfigPatches []PatchEntity `json:"installConfigPatches,omitempty"`
	// ClusterDeploymentSpecPatches are applied to the spec of the ClusterDeployment that
	// the pool makes. Fields that hotspare itself sets cannot be patched.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=128
	ClusterDeploymentSpecPatches []PatchEntity `json:"clusterDeploymentSpecPatches,omitempty"`
	// InstallerManifestPatches are applied to the manifests that the installer makes.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=64
	InstallerManifestPatches []InstallerManifestPatch `json:"installerManifestPatches,omitempty"`
}

// PatchEntity is one operation of RFC 6902.
//
// +kubebuilder:validation:XValidation:rule="!(self.op in ['move', 'copy']) || has(self.from) && size(self.from) > 0",messageExpression="self.op + ' needs from: name the path to take it from'",message="move and copy need from: name the path to take it from"
// +kubebuilder:validation:XValidation:rule="self.op in ['move', 'copy'] || !has(self.from) || size(self.from) == 0",messageExpression="'from is for move and copy, not for ' + self.op + ': leave it out'",message="from is for move and copy only: leave it out"
type PatchEntity struct {
	// Op is what to do. All but remove, move and copy need a value.
	// +kubebuilder:validation:Enum=add;remove;replace;move;copy;test
	Op string `json:"op"`
	// Path points at what to change (RFC 6901), with or without its leading slash:
	// metadata/name. In a key, ~1 stands for / and ~0 for ~.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="size(self) > 0",message="it is empty: name what to change, such as metadata/name"
	// +kubebuilder:validation:XValidation:rule="!self.matches('~([^01]|$)')",message="it has a ~ that stands for nothing: in a key, write ~0 for ~ and ~1 for /"
	Path string `json:"path"`
	// From is the source of move and copy, written as path is.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="!self.matches('~([^01]|$)')",message="it has a ~ that stands for nothing: in a key, write ~0 for ~ and ~1 for /"
	From string `json:"from,omitempty"`
	// Value is any JSON but null, which is written as valueJSON.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Value *runtime.RawExtension `json:"value,omitempty"`
	// ValueJSON is a value written as JSON in a string; it wins over value.
	// +optional
	ValueJSON string `json:"valueJSON,omitempty"`
}

// InstallerManifestPatch patches the manifests that match.
type InstallerManifestPatch struct {
	ManifestSelector ManifestSelector `json:"manifestSelector"`
	// +kubebuilder:validation:MaxItems=128
	Patches []PatchEntity `json:"patches"`
}

// ManifestSelector selects manifests by their path.
type ManifestSelector struct {
	Glob string `json:"glob"`
}

// Conditions of a ClusterDeploymentCustomization, with their reasons.
const (
	// CustomizationAvailable is False while a cluster uses it.
	CustomizationAvailable   = "Available"
	ReasonCustomizationFree  = "Available"
	ReasonCustomizationInUse = "ClusterDeploymentCustomizationInUse"
	// CustomizationApplySucceeded tells how the last cluster that was made, or was to be
	// made, with it did.
	CustomizationApplySucceeded = "ApplySucceeded"
	ReasonApplySucceeded        = "Succeeded"
	ReasonInstallationPending   = "InstallationPending"
	ReasonBrokenByCloud         = "BrokenByCloud"
	ReasonBrokenBySyntax        = "BrokenBySyntax"
)

// ClusterDeploymentCustomizationStatus tells who uses it.
type ClusterDeploymentCustomizationStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// ClusterDeploymentRef is the cluster that uses it: at most one, of all pools. It is
	// a lease: whoever writes it first, on the version it has read, has it.
	// +optional
	// +nullable
	ClusterDeploymentRef *corev1.ObjectReference `json:"clusterDeploymentRef,omitempty"`
	// ClusterPoolRef is the pool of that cluster.
	// +optional
	// +nullable
	ClusterPoolRef *corev1.ObjectReference `json:"clusterPoolRef,omitempty"`
	// LastAppliedConfiguration has, as JSON, the patches that the cluster which used it
	// last was made with.
	// +optional
	LastAppliedConfiguration string `json:"lastAppliedConfiguration,omitempty"`
	// Conditions: Available, ApplySucceeded; Reconciling or Stalled while it is True.
	// +optional
	// +nullable
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterDeploymentCustomizationList is a list of ClusterDeploymentCustomizations.
//
// +kubebuilder:object:root=true
type ClusterDeploymentCustomizationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterDeploymentCustomization `json:"items"`
}
