package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// FleetRegion keeps enough data planes in one region of one provider: a new one before
// it runs out of room, none that is empty and not needed.
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

// FleetRegionSpec is what the region should have.
type FleetRegionSpec struct {
	// Provider is whose region it is: aws, or local.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.provider cannot be changed, since the data planes are where they are: make another FleetRegion"
	Provider string `json:"provider"`
	// Region is the provider's name of it: us-east-1.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.region cannot be changed, since the data planes are where they are: make another FleetRegion"
	Region string `json:"region"`
	// InstanceTypes are what can be ordered here. Data planes that only have types that
	// are not listed are removed when they are empty.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	InstanceTypes []RegionType `json:"instanceTypes,omitempty"`
	// ClusterSource is where the clusters of new data planes come from.
	ClusterSource ClusterSource `json:"clusterSource"`
	// DefaultNodePool are the nodes of each data plane that are for no type.
	// +optional
	// +kubebuilder:default={minNodes: 6, maxNodes: 18}
	DefaultNodePool DefaultNodePool `json:"defaultNodePool,omitempty"`
	// ScaleUp is how data planes are made.
	// +optional
	// +kubebuilder:default={}
	ScaleUp ScaleUp `json:"scaleUp,omitempty"`
	// ScaleDown is how they are removed.
	// +optional
	// +kubebuilder:default={}
	ScaleDown ScaleDown `json:"scaleDown,omitempty"`
}

// RegionType is what a region should have of one type.
//
// +kubebuilder:validation:XValidation:rule="!has(self.limit) || self.slackUnits <= self.limit",message="slackUnits is above limit: more than the limit can never be used, so lower slackUnits or raise limit",fieldPath=".slackUnits"
// +kubebuilder:validation:XValidation:rule="!has(self.maxDataPlanes) || self.minDataPlanes <= self.maxDataPlanes",message="minDataPlanes is above maxDataPlanes: raise maxDataPlanes, or lower minDataPlanes",fieldPath=".minDataPlanes"
type RegionType struct {
	// Name is that of an InstanceType.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	Name string `json:"name"`
	// Limit is how many streaming units may be used here. Absent: any number; 0: none.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Limit *int32 `json:"limit,omitempty"`
	// SlackUnits are kept free: a data plane is made when so many or fewer are.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	SlackUnits int32 `json:"slackUnits"`
	// Reserved are instances for which each data plane keeps nodes up.
	// +optional
	Reserved *Reserved `json:"reserved,omitempty"`
	// MinDataPlanes is how many data planes there are at least, needed or not.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	MinDataPlanes int32 `json:"minDataPlanes"`
	// MaxDataPlanes is how many there are at most. Absent: as many as are needed.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxDataPlanes *int32 `json:"maxDataPlanes,omitempty"`
}

// Reserved are instances that are not there, but could be at once.
type Reserved struct {
	// Count is how many; 0 is none.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Count int32 `json:"count"`
	// Size is that of each.
	// +optional
	// +kubebuilder:default=x1
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Size string `json:"size,omitempty"`
}

// ClusterSource is where clusters come from.
//
// +kubebuilder:validation:XValidation:rule="has(self.claim) != has(self.deployment)",message="name one of claim and deployment: warm clusters from ClusterPools, or cold installs"
type ClusterSource struct {
	// Claim takes spare clusters out of ClusterPools.
	// +optional
	Claim *ClaimSource `json:"claim,omitempty"`
	// Deployment installs a cluster for each data plane.
	// +optional
	Deployment *DeploymentSource `json:"deployment,omitempty"`
}

// ClaimSource are pools.
type ClaimSource struct {
	// Pools are claimed from in this order: from the first with the right zones, and
	// after a failure from the next.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Pools []PoolSource `json:"pools"`
}

// PoolSource is one pool.
type PoolSource struct {
	// PoolRef names a ClusterPool of the region's namespace. Its clusters must be for
	// good: one with claimLifetime or hibernateAfter is refused.
	PoolRef PoolReference `json:"poolRef"`
	// MultiZone says whether its clusters span several availability zones.
	// +optional
	// +kubebuilder:default=false
	MultiZone bool `json:"multiZone"`
}

