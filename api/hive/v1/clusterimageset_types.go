package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterImageSet names a release that clusters are installed from.
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

// ClusterImageSetSpec is the release.
type ClusterImageSetSpec struct {
	// ReleaseImage is the image of an OpenShift release. Local clusters take the
	// OpenShift version that they show from its tag, if it has one.
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

// ClusterImageSetReference names a ClusterImageSet.
type ClusterImageSetReference struct {
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}
