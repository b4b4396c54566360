package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// DataPlaneAgent is what the hub and the agent on a data plane have to tell each
// other. It has the name of its DataPlane. The hub alone writes the spec: what is to be
// there. The agent writes the status: what there is; the hub writes its conditions.
// People read it.
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
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name is longer than the 63 characters that fit in a label: it is the name of the DataPlane, so choose a shorter one there"
type DataPlaneAgent struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	hivev1.Reading    `json:"-"`

	Spec DataPlaneAgentSpec `json:"spec"`
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status DataPlaneAgentStatus `json:"status,omitempty"`
}

// DataPlaneAgentSpec is what is to be on the data plane.
type DataPlaneAgentSpec struct {
	// DataPlaneUID is that of the DataPlane. The agent repeats it in its reports.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.dataPlaneUID cannot be changed: delete the DataPlaneAgent and make another for the other DataPlane"
	DataPlaneUID string `json:"dataPlaneUID"`
	// ReportEvery is how often the agent reports when nothing has changed. The hub calls
	// an agent silent that has missed two reports and more.
	// +optional
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="reportEvery is below 1s or above 1h: write a time between them, such as 30s"
	ReportEvery hivev1.Duration `json:"reportEvery,omitempty"`
	// InquiryAt is when the hub last asked what is on the data plane. The agent reports at
	// once when it changes: before a cluster is given back, its agent has to say that it is empty.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	InquiryAt *metav1.Time `json:"inquiryAt,omitempty"`
	// Pools are the nodes for each instance type.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=64
	Pools []AgentPool `json:"pools,omitempty"`
	// Instances are what is to be there, reserved ones among them. One that is merely
	// taken off the list stays on the data plane, and is told of: whoever wants it gone
	// says so with deleted. A reserved one that is taken off goes.
	// +optional
	// +listType=map
	// +listMapKey=uid
	// +kubebuilder:validation:MaxItems=1000
	Instances []AgentInstance `json:"instances,omitempty"`
}

// AgentPool are the nodes for one type.
//
// +kubebuilder:validation:XValidation:rule="has(self.nodesPerUnit) != has(self.unitsPerNode)",message="name one of nodesPerUnit and unitsPerNode, as in the InstanceType"
type AgentPool struct {
	// Type is that of the instances.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Type string `json:"type"`
	// MaxNodes is how many nodes there can be. The agent repeats it.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	MaxNodes int32 `json:"maxNodes"`
	// NodesPerUnit and UnitsPerNode are as in the InstanceType, whose rules they have passed.
	// +optional
	NodesPerUnit *resource.Quantity `json:"nodesPerUnit,omitempty"`
	// +optional
	UnitsPerNode *resource.Quantity `json:"unitsPerNode,omitempty"`
	// NodeRequests is what the pods of instances together ask for on one node of the
	// type. Absent: 2900m of cpu and 17Gi of memory, which fit on 4 CPUs and 32 GB. Other names mean nothing.
	// +optional
	NodeRequests corev1.ResourceList `json:"nodeRequests,omitempty"`
}

