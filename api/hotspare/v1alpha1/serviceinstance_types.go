package v1alpha1

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// ServiceInstance is one instance of the service, such as a Kafka. hotspare places it on a data
// plane with enough free units.
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

// ServiceInstanceSpec is the desired state of a ServiceInstance. Only its parameters can be
// changed.
//
// +kubebuilder:validation:XValidation:rule="has(self.dataPlaneName) == has(oldSelf.dataPlaneName) && (!has(self.dataPlaneName) || self.dataPlaneName == oldSelf.dataPlaneName)",message="spec.dataPlaneName cannot be changed, because an instance cannot move: create another ServiceInstance"
type ServiceInstanceSpec struct {
	// Type is the name of an InstanceType. It cannot be changed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.type cannot be changed: create another ServiceInstance"
	Type string `json:"type"`
	// Size is the name of one of the sizes of the type. It cannot be changed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.size cannot be changed, because its units are allocated on a data plane: create another ServiceInstance"
	Size string `json:"size"`
	// Provider is the provider of the instance, as in a FleetRegion. It cannot be changed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.provider cannot be changed: create another ServiceInstance"
	Provider string `json:"provider"`
	// Region is the region of the instance, as in a FleetRegion. It cannot be changed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.region cannot be changed: create another ServiceInstance"
	Region string `json:"region"`
	// DataPlaneName is the name of the only data plane on which the instance may be placed. If
	// unset, hotspare chooses a data plane of the region. It cannot be changed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	DataPlaneName string `json:"dataPlaneName,omitempty"`
	// Parameters are settings of the service. hotspare passes them on unchanged.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Parameters *runtime.RawExtension `json:"parameters,omitempty"`
}

// InstancePhase is the phase of an instance's life cycle.
//
// +kubebuilder:validation:Enum=Pending;Provisioning;Ready;Failed;Deleting
type InstancePhase string

// The phases.
const (
	// InstancePending: it is not placed on a data plane yet; condition Placed shows why.
	InstancePending InstancePhase = "Pending"
	// InstanceProvisioning: it is being created on its data plane.
	InstanceProvisioning InstancePhase = "Provisioning"
	// InstanceReady: it can be used.
	InstanceReady InstancePhase = "Ready"
	// InstanceFailed: its data plane reports that it cannot be created.
	InstanceFailed InstancePhase = "Failed"
	// InstanceDeleting: it is being deleted. It uses its units until it is deleted.
	InstanceDeleting InstancePhase = "Deleting"
)

