package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// DataPlane is a cluster on which instances run. The region's scaler makes it, or
// somebody by hand for a cluster that there is already.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=dp
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.spec.provider`
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=`.spec.region`
// +kubebuilder:printcolumn:name="Types",type=string,JSONPath=`.spec.instanceTypes`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Why",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].reason`
// +kubebuilder:printcolumn:name="Live",type=string,JSONPath=`.status.conditions[?(@.type=='AgentLive')].status`
// +kubebuilder:printcolumn:name="Heartbeat",type=date,JSONPath=`.status.agent.lastHeartbeat`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].message`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name is longer than the 63 characters that fit in a label: choose a shorter one"
type DataPlane struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	hivev1.Reading    `json:"-"`

	Spec DataPlaneSpec `json:"spec"`
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status DataPlaneStatus `json:"status,omitempty"`
}

// Ownership is whose a data plane's cluster is.
//
// +kubebuilder:validation:Enum=Managed;Registered
type Ownership string

// Whose it can be.
const (
	// Managed: hotspare got it, counts on it, and gives it back when it is not needed.
	Managed Ownership = "Managed"
	// Registered: somebody else's. Instances are placed on it; the scaler neither counts nor removes it.
	Registered Ownership = "Registered"
)

// DeletionPolicy is what becomes of the cluster when the DataPlane goes.
//
// +kubebuilder:validation:Enum=Delete;Orphan
type DeletionPolicy string

// The policies.
const (
	// DeletionDelete: it is given back, and so destroyed.
	DeletionDelete DeletionPolicy = "Delete"
	// DeletionOrphan: claim and cluster are left as they are.
	DeletionOrphan DeletionPolicy = "Orphan"
)

