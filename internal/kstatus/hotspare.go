package kstatus

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/scaling"
)

// ReportServiceInstance sets the two conditions in st, which becomes the status of instance. Call
// it after the instance's other conditions and its phase are set.
func ReportServiceInstance(instance *v1alpha1.ServiceInstance, st *v1alpha1.ServiceInstanceStatus, now time.Time) {
	serviceInstanceProgress(st).unlessDeleted(instance.DeletionTimestamp).setMetaConditions(&st.Conditions, st.ObservedGeneration, now)
}

func serviceInstanceProgress(st *v1alpha1.ServiceInstanceStatus) Progress {
	placed := meta.FindStatusCondition(st.Conditions, v1alpha1.InstancePlaced)
	ready := meta.FindStatusCondition(st.Conditions, v1alpha1.InstanceIsReady)
	switch {
	case placed != nil && placed.Status != metav1.ConditionTrue:
		return unplacedProgress(placed)
	case ready == nil && placed == nil:
		return settled // nothing was reported yet
	case ready == nil, ready.Reason == v1alpha1.ReasonNotPlaced && placed != nil:
		return newReconciling(placed.Reason, placed.Message)
	case ready.Status == metav1.ConditionTrue:
		return settled
	case st.Phase == v1alpha1.InstanceFailed || slices.Contains(unreachableReasons, ready.Reason):
		return newStalled(ready.Reason, ready.Message)
	default:
		return newReconciling(ready.Reason, ready.Message)
	}
}

// unreachableReasons are the reasons of an instance's condition Ready while its data plane does
// not respond and a person must investigate.
var unreachableReasons = []string{v1alpha1.ReasonAgentSilent, v1alpha1.ReasonPlaneSilent, v1alpha1.ReasonNoRegion, hivev1.ReasonUnreadable}

// unplacedProgress returns the progress of an instance without a data plane. It gets a place when
// other instances are deleted or the region grows; whether the region can grow, the region itself
// reports.
func unplacedProgress(placed *metav1.Condition) Progress {
	switch scaling.Reason(placed.Reason) {
	case scaling.NoCapacity:
		return newReconciling(placed.Reason, placed.Message+": the region's FleetRegion reports whether it gets another data plane, and what a person must do otherwise")
	case scaling.PlaneIsLeaving, scaling.InFlight, scaling.BackingOff, scaling.BelowMinimum, scaling.BelowSlack, scaling.BiggestDoesNotFit, scaling.InstancesRefused:
		return newReconciling(placed.Reason, placed.Message)
	default:
		return newStalled(placed.Reason, placed.Message)
	}
}

// ReportFleetRegion sets the two conditions in st, which becomes the status of region. Call it
// after the rest of the status is set.
func ReportFleetRegion(region *v1alpha1.FleetRegion, st *v1alpha1.FleetRegionStatus, now time.Time) {
	fleetRegionProgress(st).unlessDeleted(region.DeletionTimestamp).setMetaConditions(&st.Conditions, st.ObservedGeneration, now)
}

func fleetRegionProgress(st *v1alpha1.FleetRegionStatus) Progress {
	for _, typ := range []string{v1alpha1.RegionValid, v1alpha1.RegionPoolSuitable} {
		if c := meta.FindStatusCondition(st.Conditions, typ); c != nil && c.Status == metav1.ConditionFalse {
			return newStalled(c.Reason, c.Message)
		}
	}
	var stuck []string
	reason, waiting := "", Progress{}
	for _, t := range st.InstanceTypes {
		switch {
		case t.InFlight > 0:
			return newReconciling(string(scaling.InFlight), "Data planes are on their way: status.instanceTypes says how many.")
		case t.Decision == nil:
		case t.Decision.Action == createAction:
			return newReconciling(t.Decision.Reason, "A data plane of "+t.Name+" is being made.")
		case t.Decision.Reason == string(scaling.BackingOff):
			waiting = newReconciling(t.Decision.Reason, "Data planes of "+t.Name+
				" failed in a row: hotspare makes the next one after spec.scaleUp.backoff, or as soon as the failed ones are deleted.")
		case isTypeStuck(t):
			stuck = append(stuck, t.Name+": "+t.Decision.Message)
			if reason == "" {
				reason = t.Decision.Reason
			}
		}
	}
	switch {
	case waiting != settled:
		return waiting
	case len(stuck) > 0:
		return newStalled(reason, strings.Join(stuck, "; "))
	default:
		return settled
	}
}

