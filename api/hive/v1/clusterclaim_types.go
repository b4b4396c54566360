package v1

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterClaim requests a cluster from a ClusterPool. The claim owns the cluster that it gets:
// deleting the claim destroys the cluster.
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
// +kubebuilder:printcolumn:name="Priority",type=integer,JSONPath=`.status.priority`,priority=1
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

// ClusterClaimSpec is the desired state of a ClusterClaim.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.__namespace__) || size(oldSelf.__namespace__) == 0 || self.clusterPoolName == oldSelf.clusterPoolName",messageExpression="'clusterPoolName cannot be changed because the claim has cluster ' + oldSelf.__namespace__ + ' of pool ' + oldSelf.clusterPoolName + ': create another ClusterClaim for a cluster of another pool'",message="clusterPoolName cannot be changed once the claim has a cluster: create another ClusterClaim for a cluster of another pool"
type ClusterClaimSpec struct {
	// ClusterPoolName is the name of a ClusterPool in the claim's namespace. It cannot be changed
	// once the claim has a cluster.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ClusterPoolName string `json:"clusterPoolName"`
	// Subjects are the users, groups and service accounts that get access to the ClusterDeployment
	// of the claim's cluster and to its Secrets. If unset, hotspare grants no access.
	// +optional
	// +nullable
	Subjects []rbacv1.Subject `json:"subjects,omitempty"`
	// Namespace is the namespace and the name of the claim's ClusterDeployment. hotspare sets it
	// once, when it assigns a cluster. Do not set it.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Lifetime is how long the claim may keep its cluster, such as 8h, counted from the time when
	// it got the cluster. If unset, claimLifetime.default of the pool applies.
	// claimLifetime.maximum of the pool limits it.
	// +optional
	// +nullable
	Lifetime *Duration `json:"lifetime,omitempty"`
}

// ClusterClaimStatus is the observed state of a ClusterClaim. hotspare writes it.
type ClusterClaimStatus struct {
	// ObservedGeneration is the generation of the spec that this status describes. It is -1 until a
	// controller has processed the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions of the claim: Pending, ClusterRunning, Admitted if its namespace has a ClaimPolicy, and
	// HeartbeatMissing if the claim has a heartbeat. At most one of Reconciling and Stalled
	// is present, and only while it is True.
	// +optional
	// +nullable
	Conditions []Condition `json:"conditions,omitempty"`
	// Lifetime is the lifetime in effect, after the pool's default and maximum are applied.
	// +optional
	// +nullable
	Lifetime *Duration `json:"lifetime,omitempty"`
	// Position is the claim's place in the queue of claims that wait for a cluster of the pool. The
	// first claim has 1. It is unset during the first seconds of waiting, and once the claim has a
	// cluster.
	// +optional
	// +nullable
	Position *int32 `json:"position,omitempty"`
	// Priority is the priority of a claim that waits for a cluster, within the limits of ClaimPolicies. It is
	// unset if the annotation hotspare.io/priority is, and once the claim has a cluster.
	// +optional
	// +nullable
	Priority *int32 `json:"priority,omitempty"`
	// EstimatedReadyTime is when the claim is likely to have a running cluster, estimated from how
	// long the pool's earlier clusters took. It is unset if there is no estimate: no operation in
	// progress leads to a cluster for the claim, or the pool has not installed a cluster yet.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	EstimatedReadyTime *metav1.Time `json:"estimatedReadyTime,omitempty"`
}

// Conditions of a ClusterClaim, with their reasons.
const (
	// ClaimPending is True until the claim has a cluster.
	ClaimPending          = "Pending"
	ReasonNoClusters      = "NoClusters"
	ReasonClusterAssigned = "ClusterAssigned"
	ReasonClusterClaimed  = "ClusterClaimed"
	ReasonConflict        = "AssignmentConflict"
	ReasonPoolNotFound    = "PoolNotFound"
	ReasonPoolDeleting    = "PoolDeleting"
	ReasonInvalidLifetime = "InvalidLifetime"
	// ReasonAssignmentRefused is the reason while a cluster is reserved for the claim, but the API
	// server rejects hotspare's update of spec.namespace.
	ReasonAssignmentRefused = "AssignmentRefused"

	// ClaimClusterRunning is True while the claim's cluster is running.
	ClaimClusterRunning   = "ClusterRunning"
	ReasonRunning         = "Running"
	ReasonResuming        = "Resuming"
	ReasonClusterDeleting = "ClusterDeleting"
	ReasonClusterDeleted  = "ClusterDeleted"

	// ClaimAdmitted is True once the ClaimPolicies of the namespace admit the claim. It is absent in a
	// namespace without ClaimPolicies. ReasonNotPermitted, ReasonCreatorUnknown and ReasonLimitReached are
	// also reasons of Pending.
	ClaimAdmitted        = "Admitted"
	ReasonAdmitted       = "Admitted"
	ReasonNotPermitted   = "NotPermitted"
	ReasonCreatorUnknown = "CreatorUnknown"
	ReasonLimitReached   = "LimitReached"
	// ReasonLimitTooLow: a ClaimPolicy admits fewer claims than the ClaimSet of the claim has.
	ReasonLimitTooLow = "LimitTooLow"
	// ReasonSetIncomplete: the claims of its ClaimSet are admitted together, and do not all exist yet.
	ReasonSetIncomplete = "ClaimSetIncomplete"
	// ReasonSetMissing: the claim names a ClaimSet that does not exist or does not have it, or that is being deleted.
	// It is also a reason of Pending.
	ReasonSetMissing = "ClaimSetMissing"

	// ClaimHeartbeatMissing is True while the heartbeat of a claim with the annotation
	// heartbeat-timeout is overdue. It is absent until the heartbeat is overdue for the first time.
	ClaimHeartbeatMissing         = "HeartbeatMissing"
	ReasonHeartbeatOverdue        = "HeartbeatOverdue"
	ReasonHeartbeatOnTime         = "HeartbeatOnTime"
	ReasonInvalidHeartbeatTimeout = "InvalidHeartbeatTimeout"
)

// ClusterClaimList is a list of ClusterClaims.
//
// +kubebuilder:object:root=true
type ClusterClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterClaim `json:"items"`
}
