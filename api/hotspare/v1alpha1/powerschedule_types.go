package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// PowerSchedule puts clusters to sleep and wakes them by the clock.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ps
// +kubebuilder:printcolumn:name="Valid",type=string,JSONPath=`.status.conditions[?(@.type=='Valid')].status`
// +kubebuilder:printcolumn:name="Clusters",type=integer,JSONPath=`.status.clusters`
// +kubebuilder:printcolumn:name="Last",type=string,JSONPath=`.status.lastSlot.powerState`
// +kubebuilder:printcolumn:name="LastTime",type=date,JSONPath=`.status.lastSlot.time`
// +kubebuilder:printcolumn:name="Next",type=string,JSONPath=`.status.nextSlot.powerState`
// +kubebuilder:printcolumn:name="NextTime",type=string,JSONPath=`.status.nextSlot.time`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PowerSchedule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PowerScheduleSpec `json:"spec"`
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status PowerScheduleStatus `json:"status,omitempty"`
}

// PowerScheduleSpec is which clusters are switched, and when.
//
// +kubebuilder:validation:XValidation:rule="has(self.clusterSelector) != has(self.claimSelector)",message="name one of clusterSelector and claimSelector; {} selects all"
// +kubebuilder:validation:XValidation:rule="!has(self.namespaceSelector) || has(self.clusterSelector)",message="namespaceSelector goes with clusterSelector: clusters of claims are those of claims in this namespace"
type PowerScheduleSpec struct {
	// ClusterSelector selects ClusterDeployments by their labels: those in the
	// schedule's namespace, or where namespaceSelector says. {} selects all.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
	// NamespaceSelector selects the namespaces whose clusters clusterSelector
	// selects from. {} selects all. Only who may patch ClusterDeployments in all
	// namespaces can set it.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// ClaimSelector selects ClusterClaims of the schedule's namespace by their
	// labels; the schedule is for the clusters that they have. {} selects all.
	// +optional
	ClaimSelector *metav1.LabelSelector `json:"claimSelector,omitempty"`
	// Windows say when clusters are to sleep. The slots of all windows are taken
	// together: the last one counts.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Windows []Window `json:"windows"`
	// SkipUntil has all slots before this time skipped. They are not made up for.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	SkipUntil *metav1.Time `json:"skipUntil,omitempty"`
}

// Cron is five fields: minute, hour, day of month, month and day of week.
//
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:XValidation:rule="self.matches('^[ ]*[0-9A-Za-z*/,?-]+([ ]+[0-9A-Za-z*/,?-]+){4}[ ]*$')",messageExpression="'\"' + self + '\" is no cron expression: write minute, hour, day of month, month and day of week, such as 0 19 * * mon-fri'"
type Cron string

// Window is a time to sleep that comes again and again.
//
// +kubebuilder:validation:XValidation:rule="has(self.hibernate) || has(self.resume)",message="a window needs hibernate, resume or both"
type Window struct {
	// Hibernate is when clusters are put to sleep: minute, hour, day of month,
	// month, day of week, such as "0 19 * * mon-fri". Absent: the window only wakes.
	// +optional
	Hibernate Cron `json:"hibernate,omitempty"`
	// Resume is when they are woken. Absent: the window only puts to sleep.
	// +optional
	Resume Cron `json:"resume,omitempty"`
	// TimeZone is the IANA name of the zone whose clocks count, such as
	// Europe/Berlin.
	// +optional
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$') && self != 'Local'",messageExpression="'\"' + self + '\" is no time zone: use a name of the IANA database, such as UTC or Europe/Berlin'"
	TimeZone string `json:"timeZone,omitempty"`
}

// PowerScheduleStatus is what the schedule has come to.
type PowerScheduleStatus struct {
	// ObservedGeneration is the generation of the specification that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Clusters is how many clusters the schedule is for now. Unclaimed clusters of
	// pools are not among them.
	// +optional
	Clusters int32 `json:"clusters"`
	// NextSlot is the slot that comes next; one that will be skipped counts too.
	// +optional
	NextSlot *Slot `json:"nextSlot,omitempty"`
	// LastSlot is the last slot that came, and what became of it.
	// +optional
	LastSlot *TakenSlot `json:"lastSlot,omitempty"`
	// Conditions: Valid; Reconciling or Stalled while it is True.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Slot is a moment at which clusters are switched.
type Slot struct {
	// Time is when.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	Time metav1.Time `json:"time"`
	// PowerState is what they are told to be.
	// +kubebuilder:validation:Enum=Running;Hibernating
	PowerState hivev1.PowerState `json:"powerState"`
}

// Outcome is what became of a slot.
//
// +kubebuilder:validation:Enum=Underway;Taken;Skipped
type Outcome string

// The outcomes of a slot.
const (
	// OutcomeUnderway: clusters are being told, some seconds apart.
	OutcomeUnderway Outcome = "Underway"
	// OutcomeTaken: every cluster of the schedule has been told.
	OutcomeTaken Outcome = "Taken"
	// OutcomeSkipped: spec.skipUntil was later, or the slot was taken out of the
	// schedule before all clusters were told.
	OutcomeSkipped Outcome = "Skipped"
)

// TakenSlot is a slot that has come.
type TakenSlot struct {
	Slot `json:",inline"`
	// Outcome is Underway, Taken or Skipped.
	Outcome Outcome `json:"outcome"`
	// StartedAt is when the slot was noticed: at its time, or later if hotspare did
	// not run then. Clusters are told within a minute from then.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	StartedAt metav1.Time `json:"startedAt"`
	// FinishedAt is when the outcome was known. Absent while it is Underway.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// Clusters is how many clusters were told.
	// +optional
	Clusters int32 `json:"clusters"`
	// Message names a cluster that could not be told, and why.
	// +optional
	Message string `json:"message,omitempty"`
}

// Conditions of a PowerSchedule, with their reasons.
const (
	// ScheduleValid is False while the specification cannot be understood. Nothing
	// is switched then.
	ScheduleValid         = "Valid"
	ReasonUnderstood      = "Understood"
	ReasonInvalidCron     = "InvalidCron"
	ReasonInvalidTimeZone = "InvalidTimeZone"
	ReasonInvalidSelector = "InvalidSelector"
)

// AnnotationSlot, on a ClusterDeployment, is the last slot that it was told of:
// the time, the power state and the schedule. It is written together with
// spec.powerState, so that no slot is taken twice.
const AnnotationSlot = "hotspare.io/power-slot"

// PowerScheduleList is a list of PowerSchedules.
//
// +kubebuilder:object:root=true
type PowerScheduleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PowerSchedule `json:"items"`
}