// createAction is the action of a decision to create a data plane.
const createAction = "Create"

// isTypeStuck reports whether a type lacks a data plane that only a person can provide: with a
// higher limit, another pool or a corrected type. A reached limit is not a problem while no
// instance waits.
func isTypeStuck(t v1alpha1.RegionTypeStatus) bool {
	switch scaling.Reason(t.Decision.Reason) {
	case scaling.AtMaximum, scaling.Blocked, scaling.NoUnits, scaling.BiggestFitsNowhere, scaling.Undecided:
		return true
	case scaling.LimitReached, scaling.LimitCovered:
		return t.PendingUnits > 0
	case scaling.SwitchedOff:
		return t.PendingUnits > 0 || !t.BiggestFits
	default:
		return false
	}
}

// ReportInstanceType sets the two conditions in st, which becomes the status of it.
func ReportInstanceType(it *v1alpha1.InstanceType, st *v1alpha1.InstanceTypeStatus, now time.Time) {
	validityProgress(st.Conditions).unlessDeleted(it.DeletionTimestamp).setMetaConditions(&st.Conditions, st.ObservedGeneration, now)
}

// validityProgress returns the progress of an object in which only the spec can be wrong, which its condition
// Valid reports.
func validityProgress(list []metav1.Condition) Progress {
	if c := meta.FindStatusCondition(list, v1alpha1.TypeValid); c != nil && c.Status == metav1.ConditionFalse {
		return newStalled(c.Reason, c.Message)
	}
	return settled
}

// ReportClusterBootstrap sets the two conditions of a bootstrap. Call it after the rest of the status is set.
func ReportClusterBootstrap(b *v1alpha1.ClusterBootstrap, now time.Time) {
	validityProgress(b.Status.Conditions).unlessDeleted(b.DeletionTimestamp).setMetaConditions(&b.Status.Conditions, b.Status.ObservedGeneration, now)
}

// ReportClaimSet sets the two conditions in the status of a set. Call it after the rest of the status is set. stalled
// is set if a person must act before the set gets its clusters. fault is for what the other conditions have no reason
// for: something in the set is invalid.
func ReportClaimSet(set *v1alpha1.ClaimSet, stalled bool, fault Progress, now time.Time) {
	p := claimSetProgress(set, stalled)
	if p == settled {
		p = fault
	}
	p.unlessDeleted(set.DeletionTimestamp).setMetaConditions(&set.Status.Conditions, set.Generation, now)
}

func claimSetProgress(set *v1alpha1.ClaimSet, stalled bool) Progress {
	pending := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ClaimSetPending)
	running := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ClaimSetClustersRunning)
	switch {
	case pending == nil:
		return settled // nothing was reported yet
	case pending.Status == metav1.ConditionTrue && stalled:
		return newStalled(pending.Reason, pending.Message)
	case pending.Status == metav1.ConditionTrue:
		return newReconciling(pending.Reason, pending.Message)
	case running != nil && running.Status != metav1.ConditionTrue && running.Reason == hivev1.ReasonClusterDeleted:
		return newStalled(running.Reason, running.Message)
	case running != nil && running.Status != metav1.ConditionTrue && running.Reason == v1alpha1.ReasonClustersNotRunning:
		return newReconciling(running.Reason, running.Message)
	default:
		return settled
	}
}

// ReportPowerSchedule sets the two conditions of a schedule. Call it after the rest of the status
// is set.
func ReportPowerSchedule(ps *v1alpha1.PowerSchedule, now time.Time) {
	powerScheduleProgress(ps).unlessDeleted(ps.DeletionTimestamp).setMetaConditions(&ps.Status.Conditions, ps.Status.ObservedGeneration, now)
}

func powerScheduleProgress(ps *v1alpha1.PowerSchedule) Progress {
	if p := validityProgress(ps.Status.Conditions); p != settled {
		return p
	}
	last := ps.Status.LastSlot
	if last == nil || last.Outcome != v1alpha1.OutcomeUnderway {
		return settled
	}
	if last.Message != "" {
		return newReconciling("ClusterNotTold", "The schedule retries: "+last.Message)
	}
	return newReconciling(string(last.Outcome), "The clusters are being set to the power state of the last slot: status.lastSlot names it.")
}

