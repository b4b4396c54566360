package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is hotspare.io/v1alpha1.
var GroupVersion = schema.GroupVersion{Group: "hotspare.io", Version: "v1alpha1"}

// AddToScheme makes the kinds of this package known to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&PowerSchedule{}, &PowerScheduleList{},
		&PoolPolicy{}, &PoolPolicyList{},
		&ClaimPolicy{}, &ClaimPolicyList{},
		&ClaimSet{}, &ClaimSetList{},
		&ClusterBootstrap{}, &ClusterBootstrapList{},
		&InstanceType{}, &InstanceTypeList{},
		&FleetRegion{}, &FleetRegionList{},
		&DataPlane{}, &DataPlaneList{},
		&ServiceInstance{}, &ServiceInstanceList{},
		&DataPlaneAgent{}, &DataPlaneAgentList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