// PoolReference names a pool.
type PoolReference struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
}

// DeploymentSource is a cold install.
type DeploymentSource struct {
	// Template is what the spec of each ClusterDeployment that is made has of these fields.
	Template DeploymentTemplate `json:"template"`
	// MultiZone says whether its clusters span several availability zones.
	// +optional
	// +kubebuilder:default=false
	MultiZone bool `json:"multiZone"`
}

// DeploymentTemplate is the part of a ClusterDeployment's spec that a region may set. The
// fields that say what exists already, whose a cluster is, or what runs with the cloud's
// credentials are refused: the clusters are made with hotspare's own rights.
//
// +kubebuilder:validation:XValidation:rule="!has(self.clusterName)",message="clusterName is the name of the data plane: leave it out",fieldPath=".clusterName"
// +kubebuilder:validation:XValidation:rule="!has(self.installed) || !self.installed",message="installed cannot be set here: each data plane gets a cluster that is installed for it. For a cluster that you have already, make a Registered DataPlane",fieldPath=".installed"
// +kubebuilder:validation:XValidation:rule="!has(self.clusterMetadata)",message="clusterMetadata cannot be set here: it names a cluster that exists already. For such a cluster make a Registered DataPlane",fieldPath=".clusterMetadata"
// +kubebuilder:validation:XValidation:rule="!has(self.clusterPoolRef)",message="clusterPoolRef cannot be set here: to take clusters out of a pool, use spec.clusterSource.claim",fieldPath=".clusterPoolRef"
// +kubebuilder:validation:XValidation:rule="!has(self.clusterInstallRef)",message="clusterInstallRef cannot be set here: one object cannot install the clusters of several data planes. Use provisioning",fieldPath=".clusterInstallRef"
// +kubebuilder:validation:XValidation:rule="!has(self.powerState) && !has(self.hibernateAfter)",message="powerState and hibernateAfter cannot be set here: data planes run all the time"
// +kubebuilder:validation:XValidation:rule="!has(self.preserveOnDelete) || !self.preserveOnDelete",message="preserveOnDelete cannot be set here: set spec.deletionPolicy of the DataPlane to Orphan to keep its cluster",fieldPath=".preserveOnDelete"
type DeploymentTemplate struct {
	// BaseDomain is the DNS domain of the clusters.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	BaseDomain string `json:"baseDomain,omitempty"`
	// Platform is where the clusters are.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Platform runtime.RawExtension `json:"platform,omitempty"`
	// PullSecretRef names a Secret with key .dockerconfigjson.
	// +optional
	PullSecretRef *NameReference `json:"pullSecretRef,omitempty"`
	// Provisioning says how to install the clusters.
	// +optional
	Provisioning *TemplateProvisioning `json:"provisioning,omitempty"`
	// InstallAttemptsLimit is how often an install is tried. Absent: until the data plane has failed.
	// +optional
	// +kubebuilder:validation:Minimum=0
	InstallAttemptsLimit *int32 `json:"installAttemptsLimit,omitempty"`

	// The rest is refused. It is named here so that it is refused, and not left out unseen.

	// +optional
	// +kubebuilder:validation:MaxLength=253
	ClusterName string `json:"clusterName,omitempty"`
	// +optional
	Installed bool `json:"installed,omitempty"`
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	ClusterMetadata *runtime.RawExtension `json:"clusterMetadata,omitempty"`
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	ClusterPoolRef *runtime.RawExtension `json:"clusterPoolRef,omitempty"`
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	ClusterInstallRef *runtime.RawExtension `json:"clusterInstallRef,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=63
	PowerState string `json:"powerState,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=63
	HibernateAfter string `json:"hibernateAfter,omitempty"`
	// +optional
	PreserveOnDelete bool `json:"preserveOnDelete,omitempty"`
}

