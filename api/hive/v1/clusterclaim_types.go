package v1

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterClaim asks a pool for a cluster. The claim owns the cluster it gets:
// deleting the claim destroys it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Pool",type=string,JSONPath=`.spec.clusterPoolName`
// +kubebuilder:printcolumn:name="Pending",type=string,JSONPath=`.status.conditions[?(@.type=='Pending')].reason`
// +kubebuilder:printcolumn:name="ClusterNamespace",type=string,JSONPath=`.spec.namespace`
// +kubebuilder:printcolumn:name="ClusterRunning",type=string,JSONPath=`.status.conditions[?(@.type=='ClusterRunning')].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Lifetime",type=string,JSONPath=`.status.lifetime`,priority=1
// +kubebuilder:printcolumn:name="Position",type=integer,JSONPath=`.status.position`,priority=1
// +kubebuilder:printcolumn:name="EstimatedReady",type=date,JSONPath=`.status.estimatedReadyTime`,priority=1
type ClusterClaim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Reading           `json:"-"`

	Spec ClusterClaimSpec `json:"spec"`
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status ClusterClaimStatus `json:"status,omitempty"`
}

// ClusterClaimSpec is what is asked for.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.__namespace__) || size(oldSelf.__namespace__) == 0 || self.clusterPoolName == oldSelf.clusterPoolName",messageExpression="'clusterPoolName cannot be changed once the claim has a cluster, and it has ' + oldSelf.__namespace__ + ' of pool ' + oldSelf.clusterPoolName + ': create another ClusterClaim for a cluster of another pool'",message="clusterPoolName cannot be changed once the claim has a cluster: create another ClusterClaim for a cluster of another pool"
type ClusterClaimSpec struct {
	// ClusterPoolName names a pool in the claim's namespace. It cannot be changed once
	// the claim has a cluster.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ClusterPoolName string `json:"clusterPoolName"`
	// Subjects get access to the cluster's ClusterDeployment and its Secrets.
	// +optional
	// +nullable
	Subjects []rbacv1.Subject `json:"subjects,omitempty"`
	// Namespace is the cluster's namespace and name. hotspare sets it, once.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Lifetime is how long the claim may keep its cluster; counted from when it was
	// claimed. Absent: the pool's default. The pool's maximum caps it.
	// +optional
	// +nullable
	Lifetime *Duration `json:"lifetime,omitempty"`
}

// ClusterClaimStatus is what the claim has come to.
type ClusterClaimStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions: Pending, ClusterRunning; Reconciling or Stalled while it is True.
	// +optional
	// +nullable
	Conditions []Condition `json:"conditions,omitempty"`
	// Lifetime is the lifetime in force.
	// +optional
	// +nullable
	Lifetime *Duration `json:"lifetime,omitempty"`
	// Position is the claim's place among those that wait for a cluster of the
	// pool; the first has 1. Absent once the claim has its cluster, and before it
	// has waited for some seconds.
	// +optional
	// +nullable
	Position *int32 `json:"position,omitempty"`
	// EstimatedReadyTime is when a cluster for the claim is likely to run, going by
	// what the pool's clusters took before. Absent when nobody can tell: nothing
	// that is under way leads to one, or the pool never made one yet.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	EstimatedReadyTime *metav1.Time `json:"estimatedReadyTime,omitempty"`
}

// Conditions of a ClusterClaim, with their reasons.
const (
	// ClaimPending is True until the claim has its cluster.
	ClaimPending          = "Pending"
	ReasonNoClusters      = "NoClusters"
	ReasonClusterAssigned = "ClusterAssigned"
	ReasonClusterClaimed  = "ClusterClaimed"
	ReasonConflict        = "AssignmentConflict"
	ReasonPoolNotFound    = "PoolNotFound"
	ReasonPoolDeleting    = "PoolDeleting"
	ReasonInvalidLifetime = "InvalidLifetime"
	// ReasonAssignmentRefused: a cluster is reserved for the claim, and the hub refused
	// to let hotspare write its name into spec.namespace.
	ReasonAssignmentRefused = "AssignmentRefused"

	// ClaimClusterRunning is True while the claim's cluster can be used.
	ClaimClusterRunning   = "ClusterRunning"
	ReasonRunning         = "Running"
	ReasonResuming        = "Resuming"
	ReasonClusterDeleting = "ClusterDeleting"
	ReasonClusterDeleted  = "ClusterDeleted"
)

// ClusterClaimList is a list of ClusterClaims.
//
// +kubebuilder:object:root=true
type ClusterClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterClaim `json:"items"`
}
