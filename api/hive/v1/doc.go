// Package v1 contains the kinds of hive.openshift.io/v1 as hotspare implements them: pools, claims,
// clusters and the objects that belong to them.
//
// JSON names are those of Hive, so that manifests and clients written for Hive work unchanged.
// Fields that hotspare does not act on are stored as written. The documentation of a field says so
// if the field comes from the enhancement documents instead of from Hive.
//
// +kubebuilder:object:generate=true
// +groupName=hive.openshift.io
package v1
