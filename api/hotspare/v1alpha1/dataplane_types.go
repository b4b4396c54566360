package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// DataPlane is a cluster on which service instances run. hotspare creates it for a FleetRegion;
// create one yourself to register an existing cluster.
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
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name is longer than 63 characters, the limit of a label value: choose a shorter name"
type DataPlane struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	hivev1.Reading    `json:"-"`

	Spec DataPlaneSpec `json:"spec"`
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status DataPlaneStatus `json:"status,omitempty"`
}

// Ownership says whether hotspare manages the cluster of a data plane.
//
// +kubebuilder:validation:Enum=Managed;Registered
type Ownership string

// The values of Ownership.
const (
	// Managed: hotspare acquires the cluster, counts its capacity, and releases it when it is not
	// needed.
	Managed Ownership = "Managed"
	// Registered: somebody else owns the cluster. hotspare places instances on it, but neither
	// counts its capacity nor removes it.
	Registered Ownership = "Registered"
)

// DeletionPolicy says what happens to the cluster when its DataPlane is deleted.
//
// +kubebuilder:validation:Enum=Delete;Orphan
type DeletionPolicy string

// The policies.
const (
	// DeletionDelete: hotspare releases the cluster, which destroys it.
	DeletionDelete DeletionPolicy = "Delete"
	// DeletionOrphan: hotspare keeps the claim and the cluster.
	DeletionOrphan DeletionPolicy = "Orphan"
)

// DataPlaneSpec is the desired state of a DataPlane.
//
// +kubebuilder:validation:XValidation:rule="self.ownership != 'Registered' || has(self.clusterRef)",message="a Registered data plane needs clusterRef: refer to the Secret with the kubeconfig of its cluster"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.clusterRef) || has(self.clusterRef) && self.clusterRef == oldSelf.clusterRef",message="spec.clusterRef cannot be changed once it is set: create another DataPlane"
type DataPlaneSpec struct {
	// Provider is the provider of the cluster, as in a FleetRegion of the same namespace. It cannot
	// be changed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.provider cannot be changed, because the cluster cannot move: create another DataPlane"
	Provider string `json:"provider"`
	// Region is the region of the cluster, as in a FleetRegion of the same namespace. It cannot be
	// changed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.region cannot be changed, because the cluster cannot move: create another DataPlane"
	Region string `json:"region"`
	// MultiZone is true if the cluster spans several availability zones. Only instances of
	// multi-zone types are placed on a multi-zone data plane, and only instances of other types on
	// any other. It cannot be changed.
	// +optional
	// +kubebuilder:default=false
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.multiZone cannot be changed, because the cluster cannot move: create another DataPlane"
	MultiZone bool `json:"multiZone"`
	// InstanceTypes are the names of the InstanceTypes whose instances may be placed on the data
	// plane. You can add types, but not remove them.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="oldSelf.all(t, t in self)",message="a type cannot be removed from spec.instanceTypes, because the data plane may have instances of it: set spec.schedulable to false, or create another DataPlane"
	InstanceTypes []string `json:"instanceTypes"`
	// Ownership is Managed for a cluster that hotspare acquires and releases, or Registered for a
	// cluster that somebody else owns. It cannot be changed.
	// +optional
	// +kubebuilder:default=Managed
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.ownership cannot be changed: create another DataPlane"
	Ownership Ownership `json:"ownership,omitempty"`
	// Schedulable is false to place no further instances on the data plane. Existing instances are
	// not affected.
	// +optional
	// +kubebuilder:default=true
	Schedulable *bool `json:"schedulable,omitempty"`
	// Protected keeps the scaler from removing the data plane. Defaults to false.
	// +optional
	Protected bool `json:"protected,omitempty"`
	// ClusterRef is the cluster of the data plane. hotspare sets it on a Managed data plane. It
	// cannot be changed once it is set.
	// +optional
	ClusterRef *ClusterReference `json:"clusterRef,omitempty"`
	// DeletionPolicy says what happens to the cluster when the DataPlane is deleted. Delete
	// releases the cluster, which destroys it. Orphan keeps it.
	// +optional
	// +kubebuilder:default=Delete
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// DiscardUnlisted releases the cluster even if its agent reports instances without a
	// ServiceInstance, or does not report. Everything on the cluster is destroyed. hotspare still
	// waits for the ServiceInstances of the data plane to be deleted. Defaults to false.
	// +optional
	DiscardUnlisted bool `json:"discardUnlisted,omitempty"`
}

