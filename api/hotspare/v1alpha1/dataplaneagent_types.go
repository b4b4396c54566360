package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// DataPlaneAgent is the channel between the hub and the agent on a data plane. It has the name of
// its DataPlane. The hub writes the spec, the desired state, and the conditions; the agent writes
// the rest of the status, the observed state. Do not edit it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=dpa
// +kubebuilder:printcolumn:name="Ready",type=boolean,JSONPath=`.status.report.ready`
// +kubebuilder:printcolumn:name="Why",type=string,JSONPath=`.status.report.reason`
// +kubebuilder:printcolumn:name="Heartbeat",type=date,JSONPath=`.status.report.at`
// +kubebuilder:printcolumn:name="Agent",type=string,JSONPath=`.status.report.agentVersion`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.report.message`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name is longer than 63 characters, the limit of a label value: it is the name of the DataPlane, so choose a shorter name there"
type DataPlaneAgent struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	hivev1.Reading    `json:"-"`

	Spec DataPlaneAgentSpec `json:"spec"`
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status DataPlaneAgentStatus `json:"status,omitempty"`
}

// DataPlaneAgentSpec is the desired state of the data plane. The hub writes it.
type DataPlaneAgentSpec struct {
	// DataPlaneUID is the UID of the DataPlane. The agent repeats it in its reports.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.dataPlaneUID cannot be changed: delete the DataPlaneAgent and create another for the other DataPlane"
	DataPlaneUID string `json:"dataPlaneUID"`
	// ReportEvery is how often the agent reports if nothing changes. It must be between 1s and 1h.
	// The hub considers an agent silent after it has missed more than two reports.
	// +optional
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="reportEvery is below 1s or above 1h: write a time between them, such as 30s"
	ReportEvery hivev1.Duration `json:"reportEvery,omitempty"`
	// InquiryAt is when the hub last asked what runs on the data plane. The agent reports
	// immediately when it changes. Before the hub releases a cluster, its agent must confirm that
	// it is empty.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	InquiryAt *metav1.Time `json:"inquiryAt,omitempty"`
	// Pools are the nodes of each instance type.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=64
	Pools []AgentPool `json:"pools,omitempty"`
	// Instances are the instances that the data plane should have, including reserved ones. To
	// delete an instance, set deleted. If an instance is only removed from the list, it stays on
	// the data plane and the agent reports it as unlisted; a reserved one is deleted.
	// +optional
	// +listType=map
	// +listMapKey=uid
	// +kubebuilder:validation:MaxItems=1000
	Instances []AgentInstance `json:"instances,omitempty"`
}

// AgentPool describes the nodes of one instance type.
//
// +kubebuilder:validation:XValidation:rule="has(self.nodesPerUnit) != has(self.unitsPerNode)",message="set exactly one of nodesPerUnit and unitsPerNode, as in the InstanceType"
type AgentPool struct {
	// Type is the name of the InstanceType.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Type string `json:"type"`
	// MaxNodes is the maximum number of nodes. The agent repeats it in its reports.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	MaxNodes int32 `json:"maxNodes"`
	// NodesPerUnit is the number of nodes that one streaming unit needs, from the InstanceType.
	// Exactly one of nodesPerUnit and unitsPerNode is set.
	// +optional
	NodesPerUnit *resource.Quantity `json:"nodesPerUnit,omitempty"`
	// UnitsPerNode is the number of streaming units that fit on one node, from the InstanceType.
	// Exactly one of nodesPerUnit and unitsPerNode is set.
	// +optional
	UnitsPerNode *resource.Quantity `json:"unitsPerNode,omitempty"`
	// NodeRequests are the total cpu and memory requests of the pods of instances on one node of
	// the type. If unset: 2900m of cpu and 17Gi of memory, which fit on a node with 4 CPUs and 32
	// GB. Other resources are ignored.
	// +optional
	NodeRequests corev1.ResourceList `json:"nodeRequests,omitempty"`
}

