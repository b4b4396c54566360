package v1alpha1

import (
	"math/big"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// InstanceType is a kind of service instance: the sizes that it comes in, and what
// nodes it needs on a data plane.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=it
// +kubebuilder:printcolumn:name="MultiZone",type=boolean,JSONPath=`.spec.multiZone`
// +kubebuilder:printcolumn:name="Sizes",type=string,JSONPath=`.spec.sizes[*].name`
// +kubebuilder:printcolumn:name="Biggest",type=integer,JSONPath=`.status.biggestUnits`
// +kubebuilder:printcolumn:name="Valid",type=string,JSONPath=`.status.conditions[?(@.type=='Valid')].status`
// +kubebuilder:printcolumn:name="Why",type=string,JSONPath=`.status.conditions[?(@.type=='Valid')].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && self.metadata.name.size() <= 40",message="metadata.name becomes part of names of machine pools and namespaces: use at most 40 lower case letters, digits and -"
type InstanceType struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	hivev1.Reading    `json:"-"`

	Spec InstanceTypeSpec `json:"spec"`
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status InstanceTypeStatus `json:"status,omitempty"`
}

// InstanceTypeSpec is what instances of the type take.
//
// +kubebuilder:validation:XValidation:rule="has(self.nodesPerUnit) != has(self.unitsPerNode)",message="name one of nodesPerUnit and unitsPerNode: how many nodes a streaming unit takes, such as 3, or how many units fit on a node"
// +kubebuilder:validation:XValidation:rule="self.sizes.all(s, !has(s.availabilityZones) || (s.availabilityZones == 'Multi') == self.multiZone)",message="availabilityZones of a size contradicts spec.multiZone: data planes of one type are all alike, so make a second InstanceType for the other sizes"
type InstanceTypeSpec struct {
	// Sizes are what instances can be ordered in.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Sizes []InstanceSize `json:"sizes"`
	// MultiZone has instances on data planes that span several availability zones, and
	// on no others. False: on those in one zone only.
	// +optional
	// +kubebuilder:default=false
	MultiZone bool `json:"multiZone"`
	// NodesPerUnit is how many nodes one streaming unit takes: 3, or "0.1" when ten
	// units share a node.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == string ? isQuantity(self) && quantity(self).isGreaterThan(quantity('0')) && quantity(self).isLessThan(quantity('1001')) : type(self) == int && self > 0 && self <= 1000",message="it is not a number of nodes above 0 and up to 1000: write 3, or a fraction in quotes, such as \"0.1\""
	NodesPerUnit *resource.Quantity `json:"nodesPerUnit,omitempty"`
	// UnitsPerNode is the same the other way round: how many streaming units fit on a node.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == string ? isQuantity(self) && quantity(self).isGreaterThan(quantity('0')) && quantity(self).isLessThan(quantity('1001')) : type(self) == int && self > 0 && self <= 1000",message="it is not a number of units above 0 and up to 1000: write 10, or a fraction in quotes, such as \"0.5\""
	UnitsPerNode *resource.Quantity `json:"unitsPerNode,omitempty"`
	// NodePools are the nodes that a data plane has for instances of the type, one entry a platform.
	// +optional
	// +listType=map
	// +listMapKey=platform
	// +kubebuilder:validation:MaxItems=32
	NodePools []NodePool `json:"nodePools,omitempty"`
	// Workload is what becomes of an instance on its data plane.
	// +optional
	Workload Workload `json:"workload,omitempty"`
}

// AvailabilityZones is how a size is spread.
//
// +kubebuilder:validation:Enum=Single;Multi
type AvailabilityZones string

// The spreads of a size.
const (
	// ZonesSingle: its data planes are in one zone.
	ZonesSingle AvailabilityZones = "Single"
	// ZonesMulti: its data planes span several.
	ZonesMulti AvailabilityZones = "Multi"
)

// InstanceSize is one size of a type.
type InstanceSize struct {
	// Name is what instances order: x1.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Units is how many streaming units an instance of this size takes.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Units int32 `json:"units"`
	// AvailabilityZones says the same as spec.multiZone; a size that says otherwise is refused.
	// +optional
	AvailabilityZones AvailabilityZones `json:"availabilityZones,omitempty"`
	// Capacity are the figures that a Kafka of this size gets, as ManagedKafka names them.
	// +optional
	Capacity *KafkaCapacity `json:"capacity,omitempty"`
}

