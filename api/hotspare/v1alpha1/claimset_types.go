package v1alpha1

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// ClaimSet requests several clusters of one ClusterPool at once: the set gets all of them together, or none.
// hotspare creates a ClusterClaim for each cluster. Deleting the set releases its claims, which destroys their
// clusters.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=`.spec.size`
// +kubebuilder:printcolumn:name="Pool",type=string,JSONPath=`.status.clusterPoolName`
// +kubebuilder:printcolumn:name="Assigned",type=integer,JSONPath=`.status.assigned`
// +kubebuilder:printcolumn:name="Running",type=integer,JSONPath=`.status.running`
// +kubebuilder:printcolumn:name="Pending",type=string,JSONPath=`.status.conditions[?(@.type=='Pending')].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Position",type=integer,JSONPath=`.status.position`,priority=1
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 240",message="metadata.name must have at most 240 characters: the claims of the set are named after it"
type ClaimSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	hivev1.Reading    `json:"-"`

	Spec ClaimSetSpec `json:"spec"`
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status ClaimSetStatus `json:"status,omitempty"`
}

// ClaimSetSpec is the desired state of a ClaimSet. Only its priority can be changed.
//
// +kubebuilder:validation:XValidation:rule="has(self.clusterPoolName) != has(self.poolSelector)",message="set either clusterPoolName or poolSelector"
// +kubebuilder:validation:XValidation:rule="self.size == oldSelf.size",message="size cannot be changed: delete the ClaimSet and create another"
// +kubebuilder:validation:XValidation:rule="has(self.clusterPoolName) == has(oldSelf.clusterPoolName) && (!has(self.clusterPoolName) || self.clusterPoolName == oldSelf.clusterPoolName)",message="clusterPoolName cannot be changed: delete the ClaimSet and create another"
// +kubebuilder:validation:XValidation:rule="has(self.poolSelector) == has(oldSelf.poolSelector) && (!has(self.poolSelector) || self.poolSelector == oldSelf.poolSelector)",message="poolSelector cannot be changed: delete the ClaimSet and create another"
// +kubebuilder:validation:XValidation:rule="has(self.subjects) == has(oldSelf.subjects) && (!has(self.subjects) || self.subjects == oldSelf.subjects)",message="subjects cannot be changed: change those of the ClusterClaims of the set"
// +kubebuilder:validation:XValidation:rule="has(self.lifetime) == has(oldSelf.lifetime) && (!has(self.lifetime) || self.lifetime == oldSelf.lifetime)",message="lifetime cannot be changed: change that of the ClusterClaims of the set"
type ClaimSetSpec struct {
	// Size is the number of clusters. The set gets all of them together, or none.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Size int32 `json:"size"`
	// ClusterPoolName is the name of a ClusterPool in the namespace of the set. Set either this or
	// poolSelector.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ClusterPoolName string `json:"clusterPoolName,omitempty"`
	// PoolSelector selects the ClusterPools in the namespace of the set that may serve it. All clusters come
	// from one of them.
	// +optional
	PoolSelector *ClaimSetPoolSelector `json:"poolSelector,omitempty"`
	// Subjects are the users, groups and service accounts that get access to the clusters: spec.subjects of
	// each ClusterClaim of the set.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Subjects []rbacv1.Subject `json:"subjects,omitempty"`
	// Lifetime is how long the claims of the set may keep their clusters, such as 8h: spec.lifetime of each
	// ClusterClaim of the set.
	// +optional
	Lifetime *hivev1.Duration `json:"lifetime,omitempty"`
	// Priority is how many minutes earlier the set counts as created while it waits for its clusters; a
	// negative value means later. spec.maxPriority of ClaimPolicies limits it.
	// +optional
	// +kubebuilder:validation:Minimum=-1000
	// +kubebuilder:validation:Maximum=1000
	Priority int32 `json:"priority,omitempty"`
}

// ClaimSetPoolSelector selects ClusterPools by their labels.
type ClaimSetPoolSelector struct {
	// Preferences are selectors of pools, the preferred one first. The set takes the pool that can serve it
	// soonest: one with enough running clusters, else one with enough installed clusters, else one that
	// creates clusters. Of pools that can serve it equally soon, it takes one of the earliest preference.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Preferences []PoolPreference `json:"preferences"`
}

// PoolPreference selects ClusterPools by their labels.
type PoolPreference struct {
	// MatchLabels are labels that a pool must have.
	// +optional
	MatchLabels map[string]string `json:"matchLabels,omitempty"`
	// MatchExpressions are requirements on the labels of a pool. It must meet all of them.
	// +optional
	// +listType=atomic
	MatchExpressions []metav1.LabelSelectorRequirement `json:"matchExpressions,omitempty"`
	// FallbackAfter is how long the set waits for the pools of this preference before it considers those of
	// the next one, such as 5m. It is counted from the creation of the set, and from the end of the
	// fallbackAfter of the preferences before this one. If unset, the set considers them at once.
	// +optional
	FallbackAfter *hivev1.Duration `json:"fallbackAfter,omitempty"`
}

