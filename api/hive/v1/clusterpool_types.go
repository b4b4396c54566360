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
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.size() <= 63",message="metadata.name is longer than 63 characters, the limit of the labels of its clusters: choose a shorter name",optionalOldSelf=true
type ClusterPool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Reading           `json:"-"`

	Spec ClusterPoolSpec `json:"spec"`
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status ClusterPoolStatus `json:"status,omitempty"`
}

// ClusterPoolSpec is the desired state of a ClusterPool.
type ClusterPoolSpec struct {
	// Platform is the platform of the clusters and its settings. Set exactly one. A change makes
	// every unclaimed cluster stale: the pool replaces it.
	// +kubebuilder:validation:XValidation:rule="[has(self.aws),has(self.azure),has(self.gcp),has(self.vsphere),has(self.openstack),has(self.baremetal),has(self.agentBareMetal),has(self.ibmcloud),has(self.nutanix),has(self.none),has(self.local),has(self.exec),has(self.capi)].exists_one(p, p)",message="set exactly one platform: aws, azure, gcp, vsphere, openstack, baremetal, agentBareMetal, ibmcloud, nutanix, none, local, exec or capi"
	// +kubebuilder:validation:XValidation:rule="!has(self.capi) || has(self.capi.classRef) || has(self.capi.templateRef)",message="capi needs classRef or templateRef: name the ClusterClass, or the ConfigMap with manifests, from which to create clusters"
	Platform Platform `json:"platform"`
	// PullSecretRef is the name of a Secret in the pool's namespace with the key .dockerconfigjson.
	// hotspare copies it to the namespace of each cluster. If unset, only the global pull secret is
	// used, if there is one.
	// +optional
	// +nullable
	PullSecretRef *corev1.LocalObjectReference `json:"pullSecretRef,omitempty"`
	// Size is the number of unclaimed clusters that the pool keeps. It may be 0.
	// +kubebuilder:validation:Minimum=0
	Size int32 `json:"size"`
	// RunningCount is the number of unclaimed clusters that the pool keeps running; the others
	// hibernate. A value above size has the same effect as size. Defaults to 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RunningCount int32 `json:"runningCount,omitempty"`
	// MaxSize is the maximum number of clusters of the pool, including claimed ones. If unset,
	// there is no limit. With 0, the pool creates no clusters.
	// +optional
	// +nullable
	// +kubebuilder:validation:Minimum=0
	MaxSize *int32 `json:"maxSize,omitempty"`
	// MaxConcurrent is the maximum number of clusters that are installed or destroyed at the same
	// time. If unset, there is no limit; 0 freezes the pool. Deletions of clusters that are still
	// installing, of claims and of the pool itself do not wait for installations.
	// +optional
	// +nullable
	// +kubebuilder:validation:Minimum=0
	MaxConcurrent *int32 `json:"maxConcurrent,omitempty"`
	// BaseDomain is the parent DNS domain of the clusters, such as ci.example.com. A change makes
	// every unclaimed cluster stale.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*[.]?$')",messageExpression="'\"' + self + '\" is not a DNS domain: write lower-case letters, digits and -, at most 63 between two dots, such as ci.example.com'",message="it is not a DNS domain: write lower-case letters, digits and -, at most 63 between two dots, such as ci.example.com"
	// +kubebuilder:validation:XValidation:rule="self.size() <= 189",message="it is so long that the names of clusters below it could exceed the 253 characters of a DNS name: use at most 189 characters"
	BaseDomain string `json:"baseDomain"`
	// ImageSetRef is the ClusterImageSet from which the clusters are installed. A change makes
	// every unclaimed cluster stale.
	ImageSetRef ClusterImageSetReference `json:"imageSetRef"`
	// Labels are set on each ClusterDeployment that the pool creates. Existing clusters get new
	// labels when they are started, hibernated or claimed; labels are never removed.
	// +optional
	// +nullable
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations are set on each ClusterDeployment that the pool creates. Existing clusters get
	// new annotations when they are started, hibernated or claimed, except those of
	// hive.openshift.io; annotations are never removed.
	// +optional
	// +nullable
	Annotations map[string]string `json:"annotations,omitempty"`
	// InstallConfigSecretTemplateRef is the name of a Secret in the pool's namespace with the key
	// install-config.yaml, the template of each cluster's install-config. If unset, hotspare
	// generates it. A change of the name makes every unclaimed cluster stale.
	// +optional
	// +nullable
	InstallConfigSecretTemplateRef *corev1.LocalObjectReference `json:"installConfigSecretTemplateRef,omitempty"`
	// HibernateAfter is how long a claimed cluster runs before it hibernates, such as 8h. Unclaimed
	// clusters ignore it. If unset, claimed clusters do not hibernate automatically.
	// +optional
	// +nullable
	HibernateAfter *Duration `json:"hibernateAfter,omitempty"`
	// InstallAttemptsLimit is the maximum number of attempts to install a cluster. After that the
	// cluster is broken, and the pool replaces it. If unset, there is no limit.
	// +optional
	// +nullable
	// +kubebuilder:validation:Minimum=0
	InstallAttemptsLimit *int32 `json:"installAttemptsLimit,omitempty"`
	// SkipMachinePools is accepted for compatibility with Hive and has no effect: hotspare does not
	// create MachinePools for clusters of a pool.
	// +optional
	SkipMachinePools bool `json:"skipMachinePools,omitempty"`
	// ClaimLifetime limits how long claims on this pool live. If unset, claims live until they are
	// deleted.
	// +optional
	// +nullable
	ClaimLifetime *ClusterPoolClaimLifetime `json:"claimLifetime,omitempty"`
	// HibernationConfig is Hive's form of powerstateTransitionToRunningTimeout, which takes
	// precedence if both are set.
	// +optional
	// +nullable
	HibernationConfig *HibernationConfig `json:"hibernationConfig,omitempty"`
	// PowerstateTransitionToRunningTimeout is how long a cluster may take to resume, such as 20m.
	// After that the cluster is broken, and the pool replaces it if it is unclaimed. If unset,
	// there is no timeout.
	// +optional
	// +nullable
	PowerstateTransitionToRunningTimeout *Duration `json:"powerstateTransitionToRunningTimeout,omitempty"`
	// PowerstateTransitionToHibernatingTimeout is how long a cluster may take to hibernate, such as
	// 20m. After that the cluster is broken, and the pool replaces it if it is unclaimed. If unset,
	// there is no timeout.
	// +optional
	// +nullable
	PowerstateTransitionToHibernatingTimeout *Duration `json:"powerstateTransitionToHibernatingTimeout,omitempty"`
	// Inventory lists the ClusterDeploymentCustomizations of the pool: each cluster uses one of
	// them. Write [{name: foo}], or the enhancement's form {ClusterDeploymentCustomizations:
	// [{name: foo}]}. If unset, clusters are created without a customization.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Inventory Inventory `json:"inventory,omitempty"`
	// InstallerEnv is a list of environment variables for the installer. A change applies to
	// clusters that are created afterwards.
	// +optional
	// +nullable
	InstallerEnv []corev1.EnvVar `json:"installerEnv,omitempty"`
	// CustomizationRef is the name of a ClusterDeploymentCustomization in the pool's namespace. Its
	// installerManifestPatches apply to every cluster of the pool. A change of the name makes every
	// unclaimed cluster stale.
	// +optional
	// +nullable
	CustomizationRef *corev1.LocalObjectReference `json:"customizationRef,omitempty"`
}

