package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is hive.openshift.io/v1.
var GroupVersion = schema.GroupVersion{Group: "hive.openshift.io", Version: "v1"}

// AddToScheme registers the kinds of this package with a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&ClusterPool{}, &ClusterPoolList{},
		&ClusterClaim{}, &ClusterClaimList{},
		&ClusterDeployment{}, &ClusterDeploymentList{},
		&ClusterImageSet{}, &ClusterImageSetList{},
		&ClusterDeploymentCustomization{}, &ClusterDeploymentCustomizationList{},
		&ClusterProvision{}, &ClusterProvisionList{},
		&ClusterDeprovision{}, &ClusterDeprovisionList{},
		&MachinePool{}, &MachinePoolList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