// AgentInstance is one instance that the data plane should have.
//
// +kubebuilder:validation:XValidation:rule="!self.reserved || self.name.startsWith('reserved-kafka-' + self.type + '-')",message="the name of a reserved instance must be reserved-kafka-TYPE-NUMBER"
// +kubebuilder:validation:XValidation:rule="self.reserved ? self.uid == self.name : self.uid.size() <= 57",message="the uid of a reserved instance must be its name; any other uid must have at most 57 characters, because kafka-UID is the namespace of the instance on the data plane"
// +kubebuilder:validation:XValidation:rule="self.reserved || has(self.namespace)",message="namespace is missing: set it to the namespace of the ServiceInstance; only a reserved instance has none"
// +kubebuilder:validation:XValidation:rule="self.reserved == oldSelf.reserved && self.type == oldSelf.type",message="type and reserved of an instance cannot be changed: they determine its nodes"
// +kubebuilder:validation:XValidation:rule="self.reserved || self.units == oldSelf.units",message="units of an instance cannot be changed: the hub and the data plane must count the same number"
// +kubebuilder:validation:XValidation:rule="!oldSelf.deleted || self.deleted || self.placementID != oldSelf.placementID",message="deleted cannot be set back to false: place the instance again, with another placementID"
type AgentInstance struct {
	// UID is the ID of the instance on the data plane. It differs from that of any other instance,
	// including one with the same name. The UID of a reserved instance is its name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	UID string `json:"uid"`
	// Namespace is the namespace of the ServiceInstance. A reserved instance has none.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// Name is the name of the ServiceInstance, or of the reserved instance.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Type is the InstanceType of the instance.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Type string `json:"type"`
	// Size is the size of the instance.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Size string `json:"size"`
	// Units is the number of streaming units of the instance.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Units int32 `json:"units"`
	// Reserved is true for an instance that only keeps nodes running, so that a new instance can
	// start there without waiting for nodes.
	// +optional
	// +kubebuilder:default=false
	Reserved bool `json:"reserved"`
	// PlacementID identifies one placement of the instance. It changes when the instance is placed
	// again.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	PlacementID string `json:"placementID"`
	// Deleted is true to delete the instance. It stays in the list until the agent reports that it
	// is deleted. It cannot be set back to false for the same placement.
	// +optional
	// +kubebuilder:default=false
	Deleted bool `json:"deleted"`
	// Capacity is the capacity of the instance's size.
	// +optional
	Capacity *KafkaCapacity `json:"capacity,omitempty"`
	// Versions are the versions that the instance should run.
	// +optional
	Versions InstanceVersions `json:"versions,omitempty"`
	// Parameters are additional fields of the spec of the instance's ManagedKafka. hotspare passes
	// them on unchanged.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Parameters *runtime.RawExtension `json:"parameters,omitempty"`
}

// InstanceVersions are the versions of one instance.
type InstanceVersions struct {
	// Strimzi is the version of the Strimzi operator.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Strimzi string `json:"strimzi,omitempty"`
	// Kafka is the version of Kafka.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Kafka string `json:"kafka,omitempty"`
	// KafkaIBP is the version of the Kafka inter-broker protocol.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	KafkaIBP string `json:"kafkaIbp,omitempty"`
}