// ClusterReference is the cluster of a data plane, by the object that gives access to it.
//
// +kubebuilder:validation:XValidation:rule="[has(self.claim), has(self.deployment), has(self.kubeconfigSecret)].exists_one(c, c)",message="set exactly one of claim, deployment and kubeconfigSecret"
type ClusterReference struct {
	// Claim is a ClusterClaim in the same namespace.
	// +optional
	Claim *NameReference `json:"claim,omitempty"`
	// Deployment is a ClusterDeployment in the same namespace, which hotspare created for the data
	// plane.
	// +optional
	Deployment *NameReference `json:"deployment,omitempty"`
	// KubeconfigSecret is a Secret in the same namespace with the key kubeconfig.
	// +optional
	KubeconfigSecret *NameReference `json:"kubeconfigSecret,omitempty"`
}

// NameReference refers to an object in the same namespace.
type NameReference struct {
	// Name is the name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// DataPlanePhase is the phase of a data plane's life cycle.
//
// +kubebuilder:validation:Enum=Accepted;Provisioning;Provisioned;WaitingForAgent;Ready;Deprovisioning;Cleanup;Failed
type DataPlanePhase string

// The phases, in order.
const (
	// PhaseAccepted: hotspare has decided to create the data plane.
	PhaseAccepted DataPlanePhase = "Accepted"
	// PhaseProvisioning: its claim exists and waits for a running cluster.
	PhaseProvisioning DataPlanePhase = "Provisioning"
	// PhaseProvisioned: it has a running cluster; hotspare configures its nodes and installs the
	// agent.
	PhaseProvisioned DataPlanePhase = "Provisioned"
	// PhaseWaitingForAgent: the agent is installed and has not reported yet.
	PhaseWaitingForAgent DataPlanePhase = "WaitingForAgent"
	// PhaseReady: it accepts instances. It stays in this phase when its agent stops reporting.
	PhaseReady DataPlanePhase = "Ready"
	// PhaseDeprovisioning: it is about to be removed; hotspare confirms with the agent that it is
	// empty.
	PhaseDeprovisioning DataPlanePhase = "Deprovisioning"
	// PhaseCleanup: hotspare releases its cluster.
	PhaseCleanup DataPlanePhase = "Cleanup"
	// PhaseFailed: it did not become ready in time. hotspare releases its cluster.
	PhaseFailed DataPlanePhase = "Failed"
)

// DataPlaneStatus is the observed state of a DataPlane. hotspare writes it.
type DataPlaneStatus struct {
	// ObservedGeneration is the generation of the spec that this status describes. It is -1 until a
	// controller has processed the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Phase is the current phase of the data plane's life cycle.
	// +optional
	Phase DataPlanePhase `json:"phase,omitempty"`
	// PhaseSince is when the data plane entered the current phase.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	PhaseSince *metav1.Time `json:"phaseSince,omitempty"`
	// EmptySince is when the last instance left the data plane. It is unset while the data plane
	// has an instance.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	EmptySince *metav1.Time `json:"emptySince,omitempty"`
	// ReleasedAt is when hotspare made the final decision to release the cluster. hotspare sets it
	// before it releases the cluster. The decision cannot be reverted.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	ReleasedAt *metav1.Time `json:"releasedAt,omitempty"`
	// Capacity is the capacity of the data plane by instance type, from the last report of its
	// agent that the hub accepted.
	// +optional
	Capacity map[string]TypeCapacity `json:"capacity,omitempty"`
	// Bookings are instances that hotspare has placed on the data plane and that may not know it
	// yet. hotspare records a booking before it places the instance, so that two instances never
	// get the same units, and none is placed on a data plane that is being removed.
	// +optional
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	Bookings []Booking `json:"bookings,omitempty"`
	// Versions are the operator versions on the data plane, and the versions that they can run.
	// +optional
	// +listType=map
	// +listMapKey=strimzi
	Versions []OperatorVersion `json:"versions,omitempty"`
	// Unlisted are instances that the agent reports and that have no ServiceInstance on this data
	// plane. hotspare keeps the cluster while there are any.
	// +optional
	// +listType=map
	// +listMapKey=uid
	// +kubebuilder:validation:MaxItems=1000
	Unlisted []UnlistedInstance `json:"unlisted,omitempty"`
	// Agent is the state of the agent, the program on the data plane that reports to the hub.
	// +optional
	Agent *AgentStatus `json:"agent,omitempty"`
	// Conditions of the data plane: Ready, AgentLive, ReportValid, InstancesListed and
	// PrewarmBlocked. At most one of Reconciling and Stalled is present, and only while it is True.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// TypeCapacity is the capacity of a data plane for one instance type, in streaming units.
type TypeCapacity struct {
	// MaxNodes is the maximum number of nodes for the type: the maximum of its machine pool.
	// +optional
	MaxNodes int32 `json:"maxNodes"`
	// MaxUnits is the number of streaming units that fit on maxNodes nodes.
	// +optional
	MaxUnits int32 `json:"maxUnits"`
	// RemainingUnits is the number of free units that the agent reports. remainingUnits and
	// usedUnits add up to maxUnits.
	// +optional
	RemainingUnits int32 `json:"remainingUnits"`
	// UsedUnits is the number of used units that the agent reports.
	// +optional
	UsedUnits int32 `json:"usedUnits"`
	// KnownUnits is the number of used units that belong to ServiceInstances in the agent's report.
	// hotspare subtracts the units of instances that are placed later from remainingUnits.
	// +optional
	KnownUnits int32 `json:"knownUnits"`
	// ReservedUnits is the number of units of reserved instances. They do not reduce the other
	// numbers.
	// +optional
	ReservedUnits int32 `json:"reservedUnits"`
	// ReportedAt is the time of the agent's report with these numbers. It is unset until the first
	// report.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	ReportedAt *metav1.Time `json:"reportedAt,omitempty"`
}

// Booking reserves units on a data plane for one instance.
type Booking struct {
	// Namespace is the namespace of the ServiceInstance.
	Namespace string `json:"namespace"`
	// Name is the name of the ServiceInstance.
	Name string `json:"name"`
	// UID is the UID of the ServiceInstance. It differs from that of a later ServiceInstance with
	// the same name.
	UID string `json:"uid"`
	// Type is the InstanceType of the instance.
	Type string `json:"type"`
	// Units is the number of streaming units of the instance.
	Units int32 `json:"units"`
}

// UnlistedInstance is an instance on the data plane that has no ServiceInstance.
type UnlistedInstance struct {
	// UID is the value of the annotation bf2.org/id of its ManagedKafka.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	UID string `json:"uid"`
	// Name is the name of its ManagedKafka.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// OperatorVersion is a version of the Strimzi operator, and the versions that it can run.
type OperatorVersion struct {
	// Strimzi is the version of the operator.
	Strimzi string `json:"strimzi"`
	// Ready is true if the operator is running.
	// +optional
	Ready bool `json:"ready,omitempty"`
	// Kafka lists the Kafka versions that the operator can run.
	// +optional
	// +listType=set
	Kafka []string `json:"kafka,omitempty"`
	// KafkaIBP lists the Kafka inter-broker protocol versions that the operator can run.
	// +optional
	// +listType=set
	KafkaIBP []string `json:"kafkaIbp,omitempty"`
}

// AgentStatus is the state of the agent on a data plane.
type AgentStatus struct {
	// LastHeartbeat is when the hub received the last report, according to the hub's clock.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	LastHeartbeat *metav1.Time `json:"lastHeartbeat,omitempty"`
	// ReportAt is the time in the last report, according to the clock of the data plane. A report
	// with a different time is a heartbeat.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	ReportAt *metav1.Time `json:"reportAt,omitempty"`
	// AnsweredAt is the last spec.inquiryAt of the DataPlaneAgent that the agent has answered.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	AnsweredAt *metav1.Time `json:"answeredAt,omitempty"`
	// Version is the version of the agent.
	// +optional
	Version string `json:"version,omitempty"`
}

// ReportedCapacity is the capacity for one instance type that an agent reports.
type ReportedCapacity struct {
	// MaxNodes is the maximum number of nodes for the type.
	// +optional
	MaxNodes int32 `json:"maxNodes"`
	// MaxUnits is the number of streaming units that fit on maxNodes nodes.
	// +optional
	MaxUnits int32 `json:"maxUnits"`
	// RemainingUnits is the number of units that are free.
	// +optional
	RemainingUnits int32 `json:"remainingUnits"`
	// ReservedUnits is the number of units of reserved instances.
	// +optional
	ReservedUnits int32 `json:"reservedUnits,omitempty"`
}

// Conditions of a DataPlane, with their reasons.
const (
	// DataPlaneReady is True while the data plane accepts instances. Otherwise its reason is the
	// name of the phase, or one of these.
	DataPlaneReady = "Ready"
	// ReasonNameTaken: an object that hotspare must create for the data plane exists already and
	// does not belong to it.
	ReasonNameTaken = "NameTaken"
	// ReasonNoSource: there is no source for a cluster.
	ReasonNoSource = "NoSource"
	// ReasonNoNodes: an InstanceType does not specify the nodes that it needs.
	ReasonNoNodes = "NoNodes"
	// ReasonClusterGone: its claim or its cluster does not exist any more.
	ReasonClusterGone = "ClusterGone"
	// ReasonClusterDeleting: its claim or its cluster is being deleted.
	ReasonClusterDeleting = "ClusterDeleting"
	// ReasonClusterDown: its cluster is not running.
	ReasonClusterDown = "ClusterNotRunning"
	// ReasonInstallFailed: its cluster cannot be installed.
	ReasonInstallFailed = "InstallFailed"
	// ReasonAgentNotInstalled: the agent cannot be installed in its cluster.
	ReasonAgentNotInstalled = "AgentNotInstalled"
	// ReasonRefused: the hub's API rejects an object that hotspare must create for it.
	ReasonRefused = "Refused"
	// ReasonInstancesLeft: it is being deleted, and its instances must be deleted first.
	ReasonInstancesLeft = "InstancesLeft"
	// ReasonAgentNotReady: the agent reports that it cannot create instances.
	ReasonAgentNotReady = "AgentNotReady"
	// ReasonUnschedulable: spec.schedulable is false.
	ReasonUnschedulable = "Unschedulable"
	// DataPlaneAgentLive is False while the agent of a Ready data plane does not report. The free
	// units of the data plane then count as 0.
	DataPlaneAgentLive = "AgentLive"
	ReasonHeartbeat    = "Heartbeat"
	ReasonSilent       = "Silent"
	// DataPlaneReportValid is False while the hub rejects the agent's last report; the previous
	// report stays in effect.
	DataPlaneReportValid   = "ReportValid"
	ReasonReportValid      = "Valid"
	ReasonReportInvalid    = "Invalid"
	ReasonReportOutOfOrder = "OutOfOrder"
	// DataPlaneInstancesListed is False while the agent reports instances that have no
	// ServiceInstance, and Unknown while it does not report. hotspare releases the cluster only if
	// this condition is True or spec.discardUnlisted is set.
	DataPlaneInstancesListed = "InstancesListed"
	ReasonInstancesListed    = "AllListed"
	ReasonUnlistedInstances  = "UnlistedInstances"
	ReasonContentsUnknown    = "ContentsUnknown"

	// DataPlanePrewarmBlocked is True while reserved instances should exist and cannot be created.
	DataPlanePrewarmBlocked = "PrewarmBlocked"
	ReasonNoVersion         = "NoVersion"
	ReasonNotBlocked        = "NotBlocked"
)

// Labels and annotations of data planes and instances, on the hub and on the data plane.
const (
	// LabelInstanceType, on nodes, is the instance type for which the node is dedicated; a taint
	// with the same key keeps other pods away. On a ManagedKafka it is the type of the instance.
	LabelInstanceType = "bf2.org/kafkaInstanceProfileType"
	// LabelUnits, on a ManagedKafka, is the number of its streaming units.
	LabelUnits = "bf2.org/kafkaInstanceProfileQuotaConsumed"
	// LabelDeployment, on a ManagedKafka, is DeploymentReserved for a reserved instance, which
	// keeps nodes running.
	LabelDeployment    = "bf2.org/deployment"
	DeploymentReserved = "reserved"
	// AnnotationID and AnnotationPlacementID, on a ManagedKafka, identify the instance and its
	// placement.
	AnnotationID          = "bf2.org/id"
	AnnotationPlacementID = "bf2.org/placementId"
)

// AnnotationDataPlane, on objects of a data plane, is the UID of the data plane. It is not an owner
// reference, because a foreground deletion of the DataPlane would then destroy its claim first.
const AnnotationDataPlane = "hotspare.io/data-plane-uid"

// FinalizerDataPlane keeps a DataPlane until its claim and its cluster are released.
const FinalizerDataPlane = "hotspare.io/data-plane"

// DataPlaneList is a list of DataPlanes.
//
// +kubebuilder:object:root=true
type DataPlaneList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DataPlane `json:"items"`
}
