// Package v1alpha1 contains the kinds of hotspare.io/v1alpha1: features of hotspare that Hive does
// not have. They are not new fields of Hive's kinds, because clients that write whole typed objects
// would drop such fields.
//
// A PowerSchedule hibernates and resumes clusters at set times. A PoolPolicy sizes a pool by the claims
// of the past. A ClusterBootstrap says what the spares of a pool need before a claim may get one. A
// ClaimPolicy says who may claim clusters, how many, and for how long. InstanceType, FleetRegion,
// DataPlane and ServiceInstance form the fleet: clusters to which hotspare adds more before they
// are full.
//
// +kubebuilder:object:generate=true
// +groupName=hotspare.io
package v1alpha1