// HibernationConfig contains Hive's timeout for resumes.
type HibernationConfig struct {
	// ResumeTimeout is how long a cluster may take to resume, such as 20m. After that the cluster
	// is broken. If unset or 0, there is no timeout.
	// +optional
	ResumeTimeout Duration `json:"resumeTimeout,omitempty"`
}

// ClusterPoolClaimLifetime limits how long claims live.
type ClusterPoolClaimLifetime struct {
	// Default is the lifetime of claims that do not set spec.lifetime, such as 8h. If unset, such
	// claims live until they are deleted, or for the maximum.
	// +optional
	// +nullable
	Default *Duration `json:"default,omitempty"`
	// Maximum is the longest lifetime of a claim. A claim with a longer lifetime, or without one,
	// gets this lifetime. If unset, there is no limit.
	// +optional
	// +nullable
	Maximum *Duration `json:"maximum,omitempty"`
}

// ClusterPoolStatus is the observed state of a ClusterPool. hotspare writes it.
type ClusterPoolStatus struct {
	// Size is the number of unclaimed clusters that exist, including broken ones.
	// +optional
	// +kubebuilder:default=0
	Size int32 `json:"size"`
	// Standby is the number of unclaimed clusters that are installed and not running.
	// +optional
	// +kubebuilder:default=0
	Standby int32 `json:"standby"`
	// Ready is the number of unclaimed clusters that are running: this number of claims can be
	// served immediately.
	// +optional
	// +kubebuilder:default=0
	Ready int32 `json:"ready"`
	// Selector is the label selector of the pool's clusters. The scale subresource uses it.
	// +optional
	Selector string `json:"selector,omitempty"`
	// Plan summarizes what the pool is doing, for people.
	// +optional
	Plan string `json:"plan,omitempty"`
	// ObservedGeneration is the generation of the spec that this status describes. It is -1 until a
	// controller has processed the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Pending lists the names of clusters that the pool has decided to create and has not observed
	// yet. hotspare records a name before it creates the cluster, so that neither a crash nor a
	// stale cache creates a cluster twice.
	// +optional
	// +listType=set
	Pending []string `json:"pending,omitempty"`
	// RecipeVersion identifies what new clusters of the pool are created with: the recipe on platform
	// exec, the ClusterClass or the template on platform capi. Unclaimed clusters of another version are
	// stale. It is empty on other platforms, and while it is unknown.
	// +optional
	RecipeVersion string `json:"recipeVersion,omitempty"`
	// StepsVersion identifies the steps of the pool's bootstrap that spares must take, with what these refer to.
	// Unclaimed clusters with other steps are stale. It is "unresolved" while the steps are not known, and empty if
	// there are none.
	// +optional
	StepsVersion string `json:"stepsVersion,omitempty"`
	// StepsSince is since when the pool has had a bootstrap with steps, of any version; unset if it has none. A spare
	// that was installed earlier, and has taken no step yet, serves claims until the pool lets it take them.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	StepsSince *metav1.Time `json:"stepsSince,omitempty"`
	// FailedStepsVersion is the version of steps that a spare did not take to their end, or after which it did not pass the
	// gates. Until a cluster has completed that version after FailedStepsTime, no spare begins it that was installed before the
	// pool had steps, and no spare with other steps is replaced because of them.
	// +optional
	FailedStepsVersion string `json:"failedStepsVersion,omitempty"`
	// FailedStepsTime is when FailedStepsVersion failed last.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	FailedStepsTime *metav1.Time `json:"failedStepsTime,omitempty"`
	// GatesVersion identifies the gates that spares must pass before a claim gets them. It is "unresolved" while the
	// gates are not known, and empty if there are none.
	// +optional
	GatesVersion string `json:"gatesVersion,omitempty"`
	// Inventory is the state of each customization that spec.inventory lists or that a cluster of
	// the pool uses, by the name of the customization.
	// +optional
	Inventory map[string]InventoryEntryStatus `json:"inventory,omitempty"`
	// Conditions of the pool: MissingDependencies, CapacityAvailable, AllClustersCurrent,
	// InventoryValid, DeletionPossible, Progressing and ClaimsMissing. At most one of Reconciling
	// and Stalled is present, and only while it is True.
	// +optional
	// +nullable
	Conditions []Condition `json:"conditions,omitempty"`
}