// KafkaCapacity is what a Kafka may use.
type KafkaCapacity struct {
	// IngressPerSec is the limit of what is written a second: 50Mi.
	// +optional
	IngressPerSec *resource.Quantity `json:"ingressPerSec,omitempty"`
	// EgressPerSec is the limit of what is read a second.
	// +optional
	EgressPerSec *resource.Quantity `json:"egressPerSec,omitempty"`
	// MaxDataRetentionSize is how much is kept.
	// +optional
	MaxDataRetentionSize *resource.Quantity `json:"maxDataRetentionSize,omitempty"`
	// MaxDataRetentionPeriod is how long it is kept, as in ISO 8601: P14D.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^P([0-9]+Y)?([0-9]+M)?([0-9]+W)?([0-9]+D)?(T([0-9]+H)?([0-9]+M)?([0-9]+S)?)?$') && self.matches('[0-9]')",message="it is not a period of ISO 8601: write P14D for fourteen days, or PT36H"
	MaxDataRetentionPeriod string `json:"maxDataRetentionPeriod,omitempty"`
	// MaxMessageSize is the limit of one message.
	// +optional
	MaxMessageSize *resource.Quantity `json:"maxMessageSize,omitempty"`
	// TotalMaxConnections is how many clients may be connected.
	// +optional
	// +kubebuilder:validation:Minimum=1
	TotalMaxConnections int32 `json:"totalMaxConnections,omitempty"`
	// MaxConnectionAttemptsPerSec is how many may connect in a second.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxConnectionAttemptsPerSec int32 `json:"maxConnectionAttemptsPerSec,omitempty"`
	// MaxPartitions limits the partitions of all topics.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxPartitions int32 `json:"maxPartitions,omitempty"`
	// MinInSyncReplicas and ReplicationFactor are those of its topics.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinInSyncReplicas int32 `json:"minInSyncReplicas,omitempty"`
	// +optional
	// +kubebuilder:validation:Minimum=1
	ReplicationFactor int32 `json:"replicationFactor,omitempty"`
}

// NodePool are the nodes of a data plane for one type.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minNodes) || self.minNodes <= self.maxNodes",message="minNodes is above maxNodes: raise maxNodes, or lower minNodes"
type NodePool struct {
	// Platform is a provider, as in spec.provider of a FleetRegion: aws.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Platform string `json:"platform"`
	// MachineType is the platform's name of the nodes' size. Absent: the platform's default.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	MachineType string `json:"machineType,omitempty"`
	// MinNodes is how many nodes there always are. Absent: 1 in a single zone, 3 in
	// several, where both numbers are rounded up to a multiple of 3.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MinNodes *int32 `json:"minNodes,omitempty"`
	// MaxNodes is how many there can be. It bounds the units of a data plane.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MaxNodes int32 `json:"maxNodes"`
}

// Workload is what becomes of an instance on its data plane.
type Workload struct {
	// ManagedKafka makes each instance a ManagedKafka object of managedkafka.bf2.org/v1alpha1.
	// +optional
	ManagedKafka *ManagedKafkaWorkload `json:"managedKafka,omitempty"`
}

// ManagedKafkaWorkload has no settings yet.
type ManagedKafkaWorkload struct{}

// InstanceTypeStatus is what the type comes to.
type InstanceTypeStatus struct {
	// ObservedGeneration is the generation of the specification that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// BiggestUnits are the units of the biggest size.
	// +optional
	BiggestUnits int32 `json:"biggestUnits,omitempty"`
	// Conditions: Valid; Reconciling or Stalled while it is True.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Conditions of an InstanceType, with their reasons.
const (
	// TypeValid is False while data planes cannot be made for the type as it is.
	TypeValid        = "Valid"
	ReasonTypeValid  = "Valid"
	ReasonSizeTooBig = "SizeTooBig" // a size takes more units than a data plane of the type can have
)

// Size finds a size by its name.
func (s InstanceTypeSpec) Size(name string) (InstanceSize, bool) {
	for _, z := range s.Sizes {
		if z.Name == name {
			return z, true
		}
	}
	return InstanceSize{}, false
}

// BiggestUnits are the units of the biggest size; 0 without sizes.
func (s InstanceTypeSpec) BiggestUnits() int32 {
	var most int32
	for _, z := range s.Sizes {
		most = max(most, z.Units)
	}
	return most
}

// Nodes are the bounds of the type's nodes on a data plane of that provider, as they
// are in effect: with its defaults, and rounded up to whole zones. Without an entry for
// the provider ok is false.
func (s InstanceTypeSpec) Nodes(provider string) (least, most int32, ok bool) {
	for _, p := range s.NodePools {
		if p.Platform != provider {
			continue
		}
		least = 1
		if p.MinNodes != nil {
			least = *p.MinNodes
		}
		if s.MultiZone {
			return whole(least), whole(p.MaxNodes), true
		}
		return least, p.MaxNodes, true
	}
	return 0, 0, false
}

// zones is over how many zones a multi-zone data plane is spread.
const zones = 3

func whole(n int32) int32 { return (n + zones - 1) / zones * zones }

// UnitsOn is how many whole streaming units fit on so many nodes; 0 if the type does
// not say.
func (s InstanceTypeSpec) UnitsOn(nodes int32) int32 {
	units := new(big.Rat).SetInt64(int64(nodes))
	switch per := ratio(s.NodesPerUnit); {
	case per != nil:
		units.Quo(units, per)
	case ratio(s.UnitsPerNode) != nil:
		units.Mul(units, ratio(s.UnitsPerNode))
	default:
		return 0
	}
	floor := new(big.Int).Quo(units.Num(), units.Denom())
	if !floor.IsInt64() || floor.Int64() > mostUnits {
		return mostUnits
	}
	return int32(floor.Int64())
}

// mostUnits is more than any data plane has.
const mostUnits = 1 << 30

// ratio is a quantity above 0 as a fraction, exactly; nil for any other.
func ratio(q *resource.Quantity) *big.Rat {
	if q == nil || q.Sign() <= 0 {
		return nil
	}
	r, ok := new(big.Rat).SetString(q.AsDec().String())
	if !ok {
		return nil
	}
	return r
}

// InstanceTypeList is a list of InstanceTypes.
//
// +kubebuilder:object:root=true
type InstanceTypeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []InstanceType `json:"items"`
}
