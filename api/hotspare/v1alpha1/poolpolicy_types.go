package v1alpha1

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// PoolPolicy computes how many clusters of a ClusterPool should exist and run, by the claims of the
// past. It has the name of its pool, so a pool has at most one.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=pp
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="SetBy",type=string,JSONPath=`.status.countsSetBy`
// +kubebuilder:printcolumn:name="Running",type=integer,JSONPath=`.status.recommended.running.count`
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=`.status.recommended.size.count`
// +kubebuilder:printcolumn:name="Claims/h",type=string,JSONPath=`.status.expectedClaimsPerHour`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].reason`
// +kubebuilder:printcolumn:name="Why",type=string,JSONPath=`.status.recommended.running.reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PoolPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	hivev1.Reading    `json:"-"`

	Spec PoolPolicySpec `json:"spec"`
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status PoolPolicyStatus `json:"status,omitempty"`
}

// PolicyMode is whether a policy changes its pool.
//
// +kubebuilder:validation:Enum=Recommend;Auto
type PolicyMode string

// The modes.
const (
	// PolicyRecommend reports the counts in the status, and changes nothing.
	PolicyRecommend PolicyMode = "Recommend"
	// PolicyAuto sets spec.size and spec.runningCount of the pool.
	PolicyAuto PolicyMode = "Auto"
)

// PoolPolicySpec is the desired state of a PoolPolicy.
//
// +kubebuilder:validation:XValidation:rule="!has(self.mode) || self.mode != 'Auto' || has(self.size) && has(self.size.max)",message="mode Auto needs size.max: set the largest number of unclaimed clusters that hotspare may keep"
type PoolPolicySpec struct {
	// Mode is Recommend or Auto. Recommend reports the counts in the status, and changes nothing.
	// Auto sets spec.size and spec.runningCount of the pool.
	// +optional
	// +kubebuilder:default=Recommend
	Mode PolicyMode `json:"mode,omitempty"`
	// Objective is what the pool promises to claims. If unset, 99 % of the claims get a running
	// cluster at once.
	// +optional
	Objective *PolicyObjective `json:"objective,omitempty"`
	// Running limits the number of clusters that run without a claim: spec.runningCount of the pool.
	// +optional
	Running *CountLimits `json:"running,omitempty"`
	// Size limits the number of clusters without a claim: spec.size of the pool. Mode Auto needs
	// size.max.
	// +optional
	Size *CountLimits `json:"size,omitempty"`
	// Budget limits what the unclaimed clusters may cost in a calendar month in UTC, in the currency of
	// prices, or of status.estimatedPrices. hotspare lowers the running count first, then the size. If unset,
	// there is no limit.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self > 0 : self.matches('[1-9]')",message="it is 0 or not a number: write a number above 0, or remove it for no limit"
	Budget *Decimal `json:"budget,omitempty"`
	// Prices are those of one hour of an unclaimed cluster, for the budget, and for costs in the status, in
	// reports and on the console. If unset, hotspare estimates them: see status.estimatedPrices.
	// +optional
	Prices *PolicyPrices `json:"prices,omitempty"`
	// Sleep sets the depths at which hibernating spare clusters sleep. If unset, hotspare does not change
	// their depths. Mode Auto writes the depths into the pool.
	// +optional
	Sleep *PolicySleep `json:"sleep,omitempty"`
	// BootstrapRef names the ClusterBootstrap in the same namespace whose steps hotspare takes in every spare of
	// the pool, and whose gates each must pass before a claim may get it. If unset, a spare that runs is enough. To
	// set it, you need permission to patch the pool and to get the Secrets there.
	// +optional
	BootstrapRef *BootstrapReference `json:"bootstrapRef,omitempty"`
	// ClaimedClusters says what the clusters of the pool do while they are claimed. If unset, hotspare leaves
	// them to spec.hibernateAfter and to their users.
	// +optional
	ClaimedClusters *ClaimedClusters `json:"claimedClusters,omitempty"`
	// TimeZone is the IANA name of the time zone of the hours of the week and of the calendar, such as
	// Europe/Berlin.
	// +optional
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$') && self != 'Local'",messageExpression="'\"' + self + '\" is not a time zone: use a name of the IANA database, such as UTC or Europe/Berlin'"
	TimeZone string `json:"timeZone,omitempty"`
	// Calendar lists times at which the demand differs from what is usual. If several entries apply,
	// the later one of the list takes precedence.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	Calendar []CalendarEntry `json:"calendar,omitempty"`
}