// Conditions of a ClusterPool, with their reasons.
const (
	// PoolMissingDependencies is True while an object that the pool refers to does not exist.
	PoolMissingDependencies = "MissingDependencies"
	ReasonMissing           = "Missing"
	ReasonVerified          = "Verified"
	// ReasonUnreadable is the reason, on a pool and on a claim, while a stored field cannot be
	// read.
	ReasonUnreadable = "Unreadable"

	// PoolCapacityAvailable is False while the pool cannot grow.
	PoolCapacityAvailable = "CapacityAvailable"
	ReasonAvailable       = "Available"
	ReasonMaxCapacity     = "MaxCapacity"
	// ReasonNoRoom is the reason while the platform does not have enough capacity for the clusters
	// that the pool wants.
	ReasonNoRoom = "InsufficientPlatformCapacity"
	// ReasonInventoryExhausted is the reason while every usable customization of the inventory is
	// in use.
	ReasonInventoryExhausted = "InventoryExhausted"

	// PoolAllClustersCurrent is False while unclaimed clusters do not match the pool's spec.
	PoolAllClustersCurrent     = "AllClustersCurrent"
	ReasonClustersCurrent      = "ClusterDeploymentsCurrent"
	ReasonSomeClustersStale    = "SomeClusterDeploymentsStale"
	ReasonSomeClustersUnknown  = "SomeClusterDeploymentsUnknown"
	PoolDeletionPossible       = "DeletionPossible"
	ReasonDeletionPossible     = "DeletionPossible"
	ReasonClustersPendingClean = "ClusterDeploymentsPendingCleanup"

	// PoolProgressing is True while the pool changes and no action by a person is needed: clusters
	// are being installed, resumed, hibernated or deleted. False with ReasonSettled: the pool
	// matches its spec. False with ReasonBlocked: a person must act; the message says how.
	PoolProgressing        = "Progressing"
	ReasonClustersChanging = "ClustersChanging"
	ReasonSettled          = "Settled"
	ReasonBlocked          = "Blocked"

	// PoolClaimsMissing is True while claimed clusters of the pool refer to claims that do not
	// exist. The message names the clusters and says how to keep them. The condition is absent
	// until this happens for the first time.
	PoolClaimsMissing    = "ClaimsMissing"
	ReasonClaimNotFound  = "ClaimNotFound"
	ReasonAllClaimsFound = "AllClaimsFound"

	// PoolInventoryValid is False while customizations of the inventory are broken or missing, or
	// while fewer of them are usable than the pool's size. It is Unknown for a pool without an
	// inventory.
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