// AgentInstance is one instance, as the data plane has to know it.
//
// +kubebuilder:validation:XValidation:rule="!self.reserved || self.name.startsWith('reserved-kafka-' + self.type + '-')",message="the name of a reserved instance is reserved-kafka-TYPE-NUMBER"
// +kubebuilder:validation:XValidation:rule="self.reserved ? self.uid == self.name : self.uid.size() <= 57",message="the uid of a reserved instance is its name; that of another has at most 57 characters, since kafka-UID is its namespace on the data plane"
// +kubebuilder:validation:XValidation:rule="self.reserved || has(self.namespace)",message="namespace is missing: it is that of the ServiceInstance; only a reserved instance has none"
// +kubebuilder:validation:XValidation:rule="self.reserved == oldSelf.reserved && self.type == oldSelf.type",message="type and reserved of an instance cannot be changed: its nodes were chosen by them"
// +kubebuilder:validation:XValidation:rule="self.reserved || self.units == oldSelf.units",message="units of an instance cannot be changed: hub and data plane count the same number"
// +kubebuilder:validation:XValidation:rule="!oldSelf.deleted || self.deleted || self.placementID != oldSelf.placementID",message="a deletion cannot be taken back: place the instance anew, with another placementID"
type AgentInstance struct {
	// UID tells it from any other, of the same name too. On the data plane it is its id.
	// That of a reserved one is its name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	UID string `json:"uid"`
	// Namespace and Name are the ServiceInstance.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Type and Size are what was ordered.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Type string `json:"type"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Size string `json:"size"`
	// Units is how many streaming units it takes.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Units int32 `json:"units"`
	// Reserved is one that is not there, but could be at once: it keeps nodes up.
	// +optional
	// +kubebuilder:default=false
	Reserved bool `json:"reserved"`
	// PlacementID tells one attempt to have it here from the next.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	PlacementID string `json:"placementID"`
	// Deleted has it taken away. It stays on the list until the agent says that it is gone.
	// +optional
	// +kubebuilder:default=false
	Deleted bool `json:"deleted"`
	// Capacity are the figures of its size.
	// +optional
	Capacity *KafkaCapacity `json:"capacity,omitempty"`
	// Versions are what it is to run.
	// +optional
	Versions InstanceVersions `json:"versions,omitempty"`
	// Parameters are handed on as they are: fields of the spec of its ManagedKafka.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Parameters *runtime.RawExtension `json:"parameters,omitempty"`
}

// InstanceVersions are those of one instance.
type InstanceVersions struct {
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Strimzi string `json:"strimzi,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Kafka string `json:"kafka,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=128
	KafkaIBP string `json:"kafkaIbp,omitempty"`
}