// ClaimedClusters says what claimed clusters do.
type ClaimedClusters struct {
	// HibernateAfterInactivity is how long nobody uses a claimed cluster before it hibernates, such as 30m: at
	// least 10s. Requests to its API by anyone but the system count as use, and open watches, exec sessions and
	// port-forwards last until they end. A connection to its API wakes it. On platforms that do not report requests,
	// it has no effect, and condition Hibernating of the cluster says so.
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[0-9.hmsunµ]+$') || duration(self) >= duration('10s')",message="it is shorter than 10s: write at least 10s, or remove claimedClusters for no limit"
	HibernateAfterInactivity hivev1.Duration `json:"hibernateAfterInactivity"`
	// IgnoredNamespaces are namespaces of the clusters whose service accounts do not count as use, such as
	// cert-manager: controllers that the pool's bootstrap installs hold watches open. kube-system is always ignored.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	IgnoredNamespaces []string `json:"ignoredNamespaces,omitempty"`
}

// BootstrapReference names a ClusterBootstrap.
type BootstrapReference struct {
	// Name of the ClusterBootstrap.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// SleepMode is who chooses the ladder of a pool.
//
// +kubebuilder:validation:Enum=Auto
type SleepMode string

// SleepAuto: hotspare chooses the ladder, by prices, resumes and demand.
const SleepAuto SleepMode = "Auto"

// PolicySleep says at which depths spare clusters sleep: by a ladder, or by one that hotspare chooses.
//
// +kubebuilder:validation:XValidation:rule="has(self.mode) != has(self.ladder)",message="set one of mode and ladder: {mode: Auto} lets hotspare choose, {ladder: [{depth: freeze, count: 1}, {depth: stop}]} is your choice"
type PolicySleep struct {
	// Mode Auto lets hotspare choose the ladder, by the prices of the depths, the measured resumes, what the platform
	// supports, and the demand. status.recommended.sleep has it with its reason.
	// +optional
	Mode SleepMode `json:"mode,omitempty"`
	// Ladder lists depths, from the shallowest to the deepest, with the number of clusters that may sleep at
	// each. A cluster sleeps at the shallowest depth that has room, and a claim wakes the one that sleeps least
	// deeply: {ladder: [{depth: freeze, count: 1}, {depth: stop}]}.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:XValidation:rule="size(self) < 2 || self[0].depth == 'freeze' && self[1].depth != 'freeze' || self[0].depth == 'suspend' && self[1].depth == 'stop'",message="the depths are not in order: list each of freeze, suspend and stop at most once, in this order"
	// +kubebuilder:validation:XValidation:rule="size(self) < 3 || self[1].depth == 'suspend' && self[2].depth == 'stop'",message="the depths are not in order: list each of freeze, suspend and stop at most once, in this order"
	// +kubebuilder:validation:XValidation:rule="(size(self) < 2 || has(self[0].count)) && (size(self) < 3 || has(self[1].count))",message="only the last depth may have no count: set count of the others"
	Ladder []SleepRung `json:"ladder,omitempty"`
}

// SleepRung is one depth of a ladder.
type SleepRung struct {
	// Depth is freeze (in memory), suspend (on disk) or stop. A depth that the platform does not have becomes
	// the next deeper one.
	// +kubebuilder:validation:Enum=freeze;suspend;stop
	Depth string `json:"depth"`
	// Count is the maximum number of clusters that sleep at this depth. The last depth may have none, for no
	// limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Count *int32 `json:"count,omitempty"`
}

// PolicyObjective is a promise to claims: immediate, or maxWait and quantile.
//
// +kubebuilder:validation:XValidation:rule="has(self.immediate) != (has(self.maxWait) && has(self.quantile))",message="set immediate, or maxWait and quantile: {immediate: \"99%\"} or {maxWait: 2m, quantile: \"99%\"}"
// +kubebuilder:validation:XValidation:rule="!has(self.immediate) || !has(self.maxWait) && !has(self.quantile)",message="immediate contradicts maxWait and quantile: keep one of them"
type PolicyObjective struct {
	// Immediate is the share of the claims that get a running cluster at once, such as "99%" or 99.
	// +optional
	Immediate *Percent `json:"immediate,omitempty"`
	// MaxWait is how long a claim may wait for a running cluster, such as 2m.
	// +optional
	MaxWait *hivev1.Duration `json:"maxWait,omitempty"`
	// Quantile is the share of the claims that wait at most maxWait, such as "99%" or 99.
	// +optional
	Quantile *Percent `json:"quantile,omitempty"`
}

// Percent is a percentage above 0 and below 100: 99, or a string such as "99.9%".
//
// +kubebuilder:validation:Type=""
// +kubebuilder:validation:XIntOrString
// +kubebuilder:validation:MaxLength=16
// +kubebuilder:validation:XValidation:rule="type(self) == int ? self > 0 && self < 100 : type(self) == string && self.matches('^[0-9]{1,2}([.][0-9]{1,6})?%?$') && self.matches('[1-9]')",message="it is not a percentage above 0 and below 100: write 99 or \"99.9%\"; no pool can serve every claim"
type Percent string

// UnmarshalJSON reads a number or a string. It never fails: code that uses the value handles one that
// is not a percentage, as one that the schema did not see.
func (p *Percent) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) != nil {
		text = string(data)
	}
	*p = Percent(text)
	return nil
}

