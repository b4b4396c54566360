// Package v1 holds the kinds of hive.openshift.io/v1 as hotspare speaks them:
// pools, claims, clusters and what belongs to them.
//
// JSON names are those that Hive ships, so that manifests and clients written
// for Hive work unchanged. Fields that hotspare does not act on are kept as
// they were written. A field here says so when the enhancement documents, not Hive,
// are its source.
//
// +kubebuilder:object:generate=true
// +groupName=hive.openshift.io
package v1