// DataPlaneAgentStatus is what there is, and what the hub thinks of the report.
type DataPlaneAgentStatus struct {
	// ObservedGeneration is the generation of the spec that the agent has read last. The
	// agent writes it with its report.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Report is what the agent said last. Nothing of it is believed before the hub has judged it.
	// +optional
	Report *DataPlaneReport `json:"report,omitempty"`
	// Conditions: Reconciling or Stalled while it is True. The hub writes them, from the
	// conditions of the DataPlane.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// DataPlaneReport is what an agent says of its data plane. It is a heartbeat, too.
// Nothing of it is believed before it was judged, so it has no rules here: a report that
// is wrong has to be seen to be told of.
type DataPlaneReport struct {
	// At is when it was made.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	At metav1.Time `json:"at"`
	// Capacity is by type.
	// +optional
	Capacity map[string]ReportedCapacity `json:"capacity,omitempty"`
	// Versions are what it can run.
	// +optional
	// +listType=atomic
	Versions []OperatorVersion `json:"versions,omitempty"`
	// DataPlaneUID is that of the spec that it is about.
	// +optional
	DataPlaneUID string `json:"dataPlaneUID,omitempty"`
	// ObservedGeneration is the generation of that spec.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// AgentVersion is which agent it is.
	// +optional
	AgentVersion string `json:"agentVersion,omitempty"`
	// Ready says whether instances can be made there. Reason and Message say why not.
	// +optional
	Ready bool `json:"ready"`
	// +optional
	Reason string `json:"reason,omitempty"`
	// +optional
	Message string `json:"message,omitempty"`
	// Instances tells of each that is listed, and of others that are there.
	// +optional
	// +listType=atomic
	Instances []InstanceReport `json:"instances,omitempty"`
}

// Reasons of a report.
const (
	// ReasonAgentReady: instances can be made.
	ReasonAgentReady = "Ready"
	// ReasonNoOperator: there is no version of the operator that is ready.
	ReasonNoOperator = "NoOperator"
	// ReasonPlaneSilent: the data plane's API does not answer the agent.
	ReasonPlaneSilent = "DataPlaneSilent"
	// ReasonSpecUnreadable: the spec cannot be read whole, so nothing is done about it.
	ReasonSpecUnreadable = "SpecUnreadable"
)

// AgentPhase is how far an instance is on its data plane.
type AgentPhase string

// The phases that agents tell.
const (
	// AgentProvisioning: it is being made.
	AgentProvisioning AgentPhase = "Provisioning"
	// AgentReady: it can be used. A reserved one: its nodes are up.
	AgentReady AgentPhase = "Ready"
	// AgentFailed: it cannot be made as it is.
	AgentFailed AgentPhase = "Failed"
	// AgentRejected: the data plane will not have it. Nothing of it is there, unless the operator says so.
	AgentRejected AgentPhase = "Rejected"
	// AgentDeleting: it is being taken away.
	AgentDeleting AgentPhase = "Deleting"
	// AgentDeleted: nothing of it is there. It can be taken off the list.
	AgentDeleted AgentPhase = "Deleted"
	// AgentUnlisted: it is there, and not on the list. It is left alone, and takes its units.
	AgentUnlisted AgentPhase = "Unlisted"
)

// InstanceReport is what an agent says of one instance.
type InstanceReport struct {
	// UID and PlacementID are those of the list. Of one that is not on it they are as
	// its ManagedKafka has them.
	UID string `json:"uid"`
	// +optional
	PlacementID string `json:"placementID,omitempty"`
	// Name is that of the ServiceInstance.
	// +optional
	Name string `json:"name,omitempty"`
	// Reserved says that it only keeps nodes up.
	// +optional
	Reserved bool `json:"reserved,omitempty"`
	// Phase is how far it is.
	Phase AgentPhase `json:"phase"`
	// Reason and Message say why, in the operator's words where it has some.
	// +optional
	Reason string `json:"reason,omitempty"`
	// +optional
	Message string `json:"message,omitempty"`
	// Versions are what it runs.
	// +optional
	Versions InstanceVersions `json:"versions,omitempty"`
	// Routes are how it is reached.
	// +optional
	// +listType=atomic
	Routes []InstanceRoute `json:"routes,omitempty"`
}

// Reasons of an instance's phase. Others are the operator's.
const (
	// ReasonNoRoom: the units that are left of its type are too few.
	ReasonNoRoom = "NoRoom"
	// ReasonNoPool: the data plane has no nodes for its type.
	ReasonNoPool = "NoPool"
	// ReasonNamespaceTaken: somebody else has the namespace that it needs.
	ReasonNamespaceTaken = "NamespaceTaken"
	// ReasonNotApplied: the data plane's API refused an object of it.
	ReasonNotApplied = "NotApplied"
	// ReasonReplacing: what an earlier placement made is taken away first.
	ReasonReplacing = "Replacing"
	// ReasonInvalidParameters: its parameters are not fields.
	ReasonInvalidParameters = "InvalidParameters"
)

// InstanceRoute is one way to reach an instance.
type InstanceRoute struct {
	Name string `json:"name"`
	// +optional
	Prefix string `json:"prefix,omitempty"`
	// +optional
	Router string `json:"router,omitempty"`
}

// Pool finds the nodes of a type.
func (s DataPlaneAgentSpec) Pool(instanceType string) (AgentPool, bool) {
	for _, p := range s.Pools {
		if p.Type == instanceType {
			return p, true
		}
	}
	return AgentPool{}, false
}

// MaxUnits is how many whole streaming units fit on its nodes.
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

// UnmarshalJSON reads as much as can be read, see hivev1.Reading.
func (o *DataPlaneAgent) UnmarshalJSON(data []byte) error {
	type plain DataPlaneAgent
	p, r, err := hivev1.Read[plain](data)
	p.Reading = r
	*o = DataPlaneAgent(p)
	return err
}