// DataPlaneSpec is what the data plane is for.
//
// +kubebuilder:validation:XValidation:rule="self.ownership != 'Registered' || has(self.clusterRef)",message="a Registered data plane needs clusterRef: name the Secret with the kubeconfig of its cluster"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.clusterRef) || has(self.clusterRef) && self.clusterRef == oldSelf.clusterRef",message="spec.clusterRef cannot be changed once it is set: make another DataPlane"
type DataPlaneSpec struct {
	// Provider and Region are where it is, as in a FleetRegion of its namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.provider cannot be changed: a cluster is where it is"
	Provider string `json:"provider"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.region cannot be changed: a cluster is where it is"
	Region string `json:"region"`
	// MultiZone says whether it spans several availability zones. Instances of a
	// multi-zone type are placed on it if so, those of other types if not.
	// +optional
	// +kubebuilder:default=false
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.multiZone cannot be changed: a cluster is where it is"
	MultiZone bool `json:"multiZone"`
	// InstanceTypes are whose instances it takes. Types may be added, not taken away.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="oldSelf.all(t, t in self)",message="a type cannot be taken from spec.instanceTypes, since its instances may be here: set spec.schedulable to false, or make another DataPlane"
	InstanceTypes []string `json:"instanceTypes"`
	// Ownership is Managed, or Registered for a cluster that somebody else owns.
	// +optional
	// +kubebuilder:default=Managed
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.ownership cannot be changed: make another DataPlane"
	Ownership Ownership `json:"ownership,omitempty"`
	// Schedulable is false to have no more instances placed on it.
	// +optional
	// +kubebuilder:default=true
	Schedulable *bool `json:"schedulable,omitempty"`
	// Protected keeps the scaler from removing it.
	// +optional
	Protected bool `json:"protected,omitempty"`
	// ClusterRef is its cluster. hotspare sets it on a Managed one.
	// +optional
	ClusterRef *ClusterReference `json:"clusterRef,omitempty"`
	// DeletionPolicy is what becomes of the cluster when the DataPlane is deleted:
	// Delete or Orphan.
	// +optional
	// +kubebuilder:default=Delete
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// DiscardUnlisted gives the cluster back although its agent reports instances that
	// have no ServiceInstance, or does not report at all. Whatever is on the cluster is
	// destroyed with it. ServiceInstances of this data plane are waited for all the same.
	// +optional
	DiscardUnlisted bool `json:"discardUnlisted,omitempty"`
}

// ClusterReference names the cluster of a data plane, by what it is reached with.
//
// +kubebuilder:validation:XValidation:rule="[has(self.claim), has(self.deployment), has(self.kubeconfigSecret)].exists_one(c, c)",message="name exactly one of claim, deployment and kubeconfigSecret"
type ClusterReference struct {
	// Claim is a ClusterClaim of the same namespace.
	// +optional
	Claim *NameReference `json:"claim,omitempty"`
	// Deployment is a ClusterDeployment of the same namespace, of a cold install.
	// +optional
	Deployment *NameReference `json:"deployment,omitempty"`
	// KubeconfigSecret is a Secret of the same namespace with key kubeconfig.
	// +optional
	KubeconfigSecret *NameReference `json:"kubeconfigSecret,omitempty"`
}

// NameReference names an object of the same namespace.
type NameReference struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// DataPlanePhase is how far a data plane is.
//
// +kubebuilder:validation:Enum=Accepted;Provisioning;Provisioned;WaitingForAgent;Ready;Deprovisioning;Cleanup;Failed
type DataPlanePhase string

// The phases, in their order.
const (
	// PhaseAccepted: it was decided on.
	PhaseAccepted DataPlanePhase = "Accepted"
	// PhaseProvisioning: its claim is made, and waits for a running cluster.
	PhaseProvisioning DataPlanePhase = "Provisioning"
	// PhaseProvisioned: it has a running cluster, which gets its nodes and the agent.
	PhaseProvisioned DataPlanePhase = "Provisioned"
	// PhaseWaitingForAgent: the agent is installed, and has not reported yet.
	PhaseWaitingForAgent DataPlanePhase = "WaitingForAgent"
	// PhaseReady: it takes instances. It stays so when its agent falls silent.
	PhaseReady DataPlanePhase = "Ready"
	// PhaseDeprovisioning: it is to go, and is looked at once more.
	PhaseDeprovisioning DataPlanePhase = "Deprovisioning"
	// PhaseCleanup: its cluster is given back.
	PhaseCleanup DataPlanePhase = "Cleanup"
	// PhaseFailed: it never came. Its cluster is given back.
	PhaseFailed DataPlanePhase = "Failed"
)

// DataPlaneStatus is what the data plane is.
type DataPlaneStatus struct {
	// ObservedGeneration is the generation of the specification that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Phase is how far it is.
	// +optional
	Phase DataPlanePhase `json:"phase,omitempty"`
	// PhaseSince is since when it is in that phase.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	PhaseSince *metav1.Time `json:"phaseSince,omitempty"`
	// EmptySince is since when no instance is on it. Absent while there is one.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	EmptySince *metav1.Time `json:"emptySince,omitempty"`
	// ReleasedAt is when it was decided for good to give its cluster back. It is written
	// before that is done: from then on there is no way back.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	ReleasedAt *metav1.Time `json:"releasedAt,omitempty"`
	// Capacity is what it has of each type, as its agent last said it and the hub believed it.
	// +optional
	Capacity map[string]TypeCapacity `json:"capacity,omitempty"`
	// Bookings are instances that were given a place here and may not know it yet. They
	// are recorded first, so that two placements never take the same place, and none is
	// made on a data plane that is to go.
	// +optional
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	Bookings []Booking `json:"bookings,omitempty"`
	// Versions are what the data plane can run.
	// +optional
	// +listType=map
	// +listMapKey=strimzi
	Versions []OperatorVersion `json:"versions,omitempty"`
	// Unlisted are instances that the agent reports and that have no ServiceInstance here.
	// The cluster is kept for them.
	// +optional
	// +listType=map
	// +listMapKey=uid
	// +kubebuilder:validation:MaxItems=1000
	Unlisted []UnlistedInstance `json:"unlisted,omitempty"`
	// Agent is the program on the data plane that reports.
	// +optional
	Agent *AgentStatus `json:"agent,omitempty"`
	// Conditions: Ready, AgentLive, ReportValid, InstancesListed, PrewarmBlocked; Reconciling or Stalled while it is True.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// TypeCapacity is what a data plane has of one type, in streaming units.
type TypeCapacity struct {
	// MaxNodes is how many nodes of the type it can have: the maximum of its machine pool.
	// +optional
	MaxNodes int32 `json:"maxNodes"`
	// MaxUnits is what fits on so many nodes.
	// +optional
	MaxUnits int32 `json:"maxUnits"`
	// RemainingUnits and UsedUnits are what the agent counts; together they are MaxUnits.
	// +optional
	RemainingUnits int32 `json:"remainingUnits"`
	// +optional
	UsedUnits int32 `json:"usedUnits"`
	// KnownUnits are those of ServiceInstances that the agent counts as used. What is
	// placed later is taken from RemainingUnits.
	// +optional
	KnownUnits int32 `json:"knownUnits"`
	// ReservedUnits are those of reserved instances. They take nothing from the others.
	// +optional
	ReservedUnits int32 `json:"reservedUnits"`
	// ReportedAt is when the agent said so. Absent: it has not.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	ReportedAt *metav1.Time `json:"reportedAt,omitempty"`
}

// Booking is a place for one instance.
type Booking struct {
	// Namespace and Name are the ServiceInstance.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// UID tells it from another of the same name.
	UID string `json:"uid"`
	// Type and Units are what it takes.
	Type  string `json:"type"`
	Units int32  `json:"units"`
}

// UnlistedInstance is an instance on the data plane that has no ServiceInstance.
type UnlistedInstance struct {
	// UID is the annotation bf2.org/id of its ManagedKafka.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	UID string `json:"uid"`
	// Name is that of its ManagedKafka.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// OperatorVersion is a Strimzi and what it runs.
type OperatorVersion struct {
	// Strimzi is the operator's version.
	Strimzi string `json:"strimzi"`
	// Ready says whether it runs.
	// +optional
	Ready bool `json:"ready,omitempty"`
	// Kafka and KafkaIBP are the versions that it can run.
	// +optional
	// +listType=set
	Kafka []string `json:"kafka,omitempty"`
	// +optional
	// +listType=set
	KafkaIBP []string `json:"kafkaIbp,omitempty"`
}

// AgentStatus is the agent, as it tells of itself.
type AgentStatus struct {
	// LastHeartbeat is when it was last heard of, by the hub's clock.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	LastHeartbeat *metav1.Time `json:"lastHeartbeat,omitempty"`
	// ReportAt is the time that its last report bears, by the data plane's clock. A
	// report with another is a sign of life.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	ReportAt *metav1.Time `json:"reportAt,omitempty"`
	// AnsweredAt is the spec.inquiryAt of the DataPlaneAgent that the agent has answered last.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	AnsweredAt *metav1.Time `json:"answeredAt,omitempty"`
	// Version is the agent's.
	// +optional
	Version string `json:"version,omitempty"`
}

// ReportedCapacity is what an agent says of one type.
type ReportedCapacity struct {
	// +optional
	MaxNodes int32 `json:"maxNodes"`
	// +optional
	MaxUnits int32 `json:"maxUnits"`
	// +optional
	RemainingUnits int32 `json:"remainingUnits"`
	// +optional
	ReservedUnits int32 `json:"reservedUnits,omitempty"`
}

// Conditions of a DataPlane, with their reasons.
const (
	// DataPlaneReady is True while it takes instances; its reason says why not, or why no
	// more: the name of its phase, or one of these.
	DataPlaneReady = "Ready"
	// ReasonNameTaken: something that it needs a name for is there already, and is not its own.
	ReasonNameTaken = "NameTaken"
	// ReasonNoSource: there is nothing to get a cluster from.
	ReasonNoSource = "NoSource"
	// ReasonNoNodes: an instance type does not say which nodes it needs.
	ReasonNoNodes = "NoNodes"
	// ReasonClusterGone: its claim or its cluster is not there any more.
	ReasonClusterGone = "ClusterGone"
	// ReasonClusterDeleting: its claim or its cluster was deleted, and is not gone yet.
	ReasonClusterDeleting = "ClusterDeleting"
	// ReasonClusterDown: its cluster does not run.
	ReasonClusterDown = "ClusterNotRunning"
	// ReasonInstallFailed: its cluster cannot be installed.
	ReasonInstallFailed = "InstallFailed"
	// ReasonAgentNotInstalled: its cluster does not take the agent.
	ReasonAgentNotInstalled = "AgentNotInstalled"
	// ReasonRefused: the hub does not take what would be made for it.
	ReasonRefused = "Refused"
	// ReasonInstancesLeft: it is being deleted, and waits for its instances to go.
	ReasonInstancesLeft = "InstancesLeft"
	// ReasonAgentNotReady: the agent says that it cannot make instances.
	ReasonAgentNotReady = "AgentNotReady"
	// ReasonUnschedulable: spec.schedulable is false.
	ReasonUnschedulable = "Unschedulable"
	// DataPlaneAgentLive is False while the agent of a Ready data plane is silent. Its
	// free units count as 0 then.
	DataPlaneAgentLive = "AgentLive"
	ReasonHeartbeat    = "Heartbeat"
	ReasonSilent       = "Silent"
	// DataPlaneReportValid is False while the agent's last report is not believed; the
	// one before it counts.
	DataPlaneReportValid   = "ReportValid"
	ReasonReportValid      = "Valid"
	ReasonReportInvalid    = "Invalid"
	ReasonReportOutOfOrder = "OutOfOrder"
	// DataPlaneInstancesListed is False while the agent reports instances that have no
	// ServiceInstance, and Unknown while it does not report. Unless it is True, or
	// spec.discardUnlisted is, the cluster is not given back.
	DataPlaneInstancesListed = "InstancesListed"
	ReasonInstancesListed    = "AllListed"
	ReasonUnlistedInstances  = "UnlistedInstances"
	ReasonContentsUnknown    = "ContentsUnknown"

	// DataPlanePrewarmBlocked is True while reserved instances should exist and cannot.
	DataPlanePrewarmBlocked = "PrewarmBlocked"
	ReasonNoVersion         = "NoVersion"
	ReasonNotBlocked        = "NotBlocked"
)

// What data planes and instances are marked with, on the hub and on the data plane.
const (
	// LabelInstanceType, on nodes, is the type that a node is for; a taint of the same
	// name keeps others away. On a ManagedKafka it is the instance's type.
	LabelInstanceType = "bf2.org/kafkaInstanceProfileType"
	// LabelUnits, on a ManagedKafka, is how many streaming units it takes.
	LabelUnits = "bf2.org/kafkaInstanceProfileQuotaConsumed"
	// LabelDeployment, on a ManagedKafka, is DeploymentReserved for one that keeps a place warm.
	LabelDeployment    = "bf2.org/deployment"
	DeploymentReserved = "reserved"
	// AnnotationID and AnnotationPlacementID, on a ManagedKafka, tell it from others.
	AnnotationID          = "bf2.org/id"
	AnnotationPlacementID = "bf2.org/placementId"
)

// AnnotationDataPlane, on what a data plane holds, is its UID. It is no owner reference:
// whoever deletes a DataPlane in the foreground would have its claim destroyed first.
const AnnotationDataPlane = "hotspare.io/data-plane-uid"

// FinalizerDataPlane keeps a DataPlane until what it holds is given back.
const FinalizerDataPlane = "hotspare.io/data-plane"

// DataPlaneList is a list of DataPlanes.
//
// +kubebuilder:object:root=true
type DataPlaneList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DataPlane `json:"items"`
}