// TemplateProvisioning is the part of spec.provisioning of a ClusterDeployment that a
// region may set. Which code runs in the installer's pods, with the cloud's credentials,
// an admin says in the ClusterImageSet.
//
// +kubebuilder:validation:XValidation:rule="!has(self.releaseImage) && !has(self.installerImageOverride) && !has(self.installerEnv)",message="releaseImage, installerImageOverride and installerEnv cannot be set here, since they choose what runs with the cloud's credentials: name a ClusterImageSet in imageSetRef"
// +kubebuilder:validation:XValidation:rule="!has(self.customizationRef)",message="customizationRef cannot be set here: only one cluster at a time can use a customization, so use a ClusterPool with an inventory",fieldPath=".customizationRef"
type TemplateProvisioning struct {
	// InstallConfigSecretRef names a Secret with key install-config.yaml.
	// +optional
	InstallConfigSecretRef *NameReference `json:"installConfigSecretRef,omitempty"`
	// ImageSetRef names the ClusterImageSet to install.
	// +optional
	ImageSetRef *NameReference `json:"imageSetRef,omitempty"`
	// ManifestsConfigMapRef names a ConfigMap with manifests to add.
	// +optional
	ManifestsConfigMapRef *NameReference `json:"manifestsConfigMapRef,omitempty"`
	// ManifestsSecretRef names a Secret with manifests to add.
	// +optional
	ManifestsSecretRef *NameReference `json:"manifestsSecretRef,omitempty"`
	// SSHPrivateKeySecretRef names a Secret with key ssh-privatekey.
	// +optional
	SSHPrivateKeySecretRef *NameReference `json:"sshPrivateKeySecretRef,omitempty"`
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	SSHKnownHosts []string `json:"sshKnownHosts,omitempty"`

	// The rest is refused.

	// +optional
	// +kubebuilder:validation:MaxLength=1024
	ReleaseImage string `json:"releaseImage,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	InstallerImageOverride string `json:"installerImageOverride,omitempty"`
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +listType=atomic
	InstallerEnv []runtime.RawExtension `json:"installerEnv,omitempty"`
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	CustomizationRef *runtime.RawExtension `json:"customizationRef,omitempty"`
}

// Allowed returns the template without the fields that are refused, and whether it had
// none of them. One that was stored by an earlier version may have some.
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

// DefaultNodePool are the nodes that are for no type.
//
// +kubebuilder:validation:XValidation:rule="self.minNodes <= self.maxNodes",message="minNodes is above maxNodes: raise maxNodes, or lower minNodes"
type DefaultNodePool struct {
	// MachineType is the platform's name of the nodes' size. Absent: as the cluster has it.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	MachineType string `json:"machineType,omitempty"`
	// MinNodes and MaxNodes bound their number.
	// +optional
	// +kubebuilder:default=6
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MinNodes int32 `json:"minNodes,omitempty"`
	// +optional
	// +kubebuilder:default=18
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MaxNodes int32 `json:"maxNodes,omitempty"`
}

// ScalingMode is whether decisions are carried out.
//
// +kubebuilder:validation:Enum=Auto;DryRun;Off
type ScalingMode string

// The modes.
const (
	// ScalingAuto: they are.
	ScalingAuto ScalingMode = "Auto"
	// ScalingDryRun: they are made and told, and that is all.
	ScalingDryRun ScalingMode = "DryRun"
	// ScalingOff: none is made.
	ScalingOff ScalingMode = "Off"
)

// ScaleUp is how data planes are made.
type ScaleUp struct {
	// Mode is Auto, DryRun (decide and tell, make nothing) or Off.
	// +optional
	// +kubebuilder:default=Auto
	Mode ScalingMode `json:"mode,omitempty"`
	// MaxInFlight is how many data planes of a type may be on their way at a time.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxInFlight int32 `json:"maxInFlight,omitempty"`
	// ProvisionTimeout is how long one may take until its agent's first report. Then it
	// has failed, and its cluster is given back.
	// +optional
	// +kubebuilder:default="2h"
	ProvisionTimeout hivev1.Duration `json:"provisionTimeout,omitempty"`
	// Backoff is how long after a failure the next is made; twice as long after the
	// second in a row, and so on, up to sixteen times.
	// +optional
	// +kubebuilder:default="10m"
	Backoff hivev1.Duration `json:"backoff,omitempty"`
}

// ScaleDown is how data planes are removed.
type ScaleDown struct {
	// Mode is Auto, DryRun (decide and tell, remove nothing) or Off.
	// +optional
	// +kubebuilder:default=Auto
	Mode ScalingMode `json:"mode,omitempty"`
	// EmptyFor is how long a data plane is left alone after its last instance has gone.
	// +optional
	// +kubebuilder:default="10m"
	EmptyFor hivev1.Duration `json:"emptyFor,omitempty"`
	// CooldownAfterScaleUp is how long no data plane is removed after one that has a type
	// in common with it was made.
	// +optional
	// +kubebuilder:default="0s"
	CooldownAfterScaleUp hivev1.Duration `json:"cooldownAfterScaleUp,omitempty"`
	// MaxConcurrent is how many may be on their way out at a time.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	MaxConcurrent *int32 `json:"maxConcurrent,omitempty"`
}

// FleetRegionStatus is what the region has.
type FleetRegionStatus struct {
	// ObservedGeneration is the generation of the specification that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Plan says in words what the region is about to do.
	// +optional
	Plan string `json:"plan,omitempty"`
	// InstanceTypes tells of each type.
	// +optional
	// +listType=map
	// +listMapKey=name
	InstanceTypes []RegionTypeStatus `json:"instanceTypes,omitempty"`
	// Pending are data planes that it has decided to make and has not yet seen. They
	// are recorded before they are made, so that neither a crash nor a stale cache makes
	// one twice.
	// +optional
	// +listType=map
	// +listMapKey=name
	Pending []PendingDataPlane `json:"pending,omitempty"`
	// Conditions: CapacityAvailable, PoolSuitable, Valid; Reconciling or Stalled while it is True.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PendingDataPlane is one that is about to be made.
type PendingDataPlane struct {
	Name string `json:"name"`
	// InstanceType is what it is for.
	InstanceType string `json:"instanceType"`
}

// RegionTypeStatus is what a region has of one type. Units are streaming units of
// Managed data planes that accept instances, or will.
type RegionTypeStatus struct {
	Name string `json:"name"`
	// DataPlanes is how many there are, on their way or ready.
	// +optional
	DataPlanes int32 `json:"dataPlanes"`
	// MaxUnits is how many units they have, those on their way as far as it is known.
	// +optional
	MaxUnits int32 `json:"maxUnits"`
	// UsedUnits is how many of these are used.
	// +optional
	UsedUnits int32 `json:"usedUnits"`
	// FreeUnits is how many are left; those of a data plane whose agent is silent are not.
	// +optional
	FreeUnits int32 `json:"freeUnits"`
	// PendingUnits is what instances take that have no data plane yet.
	// +optional
	PendingUnits int32 `json:"pendingUnits"`
	// InFlight is how many data planes are on their way.
	// +optional
	InFlight int32 `json:"inFlight"`
	// BiggestFits says whether one data plane has room for the biggest size.
	// +optional
	BiggestFits bool `json:"biggestFits"`
	// Decision is the last one about making a data plane.
	// +optional
	Decision *ScalingDecision `json:"decision,omitempty"`
}

// ScalingDecision is what was decided, and why.
type ScalingDecision struct {
	// Action is Create or None.
	Action string `json:"action"`
	// Reason is a word: LimitReached, InFlight, BiggestDoesNotFit, BelowSlack, Sufficient
	// and others; docs/fleet.md lists them.
	Reason string `json:"reason"`
	// Message is the reason in a sentence, with the figures.
	// +optional
	Message string `json:"message,omitempty"`
	// At is when action or reason changed last.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	At metav1.Time `json:"at"`
}

// Conditions of a FleetRegion, with their reasons.
const (
	// RegionCapacityAvailable is False while an instance of some type and size would find no room.
	RegionCapacityAvailable = "CapacityAvailable"
	ReasonEnough            = "Sufficient"
	ReasonNotEnough         = "Insufficient"

	// RegionPoolSuitable is False while clusters of its pools would not last.
	RegionPoolSuitable   = "PoolSuitable"
	ReasonPoolSuitable   = "PoolSuitable"
	ReasonPoolUnsuitable = "PoolUnsuitable"
	ReasonPoolMissing    = "PoolNotFound"

	// RegionValid is False while the specification names types or sizes that do not
	// exist, or another FleetRegion has the same provider and region.
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