// ClaimSetStatus is the observed state of a ClaimSet. hotspare writes it.
type ClaimSetStatus struct {
	// ObservedGeneration is the generation of the spec that this status describes. It is -1 until a
	// controller has processed the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// ClusterPoolName is the pool that serves the set.
	// +optional
	ClusterPoolName string `json:"clusterPoolName,omitempty"`
	// Claims are the ClusterClaims of the set.
	// +optional
	// +listType=map
	// +listMapKey=name
	Claims []ClaimSetClaim `json:"claims,omitempty"`
	// Assigned is the number of claims that have a cluster.
	// +optional
	Assigned int32 `json:"assigned"`
	// Running is the number of claims whose cluster is running.
	// +optional
	Running int32 `json:"running"`
	// Position is the place of the first claim of the set in the queue of its pool. It is unset during the first
	// seconds of waiting, and once the set has its clusters.
	// +optional
	Position *int32 `json:"position,omitempty"`
	// EstimatedReadyTime is when the set is likely to have its clusters. It is unset if that is unknown.
	// +optional
	EstimatedReadyTime *metav1.Time `json:"estimatedReadyTime,omitempty"`
	// ServedTime is when the set had all its clusters. From then on, a claim that is released is not replaced.
	// +optional
	ServedTime *metav1.Time `json:"servedTime,omitempty"`
	// Conditions of the set: Pending, ClustersRunning, and HeartbeatMissing if the set has a heartbeat. At most
	// one of Reconciling and Stalled is present, and only while it is True.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClaimSetClaim is a ClusterClaim of a ClaimSet.
type ClaimSetClaim struct {
	// Name is the name of the claim.
	Name string `json:"name"`
	// Cluster is the name of its cluster; empty while it waits.
	// +optional
	Cluster string `json:"cluster,omitempty"`
}

// FinalizerClaimSet keeps a deleted ClaimSet until its claims are released.
const FinalizerClaimSet = "hotspare.io/claimset"

// Conditions of a ClaimSet, with their reasons.
const (
	// ClaimSetPending is True until every claim of the set has a cluster. The reasons of the condition
	// Admitted of a ClusterClaim are also reasons of it, and those of its condition Pending about its pool.
	ClaimSetPending = "Pending"
	// ReasonSetServed is the reason of status False: every claim has a cluster.
	ReasonSetServed = "ClustersClaimed"
	// ReasonSetWaiting: the set waits until its pool has enough running clusters for it.
	ReasonSetWaiting = "NoClusters"
	// ReasonSetIncomplete: some claims of the set have their clusters, and the others get the next ones.
	ReasonSetIncomplete = "AssigningClusters"
	// ReasonSetTooLarge: no pool of the set can ever have enough clusters for it.
	ReasonSetTooLarge = "TooLarge"
	// ReasonNoPoolMatches: poolSelector selects no ClusterPool.
	ReasonNoPoolMatches = "NoPoolMatches"
	// ReasonClaimNameTaken: a ClusterClaim with the name of a claim of the set does not belong to it.
	ReasonClaimNameTaken = "NameTaken"
	// ReasonClaimsRefused: the hub does not let hotspare create the claims of the set.
	ReasonClaimsRefused = "ClaimsRefused"
	// ReasonSetReleasing: the set is being deleted, and waits until the clusters of its claims are destroyed.
	ReasonSetReleasing = "Releasing"

	// ClaimSetClustersRunning is True while the set has its clusters, and all of them are running.
	ClaimSetClustersRunning = "ClustersRunning"
	ReasonClustersRunning   = "Running"
	// ReasonClustersNotRunning: the message names the claims whose cluster is not running.
	ReasonClustersNotRunning = "NotRunning"
	// ReasonClaimsReleased: claims of the set have been released; they are not replaced.
	ReasonClaimsReleased = "ClaimsReleased"

	// ClaimSetHeartbeatMissing is True while the heartbeat of a set with the annotation heartbeat-timeout is
	// overdue. It is absent until the heartbeat is overdue for the first time. Its reasons are those of the
	// condition HeartbeatMissing of a ClusterClaim.
	ClaimSetHeartbeatMissing = "HeartbeatMissing"
)

// ClaimSetList is a list of ClaimSets.
//
// +kubebuilder:object:root=true
type ClaimSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClaimSet `json:"items"`
}