// Decimal is a number of at least 0: 3, or a fraction in quotes, such as "0.1".
//
// +kubebuilder:validation:Type=""
// +kubebuilder:validation:XIntOrString
// +kubebuilder:validation:MaxLength=24
// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : type(self) == string && self.matches('^[0-9]{1,12}([.][0-9]{1,9})?$')",message="it is not a number of at least 0: write 3, or a fraction in quotes, such as \"0.1\""
type Decimal string

// UnmarshalJSON reads a number or a string. It never fails, as for Percent.
func (d *Decimal) UnmarshalJSON(data []byte) error { return (*Percent)(d).UnmarshalJSON(data) }

// CountLimits are the limits of a count.
//
// +kubebuilder:validation:XValidation:rule="!has(self.min) || !has(self.max) || self.min <= self.max",message="min is above max: lower the one or raise the other"
type CountLimits struct {
	// Min is the smallest count. Defaults to 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Min *int32 `json:"min,omitempty"`
	// Max is the largest count. If unset, there is no limit.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Max *int32 `json:"max,omitempty"`
}

// PolicyPrices are the prices of one hour of an unclaimed cluster, in any currency.
type PolicyPrices struct {
	// Running is the price of a cluster that runs, such as "1.2". A cluster that resumes or is being
	// installed costs the same.
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self > 0 : self.matches('[1-9]')",message="it is 0 or not a number: write a number above 0"
	Running Decimal `json:"running"`
	// Hibernating is the price of a cluster that hibernates. Defaults to 0.
	// +optional
	Hibernating *Decimal `json:"hibernating,omitempty"`
	// Frozen is the price of a cluster that hibernates at depth freeze. Defaults to hibernating.
	// +optional
	Frozen *Decimal `json:"frozen,omitempty"`
	// Suspended is the price of a cluster that hibernates at depth suspend. Defaults to hibernating.
	// +optional
	Suspended *Decimal `json:"suspended,omitempty"`
	// Stopped is the price of a cluster that hibernates at depth stop. Defaults to hibernating.
	// +optional
	Stopped *Decimal `json:"stopped,omitempty"`
}

// CalendarEntry is a time at which the demand differs from what is usual.
//
// +kubebuilder:validation:XValidation:rule="has(self.demand) || has(self.running) || has(self.size)",message="an entry of the calendar changes nothing: set demand, running or size"
type CalendarEntry struct {
	// Name explains the entry, such as Christmas. Reasons show it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	Name string `json:"name"`
	// Start is when the first occurrence begins, as a date or a time in spec.timeZone: 2026-12-24 or
	// 2026-12-24T18:00.
	// +kubebuilder:validation:MinLength=10
	// +kubebuilder:validation:MaxLength=40
	Start string `json:"start"`
	// End is when the first occurrence ends. A date is the last day, a time is exclusive. If unset, the
	// entry lasts a day.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	End string `json:"end,omitempty"`
	// Rule repeats the entry. It is an iCalendar RRULE that repeats at most daily, such as FREQ=YEARLY
	// or FREQ=WEEKLY;BYDAY=SA,SU.
	// +optional
	// +kubebuilder:validation:MaxLength=200
	Rule string `json:"rule,omitempty"`
	// Demand multiplies the expected demand, by up to 1000: "0.1" on a holiday, 3 before a release.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self <= 1000 : !self.matches('^[0-9.]+$') || double(self) <= 1000.0",message="it is above 1000: it multiplies the expected demand"
	Demand *Decimal `json:"demand,omitempty"`
	// Running sets the number of clusters that run without a claim, within spec.running.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Running *int32 `json:"running,omitempty"`
	// Size sets the number of clusters without a claim, within spec.size.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Size *int32 `json:"size,omitempty"`
}

