package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterImageSet is a release from which clusters are installed.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=imgset
// +kubebuilder:printcolumn:name="Release",type=string,JSONPath=`.spec.releaseImage`
type ClusterImageSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Reading           `json:"-"`

	Spec ClusterImageSetSpec `json:"spec"`
	// +optional
	Status ClusterImageSetStatus `json:"status,omitempty"`
}

// ClusterImageSetSpec is the desired state of a ClusterImageSet.
type ClusterImageSetSpec struct {
	// ReleaseImage is the image of an OpenShift release. A local cluster reports the OpenShift
	// version in the image's tag, if the tag is a version.
	// +kubebuilder:validation:MinLength=1
	ReleaseImage string `json:"releaseImage"`
}

// ClusterImageSetStatus is empty.
type ClusterImageSetStatus struct{}

// ClusterImageSetList is a list of ClusterImageSets.
//
// +kubebuilder:object:root=true
type ClusterImageSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterImageSet `json:"items"`
}

// ClusterImageSetReference refers to a ClusterImageSet.
type ClusterImageSetReference struct {
	// Name is the name of the ClusterImageSet.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}
