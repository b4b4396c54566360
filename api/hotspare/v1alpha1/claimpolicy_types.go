package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// ClaimPolicy permits users to claim clusters of pools in its namespace, and limits how many they have at
// once and for how long. A namespace without a ClaimPolicy has no such limits. In a namespace with
// one, a claim gets a cluster only if a policy permits it, and no policy that applies to it limits it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Admitted",type=integer,JSONPath=`.status.admitted`
// +kubebuilder:printcolumn:name="Waiting",type=integer,JSONPath=`.status.waiting`
// +kubebuilder:printcolumn:name="MaxClaims",type=integer,JSONPath=`.spec.maxClaims`
// +kubebuilder:printcolumn:name="MaxClaimsPerUser",type=integer,JSONPath=`.spec.maxClaimsPerUser`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClaimPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	hivev1.Reading    `json:"-"`

	Spec ClaimPolicySpec `json:"spec"`
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status ClaimPolicyStatus `json:"status,omitempty"`
}

// ClaimPolicySpec is the desired state of a ClaimPolicy.
type ClaimPolicySpec struct {
	// Subjects are the users, groups and service accounts to which the policy applies: it permits
	// and limits the claims that they create.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Subjects []ClaimSubject `json:"subjects"`
	// Pools are the names of the pools to which the policy applies. If unset, it applies to all pools
	// of its namespace.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Pools []string `json:"pools,omitempty"`
	// MaxClaims is how many claims of all subjects together may have a cluster, or be next to get
	// one, at the same time. Further claims wait. If unset, there is no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxClaims *int32 `json:"maxClaims,omitempty"`
	// MaxClaimsPerUser is the same limit for each user or service account. If unset, there is no
	// limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxClaimsPerUser *int32 `json:"maxClaimsPerUser,omitempty"`
	// MaxPriority limits the priority of a claim that waits: a higher value of annotation
	// hotspare.io/priority counts as maxPriority. If several policies apply to a claim, the lowest
	// maxPriority counts. If none of them sets it, the limit is 0.
	// +optional
	// +kubebuilder:validation:Minimum=-1000
	// +kubebuilder:validation:Maximum=1000
	MaxPriority *int32 `json:"maxPriority,omitempty"`
	// Lifetime limits how long claims live. The pool's claimLifetime.maximum limits it, too.
	// +optional
	Lifetime *ClaimPolicyLifetime `json:"lifetime,omitempty"`
}

// ClaimSubject is a user, a group or a service account.
//
// +kubebuilder:validation:XValidation:rule="self.kind == 'ServiceAccount' || !has(self.__namespace__)",message="only a ServiceAccount has a namespace"
type ClaimSubject struct {
	// Kind is User, Group or ServiceAccount.
	// +kubebuilder:validation:Enum=User;Group;ServiceAccount
	Kind string `json:"kind"`
	// Name is the name of the user, the group or the service account.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Name string `json:"name"`
	// Namespace is the namespace of a service account. If unset, it is the policy's.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// ClaimPolicyLifetime limits how long claims live.
type ClaimPolicyLifetime struct {
	// Default is the lifetime of claims that do not set spec.lifetime. It replaces claimLifetime.default of
	// the pool. If several policies that apply to a claim set it, the shortest counts.
	// +optional
	Default *hivev1.Duration `json:"default,omitempty"`
	// Maximum is the longest lifetime of a claim. The shortest maximum counts, among those of all policies
	// that apply to the claim and claimLifetime.maximum of its pool.
	// +optional
	Maximum *hivev1.Duration `json:"maximum,omitempty"`
}

// ClaimPolicyStatus is the observed state of a ClaimPolicy. hotspare writes it.
type ClaimPolicyStatus struct {
	// ObservedGeneration is the generation of the spec that this status describes. It is -1 until a
	// controller has processed the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Admitted is the number of claims to which the policy applies that have a cluster, or are next to
	// get one.
	// +optional
	Admitted int32 `json:"admitted"`
	// Waiting is the number of claims that wait because of a limit of this policy.
	// +optional
	Waiting int32 `json:"waiting"`
}

// ClaimPolicyList is a list of ClaimPolicies.
//
// +kubebuilder:object:root=true
type ClaimPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClaimPolicy `json:"items"`
}
