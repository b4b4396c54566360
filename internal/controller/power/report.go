package power

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/bootstrap"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/gate"
	"hotspare.io/hotspare/internal/kstatus"
	"hotspare.io/hotspare/internal/patch"
	"hotspare.io/hotspare/internal/power"
)

// patchPowerStatus writes the plan into the cluster's status, if it changes anything, and records
// an event for the step that was taken. It returns the delay until the next pass.
func (r *Reconciler) patchPowerStatus(ctx context.Context, cd *hivev1.ClusterDeployment, d power.Plan) (time.Duration, error) {
	before, now := cd.DeepCopy(), r.Clock.Now()
	setStatus(cd, d, now)
	copyClaimedTimestamp(cd)
	if cd.Spec.Installed {
		cd.Status.ObservedGeneration = cd.Generation // before the install, package provision reports it
	}
	kstatus.ReportClusterDeployment(cd, now)
	if left := r.reportDelay(before, cd, now); left > 0 {
		return fault.SoonerDelay(d.Next, left), nil
	}
	if _, err := patch.Status(ctx, r.Client, before, cd); err != nil {
		return d.Next, fmt.Errorf("reporting on %s: %w", client.ObjectKeyFromObject(cd), err)
	}
	r.claimReports.removeCluster(client.ObjectKeyFromObject(cd))
	r.recordPowerEvent(before, cd)
	r.recordDrift(cd, d)
	r.Metrics.RecordPowerTransition(before, cd)
	return d.Next, r.patchVersionLabels(ctx, cd, d.Version)
}

// reportDelayLimit is the maximum delay of the write of the power conditions of a new or a deleted cluster.
const reportDelayLimit = 3 * time.Second

// reportDelay returns how long the status of after need not be written because another write that
// includes its changes is probably near; 0 or less if it must be written now:
//   - The cluster is new and not installed: its power conditions say only that.
//   - The cluster was just deleted, and is often gone a moment later.
//   - The cluster was just claimed, and only the claim caused the changes. When many claims arrive,
//     one such write for each would delay the claims that still wait: see claimReportQueue.
func (r *Reconciler) reportDelay(before, after *hivev1.ClusterDeployment, now time.Time) time.Duration {
	switch {
	case after.DeletionTimestamp != nil:
		return reportDelayAfter(*after.DeletionTimestamp, now)
	case !after.Spec.Installed:
		return reportDelayAfter(after.CreationTimestamp, now)
	case changesOnlyByClaim(before, after):
		return r.claimReports.dueTime(client.ObjectKeyFromObject(after), after.Spec.ClusterPoolRef.ClaimedTimestamp.Time, now).Sub(now)
	}
	return 0
}

// reportDelayAfter returns how long after a creation or a deletion the power conditions need not be written.
func reportDelayAfter(began metav1.Time, now time.Time) time.Duration {
	left := began.Add(reportDelayLimit).Sub(now)
	if left > reportDelayLimit {
		return 0 // the clock was wrong
	}
	return left
}

// changesOnlyByClaim reports whether the status of after differs from that of before, and only by
// what follows from a claim.
func changesOnlyByClaim(before, after *hivev1.ClusterDeployment) bool {
	if after.Spec.ClusterPoolRef == nil || after.Spec.ClusterPoolRef.ClaimedTimestamp == nil ||
		before.Status.ObservedGeneration == after.Status.ObservedGeneration && before.Status.ClaimedTimestamp.Equal(after.Status.ClaimedTimestamp) {
		return false
	}
	status := after.Status
	status.ObservedGeneration, status.ClaimedTimestamp = before.Status.ObservedGeneration, before.Status.ClaimedTimestamp
	return equality.Semantic.DeepEqual(before.Status, status)
}

// copyClaimedTimestamp copies the time at which the cluster was claimed into its status (HIVE-1576).
func copyClaimedTimestamp(cd *hivev1.ClusterDeployment) {
	if pool := cd.Spec.ClusterPoolRef; pool != nil {
		cd.Status.ClaimedTimestamp = pool.ClaimedTimestamp
	}
}

func setStatus(cd *hivev1.ClusterDeployment, d power.Plan, now time.Time) {
	status := &cd.Status
	status.PowerState, status.PowerTransition = d.PowerState, d.Record
	setVersionStatus(status, d.Version)
	set := func(typ string, v condition.Value) { condition.Apply(&status.Conditions, typ, v, now) }
	set(hivev1.ClusterHibernating, d.Hibernating)
	set(hivev1.ClusterReady, d.Ready)
	set(hivev1.ClusterUnreachable, d.Unreachable)
	if condition.Find(status.Conditions, hivev1.ClusterUnreachable) == nil {
		set(hivev1.ClusterUnreachable, condition.Unknown(hivev1.ReasonInitialized, ""))
	}
	gate.EndRun(cd, now)
	bootstrap.EndRun(cd)
}

// recordDrift records an event for machines that were started or stopped outside hotspare. The
// reaction has an event of its own.
func (r *Reconciler) recordDrift(cd *hivev1.ClusterDeployment, d power.Plan) {
	switch {
	case d.Drift == "":
	case d.Record.Target == hivev1.PowerRunning:
		r.Events.Eventf(cd, nil, corev1.EventTypeWarning, "MachinesStopped", "SetPower", "machines were stopped outside hotspare: %s; starting them", d.Drift)
	default:
		r.Events.Eventf(cd, nil, corev1.EventTypeWarning, "MachinesStarted", "SetPower", "machines were started outside hotspare: %s; stopping them", d.Drift)
	}
}

// eventTypes maps the reasons of condition Hibernating that deserve an event to the event's type.
var eventTypes = map[string]string{
	hivev1.ReasonResuming:      corev1.EventTypeNormal,
	hivev1.ReasonRunning:       corev1.EventTypeNormal,
	hivev1.ReasonStopping:      corev1.EventTypeNormal,
	hivev1.ReasonHibernating:   corev1.EventTypeNormal,
	hivev1.ReasonFailedToStart: corev1.EventTypeWarning,
	hivev1.ReasonFailedToStop:  corev1.EventTypeWarning,
}

// recordPowerEvent records an event once per step: when the reason changes.
func (r *Reconciler) recordPowerEvent(before, after *hivev1.ClusterDeployment) {
	was, is := condition.Find(before.Status.Conditions, hivev1.ClusterHibernating), condition.Find(after.Status.Conditions, hivev1.ClusterHibernating)
	if was != nil && was.Reason == is.Reason {
		return
	}
	if typ, ok := eventTypes[is.Reason]; ok {
		r.Events.Eventf(after, nil, typ, is.Reason, "SetPower", "%s", is.Message)
	}
}
