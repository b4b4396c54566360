package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterPool keeps a number of clusters ready to be claimed.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.size,statuspath=.status.size,selectorpath=.status.selector
// +kubebuilder:resource:shortName=cp
// +kubebuilder:printcolumn:name="Size",type=string,JSONPath=`.spec.size`
// +kubebuilder:printcolumn:name="Standby",type=string,JSONPath=`.status.standby`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="BaseDomain",type=string,JSONPath=`.spec.baseDomain`
// +kubebuilder:printcolumn:name="ImageSet",type=string,JSONPath=`.spec.imageSetRef.name`
// +kubebuilder:printcolumn:name="Running",type=string,JSONPath=`.spec.runningCount`,priority=1
// +kubebuilder:printcolumn:name="Plan",type=string,JSONPath=`.status.plan`,priority=1
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.size() <= 63",message="metadata.name is longer than the 63 characters that fit in the labels of its clusters: choose a shorter one",optionalOldSelf=true
type ClusterPool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Reading           `json:"-"`

	Spec ClusterPoolSpec `json:"spec"`
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status ClusterPoolStatus `json:"status,omitempty"`
}

// ClusterPoolSpec is what the pool should be.
type ClusterPoolSpec struct {
	// Platform is where the clusters are made. Changing it makes every unclaimed cluster stale.
	// +kubebuilder:validation:XValidation:rule="[has(self.aws),has(self.azure),has(self.gcp),has(self.vsphere),has(self.openstack),has(self.baremetal),has(self.agentBareMetal),has(self.ibmcloud),has(self.nutanix),has(self.none),has(self.local)].exists_one(p, p)",message="name exactly one platform: aws, azure, gcp, vsphere, openstack, baremetal, agentBareMetal, ibmcloud, nutanix, none or local"
	Platform Platform `json:"platform"`
	// PullSecretRef names a Secret of the pool's namespace with key .dockerconfigjson; it is copied to each cluster.
	// +optional
	// +nullable
	PullSecretRef *corev1.LocalObjectReference `json:"pullSecretRef,omitempty"`
	// Size is the number of unclaimed clusters to keep.
	// +kubebuilder:validation:Minimum=0
	Size int32 `json:"size"`
	// RunningCount is how many of them are kept running, the others hibernate.
	// More than size is the same as size.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RunningCount int32 `json:"runningCount,omitempty"`
	// MaxSize limits all clusters of the pool, claimed ones too. Absent: no limit; 0: none.
	// +optional
	// +nullable
	// +kubebuilder:validation:Minimum=0
	MaxSize *int32 `json:"maxSize,omitempty"`
	// MaxConcurrent limits clusters being installed or destroyed at a time. Absent: no limit; 0: the pool is frozen.
	// Deleting a cluster that is being installed, releasing a claim and deleting the pool do not wait for installs.
	// +optional
	// +nullable
	// +kubebuilder:validation:Minimum=0
	MaxConcurrent *int32 `json:"maxConcurrent,omitempty"`
	// BaseDomain is the DNS domain below which the clusters are named.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*[.]?$')",messageExpression="'\"' + self + '\" is not a DNS domain: write lower-case letters, digits and -, at most 63 between two dots, such as ci.example.com'",message="it is not a DNS domain: write lower-case letters, digits and -, at most 63 between two dots, such as ci.example.com"
	// +kubebuilder:validation:XValidation:rule="self.size() <= 189",message="it is so long that the names of clusters below it could exceed the 253 characters of a DNS name: use at most 189 characters"
	BaseDomain string `json:"baseDomain"`
	// ImageSetRef names the ClusterImageSet to install.
	ImageSetRef ClusterImageSetReference `json:"imageSetRef"`
	// Labels are put on each new cluster.
	// +optional
	// +nullable
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations are put on each new cluster.
	// +optional
	// +nullable
	Annotations map[string]string `json:"annotations,omitempty"`
	// InstallConfigSecretTemplateRef names a Secret of the pool's namespace with key
	// install-config.yaml, the template of each cluster's install-config.
	// +optional
	// +nullable
	InstallConfigSecretTemplateRef *corev1.LocalObjectReference `json:"installConfigSecretTemplateRef,omitempty"`
	// HibernateAfter hibernates a claimed cluster that has been running this long.
	// +optional
	// +nullable
	HibernateAfter *Duration `json:"hibernateAfter,omitempty"`
	// InstallAttemptsLimit is how often a cluster's install is tried. Absent: until it works.
	// +optional
	// +nullable
	// +kubebuilder:validation:Minimum=0
	InstallAttemptsLimit *int32 `json:"installAttemptsLimit,omitempty"`
	// SkipMachinePools makes no MachinePool for each cluster's workers.
	// +optional
	SkipMachinePools bool `json:"skipMachinePools,omitempty"`
	// ClaimLifetime bounds the lifetime of claims on this pool.
	// +optional
	// +nullable
	ClaimLifetime *ClusterPoolClaimLifetime `json:"claimLifetime,omitempty"`
	// HibernationConfig is Hive's way to say PowerstateTransitionToRunningTimeout.
	// +optional
	// +nullable
	HibernationConfig *HibernationConfig `json:"hibernationConfig,omitempty"`
	// PowerstateTransitionToRunningTimeout is how long a cluster may take to resume
	// before it counts as broken and is replaced. Absent: for ever.
	// +optional
	// +nullable
	PowerstateTransitionToRunningTimeout *Duration `json:"powerstateTransitionToRunningTimeout,omitempty"`
	// PowerstateTransitionToHibernatingTimeout is the same for hibernating.
	// +optional
	// +nullable
	PowerstateTransitionToHibernatingTimeout *Duration `json:"powerstateTransitionToHibernatingTimeout,omitempty"`
	// Inventory lists the ClusterDeploymentCustomizations that the pool's clusters take, one
	// each: [{name: foo}], or as in the enhancement {ClusterDeploymentCustomizations: [{name: foo}]}.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Inventory Inventory `json:"inventory,omitempty"`
	// InstallerEnv is added to the installer's environment.
	// +optional
	// +nullable
	InstallerEnv []corev1.EnvVar `json:"installerEnv,omitempty"`
	// CustomizationRef names a ClusterDeploymentCustomization whose manifest patches apply to every cluster.
	// +optional
	// +nullable
	CustomizationRef *corev1.LocalObjectReference `json:"customizationRef,omitempty"`
}