// DataPlaneAgentStatus is the observed state of the data plane. The agent writes the report, the
// hub writes the conditions.
type DataPlaneAgentStatus struct {
	// ObservedGeneration is the generation of the spec that the agent has read. The agent writes it
	// with its report.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Report is the last report of the agent. The hub validates it before it uses any part of it.
	// +optional
	Report *DataPlaneReport `json:"report,omitempty"`
	// Conditions contains at most one of Reconciling and Stalled, and only while it is True. The
	// hub derives it from the conditions of the DataPlane.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// DataPlaneReport is what an agent reports about its data plane. It is also the heartbeat. The
// schema does not validate it, so that the hub can show what is wrong with an invalid report; the
// hub validates it before it uses any part of it.
type DataPlaneReport struct {
	// At is the time of the report, according to the clock of the data plane.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	At metav1.Time `json:"at"`
	// Capacity is the capacity of the data plane, by instance type.
	// +optional
	Capacity map[string]ReportedCapacity `json:"capacity,omitempty"`
	// Versions are the operator versions on the data plane, and the versions that they can run.
	// +optional
	// +listType=atomic
	Versions []OperatorVersion `json:"versions,omitempty"`
	// DataPlaneUID is spec.dataPlaneUID of the spec that the agent has read.
	// +optional
	DataPlaneUID string `json:"dataPlaneUID,omitempty"`
	// ObservedGeneration is the generation of the spec that the agent has read.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// AgentVersion is the version of the agent.
	// +optional
	AgentVersion string `json:"agentVersion,omitempty"`
	// Ready is true if the agent can create instances.
	// +optional
	Ready bool `json:"ready"`
	// Reason is why the agent is ready or not, as one word that programs can compare.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message is why the agent is not ready, for people.
	// +optional
	Message string `json:"message,omitempty"`
	// Instances are the reports of the instances in the spec, and of other instances on the data
	// plane.
	// +optional
	// +listType=atomic
	Instances []InstanceReport `json:"instances,omitempty"`
}

// Reasons of a report.
const (
	// ReasonAgentReady: the agent can create instances.
	ReasonAgentReady = "Ready"
	// ReasonNoOperator: no version of the operator is ready.
	ReasonNoOperator = "NoOperator"
	// ReasonPlaneSilent: the API of the data plane does not respond to the agent.
	ReasonPlaneSilent = "DataPlaneSilent"
	// ReasonSpecUnreadable: the agent cannot decode the complete spec, and does not act on it.
	ReasonSpecUnreadable = "SpecUnreadable"
)

// AgentPhase is the phase of an instance on its data plane.
type AgentPhase string

// The phases that agents report.
const (
	// AgentProvisioning: the instance is being created.
	AgentProvisioning AgentPhase = "Provisioning"
	// AgentReady: the instance can be used. For a reserved instance, its nodes are running.
	AgentReady AgentPhase = "Ready"
	// AgentFailed: the instance cannot be created with its current spec.
	AgentFailed AgentPhase = "Failed"
	// AgentRejected: the data plane rejects the instance. None of its objects exist there, unless
	// the operator reports otherwise.
	AgentRejected AgentPhase = "Rejected"
	// AgentDeleting: the instance is being deleted.
	AgentDeleting AgentPhase = "Deleting"
	// AgentDeleted: all objects of the instance are deleted. The hub can remove it from the list.
	AgentDeleted AgentPhase = "Deleted"
	// AgentUnlisted: the instance is on the data plane, but not in the list. The agent does not
	// change it, and counts its units.
	AgentUnlisted AgentPhase = "Unlisted"
)

// InstanceReport is what an agent reports about one instance.
type InstanceReport struct {
	// UID is the UID of the instance in the spec. For an instance that is not in the spec, it is
	// that of its ManagedKafka.
	UID string `json:"uid"`
	// PlacementID is the placement ID of the instance in the spec. For an instance that is not in
	// the spec, it is that of its ManagedKafka.
	// +optional
	PlacementID string `json:"placementID,omitempty"`
	// Name is the name of the ServiceInstance.
	// +optional
	Name string `json:"name,omitempty"`
	// Reserved is true for an instance that only keeps nodes running.
	// +optional
	Reserved bool `json:"reserved,omitempty"`
	// Phase is the phase of the instance: Provisioning, Ready, Failed, Rejected, Deleting, Deleted
	// or Unlisted.
	Phase AgentPhase `json:"phase"`
	// Reason is why the instance is in this phase, as one word that programs can compare. It is the
	// operator's reason, if the operator reports one.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message is why the instance is in this phase, for people. It is the operator's message, if
	// the operator reports one.
	// +optional
	Message string `json:"message,omitempty"`
	// Versions are the versions that the instance runs.
	// +optional
	Versions InstanceVersions `json:"versions,omitempty"`
	// Routes are the routes to the instance.
	// +optional
	// +listType=atomic
	Routes []InstanceRoute `json:"routes,omitempty"`
}

// Reasons of an instance's phase. All other reasons are the operator's.
const (
	// ReasonNoRoom: the data plane has too few free units of its type.
	ReasonNoRoom = "NoRoom"
	// ReasonNoPool: the data plane has no nodes for its type.
	ReasonNoPool = "NoPool"
	// ReasonNamespaceTaken: the namespace that it needs exists already and does not belong to it.
	ReasonNamespaceTaken = "NamespaceTaken"
	// ReasonNotApplied: the API of the data plane rejected one of its objects.
	ReasonNotApplied = "NotApplied"
	// ReasonReplacing: the agent first deletes the objects of an earlier placement.
	ReasonReplacing = "Replacing"
	// ReasonInvalidParameters: its parameters are not fields of a ManagedKafka's spec.
	ReasonInvalidParameters = "InvalidParameters"
)

// InstanceRoute is one route to an instance.
type InstanceRoute struct {
	// Name is the name of the route.
	Name string `json:"name"`
	// Prefix is the prefix of the route's host name.
	// +optional
	Prefix string `json:"prefix,omitempty"`
	// Router is the host name of the router that serves the route.
	// +optional
	Router string `json:"router,omitempty"`
}

// Pool returns the pool of the given instance type, if there is one.
func (s DataPlaneAgentSpec) Pool(instanceType string) (AgentPool, bool) {
	for _, p := range s.Pools {
		if p.Type == instanceType {
			return p, true
		}
	}
	return AgentPool{}, false
}

// MaxUnits returns the number of whole streaming units that fit on the nodes of the pool.
func (p AgentPool) MaxUnits() int32 {
	return InstanceTypeSpec{NodesPerUnit: p.NodesPerUnit, UnitsPerNode: p.UnitsPerNode}.UnitsOn(p.MaxNodes)
}

// DataPlaneAgentList is a list of DataPlaneAgents.
//
// +kubebuilder:object:root=true
type DataPlaneAgentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DataPlaneAgent `json:"items"`
}

// UnmarshalJSON decodes as much as possible: see hivev1.Reading.
func (a *DataPlaneAgent) UnmarshalJSON(data []byte) error {
	type plain DataPlaneAgent
	p, r, err := hivev1.Read[plain](data)
	p.Reading = r
	*a = DataPlaneAgent(p)
	return err
}
