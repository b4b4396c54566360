package v1alpha1

import (
	"math/big"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// InstanceType defines a type of service instance: its sizes, and the nodes that it needs on a data
// plane.
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
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && self.metadata.name.size() <= 40",message="metadata.name becomes part of the names of machine pools and namespaces: use at most 40 lower-case letters, digits and -"
type InstanceType struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	hivev1.Reading    `json:"-"`

	Spec InstanceTypeSpec `json:"spec"`
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status InstanceTypeStatus `json:"status,omitempty"`
}

// InstanceTypeSpec is the desired state of an InstanceType.
//
// +kubebuilder:validation:XValidation:rule="has(self.nodesPerUnit) != has(self.unitsPerNode)",message="set exactly one of nodesPerUnit and unitsPerNode: the number of nodes that a streaming unit needs, such as 3, or the number of units that fit on a node"
// +kubebuilder:validation:XValidation:rule="self.sizes.all(s, !has(s.availabilityZones) || (s.availabilityZones == 'Multi') == self.multiZone)",message="availabilityZones of a size contradicts spec.multiZone: all data planes of a type span the same zones, so create another InstanceType for these sizes"
type InstanceTypeSpec struct {
	// Sizes are the sizes in which instances can be created.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Sizes []InstanceSize `json:"sizes"`
	// MultiZone is true if instances are placed only on data planes that span several availability
	// zones. If false, they are placed only on data planes in a single zone.
	// +optional
	// +kubebuilder:default=false
	MultiZone bool `json:"multiZone"`
	// NodesPerUnit is the number of nodes that one streaming unit needs, such as 3, or "0.1" if ten
	// units share a node. Set exactly one of nodesPerUnit and unitsPerNode.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == string ? isQuantity(self) && quantity(self).isGreaterThan(quantity('0')) && quantity(self).isLessThan(quantity('1001')) : type(self) == int && self > 0 && self <= 1000",message="it is not a number above 0 and up to 1000: write 3, or a fraction in quotes, such as \"0.1\""
	NodesPerUnit *resource.Quantity `json:"nodesPerUnit,omitempty"`
	// UnitsPerNode is the number of streaming units that fit on one node, such as 10. Set exactly
	// one of nodesPerUnit and unitsPerNode.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == string ? isQuantity(self) && quantity(self).isGreaterThan(quantity('0')) && quantity(self).isLessThan(quantity('1001')) : type(self) == int && self > 0 && self <= 1000",message="it is not a number above 0 and up to 1000: write 10, or a fraction in quotes, such as \"0.5\""
	UnitsPerNode *resource.Quantity `json:"unitsPerNode,omitempty"`
	// NodePools describe the nodes that a data plane has for instances of the type, one entry per
	// platform.
	// +optional
	// +listType=map
	// +listMapKey=platform
	// +kubebuilder:validation:MaxItems=32
	NodePools []NodePool `json:"nodePools,omitempty"`
	// Workload defines which objects hotspare creates for an instance on its data plane.
	// +optional
	Workload Workload `json:"workload,omitempty"`
}

// AvailabilityZones is the number of zones of a size.
//
// +kubebuilder:validation:Enum=Single;Multi
type AvailabilityZones string

// The values of AvailabilityZones.
const (
	// ZonesSingle: its data planes are in a single zone.
	ZonesSingle AvailabilityZones = "Single"
	// ZonesMulti: its data planes span several zones.
	ZonesMulti AvailabilityZones = "Multi"
)

// InstanceSize is one size of an instance type.
type InstanceSize struct {
	// Name is the name of the size, such as x1.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Units is the number of streaming units that an instance of this size uses.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Units int32 `json:"units"`
	// AvailabilityZones repeats spec.multiZone: Multi if it is true, Single if not. A size that
	// contradicts spec.multiZone is rejected.
	// +optional
	AvailabilityZones AvailabilityZones `json:"availabilityZones,omitempty"`
	// Capacity contains the limits of a Kafka of this size, in the fields of a ManagedKafka.
	// +optional
	Capacity *KafkaCapacity `json:"capacity,omitempty"`
}