// ServiceInstanceStatus is the observed state of a ServiceInstance. hotspare writes it.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.dataPlaneName) || !has(self.dataPlaneName) || self.dataPlaneName == oldSelf.dataPlaneName",message="status.dataPlaneName cannot be changed: clear it before the instance is placed on another data plane"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.units) || has(self.units) && self.units == oldSelf.units",message="status.units cannot be changed once it is set: the hub and the data plane must count the same number"
type ServiceInstanceStatus struct {
	// ObservedGeneration is the generation of the spec that this status describes. It is -1 until a
	// controller has processed the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// DataPlaneName is the name of the data plane on which the instance is placed, in the namespace
	// of its FleetRegion. It is unset until the instance is placed.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	DataPlaneName string `json:"dataPlaneName,omitempty"`
	// Units is the number of streaming units of the instance, from its type and size when hotspare
	// first processed it. It is never changed.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Units int32 `json:"units,omitempty"`
	// Placements is the number of times that the instance was placed. It distinguishes the effects
	// of one placement from those of the next.
	// +optional
	Placements int32 `json:"placements,omitempty"`
	// Phase is the current phase of the instance's life cycle.
	// +optional
	Phase InstancePhase `json:"phase,omitempty"`
	// Versions are the versions that the instance runs, as reported by its data plane.
	// +optional
	Versions InstanceVersions `json:"versions,omitempty"`
	// Routes are the routes to the instance, as reported by its data plane.
	// +optional
	// +listType=atomic
	Routes []InstanceRoute `json:"routes,omitempty"`
	// Refusals are data planes that rejected the instance. hotspare does not try one again before
	// its report changes.
	// +optional
	// +listType=map
	// +listMapKey=dataPlaneName
	// +kubebuilder:validation:MaxItems=32
	Refusals []Refusal `json:"refusals,omitempty"`
	// Conditions of the instance: Placed and Ready. At most one of Reconciling and Stalled is
	// present, and only while it is True.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Refusal is a data plane that rejected the instance.
type Refusal struct {
	// DataPlaneName is the name of the data plane.
	// +kubebuilder:validation:MaxLength=63
	DataPlaneName string `json:"dataPlaneName"`
	// Until is the earliest time at which hotspare may try the data plane again. It tries when the
	// data plane also reports more remaining units than remainingUnits, or other versions.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	Until metav1.Time `json:"until"`
	// Message is why the data plane rejected the instance.
	// +optional
	Message string `json:"message,omitempty"`
	// RemainingUnits is the number of free units of the instance's type on the data plane, without
	// this instance, when it was rejected.
	// +optional
	RemainingUnits int32 `json:"remainingUnits,omitempty"`
	// Versions are the ready Strimzi versions on the data plane when the instance was rejected,
	// sorted and separated by commas.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Versions string `json:"versions,omitempty"`
	// Generation is the generation of the instance's spec that was rejected. If the spec has
	// changed since, hotspare may try the data plane immediately.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// Vacant is true if no other instance was on the data plane. A new data plane would reject the
	// instance, too, so hotspare does not create one for it.
	// +optional
	Vacant bool `json:"vacant,omitempty"`
}

// Conditions of a ServiceInstance. The reasons of Placed are those of package scaling.
const (
	// InstancePlaced is True once the instance is placed on a data plane.
	InstancePlaced = "Placed"
	// InstanceIsReady is True while the instance can be used.
	InstanceIsReady = "Ready"
)

// Reasons of Placed that are not of package scaling.
const (
	// ReasonPlaced: the instance is placed on a data plane.
	ReasonPlaced = "Placed"
	// ReasonNoRegion: no FleetRegion has its provider and region.
	ReasonNoRegion = "NoRegion"
)

// Reasons of Ready. While an instance can be used or is being created, and after it has failed, the
// reason is the data plane's, if the data plane reports one.
const (
	// ReasonInstanceReady: it can be used.
	ReasonInstanceReady = "Ready"
	// ReasonInstanceProvisioning: its data plane creates it.
	ReasonInstanceProvisioning = "Provisioning"
	// ReasonInstanceFailed: its data plane cannot create it.
	ReasonInstanceFailed = "Failed"
	// ReasonInstanceDeleting: it is being deleted.
	ReasonInstanceDeleting = "Deleting"
	// ReasonNotPlaced: it is not placed on a data plane; condition Placed shows why.
	ReasonNotPlaced = "NotPlaced"
	// ReasonRejected: its data plane rejects it after it had accepted it.
	ReasonRejected = "Rejected"
	// ReasonTakenAway: its data plane is deleting it, or has deleted it, although nobody requested
	// that.
	ReasonTakenAway = "TakenAway"
	// ReasonNotReported: its data plane does not report it.
	ReasonNotReported = "NotReported"
	// ReasonAgentSilent: the agent of its data plane does not report. The phase is the last one
	// that was reported.
	ReasonAgentSilent = "AgentSilent"
	// ReasonDataPlaneGone: its data plane does not exist any more, or is being released.
	ReasonDataPlaneGone = "DataPlaneGone"
)

// FinalizerServiceInstance keeps a ServiceInstance until all its objects on the data plane are
// deleted. hotspare does not place an instance without it.
const FinalizerServiceInstance = "hotspare.io/service-instance"

// PlacementID identifies the current placement of the instance. Earlier placements have other IDs.
func (i *ServiceInstance) PlacementID() string {
	return fmt.Sprintf("%s-%d", i.UID, i.Status.Placements)
}

// ServiceInstanceList is a list of ServiceInstances.
//
// +kubebuilder:object:root=true
type ServiceInstanceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ServiceInstance `json:"items"`
}