// CountsOwner is who sets the counts of a pool.
//
// +kubebuilder:validation:Enum=Policy;User
type CountsOwner string

// The owners of the counts.
const (
	// CountsSetByPolicy: hotspare sets them, as this policy says.
	CountsSetByPolicy CountsOwner = "Policy"
	// CountsSetByUser: the mode is Recommend, the policy is not valid, or a person has changed them.
	CountsSetByUser CountsOwner = "User"
)

// PoolPolicyStatus is the observed state of a PoolPolicy. hotspare writes it.
type PoolPolicyStatus struct {
	// ObservedGeneration is the generation of the spec that this status describes. It is -1 until a
	// controller has processed the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// CountsSetBy is who sets the counts of the pool now: Policy or User.
	// +optional
	CountsSetBy CountsOwner `json:"countsSetBy,omitempty"`
	// Recommended are the counts that the pool should have now, with their reasons. The counts and
	// their causes are current; the reasons and the numbers below are updated at most every 15 minutes
	// while the counts do not change.
	// +optional
	Recommended *RecommendedCounts `json:"recommended,omitempty"`
	// Applied are the counts that hotspare has set last. It is unset if it has set none.
	// +optional
	Applied *PoolCounts `json:"applied,omitempty"`
	// Static is your own setting: the counts that a person has set last. It is in effect while
	// nothing better is known.
	// +optional
	Static *PoolCounts `json:"static,omitempty"`
	// ManualChange is a change by hand that hotspare respects. It is unset if there is none.
	// +optional
	ManualChange *ManualChange `json:"manualChange,omitempty"`
	// ExpectedClaimsPerHour is the number of claims that is expected within the next hour, such as
	// "2.4".
	// +optional
	ExpectedClaimsPerHour string `json:"expectedClaimsPerHour,omitempty"`
	// Forecast predicts the claims of the next hour and reports the accuracy of earlier forecasts.
	// +optional
	Forecast *PolicyForecast `json:"forecast,omitempty"`
	// Coverage compares what spec.objective promises with what claims got.
	// +optional
	Coverage *PolicyCoverage `json:"coverage,omitempty"`
	// EstimatedPrices are the prices that hotspare computes with while spec.prices is unset, or why it has none. It
	// is unset while spec.prices is set.
	// +optional
	EstimatedPrices *EstimatedPrices `json:"estimatedPrices,omitempty"`
	// Month is what the unclaimed clusters of the pool have cost since this calendar month began in UTC.
	// +optional
	Month *PolicyMonth `json:"month,omitempty"`
	// Resumes are how long resumes of clusters of the pool took from depth stop.
	// +optional
	Resumes *MeasuredDurations `json:"resumes,omitempty"`
	// ShallowResumes are how long resumes from the other depths of sleep took. A depth is missing if none was
	// seen.
	// +optional
	// +listType=map
	// +listMapKey=depth
	ShallowResumes []ShallowResumes `json:"shallowResumes,omitempty"`
	// Installs are how long installs of clusters of the pool took.
	// +optional
	Installs *MeasuredDurations `json:"installs,omitempty"`
	// Record describes the record of claims.
	// +optional
	Record *DemandRecord `json:"record,omitempty"`
	// ComputedAt is when the numbers and the reasons were computed.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	ComputedAt *metav1.Time `json:"computedAt,omitempty"`
	// Conditions of the policy: Valid, Ready, Applied and RecordUsable. At most one of Reconciling and
	// Stalled is present, and only while it is True.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RecommendedCounts are computed counts.
type RecommendedCounts struct {
	// Running is the number of clusters that should run without a claim.
	Running RecommendedCount `json:"running"`
	// Size is the number of clusters without a claim that should exist.
	Size RecommendedCount `json:"size"`
	// Sleep is the ladder of depths that hotspare chooses if spec.sleep has mode Auto.
	// +optional
	Sleep *RecommendedLadder `json:"sleep,omitempty"`
}

// RecommendedLadder is a ladder of depths with its reason.
type RecommendedLadder struct {
	// Ladder lists the depths with the number of clusters that may sleep at each, such as "freeze:1,stop".
	Ladder string `json:"ladder"`
	// Reason explains the ladder.
	Reason string `json:"reason"`
}

// RecommendedCount is a computed count.
type RecommendedCount struct {
	// Count is the number of clusters.
	Count int32 `json:"count"`
	// Cause is what determines the count: demand, static, calendar, minimum, maximum, budget, waiting,
	// pace or size.
	Cause string `json:"cause"`
	// Reason explains the count.
	Reason string `json:"reason"`
}

// PoolCounts are the two counts of a pool.
type PoolCounts struct {
	// Running is spec.runningCount of the pool.
	Running int32 `json:"running"`
	// Size is spec.size of the pool.
	Size int32 `json:"size"`
}

// ManualChange is a change of the counts by hand.
type ManualChange struct {
	PoolCounts `json:",inline"`
	// Since is when the counts were changed, or when hotspare noticed it.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	Since metav1.Time `json:"since"`
	// Until is when the policy sets the counts again: the next midnight in spec.timeZone.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	Until metav1.Time `json:"until"`
	// By is the field manager that changed the counts, such as kubectl-edit. It is unset if it is not
	// known.
	// +optional
	By string `json:"by,omitempty"`
}

// PolicyCoverage compares what was promised with what was seen, over about the last 1000 claims.
type PolicyCoverage struct {
	// Claims is the number of claims that were counted; older ones count less.
	Claims int32 `json:"claims"`
	// Promised is the share of claims that spec.objective promises to serve in time, such as "99%".
	Promised string `json:"promised"`
	// Seen is the share that was served in time.
	Seen string `json:"seen"`
}

// PolicyForecast is a band in which the number of claims within an hour should be nine times of ten.
type PolicyForecast struct {
	// Low is the lower end of the band for the next hour.
	Low int32 `json:"low"`
	// High is the upper end of the band for the next hour.
	High int32 `json:"high"`
	// Compared is how many forecasts of the last eight days were compared with what was seen.
	Compared int32 `json:"compared"`
	// Within is the share of them whose band contained the actual number of claims, such as "93%". It
	// should be at least 90%, and is unset if none was compared.
	// +optional
	Within string `json:"within,omitempty"`
}

// EstimatedPrices are estimates of the prices of one hour of an unclaimed cluster. They are computed from a table of list
// prices and from the machines of the pool's install-config.
type EstimatedPrices struct {
	// Running is the price of a cluster that runs, such as "1.152". It is unset if no estimate is possible.
	// +optional
	Running string `json:"running,omitempty"`
	// Hibernating is the price of a cluster that hibernates, at any depth. It is unset if no estimate is possible.
	// +optional
	Hibernating string `json:"hibernating,omitempty"`
	// Currency is the code of the currency, such as USD. It is unset if no estimate is possible.
	// +optional
	Currency string `json:"currency,omitempty"`
	// Basis says which machines and prices the estimate is computed from, or why none is possible and what to do.
	Basis string `json:"basis"`
}

// PolicyMonth is what the unclaimed clusters of a pool have cost since a calendar month began in UTC. The
// amounts are in the currency of spec.prices or of status.estimatedPrices, and unset without prices.
type PolicyMonth struct {
	// Month is the calendar month, such as "2026-03".
	Month string `json:"month"`
	// RunningHours is the number of cluster-hours of unclaimed clusters that did not hibernate.
	RunningHours string `json:"runningHours"`
	// HibernatingHours is the number of cluster-hours of hibernating unclaimed clusters.
	HibernatingHours string `json:"hibernatingHours"`
	// Cost is what these hours cost.
	// +optional
	Cost string `json:"cost,omitempty"`
	// SavedByHibernating is how much more they would have cost if all clusters had run.
	// +optional
	SavedByHibernating string `json:"savedByHibernating,omitempty"`
	// CouldSave is what the recommended counts would have saved, compared with those that the pool had. It is
	// negative if they cost more.
	// +optional
	CouldSave string `json:"couldSave,omitempty"`
	// SavedByPolicy is what the counts of the pool have saved, compared with those that a person has chosen
	// last. It is negative if they cost more.
	// +optional
	SavedByPolicy string `json:"savedByPolicy,omitempty"`
}

// MeasuredDurations are how long an operation took, over the last 100 times.
type MeasuredDurations struct {
	// Median is the median, such as 4m10s. It is unset if none has succeeded.
	// +optional
	Median string `json:"median,omitempty"`
	// P90 is the 90th percentile.
	// +optional
	P90 string `json:"p90,omitempty"`
	// Count is how many of them were measured.
	Count int32 `json:"count"`
	// Failed is how many of them failed.
	Failed int32 `json:"failed"`
}

// ShallowResumes are how long resumes from a depth of sleep took.
type ShallowResumes struct {
	// Depth is freeze or suspend.
	Depth             string `json:"depth"`
	MeasuredDurations `json:",inline"`
}

// DemandRecord describes a record of claims.
type DemandRecord struct {
	// ConfigMap is its name.
	ConfigMap string `json:"configMap"`
	// Claims is the number of recorded claims.
	Claims int32 `json:"claims"`
	// Since is when recording began.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	Since metav1.Time `json:"since"`
}

// Conditions of a PoolPolicy, with their reasons.
const (
	// PolicyValid is False while the spec is not valid. hotspare then changes no count. Its reasons
	// are ReasonUnderstood, ReasonInvalidTimeZone, and those below.
	PolicyValid             = "Valid"
	ReasonInvalidObjective  = "InvalidObjective"
	ReasonInvalidLimits     = "InvalidLimits"
	ReasonInvalidBudget     = "InvalidBudget"
	ReasonInvalidPrices     = "InvalidPrices"
	ReasonInvalidCalendar   = "InvalidCalendar"
	ReasonInvalidPolicyMode = "InvalidMode"
	ReasonInvalidSleep      = "InvalidSleep"

	// PolicyReady is True while the counts are computed from the demand. False: your own setting is
	// in effect, and the message says why.
	PolicyReady         = "Ready"
	ReasonComputed      = "Computed"
	ReasonLearning      = "Learning"
	ReasonNotTrusted    = "NotTrusted"
	ReasonPolicyInvalid = "PolicyInvalid"

	// PolicyApplied is True while the pool has the recommended counts because hotspare has set them.
	PolicyApplied       = "Applied"
	ReasonApplied       = "Applied"
	ReasonRecommendOnly = "RecommendOnly"
	ReasonManualChange  = "ManualChange"
	// ReasonRefused (of a data plane, too): the API server refuses the counts.

	// PolicyRecordUsable is False while the record of claims cannot be used. The message says what to
	// do.
	PolicyRecordUsable     = "RecordUsable"
	ReasonRecorded         = "Recorded"
	ReasonRecordSetAside   = "SetAside"
	ReasonRecordFromFuture = "FromTheFuture"
	ReasonRecordForeign    = "NotARecord"
)

// AnnotationSizing, on a ClusterPool, records the counts that a PoolPolicy has set last, when each was
// lowered, and the counts that a person has set last. It is written together with the counts.
const AnnotationSizing = "hotspare.io/sizing"

// AnnotationResumeSizing, on a PoolPolicy, ends a manual change: hotspare sets the counts again, and
// removes the annotation. Its value does not matter.
const AnnotationResumeSizing = "hotspare.io/resume-sizing"

// AnnotationClaimsImported, on a PoolPolicy, is when claims were imported into the record of its pool:
// hotspare reads the record again when it changes.
const AnnotationClaimsImported = "hotspare.io/claims-imported"

// LabelDemandRecord, on a ConfigMap, marks it as the record of claims of the pool that it names.
const LabelDemandRecord = "hotspare.io/demand-record"

// PoolPolicyList is a list of PoolPolicies.
//
// +kubebuilder:object:root=true
type PoolPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PoolPolicy `json:"items"`
}
