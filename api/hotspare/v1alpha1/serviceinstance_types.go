package v1alpha1

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// ServiceInstance is one instance of the service, such as a Kafka. It is placed on a
// data plane with room for it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=si
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Size",type=string,JSONPath=`.spec.size`
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=`.spec.region`
// +kubebuilder:printcolumn:name="Units",type=integer,JSONPath=`.status.units`
// +kubebuilder:printcolumn:name="DataPlane",type=string,JSONPath=`.status.dataPlaneName`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].reason`
// +kubebuilder:printcolumn:name="Placed",type=string,JSONPath=`.status.conditions[?(@.type=='Placed')].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Ready-Message",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].message`,priority=1
// +kubebuilder:printcolumn:name="Placed-Message",type=string,JSONPath=`.status.conditions[?(@.type=='Placed')].message`,priority=1
type ServiceInstance struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	hivev1.Reading    `json:"-"`

	Spec ServiceInstanceSpec `json:"spec"`
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status ServiceInstanceStatus `json:"status,omitempty"`
}

// ServiceInstanceSpec is what is ordered. Where it goes cannot be changed afterwards.
//
// +kubebuilder:validation:XValidation:rule="has(self.dataPlaneName) == has(oldSelf.dataPlaneName) && (!has(self.dataPlaneName) || self.dataPlaneName == oldSelf.dataPlaneName)",message="spec.dataPlaneName cannot be changed: an instance stays where it was placed, so make another one"
type ServiceInstanceSpec struct {
	// Type names an InstanceType.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.type cannot be changed: make another ServiceInstance"
	Type string `json:"type"`
	// Size names one of its sizes.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.size cannot be changed, since its units were taken from a data plane: make another ServiceInstance"
	Size string `json:"size"`
	// Provider and Region are where it is to be, as in a FleetRegion.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.provider cannot be changed: make another ServiceInstance"
	Provider string `json:"provider"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.region cannot be changed: make another ServiceInstance"
	Region string `json:"region"`
	// DataPlaneName has it placed on this data plane of the region, or nowhere.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	DataPlaneName string `json:"dataPlaneName,omitempty"`
	// Parameters are for the service; hotspare hands them on as they are.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Parameters *runtime.RawExtension `json:"parameters,omitempty"`
}

// InstancePhase is how far an instance is.
//
// +kubebuilder:validation:Enum=Pending;Provisioning;Ready;Failed;Deleting
type InstancePhase string

// The phases.
const (
	// InstancePending: it has no data plane yet; condition Placed says why.
	InstancePending InstancePhase = "Pending"
	// InstanceProvisioning: it has one, and is being made there.
	InstanceProvisioning InstancePhase = "Provisioning"
	// InstanceReady: it can be used.
	InstanceReady InstancePhase = "Ready"
	// InstanceFailed: its data plane says that it cannot be made.
	InstanceFailed InstancePhase = "Failed"
	// InstanceDeleting: it is being taken away. It takes its units until it is gone.
	InstanceDeleting InstancePhase = "Deleting"
)

// ServiceInstanceStatus is what the instance is.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.dataPlaneName) || !has(self.dataPlaneName) || self.dataPlaneName == oldSelf.dataPlaneName",message="status.dataPlaneName cannot be changed: an instance that its data plane refuses loses it first"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.units) || has(self.units) && self.units == oldSelf.units",message="status.units is frozen when it was first known: hub and data plane count the same number"
type ServiceInstanceStatus struct {
	// ObservedGeneration is the generation of the specification that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// DataPlaneName is where it was placed, in the namespace of its FleetRegion.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	DataPlaneName string `json:"dataPlaneName,omitempty"`
	// Units is how many streaming units it takes, from its type and size when it was
	// first seen. It stays so.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Units int32 `json:"units,omitempty"`
	// Placements is how often it was placed. It tells what one placement has brought
	// about from what the next does.
	// +optional
	Placements int32 `json:"placements,omitempty"`
	// Phase is how far it is.
	// +optional
	Phase InstancePhase `json:"phase,omitempty"`
	// Versions are what it runs, as its data plane says.
	// +optional
	Versions InstanceVersions `json:"versions,omitempty"`
	// Routes are how it is reached, as its data plane says.
	// +optional
	// +listType=atomic
	Routes []InstanceRoute `json:"routes,omitempty"`
	// Refusals are data planes that would not have it; none is asked again before what it
	// reports has changed.
	// +optional
	// +listType=map
	// +listMapKey=dataPlaneName
	// +kubebuilder:validation:MaxItems=32
	Refusals []Refusal `json:"refusals,omitempty"`
	// Conditions: Placed, Ready; Reconciling or Stalled while it is True.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Refusal is a data plane that would not have the instance.
type Refusal struct {
	// +kubebuilder:validation:MaxLength=63
	DataPlaneName string `json:"dataPlaneName"`
	// Until is when it may be asked again at the earliest. It is asked when, besides, it
	// reports more remaining units than RemainingUnits, or other Versions.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	Until metav1.Time `json:"until"`
	// Message is what it said.
	// +optional
	Message string `json:"message,omitempty"`
	// RemainingUnits are those of the instance's type that the data plane had, without
	// this instance, when it refused it.
	// +optional
	RemainingUnits int32 `json:"remainingUnits,omitempty"`
	// Versions are the ready Strimzi versions that it had then, sorted, with commas between.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Versions string `json:"versions,omitempty"`
	// Generation is that of the instance's specification that was refused. One that was
	// changed since is asked for again at once.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// Vacant is set when no other instance was on it. A new data plane would refuse the
	// instance, too, so none is made for it.
	// +optional
	Vacant bool `json:"vacant,omitempty"`
}

// Conditions of a ServiceInstance. The reasons of Placed are those of package scaling.
const (
	// InstancePlaced is True once it has a data plane.
	InstancePlaced = "Placed"
	// InstanceIsReady is True while it can be used.
	InstanceIsReady = "Ready"
)

// Reasons of Placed that are not of package scaling.
const (
	// ReasonPlaced is that of an instance that has a data plane.
	ReasonPlaced = "Placed"
	// ReasonNoRegion is that of one whose provider and region no FleetRegion has.
	ReasonNoRegion = "NoRegion"
)

// Reasons of Ready. Of an instance that can be used or is being made, and of one that
// failed, it is the data plane's, if that gives one.
const (
	// ReasonInstanceReady: it can be used.
	ReasonInstanceReady = "Ready"
	// ReasonInstanceProvisioning: its data plane makes it.
	ReasonInstanceProvisioning = "Provisioning"
	// ReasonInstanceFailed: its data plane cannot make it.
	ReasonInstanceFailed = "Failed"
	// ReasonInstanceDeleting: it is being taken away.
	ReasonInstanceDeleting = "Deleting"
	// ReasonNotPlaced: it has no data plane; condition Placed says why.
	ReasonNotPlaced = "NotPlaced"
	// ReasonRejected: its data plane will not have it, after it had it already.
	ReasonRejected = "Rejected"
	// ReasonTakenAway: its data plane takes it away, or has, and nobody wanted that.
	ReasonTakenAway = "TakenAway"
	// ReasonNotReported: its data plane does not tell of it.
	ReasonNotReported = "NotReported"
	// ReasonAgentSilent: the agent of its data plane is not heard of. The phase is the last that was.
	ReasonAgentSilent = "AgentSilent"
	// ReasonDataPlaneGone: its data plane is gone, or is being given back.
	ReasonDataPlaneGone = "DataPlaneGone"
)

// FinalizerServiceInstance keeps a ServiceInstance until its data plane has nothing of
// it. Without it none is placed.
const FinalizerServiceInstance = "hotspare.io/service-instance"

// PlacementID tells this placement of the instance from those before.
func (o *ServiceInstance) PlacementID() string {
	return fmt.Sprintf("%s-%d", o.UID, o.Status.Placements)
}

// ServiceInstanceList is a list of ServiceInstances.
//
// +kubebuilder:object:root=true
type ServiceInstanceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ServiceInstance `json:"items"`
}
