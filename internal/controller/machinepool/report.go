package machinepool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/kstatus"
	"hotspare.io/hotspare/internal/machinepool"
	"hotspare.io/hotspare/internal/patch"
	"hotspare.io/hotspare/internal/remote"
)

// syncState is the state to report for a MachinePool.
type syncState struct {
	synced          corev1.ConditionStatus
	reason, message string
	// decision is the plan; nil if there is none.
	decision *machinepool.Plan
}

func notSyncedState(reason, format string, args ...any) *syncState {
	return &syncState{synced: corev1.ConditionFalse, reason: reason, message: fmt.Sprintf(format, args...)}
}

func unreachableState(trouble string) syncState {
	return *notSyncedState(hivev1.ReasonClusterUnreachable, "The cluster's API does not answer: %s.", trouble)
}

// observeFailedState returns the state for a cluster that could not be observed.
func observeFailedState(err error) syncState {
	return *notSyncedState(hivev1.ReasonSyncFailed, "Observing the cluster failed: %s.", remote.DescribeFailure(err))
}

// stepsOutcome returns the state after the steps of a plan.
func stepsOutcome(d machinepool.Plan, err error) syncState {
	s := syncState{synced: corev1.ConditionFalse, decision: &d}
	switch {
	case d.Unsupported.IsTrue():
		s.reason, s.message = d.Unsupported.Reason, "Nothing is changed in the cluster: see condition "+hivev1.MachinePoolUnsupported+"."
	case d.NotEnough.IsTrue():
		s.reason, s.message = d.NotEnough.Reason, "Nothing is changed in the cluster: see condition "+hivev1.MachinePoolNotEnough+"."
	case fault.KindOf(err) == fault.Capacity:
		s.reason, s.message = hivev1.ReasonNoRoom, withFullStop(err.Error())
	case fault.KindOf(err) == fault.Wait:
		s.reason, s.message = hivev1.ReasonSyncing, withFullStop(err.Error())
	case err != nil:
		s.reason, s.message = hivev1.ReasonSyncFailed, withFullStop(describeFailure(err))
	case len(d.Steps) > 0:
		s.reason, s.message = hivev1.ReasonSyncing, "The cluster is being changed: "+summarizeSteps(d.Steps)+"."
	case d.Waiting != "":
		s.reason, s.message = hivev1.ReasonSyncing, "Waiting: "+d.Waiting+"."
	default:
		s.synced, s.reason, s.message = corev1.ConditionTrue, hivev1.ReasonSynced, "The cluster matches the pool."
	}
	return s
}

// stepError is a cluster's error in response to a step.
type stepError struct {
	step machinepool.Step
	err  error
}

func (e *stepError) Error() string { return fmt.Sprintf("%s %s: %s", e.step.Verb, e.step.Name, e.err) }
func (e *stepError) Unwrap() error { return e.err }

// describeFailure says in stable words which step failed, and why.
func describeFailure(err error) string {
	var r *stepError
	if errors.As(err, &r) {
		if fault.KindOf(r.err) == fault.Denied {
			return r.Error()
		}
		return fmt.Sprintf("%s %s: %s", r.step.Verb, r.step.Name, remote.DescribeFailure(r.err))
	}
	return remote.DescribeFailure(err)
}

func withFullStop(text string) string { return strings.TrimSuffix(text, ".") + "." }

// summarizeSteps counts steps: "add worker (2), update node (1)".
func summarizeSteps(steps []machinepool.Step) string {
	counts := map[machinepool.Verb]int{}
	var verbs []string
	for _, s := range steps {
		if counts[s.Verb]++; counts[s.Verb] == 1 {
			verbs = append(verbs, string(s.Verb))
		}
	}
	slices.Sort(verbs)
	for i, v := range verbs {
		verbs[i] = fmt.Sprintf("%s (%d)", v, counts[machinepool.Verb(v)])
	}
	return strings.Join(verbs, ", ")
}

// patchOwnedStatus records what the pool is about to set, before it sets it.
func (r *Reconciler) patchOwnedStatus(ctx context.Context, mp *hivev1.MachinePool, o machinepool.OwnedMetadata) error {
	before := mp.DeepCopy()
	setOwnedStatus(mp, o)
	if _, err := patch.Status(ctx, r.Client, before, mp); err != nil {
		return fmt.Errorf("recording labels of %s: %w", client.ObjectKeyFromObject(mp), err)
	}
	return nil
}

func setOwnedStatus(mp *hivev1.MachinePool, o machinepool.OwnedMetadata) {
	mp.Status.OwnedLabels, mp.Status.OwnedMachineLabels, mp.Status.OwnedTaints = o.Labels, o.MachineLabels, o.Taints
}

// patchStatus writes the status, and records an event for what has gone wrong.
func (r *Reconciler) patchStatus(ctx context.Context, mp *hivev1.MachinePool, s syncState) error {
	before, now := mp.DeepCopy(), r.Clock.Now()
	set := func(typ string, status corev1.ConditionStatus, reason, message string) {
		condition.Set(&mp.Status.Conditions, typ, status, reason, message, now)
	}
	set(hivev1.MachinePoolSynced, s.synced, s.reason, s.message)
	if d := s.decision; d != nil {
		set(hivev1.MachinePoolUnsupported, condition.StatusOf(d.Unsupported.IsTrue()), d.Unsupported.Reason, d.Unsupported.Message)
		set(hivev1.MachinePoolNotEnough, condition.StatusOf(d.NotEnough.IsTrue()), d.NotEnough.Reason, d.NotEnough.Message)
		mp.Status.Replicas, mp.Status.MachineSets = int32(d.Replicas), d.Sets
		setOwnedStatus(mp, d.Owned)
	}
	kstatus.ReportMachinePool(mp, now)
	if _, err := patch.Status(ctx, r.Client, before, mp); err != nil {
		return fmt.Errorf("reporting on %s: %w", client.ObjectKeyFromObject(mp), err)
	}
	r.recordWarningEvent(mp, before.Status.Conditions, s)
	return nil
}

// recordWarningEvent records one event for a problem that a person must solve.
func (r *Reconciler) recordWarningEvent(mp *hivev1.MachinePool, before []hivev1.Condition, s syncState) {
	bad := []string{hivev1.ReasonSyncFailed, hivev1.ReasonNoRoom}
	if d := s.decision; !slices.Contains(bad, s.reason) && (d == nil || !d.Unsupported.IsTrue() && !d.NotEnough.IsTrue()) {
		return
	}
	if was := condition.Find(before, hivev1.MachinePoolSynced); was != nil && was.Reason == s.reason {
		return
	}
	message := s.message
	for _, typ := range []string{hivev1.MachinePoolUnsupported, hivev1.MachinePoolNotEnough} {
		if c := condition.Find(mp.Status.Conditions, typ); c != nil && c.Status == corev1.ConditionTrue {
			message = c.Message
		}
	}
	r.Events.Eventf(mp, nil, corev1.EventTypeWarning, s.reason, "Sync", "%s", message)
}
