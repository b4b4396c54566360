package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// FleetRegion keeps the right number of data planes in one region of a provider. hotspare adds a
// data plane before the region runs out of units, and removes data planes that are empty and not
// needed.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=fr
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.spec.provider`
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=`.spec.region`
// +kubebuilder:printcolumn:name="Capacity",type=string,JSONPath=`.status.conditions[?(@.type=='CapacityAvailable')].status`
// +kubebuilder:printcolumn:name="Why",type=string,JSONPath=`.status.conditions[?(@.type=='CapacityAvailable')].reason`
// +kubebuilder:printcolumn:name="Plan",type=string,JSONPath=`.status.plan`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type FleetRegion struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	hivev1.Reading    `json:"-"`

	Spec FleetRegionSpec `json:"spec"`
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status FleetRegionStatus `json:"status,omitempty"`
}

// FleetRegionSpec is the desired state of a FleetRegion.
type FleetRegionSpec struct {
	// Provider is the provider of the region, such as aws or local. It cannot be changed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.provider cannot be changed, because data planes cannot move: create another FleetRegion"
	Provider string `json:"provider"`
	// Region is the provider's name of the region, such as us-east-1. It cannot be changed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.region cannot be changed, because data planes cannot move: create another FleetRegion"
	Region string `json:"region"`
	// InstanceTypes are the types of instances that can be created in the region. hotspare removes
	// a data plane when it is empty and none of its types is in this list.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	InstanceTypes []RegionType `json:"instanceTypes,omitempty"`
	// ClusterSource is the source of the clusters for new data planes.
	ClusterSource ClusterSource `json:"clusterSource"`
	// DefaultNodePool describes the nodes of each data plane that are not dedicated to an instance
	// type.
	// +optional
	// +kubebuilder:default={minNodes: 6, maxNodes: 18}
	DefaultNodePool DefaultNodePool `json:"defaultNodePool,omitempty"`
	// ScaleUp configures how hotspare adds data planes.
	// +optional
	// +kubebuilder:default={}
	ScaleUp ScaleUp `json:"scaleUp,omitempty"`
	// ScaleDown configures how hotspare removes data planes.
	// +optional
	// +kubebuilder:default={}
	ScaleDown ScaleDown `json:"scaleDown,omitempty"`
}

// RegionType is the desired state of one instance type in a region.
//
// +kubebuilder:validation:XValidation:rule="!has(self.limit) || self.slackUnits <= self.limit",message="slackUnits is above limit: units above the limit cannot be used, so lower slackUnits or raise limit",fieldPath=".slackUnits"
// +kubebuilder:validation:XValidation:rule="!has(self.maxDataPlanes) || self.minDataPlanes <= self.maxDataPlanes",message="minDataPlanes is above maxDataPlanes: raise maxDataPlanes, or lower minDataPlanes",fieldPath=".minDataPlanes"
type RegionType struct {
	// Name is the name of an InstanceType.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	Name string `json:"name"`
	// Limit is the maximum number of streaming units that may be used in the region. If unset,
	// there is no limit. With 0, no instances of the type can be placed.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Limit *int32 `json:"limit,omitempty"`
	// SlackUnits is the number of streaming units to keep free. hotspare adds a data plane when the
	// number of free units is equal to or below it.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	SlackUnits int32 `json:"slackUnits"`
	// Reserved describes the reserved instances for which each data plane keeps nodes running. If
	// unset, there are none.
	// +optional
	Reserved *Reserved `json:"reserved,omitempty"`
	// MinDataPlanes is the minimum number of data planes for the type, even if they are not needed.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	MinDataPlanes int32 `json:"minDataPlanes"`
	// MaxDataPlanes is the maximum number of data planes for the type. If unset, there is no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxDataPlanes *int32 `json:"maxDataPlanes,omitempty"`
}

// Reserved describes reserved instances: they do not run, but keep nodes running so that an
// instance can start without waiting for nodes.
type Reserved struct {
	// Count is the number of reserved instances on each data plane.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Count int32 `json:"count"`
	// Size is the size of each reserved instance.
	// +optional
	// +kubebuilder:default=x1
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Size string `json:"size,omitempty"`
}

// ClusterSource is the source of clusters for data planes.
//
// +kubebuilder:validation:XValidation:rule="has(self.claim) != has(self.deployment)",message="set exactly one of claim and deployment: claim takes clusters from ClusterPools, deployment installs a cluster for each data plane"
type ClusterSource struct {
	// Claim takes clusters from ClusterPools.
	// +optional
	Claim *ClaimSource `json:"claim,omitempty"`
	// Deployment installs a new cluster for each data plane.
	// +optional
	Deployment *DeploymentSource `json:"deployment,omitempty"`
}

// ClaimSource takes clusters from ClusterPools.
type ClaimSource struct {
	// Pools are the pools to claim from, in order of preference. hotspare uses the first pool with
	// a matching multiZone, and the next one after a failure.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Pools []PoolSource `json:"pools"`
}

// PoolSource is one pool to claim from.
type PoolSource struct {
	// PoolRef is a ClusterPool in the namespace of the FleetRegion. Its clusters must be permanent:
	// hotspare rejects a pool with claimLifetime or hibernateAfter.
	PoolRef PoolReference `json:"poolRef"`
	// MultiZone is true if the clusters of the pool span several availability zones.
	// +optional
	// +kubebuilder:default=false
	MultiZone bool `json:"multiZone"`
}

// PoolReference refers to a ClusterPool in the same namespace.
type PoolReference struct {
	// Name is the name of the ClusterPool.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
}

// DeploymentSource installs a new cluster for each data plane.
type DeploymentSource struct {
	// Template contains the fields of the spec of each ClusterDeployment that hotspare creates.
	Template DeploymentTemplate `json:"template"`
	// MultiZone is true if the clusters span several availability zones.
	// +optional
	// +kubebuilder:default=false
	MultiZone bool `json:"multiZone"`
}

// DeploymentTemplate is the part of the spec of a ClusterDeployment that a FleetRegion may set. All
// other fields are rejected, because hotspare creates the clusters with its own permissions: fields
// that describe an existing cluster, that determine the owner of a cluster, or that determine which
// code runs with the cloud's credentials.
//
// +kubebuilder:validation:XValidation:rule="!has(self.clusterName)",message="clusterName cannot be set here: hotspare sets it to the name of the data plane",fieldPath=".clusterName"
// +kubebuilder:validation:XValidation:rule="!has(self.installed) || !self.installed",message="installed cannot be set here: hotspare installs a cluster for each data plane. For an existing cluster, create a Registered DataPlane",fieldPath=".installed"
// +kubebuilder:validation:XValidation:rule="!has(self.clusterMetadata)",message="clusterMetadata cannot be set here: it identifies an existing cluster. For an existing cluster, create a Registered DataPlane",fieldPath=".clusterMetadata"
// +kubebuilder:validation:XValidation:rule="!has(self.clusterPoolRef)",message="clusterPoolRef cannot be set here: to take clusters from a pool, use spec.clusterSource.claim",fieldPath=".clusterPoolRef"
// +kubebuilder:validation:XValidation:rule="!has(self.clusterInstallRef)",message="clusterInstallRef cannot be set here: one object cannot install the clusters of several data planes. Use provisioning",fieldPath=".clusterInstallRef"
// +kubebuilder:validation:XValidation:rule="!has(self.powerState) && !has(self.hibernateAfter)",message="powerState and hibernateAfter cannot be set here: data planes run all the time"
// +kubebuilder:validation:XValidation:rule="!has(self.preserveOnDelete) || !self.preserveOnDelete",message="preserveOnDelete cannot be set here: set spec.deletionPolicy of the DataPlane to Orphan to keep its cluster",fieldPath=".preserveOnDelete"
type DeploymentTemplate struct {
	// BaseDomain is the parent DNS domain of the clusters.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	BaseDomain string `json:"baseDomain,omitempty"`
	// Platform is the platform of the clusters and its settings.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Platform runtime.RawExtension `json:"platform,omitempty"`
	// PullSecretRef is the name of a Secret in the same namespace with the key .dockerconfigjson.
	// +optional
	PullSecretRef *NameReference `json:"pullSecretRef,omitempty"`
	// Provisioning configures the installation of the clusters.
	// +optional
	Provisioning *TemplateProvisioning `json:"provisioning,omitempty"`
	// InstallAttemptsLimit is the maximum number of attempts to install a cluster. If unset,
	// hotspare tries until the data plane has failed.
	// +optional
	// +kubebuilder:validation:Minimum=0
	InstallAttemptsLimit *int32 `json:"installAttemptsLimit,omitempty"`

	// The remaining fields cannot be set. They exist so that the schema rejects them with a
	// message instead of pruning them silently.

	// ClusterName cannot be set: hotspare sets it to the name of the data plane.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ClusterName string `json:"clusterName,omitempty"`
	// Installed cannot be set to true: hotspare installs each cluster.
	// +optional
	Installed bool `json:"installed,omitempty"`
	// ClusterMetadata cannot be set: it identifies an existing cluster.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	ClusterMetadata *runtime.RawExtension `json:"clusterMetadata,omitempty"`
	// ClusterPoolRef cannot be set: use spec.clusterSource.claim to take clusters from a pool.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	ClusterPoolRef *runtime.RawExtension `json:"clusterPoolRef,omitempty"`
	// ClusterInstallRef cannot be set: use provisioning.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	ClusterInstallRef *runtime.RawExtension `json:"clusterInstallRef,omitempty"`
	// PowerState cannot be set: the clusters of data planes always run.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	PowerState string `json:"powerState,omitempty"`
	// HibernateAfter cannot be set: the clusters of data planes always run.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	HibernateAfter string `json:"hibernateAfter,omitempty"`
	// PreserveOnDelete cannot be set to true: set spec.deletionPolicy of the DataPlane to Orphan
	// instead.
	// +optional
	PreserveOnDelete bool `json:"preserveOnDelete,omitempty"`
}

// TemplateProvisioning is the part of spec.provisioning of a ClusterDeployment that a FleetRegion
// may set. An administrator chooses in the ClusterImageSet which code runs in the installer's pods
// with the cloud's credentials.
//
// +kubebuilder:validation:XValidation:rule="!has(self.releaseImage) && !has(self.installerImageOverride) && !has(self.installerEnv)",message="releaseImage, installerImageOverride and installerEnv cannot be set here, because they determine which code runs with the cloud's credentials: set imageSetRef to a ClusterImageSet"
// +kubebuilder:validation:XValidation:rule="!has(self.customizationRef)",message="customizationRef cannot be set here: only one cluster at a time can use a customization, so use a ClusterPool with an inventory",fieldPath=".customizationRef"
type TemplateProvisioning struct {
	// InstallConfigSecretRef is the name of a Secret with the key install-config.yaml. If unset,
	// hotspare generates the install-config.
	// +optional
	InstallConfigSecretRef *NameReference `json:"installConfigSecretRef,omitempty"`
	// ImageSetRef is the name of the ClusterImageSet from which the clusters are installed.
	// +optional
	ImageSetRef *NameReference `json:"imageSetRef,omitempty"`
	// ManifestsConfigMapRef is the name of a ConfigMap with manifests that are added to those of
	// the installer.
	// +optional
	ManifestsConfigMapRef *NameReference `json:"manifestsConfigMapRef,omitempty"`
	// ManifestsSecretRef is the name of a Secret with manifests that are added to those of the
	// installer.
	// +optional
	ManifestsSecretRef *NameReference `json:"manifestsSecretRef,omitempty"`
	// SSHPrivateKeySecretRef is the name of a Secret with the key ssh-privatekey.
	// +optional
	SSHPrivateKeySecretRef *NameReference `json:"sshPrivateKeySecretRef,omitempty"`
	// SSHKnownHosts is accepted for compatibility with Hive and has no effect.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	SSHKnownHosts []string `json:"sshKnownHosts,omitempty"`

	// The remaining fields cannot be set.

	// ReleaseImage cannot be set: use imageSetRef.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	ReleaseImage string `json:"releaseImage,omitempty"`
	// InstallerImageOverride cannot be set: use imageSetRef.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	InstallerImageOverride string `json:"installerImageOverride,omitempty"`
	// InstallerEnv cannot be set: use imageSetRef.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +listType=atomic
	InstallerEnv []runtime.RawExtension `json:"installerEnv,omitempty"`
	// CustomizationRef cannot be set: use a ClusterPool with an inventory.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	CustomizationRef *runtime.RawExtension `json:"customizationRef,omitempty"`
}

// Allowed returns the template without the fields that cannot be set, and whether none of them was
// set. An object that an earlier version stored may have some of them.
func (t DeploymentTemplate) Allowed() (DeploymentTemplate, bool) {
	out := DeploymentTemplate{
		BaseDomain: t.BaseDomain, Platform: t.Platform, PullSecretRef: t.PullSecretRef, InstallAttemptsLimit: t.InstallAttemptsLimit,
	}
	if p := t.Provisioning; p != nil {
		out.Provisioning = &TemplateProvisioning{
			InstallConfigSecretRef: p.InstallConfigSecretRef, ImageSetRef: p.ImageSetRef, ManifestsConfigMapRef: p.ManifestsConfigMapRef,
			ManifestsSecretRef: p.ManifestsSecretRef, SSHPrivateKeySecretRef: p.SSHPrivateKeySecretRef, SSHKnownHosts: p.SSHKnownHosts,
		}
	}
	return out, equality.Semantic.DeepEqual(t, out)
}

// DefaultNodePool describes the nodes that are not dedicated to an instance type.
//
// +kubebuilder:validation:XValidation:rule="self.minNodes <= self.maxNodes",message="minNodes is above maxNodes: raise maxNodes, or lower minNodes"
type DefaultNodePool struct {
	// MachineType is the platform's name of the machine type of the nodes. If unset, the machine
	// type of the cluster is kept.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	MachineType string `json:"machineType,omitempty"`
	// MinNodes is the minimum number of nodes.
	// +optional
	// +kubebuilder:default=6
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MinNodes int32 `json:"minNodes,omitempty"`
	// MaxNodes is the maximum number of nodes.
	// +optional
	// +kubebuilder:default=18
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MaxNodes int32 `json:"maxNodes,omitempty"`
}

// ScalingMode says whether hotspare decides about data planes and executes its decisions.
//
// +kubebuilder:validation:Enum=Auto;DryRun;Off
type ScalingMode string

// The scaling modes.
const (
	// ScalingAuto: hotspare decides and executes its decisions.
	ScalingAuto ScalingMode = "Auto"
	// ScalingDryRun: hotspare decides and reports its decisions, but does not execute them.
	ScalingDryRun ScalingMode = "DryRun"
	// ScalingOff: hotspare makes no decisions.
	ScalingOff ScalingMode = "Off"
)

// ScaleUp configures how hotspare adds data planes.
type ScaleUp struct {
	// Mode is Auto (decide and execute), DryRun (decide and report only) or Off (do not decide).
	// +optional
	// +kubebuilder:default=Auto
	Mode ScalingMode `json:"mode,omitempty"`
	// MaxInFlight is the maximum number of data planes of a type that are created at the same time.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxInFlight int32 `json:"maxInFlight,omitempty"`
	// ProvisionTimeout is how long a data plane may take until the first report of its agent. After
	// that it has failed, and hotspare releases its cluster.
	// +optional
	// +kubebuilder:default="2h"
	ProvisionTimeout hivev1.Duration `json:"provisionTimeout,omitempty"`
	// Backoff is how long hotspare waits after a failure before it creates the next data plane. The
	// wait doubles with each consecutive failure, up to 16 times this value.
	// +optional
	// +kubebuilder:default="10m"
	Backoff hivev1.Duration `json:"backoff,omitempty"`
}

// ScaleDown configures how hotspare removes data planes.
type ScaleDown struct {
	// Mode is Auto (decide and execute), DryRun (decide and report only) or Off (do not decide).
	// +optional
	// +kubebuilder:default=Auto
	Mode ScalingMode `json:"mode,omitempty"`
	// EmptyFor is how long a data plane must be without instances before hotspare may remove it.
	// +optional
	// +kubebuilder:default="10m"
	EmptyFor hivev1.Duration `json:"emptyFor,omitempty"`
	// CooldownAfterScaleUp is how long after creating a data plane hotspare removes no data plane
	// that has an instance type in common with it.
	// +optional
	// +kubebuilder:default="0s"
	CooldownAfterScaleUp hivev1.Duration `json:"cooldownAfterScaleUp,omitempty"`
	// MaxConcurrent is the maximum number of data planes that are removed at the same time.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	MaxConcurrent *int32 `json:"maxConcurrent,omitempty"`
}

// FleetRegionStatus is the observed state of a FleetRegion. hotspare writes it.
type FleetRegionStatus struct {
	// ObservedGeneration is the generation of the spec that this status describes. It is -1 until a
	// controller has processed the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Plan summarizes what the region is doing, for people.
	// +optional
	Plan string `json:"plan,omitempty"`
	// InstanceTypes is the state of each instance type.
	// +optional
	// +listType=map
	// +listMapKey=name
	InstanceTypes []RegionTypeStatus `json:"instanceTypes,omitempty"`
	// Pending lists the data planes that hotspare has decided to create and has not observed yet.
	// It records them before it creates them, so that neither a crash nor a stale cache creates one
	// twice.
	// +optional
	// +listType=map
	// +listMapKey=name
	Pending []PendingDataPlane `json:"pending,omitempty"`
	// Conditions of the region: CapacityAvailable, PoolSuitable and Valid. At most one of
	// Reconciling and Stalled is present, and only while it is True.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PendingDataPlane is a data plane that hotspare is about to create.
type PendingDataPlane struct {
	// Name is the name of the DataPlane.
	Name string `json:"name"`
	// InstanceType is the instance type for which it is created.
	InstanceType string `json:"instanceType"`
}

// RegionTypeStatus is the state of one instance type in a region. Units are streaming units of
// Managed data planes that accept instances or soon will.
type RegionTypeStatus struct {
	// Name is the name of the InstanceType.
	Name string `json:"name"`
	// DataPlanes is the number of data planes that are being created or ready.
	// +optional
	DataPlanes int32 `json:"dataPlanes"`
	// MaxUnits is the number of units of these data planes. For those being created it is included
	// as far as it is known.
	// +optional
	MaxUnits int32 `json:"maxUnits"`
	// UsedUnits is the number of units in use.
	// +optional
	UsedUnits int32 `json:"usedUnits"`
	// FreeUnits is the number of free units. The units of a data plane whose agent does not report
	// are not counted.
	// +optional
	FreeUnits int32 `json:"freeUnits"`
	// PendingUnits is the number of units of instances that are not placed yet.
	// +optional
	PendingUnits int32 `json:"pendingUnits"`
	// InFlight is the number of data planes that are being created.
	// +optional
	InFlight int32 `json:"inFlight"`
	// BiggestFits is true if a data plane has enough free units for an instance of the largest
	// size.
	// +optional
	BiggestFits bool `json:"biggestFits"`
	// Decision is the last decision on whether to create a data plane.
	// +optional
	Decision *ScalingDecision `json:"decision,omitempty"`
}

// ScalingDecision is a scaling decision and its reason.
type ScalingDecision struct {
	// Action is Create or None.
	Action string `json:"action"`
	// Reason is one word that programs can compare, such as LimitReached, InFlight,
	// BiggestDoesNotFit, BelowSlack or Sufficient; docs/fleet.md lists all of them.
	Reason string `json:"reason"`
	// Message is the reason with its numbers, for people.
	// +optional
	Message string `json:"message,omitempty"`
	// At is when the action or the reason last changed.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	At metav1.Time `json:"at"`
}

// Conditions of a FleetRegion, with their reasons.
const (
	// RegionCapacityAvailable is False while there are too few free units for an instance of some
	// type and size.
	RegionCapacityAvailable = "CapacityAvailable"
	ReasonEnough            = "Sufficient"
	ReasonNotEnough         = "Insufficient"

	// RegionPoolSuitable is False while the clusters of one of its pools are not permanent.
	RegionPoolSuitable   = "PoolSuitable"
	ReasonPoolSuitable   = "PoolSuitable"
	ReasonPoolUnsuitable = "PoolUnsuitable"
	ReasonPoolMissing    = "PoolNotFound"

	// RegionValid is False while the spec refers to types or sizes that do not exist, or while
	// another FleetRegion has the same provider and region.
	RegionValid        = "Valid"
	ReasonRegionValid  = "Valid"
	ReasonUnknownType  = "UnknownType"
	ReasonUnknownSize  = "UnknownSize"
	ReasonRegionDouble = "Duplicate"
)

// FleetRegionList is a list of FleetRegions.
//
// +kubebuilder:object:root=true
type FleetRegionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []FleetRegion `json:"items"`
}