// HibernationConfig holds Hive's resumeTimeout.
type HibernationConfig struct {
	// ResumeTimeout is how long a cluster may take to resume before it counts as broken. 0: for ever.
	// +optional
	ResumeTimeout Duration `json:"resumeTimeout,omitempty"`
}

// ClusterPoolClaimLifetime bounds how long claims live.
type ClusterPoolClaimLifetime struct {
	// Default is the lifetime of a claim that names none.
	// +optional
	// +nullable
	Default *Duration `json:"default,omitempty"`
	// Maximum caps every claim's lifetime.
	// +optional
	// +nullable
	Maximum *Duration `json:"maximum,omitempty"`
}

// ClusterPoolStatus is what the pool is.
type ClusterPoolStatus struct {
	// Size is the number of unclaimed clusters that exist, broken ones too.
	// +optional
	// +kubebuilder:default=0
	Size int32 `json:"size"`
	// Standby is how many of them are installed and not running.
	// +optional
	// +kubebuilder:default=0
	Standby int32 `json:"standby"`
	// Ready is how many of them are running: they can be claimed at once.
	// +optional
	// +kubebuilder:default=0
	Ready int32 `json:"ready"`
	// Selector selects the pool's clusters, for the scale subresource.
	// +optional
	Selector string `json:"selector,omitempty"`
	// Plan says in words what the pool is about to do.
	// +optional
	Plan string `json:"plan,omitempty"`
	// ObservedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Pending are names of clusters that the pool has decided to create and has not
	// yet seen. They are recorded before the clusters are created, so that neither a
	// crash nor a stale cache makes a cluster twice.
	// +optional
	// +listType=set
	Pending []string `json:"pending,omitempty"`
	// Inventory tells of each customization that spec.inventory lists, or that a cluster
	// of the pool uses, by its name.
	// +optional
	Inventory map[string]InventoryEntryStatus `json:"inventory,omitempty"`
	// Conditions: MissingDependencies, CapacityAvailable, AllClustersCurrent, InventoryValid, DeletionPossible, Progressing; Reconciling
	// or Stalled while it is True.
	// +optional
	// +nullable
	Conditions []Condition `json:"conditions,omitempty"`
}

// Conditions of a ClusterPool, with their reasons.
const (
	// PoolMissingDependencies is True while something that the pool refers to does not exist.
	PoolMissingDependencies = "MissingDependencies"
	ReasonMissing           = "Missing"
	ReasonVerified          = "Verified"
	// ReasonUnreadable is the reason, of a pool and of a claim, while a stored field cannot be read.
	ReasonUnreadable = "Unreadable"

	// PoolCapacityAvailable is False while maxSize keeps the pool from growing.
	PoolCapacityAvailable = "CapacityAvailable"
	ReasonAvailable       = "Available"
	ReasonMaxCapacity     = "MaxCapacity"
	// ReasonNoRoom is the reason while the platform has no room for what the pool wants.
	ReasonNoRoom = "InsufficientPlatformCapacity"
	// ReasonInventoryExhausted is the reason while every usable customization of the inventory is in use.
	ReasonInventoryExhausted = "InventoryExhausted"

	// PoolAllClustersCurrent is False while unclaimed clusters differ from the pool's spec.
	PoolAllClustersCurrent     = "AllClustersCurrent"
	ReasonClustersCurrent      = "ClusterDeploymentsCurrent"
	ReasonSomeClustersStale    = "SomeClusterDeploymentsStale"
	ReasonSomeClustersUnknown  = "SomeClusterDeploymentsUnknown"
	PoolDeletionPossible       = "DeletionPossible"
	ReasonDeletionPossible     = "DeletionPossible"
	ReasonClustersPendingClean = "ClusterDeploymentsPendingCleanup"

	// PoolProgressing is True while something is under way that ends by itself: clusters are
	// installed, resumed, hibernated or deleted. False with ReasonSettled: the pool has what it
	// is asked for. False with ReasonBlocked: it waits for somebody; the message says for what.
	PoolProgressing        = "Progressing"
	ReasonClustersChanging = "ClustersChanging"
	ReasonSettled          = "Settled"
	ReasonBlocked          = "Blocked"

	// PoolClaimsMissing is True while claimed clusters of the pool name claims that do not
	// exist: the message names them, and how to keep them. Absent while none ever did.
	PoolClaimsMissing    = "ClaimsMissing"
	ReasonClaimNotFound  = "ClaimNotFound"
	ReasonAllClaimsFound = "AllClaimsFound"

	// PoolInventoryValid is False while customizations of the inventory are broken or
	// missing, or fewer of them are usable than the pool's size; Unknown without one.
	PoolInventoryValid      = "InventoryValid"
	ReasonInventoryValid    = "Valid"
	ReasonInventoryInvalid  = "Invalid"
	ReasonInventoryTooSmall = "TooSmall"
)

// ClusterPoolList is a list of ClusterPools.
//
// +kubebuilder:object:root=true
type ClusterPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterPool `json:"items"`
}