// ReportPoolPolicy sets the two conditions of a policy. Call it after the rest of the status is set.
func ReportPoolPolicy(p *v1alpha1.PoolPolicy, now time.Time) {
	poolPolicyProgress(&p.Status).unlessDeleted(p.DeletionTimestamp).setMetaConditions(&p.Status.Conditions, p.Status.ObservedGeneration, now)
}

// poolPolicyProgress returns the progress of a policy. One that learns, or that respects a change by
// hand, is settled: nobody should wait for it.
func poolPolicyProgress(st *v1alpha1.PoolPolicyStatus) Progress {
	if p := validityProgress(st.Conditions); p != settled {
		return p
	}
	applied := meta.FindStatusCondition(st.Conditions, v1alpha1.PolicyApplied)
	if applied != nil && applied.Status == metav1.ConditionFalse {
		switch applied.Reason {
		case hivev1.ReasonPoolNotFound, hivev1.ReasonUnreadable, v1alpha1.ReasonRefused:
			return newStalled(applied.Reason, applied.Message)
		}
	}
	record := meta.FindStatusCondition(st.Conditions, v1alpha1.PolicyRecordUsable)
	if record != nil && record.Status == metav1.ConditionFalse && record.Reason != v1alpha1.ReasonRecordSetAside {
		return newStalled(record.Reason, record.Message)
	}
	return settled
}

// ReportDataPlane sets the two conditions in st, which becomes the status of dp. Call it after
// the rest of the status is set.
func ReportDataPlane(dp *v1alpha1.DataPlane, st *v1alpha1.DataPlaneStatus, now time.Time) {
	dataPlaneProgress(st).unlessDeleted(dp.DeletionTimestamp).setMetaConditions(&st.Conditions, st.ObservedGeneration, now)
}

func dataPlaneProgress(st *v1alpha1.DataPlaneStatus) Progress {
	ready := meta.FindStatusCondition(st.Conditions, v1alpha1.DataPlaneReady)
	switch {
	case ready == nil:
		return settled // nothing was reported yet
	case ready.Status == metav1.ConditionTrue, ready.Reason == v1alpha1.ReasonUnschedulable:
		return settled // spec.schedulable is false on purpose
	case ready.Reason == string(st.Phase) && st.Phase != v1alpha1.PhaseFailed, ready.Reason == string(v1alpha1.PhaseProvisioning):
		return newReconciling(ready.Reason, ready.Message)
	default:
		return newStalled(ready.Reason, ready.Message)
	}
}

// ReportDataPlaneAgent sets the two conditions of the DataPlaneAgent of a data plane. plane is
// the data plane's new status; its conditions must be set.
func ReportDataPlaneAgent(a *v1alpha1.DataPlaneAgent, plane *v1alpha1.DataPlaneStatus, now time.Time) {
	agentProgress(a, plane).unlessDeleted(a.DeletionTimestamp).setMetaConditions(&a.Status.Conditions, a.Status.ObservedGeneration, now)
}

// agentProgress returns the progress of a DataPlaneAgent: it is settled while its agent reports,
// and is ready. The ServiceInstance of each instance reports that instance's progress.
func agentProgress(a *v1alpha1.DataPlaneAgent, plane *v1alpha1.DataPlaneStatus) Progress {
	report, p := a.Status.Report, dataPlaneProgress(plane)
	reported := report != nil && report.DataPlaneUID == a.Spec.DataPlaneUID
	switch {
	case !reported && p == settled:
		return newReconciling(string(v1alpha1.PhaseWaitingForAgent), "The agent has not reported yet.")
	case !reported, !report.Ready && p != settled, p.Type == hivev1.ConditionStalled:
		return p
	}
	for _, typ := range []string{v1alpha1.DataPlaneReportValid, v1alpha1.DataPlaneAgentLive} {
		if c := meta.FindStatusCondition(plane.Conditions, typ); c != nil && c.Status != metav1.ConditionTrue {
			return newStalled(c.Reason, c.Message)
		}
	}
	return settled
}
