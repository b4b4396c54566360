// Package v1alpha1 holds the kinds of hotspare.io/v1alpha1: what hotspare has and Hive
// has no word for. Hive's kinds get no new fields for it, since clients that write
// whole typed objects would drop them.
//
// PowerSchedule puts clusters to sleep by the clock. InstanceType, FleetRegion, DataPlane
// and ServiceInstance are the fleet: clusters that grow in number before they are full.
//
// +kubebuilder:object:generate=true
// +groupName=hotspare.io
package v1alpha1
