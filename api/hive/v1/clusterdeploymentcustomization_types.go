package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ClusterDeploymentCustomization contains patches of the install-config and of other inputs of an
// installation. At most one cluster at a time uses it.
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

// ClusterDeploymentCustomizationSpec lists the patches.
type ClusterDeploymentCustomizationSpec struct {
	// InstallConfigPatches are applied to the install-config, in order (RFC 6902).
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=128
	InstallConfigPatches []PatchEntity `json:"installConfigPatches,omitempty"`
	// ClusterDeploymentSpecPatches are applied, in order, to the spec of the ClusterDeployment that
	// the pool creates. Fields that hotspare itself sets cannot be patched.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=128
	ClusterDeploymentSpecPatches []PatchEntity `json:"clusterDeploymentSpecPatches,omitempty"`
	// InstallerManifestPatches are applied to the manifests that the installer generates.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=64
	InstallerManifestPatches []InstallerManifestPatch `json:"installerManifestPatches,omitempty"`
}

// PatchEntity is one operation of a JSON patch (RFC 6902).
//
// +kubebuilder:validation:XValidation:rule="!(self.op in ['move', 'copy']) || has(self.from) && size(self.from) > 0",messageExpression="self.op + ' needs from: set it to the path of the source'",message="move and copy need from: set it to the path of the source"
// +kubebuilder:validation:XValidation:rule="self.op in ['move', 'copy'] || !has(self.from) || size(self.from) == 0",messageExpression="'from is only valid with move and copy, not with ' + self.op + ': remove it'",message="from is only valid with move and copy: remove it"
type PatchEntity struct {
	// Op is the operation: add, remove, replace, move, copy or test. add, replace and test need
	// value or valueJSON; move and copy need from.
	// +kubebuilder:validation:Enum=add;remove;replace;move;copy;test
	Op string `json:"op"`
	// Path is a JSON pointer (RFC 6901) to the field to change, such as metadata/name. The leading
	// slash is optional. In a key, write ~1 for / and ~0 for ~.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="size(self) > 0",message="it is empty: write the path to change, such as metadata/name"
	// +kubebuilder:validation:XValidation:rule="!self.matches('~([^01]|$)')",message="it has a ~ without 0 or 1 after it: in a key, write ~0 for ~ and ~1 for /"
	Path string `json:"path"`
	// From is the source of move and copy, in the form of path.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="!self.matches('~([^01]|$)')",message="it has a ~ without 0 or 1 after it: in a key, write ~0 for ~ and ~1 for /"
	From string `json:"from,omitempty"`
	// Value is the value of the operation: any JSON value except null. Write null as valueJSON.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Value *runtime.RawExtension `json:"value,omitempty"`
	// ValueJSON is the value as a JSON document in a string. It takes precedence over value.
	// +optional
	ValueJSON string `json:"valueJSON,omitempty"`
}

// InstallerManifestPatch patches the manifests that a selector matches.
type InstallerManifestPatch struct {
	// ManifestSelector selects the manifests to patch.
	ManifestSelector ManifestSelector `json:"manifestSelector"`
	// Patches are applied, in order, to each selected manifest.
	// +kubebuilder:validation:MaxItems=128
	Patches []PatchEntity `json:"patches"`
}

// ManifestSelector selects manifests by their path.
type ManifestSelector struct {
	// Glob is the pattern that the path of a manifest must match.
	Glob string `json:"glob"`
}

// Conditions of a ClusterDeploymentCustomization, with their reasons.
const (
	// CustomizationAvailable is False while a cluster uses the customization.
	CustomizationAvailable   = "Available"
	ReasonCustomizationFree  = "Available"
	ReasonCustomizationInUse = "ClusterDeploymentCustomizationInUse"
	// CustomizationApplySucceeded reports whether the patches applied and the installation
	// succeeded for the last cluster of the customization.
	CustomizationApplySucceeded = "ApplySucceeded"
	ReasonApplySucceeded        = "Succeeded"
	ReasonInstallationPending   = "InstallationPending"
	ReasonBrokenByCloud         = "BrokenByCloud"
	ReasonBrokenBySyntax        = "BrokenBySyntax"
)

// ClusterDeploymentCustomizationStatus is the observed state of a ClusterDeploymentCustomization.
// hotspare writes it.
type ClusterDeploymentCustomizationStatus struct {
	// ObservedGeneration is the generation of the spec that this status describes. It is -1 until a
	// controller has processed the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// ClusterDeploymentRef is the cluster that uses the customization: at most one across all
	// pools. It is a lease that hotspare acquires with an optimistic lock. It is unset while the
	// customization is free.
	// +optional
	// +nullable
	ClusterDeploymentRef *corev1.ObjectReference `json:"clusterDeploymentRef,omitempty"`
	// ClusterPoolRef is the pool of that cluster.
	// +optional
	// +nullable
	ClusterPoolRef *corev1.ObjectReference `json:"clusterPoolRef,omitempty"`
	// LastAppliedConfiguration contains, as JSON, the patches with which the last cluster that used
	// the customization was created.
	// +optional
	LastAppliedConfiguration string `json:"lastAppliedConfiguration,omitempty"`
	// Conditions of the customization: Available and ApplySucceeded. At most one of Reconciling and
	// Stalled is present, and only while it is True.
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