// KafkaCapacity contains the limits of a Kafka.
type KafkaCapacity struct {
	// IngressPerSec is the maximum number of bytes written per second, such as 50Mi.
	// +optional
	IngressPerSec *resource.Quantity `json:"ingressPerSec,omitempty"`
	// EgressPerSec is the maximum number of bytes read per second, such as 100Mi.
	// +optional
	EgressPerSec *resource.Quantity `json:"egressPerSec,omitempty"`
	// MaxDataRetentionSize is the maximum number of bytes retained, such as 1Ti.
	// +optional
	MaxDataRetentionSize *resource.Quantity `json:"maxDataRetentionSize,omitempty"`
	// MaxDataRetentionPeriod is how long data is retained, as an ISO 8601 period such as P14D.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^P([0-9]+Y)?([0-9]+M)?([0-9]+W)?([0-9]+D)?(T([0-9]+H)?([0-9]+M)?([0-9]+S)?)?$') && self.matches('[0-9]')",message="it is not an ISO 8601 period: write P14D for 14 days, or PT36H for 36 hours"
	MaxDataRetentionPeriod string `json:"maxDataRetentionPeriod,omitempty"`
	// MaxMessageSize is the maximum size of one message in bytes, such as 1Mi.
	// +optional
	MaxMessageSize *resource.Quantity `json:"maxMessageSize,omitempty"`
	// TotalMaxConnections is the maximum number of connected clients.
	// +optional
	// +kubebuilder:validation:Minimum=1
	TotalMaxConnections int32 `json:"totalMaxConnections,omitempty"`
	// MaxConnectionAttemptsPerSec is the maximum number of connection attempts per second.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxConnectionAttemptsPerSec int32 `json:"maxConnectionAttemptsPerSec,omitempty"`
	// MaxPartitions is the maximum number of partitions of all topics.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxPartitions int32 `json:"maxPartitions,omitempty"`
	// MinInSyncReplicas is the minimum number of in-sync replicas of its topics.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinInSyncReplicas int32 `json:"minInSyncReplicas,omitempty"`
	// ReplicationFactor is the replication factor of its topics.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ReplicationFactor int32 `json:"replicationFactor,omitempty"`
}

// NodePool describes the nodes of a data plane for one instance type.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minNodes) || self.minNodes <= self.maxNodes",message="minNodes is above maxNodes: raise maxNodes, or lower minNodes"
type NodePool struct {
	// Platform is a provider, as in spec.provider of a FleetRegion, such as aws.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Platform string `json:"platform"`
	// MachineType is the platform's name of the machine type of the nodes. If unset, the platform's
	// default is used.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	MachineType string `json:"machineType,omitempty"`
	// MinNodes is the minimum number of nodes. If unset, it is 1 in a single zone and 3 in several
	// zones. With several zones, minNodes and maxNodes are rounded up to a multiple of 3.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MinNodes *int32 `json:"minNodes,omitempty"`
	// MaxNodes is the maximum number of nodes. It limits the number of units of a data plane.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MaxNodes int32 `json:"maxNodes"`
}

// Workload defines which objects hotspare creates for an instance on its data plane.
type Workload struct {
	// ManagedKafka creates a ManagedKafka of managedkafka.bf2.org/v1alpha1 for each instance.
	// +optional
	ManagedKafka *ManagedKafkaWorkload `json:"managedKafka,omitempty"`
}

// ManagedKafkaWorkload has no settings yet.
type ManagedKafkaWorkload struct{}

// InstanceTypeStatus is the observed state of an InstanceType. hotspare writes it.
type InstanceTypeStatus struct {
	// ObservedGeneration is the generation of the spec that this status describes. It is -1 until a
	// controller has processed the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// BiggestUnits is the number of streaming units of the largest size.
	// +optional
	BiggestUnits int32 `json:"biggestUnits,omitempty"`
	// Conditions of the type: Valid. At most one of Reconciling and Stalled is present, and only
	// while it is True.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Conditions of an InstanceType, with their reasons.
const (
	// TypeValid is False while no data plane can be created for the type.
	TypeValid        = "Valid"
	ReasonTypeValid  = "Valid"
	ReasonSizeTooBig = "SizeTooBig" // a size takes more units than a data plane of the type can have
)

// Size returns the size with the given name, if there is one.
func (s InstanceTypeSpec) Size(name string) (InstanceSize, bool) {
	for _, z := range s.Sizes {
		if z.Name == name {
			return z, true
		}
	}
	return InstanceSize{}, false
}

// BiggestUnits returns the number of units of the largest size; 0 if there are no sizes.
func (s InstanceTypeSpec) BiggestUnits() int32 {
	var most int32
	for _, z := range s.Sizes {
		most = max(most, z.Units)
	}
	return most
}

// Nodes returns the minimum and maximum number of nodes of the type on a data plane of the
// provider, with defaults applied and rounded up to whole zones. ok is false if there is no entry
// for the provider.
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
			return roundUpToZones(least), roundUpToZones(p.MaxNodes), true
		}
		return least, p.MaxNodes, true
	}
	return 0, 0, false
}

// zones is the number of zones that a multi-zone data plane spans.
const zones = 3

func roundUpToZones(n int32) int32 { return (n + zones - 1) / zones * zones }

// UnitsOn returns the number of whole streaming units that fit on the given number of nodes; 0 if
// the type does not specify it.
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

// mostUnits is more units than any data plane has.
const mostUnits = 1 << 30

// ratio returns a quantity above 0 as an exact fraction, and nil for any other quantity.
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
