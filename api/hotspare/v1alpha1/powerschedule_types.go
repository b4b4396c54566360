package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// PowerSchedule hibernates and resumes clusters at set times.
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

// PowerScheduleSpec selects clusters, and defines when they hibernate and resume.
//
// +kubebuilder:validation:XValidation:rule="has(self.clusterSelector) != has(self.claimSelector)",message="set exactly one of clusterSelector and claimSelector; {} selects all"
// +kubebuilder:validation:XValidation:rule="!has(self.namespaceSelector) || has(self.clusterSelector)",message="namespaceSelector is only valid with clusterSelector: claimSelector selects claims in the schedule's namespace"
type PowerScheduleSpec struct {
	// ClusterSelector selects ClusterDeployments by their labels, in the schedule's namespace or in
	// the namespaces that namespaceSelector selects. {} selects all. Set exactly one of
	// clusterSelector and claimSelector.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
	// NamespaceSelector selects the namespaces for clusterSelector. {} selects all. If unset, only
	// the schedule's namespace counts. To set it, you need permission to patch ClusterDeployments
	// in all namespaces.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// ClaimSelector selects ClusterClaims in the schedule's namespace by their labels; the schedule
	// applies to their clusters. {} selects all. Set exactly one of clusterSelector and
	// claimSelector.
	// +optional
	ClaimSelector *metav1.LabelSelector `json:"claimSelector,omitempty"`
	// Windows define when clusters hibernate. The schedule merges the slots of all windows, and the
	// latest slot determines the power state.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Windows []Window `json:"windows"`
	// SkipUntil skips all slots before this time. Skipped slots are not applied later. If unset, no
	// slots are skipped.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	SkipUntil *metav1.Time `json:"skipUntil,omitempty"`
}

// Cron is a cron expression with five fields: minute, hour, day of month, month and day of week.
//
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:XValidation:rule="self.matches('^[ ]*[0-9A-Za-z*/,?-]+([ ]+[0-9A-Za-z*/,?-]+){4}[ ]*$')",messageExpression="'\"' + self + '\" is not a cron expression: write minute, hour, day of month, month and day of week, such as 0 19 * * mon-fri'"
type Cron string

// Window is a recurring period during which clusters hibernate.
//
// +kubebuilder:validation:XValidation:rule="has(self.hibernate) || has(self.resume)",message="a window needs hibernate, resume or both: set at least one of them"
type Window struct {
	// Hibernate is when clusters hibernate, as a cron expression: minute, hour, day of month,
	// month, day of week, such as "0 19 * * mon-fri". If unset, the window only resumes clusters.
	// +optional
	Hibernate Cron `json:"hibernate,omitempty"`
	// Resume is when clusters resume, as a cron expression. If unset, the window only hibernates
	// clusters.
	// +optional
	Resume Cron `json:"resume,omitempty"`
	// TimeZone is the IANA name of the time zone of hibernate and resume, such as Europe/Berlin.
	// +optional
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$') && self != 'Local'",messageExpression="'\"' + self + '\" is not a time zone: use a name of the IANA database, such as UTC or Europe/Berlin'"
	TimeZone string `json:"timeZone,omitempty"`
}

// PowerScheduleStatus is the observed state of a PowerSchedule. hotspare writes it.
type PowerScheduleStatus struct {
	// ObservedGeneration is the generation of the spec that this status describes. It is -1 until a
	// controller has processed the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Clusters is the number of clusters that the schedule currently selects. Unclaimed clusters of
	// pools are not counted.
	// +optional
	Clusters int32 `json:"clusters"`
	// NextSlot is the next slot, including one that will be skipped.
	// +optional
	NextSlot *Slot `json:"nextSlot,omitempty"`
	// LastSlot is the last slot and its outcome.
	// +optional
	LastSlot *TakenSlot `json:"lastSlot,omitempty"`
	// Conditions of the schedule: Valid. At most one of Reconciling and Stalled is present, and
	// only while it is True.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Slot is a time at which hotspare changes the power state of clusters.
type Slot struct {
	// Time is the time of the slot.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	Time metav1.Time `json:"time"`
	// PowerState is the power state that hotspare sets: Running or Hibernating.
	// +kubebuilder:validation:Enum=Running;Hibernating
	PowerState hivev1.PowerState `json:"powerState"`
}

// Outcome is the outcome of a slot.
//
// +kubebuilder:validation:Enum=Underway;Taken;Skipped
type Outcome string

// The outcomes of a slot.
const (
	// OutcomeUnderway: hotspare is setting the power state of the clusters, a few seconds apart.
	OutcomeUnderway Outcome = "Underway"
	// OutcomeTaken: hotspare has set the power state of every cluster of the schedule.
	OutcomeTaken Outcome = "Taken"
	// OutcomeSkipped: spec.skipUntil was later, or the slot was removed from the schedule before
	// the power state of all clusters was set.
	OutcomeSkipped Outcome = "Skipped"
)

// TakenSlot is a slot whose time has come.
type TakenSlot struct {
	Slot `json:",inline"`
	// Outcome is Underway, Taken or Skipped.
	Outcome Outcome `json:"outcome"`
	// StartedAt is when hotspare noticed the slot: at its time, or later if hotspare was not
	// running then. The power state of the clusters is set within one minute from then.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	StartedAt metav1.Time `json:"startedAt"`
	// FinishedAt is when the outcome was final. It is unset while the outcome is Underway.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// Clusters is the number of clusters whose power state was set.
	// +optional
	Clusters int32 `json:"clusters"`
	// Message names a cluster whose power state could not be set, and why.
	// +optional
	Message string `json:"message,omitempty"`
}

// Conditions of a PowerSchedule, with their reasons.
const (
	// ScheduleValid is False while the spec is not valid. hotspare then changes no power state.
	ScheduleValid         = "Valid"
	ReasonUnderstood      = "Understood"
	ReasonInvalidCron     = "InvalidCron"
	ReasonInvalidTimeZone = "InvalidTimeZone"
	ReasonInvalidSelector = "InvalidSelector"
)

// AnnotationSlot, on a ClusterDeployment, is the last slot that was applied to it: the time, the
// power state and the schedule. It is written together with spec.powerState, so that no slot is
// applied twice.
const AnnotationSlot = "hotspare.io/power-slot"

// PowerScheduleList is a list of PowerSchedules.
//
// +kubebuilder:object:root=true
type PowerScheduleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PowerSchedule `json:"items"`
}
