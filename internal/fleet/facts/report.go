package facts

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// AgentSilenceTimeout is the time without a report after which an agent counts as silent. An agent
// reports every 30 seconds.
const AgentSilenceTimeout = 2 * time.Minute

// ReportValidation is the result of validating the last report of a data plane's agent. A report
// never affects the phase.
type ReportValidation struct {
	// Capacity and Versions are the last valid ones: those of this report if it is valid, otherwise
	// those of the status.
	Capacity map[string]v1alpha1.TypeCapacity
	Versions []v1alpha1.OperatorVersion
	// Valid is set when the report is accepted.
	Valid bool
	// Condition is ReportValid. If it is False, its message says what is wrong, and that the last
	// good report counts.
	Condition metav1.Condition
}

// ValidateReport validates the last report of a data plane's agent: each type is one of the data
// plane's, 0 ≤ remaining ≤ max, and the nodes are those that were created. A report is accepted as
// a whole or not at all, and never if it is about another data plane. ValidateReport returns false
// if r is nil.
func ValidateReport(dp *v1alpha1.DataPlane, r *v1alpha1.DataPlaneReport) (ReportValidation, bool) {
	j := ReportValidation{Capacity: dp.Status.Capacity, Versions: dp.Status.Versions}
	j.Condition = metav1.Condition{Type: v1alpha1.DataPlaneReportValid, ObservedGeneration: dp.Generation}
	if r == nil {
		return j, false
	}
	faults := listReportErrors(dp, r)
	switch {
	case len(faults) > 0:
		j.setInvalid(v1alpha1.ReasonReportInvalid, strings.Join(faults, "; ")+": the last valid report is used instead")
		return j, true
	case isReportSuperseded(dp, r):
		j.setInvalid(v1alpha1.ReasonReportOutOfOrder, "the report is older than an earlier one, which is used instead: check the clock of the data plane")
		return j, true
	}
	j.Valid = true
	j.Condition.Status, j.Condition.Reason, j.Condition.Message = metav1.ConditionTrue, v1alpha1.ReasonReportValid, "The last report is valid."
	j.Capacity = maps.Clone(dp.Status.Capacity)
	if j.Capacity == nil {
		j.Capacity = map[string]v1alpha1.TypeCapacity{}
	}
	for name, c := range r.Capacity {
		at := r.At
		j.Capacity[name] = v1alpha1.TypeCapacity{
			MaxNodes: c.MaxNodes, MaxUnits: c.MaxUnits, RemainingUnits: c.RemainingUnits, UsedUnits: c.MaxUnits - c.RemainingUnits,
			ReservedUnits: c.ReservedUnits, ReportedAt: &at,
		}
	}
	if len(r.Versions) > 0 {
		j.Versions = r.Versions
	}
	return j, true
}

func (v *ReportValidation) setInvalid(reason, message string) {
	v.Condition.Status, v.Condition.Reason, v.Condition.Message = metav1.ConditionFalse, reason, message
}

// listReportErrors returns everything that is wrong with a report, by type.
func listReportErrors(dp *v1alpha1.DataPlane, r *v1alpha1.DataPlaneReport) []string {
	if r.DataPlaneUID != string(dp.UID) {
		return []string{fmt.Sprintf("the report is from data plane %q, and this one is %q: reinstall its agent", r.DataPlaneUID, dp.UID)}
	}
	var out []string
	if len(r.Capacity) == 0 {
		out = append(out, "the report has no type")
	}
	for _, name := range slices.Sorted(maps.Keys(r.Capacity)) {
		c, known := r.Capacity[name], dp.Status.Capacity[name]
		switch {
		case !slices.Contains(dp.Spec.InstanceTypes, name):
			out = append(out, fmt.Sprintf("type %q is not one of the data plane's types, %s", name, strings.Join(dp.Spec.InstanceTypes, ", ")))
		case c.MaxUnits < 0 || c.MaxNodes < 0:
			out = append(out, fmt.Sprintf("type %s: maxUnits %d and maxNodes %d cannot be below 0", name, c.MaxUnits, c.MaxNodes))
		case c.RemainingUnits < 0 || c.RemainingUnits > c.MaxUnits:
			out = append(out, fmt.Sprintf("type %s: remainingUnits %d is not between 0 and maxUnits, %d", name, c.RemainingUnits, c.MaxUnits))
		case c.ReservedUnits < 0:
			out = append(out, fmt.Sprintf("type %s: reservedUnits %d cannot be below 0", name, c.ReservedUnits))
		case known.MaxNodes > 0 && c.MaxNodes != known.MaxNodes:
			out = append(out, fmt.Sprintf("type %s: maxNodes %d is not the maximum of its machine pool, %d", name, c.MaxNodes, known.MaxNodes))
		}
	}
	for _, v := range r.Versions {
		if v.Strimzi == "" {
			out = append(out, "a version has no name")
		}
	}
	return append(out, listDuplicateVersions(r.Versions)...)
}

func listDuplicateVersions(all []v1alpha1.OperatorVersion) []string {
	seen := map[string]bool{}
	for _, v := range all {
		if seen[v.Strimzi] {
			return []string{fmt.Sprintf("version %s is listed twice", v.Strimzi)}
		}
		seen[v.Strimzi] = true
	}
	return nil
}

// isReportSuperseded reports whether a later report has already been accepted.
func isReportSuperseded(dp *v1alpha1.DataPlane, r *v1alpha1.DataPlaneReport) bool {
	for name := range r.Capacity {
		if at := dp.Status.Capacity[name].ReportedAt; at != nil && r.At.Time.Before(at.Time) {
			return true
		}
	}
	return false
}

// AgentLiveCondition returns the condition AgentLive at now. An agent that has never reported is
// silent. The caller must check again after AgentSilenceTimeout: no event announces a missing
// report.
func AgentLiveCondition(dp *v1alpha1.DataPlane, now time.Time) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.DataPlaneAgentLive, ObservedGeneration: dp.Generation}
	agent := dp.Status.Agent
	if agent != nil && agent.LastHeartbeat != nil && now.Before(agent.LastHeartbeat.Add(AgentSilenceTimeout)) {
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonHeartbeat, "The agent reports."
		return c
	}
	c.Status, c.Reason = metav1.ConditionFalse, v1alpha1.ReasonSilent
	c.Message = fmt.Sprintf("The agent has not reported for %s: no instance is placed here. Check its pod on the data plane.", AgentSilenceTimeout)
	return c
}

// PrewarmBlockedCondition returns the condition PrewarmBlocked for the result of
// scaling.Region.PlanPrewarm.
func PrewarmBlockedCondition(dp *v1alpha1.DataPlane, blocked bool, reason, message string) metav1.Condition {
	c := metav1.Condition{
		Type: v1alpha1.DataPlanePrewarmBlocked, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotBlocked, Message: message,
		ObservedGeneration: dp.Generation,
	}
	if blocked {
		c.Status, c.Reason = metav1.ConditionTrue, reason
	}
	return c
}

// setCondition sets a condition as meta.SetStatusCondition does, with now as the transition time.
func setCondition(list *[]metav1.Condition, c metav1.Condition, now time.Time) {
	c.LastTransitionTime = metav1.NewTime(now)
	meta.SetStatusCondition(list, c)
}
