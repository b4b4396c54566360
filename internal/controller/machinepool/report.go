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

// state is what is said of a MachinePool.
type state struct {
	synced          corev1.ConditionStatus
	reason, message string
	// decision is what was decided; nil if nothing could be.
	decision *machinepool.Decision
}

func waiting(reason, format string, args ...any) *state {
	return &state{synced: corev1.ConditionFalse, reason: reason, message: fmt.Sprintf(format, args...)}
}

func unreachable(trouble string) state {
	return *waiting(hivev1.ReasonClusterUnreachable, "The cluster's API does not answer: %s.", trouble)
}

// failed is for a cluster that could not be looked at.
func failed(err error) state {
	return *waiting(hivev1.ReasonSyncFailed, "Looking at the cluster: %s.", remote.Trouble(err))
}

// outcome says what has become of a decision.
func outcome(d machinepool.Decision, err error) state {
	s := state{synced: corev1.ConditionFalse, decision: &d}
	switch {
	case d.Unsupported.IsTrue():
		s.reason, s.message = d.Unsupported.Reason, "Nothing is changed in the cluster: see condition "+hivev1.MachinePoolUnsupported+"."
	case d.NotEnough.IsTrue():
		s.reason, s.message = d.NotEnough.Reason, "Nothing is changed in the cluster: see condition "+hivev1.MachinePoolNotEnough+"."
	case fault.Of(err) == fault.Capacity:
		s.reason, s.message = hivev1.ReasonNoRoom, sentence(err.Error())
	case fault.Of(err) == fault.Wait:
		s.reason, s.message = hivev1.ReasonSyncing, sentence(err.Error())
	case err != nil:
		s.reason, s.message = hivev1.ReasonSyncFailed, sentence(trouble(err))
	case len(d.Steps) > 0:
		s.reason, s.message = hivev1.ReasonSyncing, "The cluster is being changed: "+summary(d.Steps)+"."
	case d.Waiting != "":
		s.reason, s.message = hivev1.ReasonSyncing, "Waiting: "+d.Waiting+"."
	default:
		s.synced, s.reason, s.message = corev1.ConditionTrue, hivev1.ReasonSynced, "The cluster has what the pool asks for."
	}
	return s
}

// refusal is an answer of a cluster to a step.
type refusal struct {
	step machinepool.Step
	err  error
}

func (r *refusal) Error() string { return fmt.Sprintf("%s %s: %s", r.step.Verb, r.step.Name, r.err) }
func (r *refusal) Unwrap() error { return r.err }

// trouble says in stable words which step failed, and why.
func trouble(err error) string {
	var r *refusal
	if errors.As(err, &r) {
		if fault.Of(r.err) == fault.Denied {
			return r.Error()
		}
		return fmt.Sprintf("%s %s: %s", r.step.Verb, r.step.Name, remote.Trouble(r.err))
	}
	return remote.Trouble(err)
}

func sentence(text string) string { return strings.TrimSuffix(text, ".") + "." }

// summary counts steps: "add worker (2), mark node (1)".
func summary(steps []machinepool.Step) string {
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

// record notes what the pool is about to set, before it does.
func (r *Reconciler) record(ctx context.Context, mp *hivev1.MachinePool, o machinepool.Owned) error {
	before := mp.DeepCopy()
	own(mp, o)
	if _, err := patch.Status(ctx, r.Client, before, mp); err != nil {
		return fmt.Errorf("recording labels of %s: %w", client.ObjectKeyFromObject(mp), err)
	}
	return nil
}

func own(mp *hivev1.MachinePool, o machinepool.Owned) {
	mp.Status.OwnedLabels, mp.Status.OwnedMachineLabels, mp.Status.OwnedTaints = o.Labels, o.MachineLabels, o.Taints
}

// report writes the status, and announces what has gone wrong.
func (r *Reconciler) report(ctx context.Context, mp *hivev1.MachinePool, s state) error {
	before, now := mp.DeepCopy(), r.Clock.Now()
	set := func(typ string, status corev1.ConditionStatus, reason, message string) {
		condition.Set(&mp.Status.Conditions, typ, status, reason, message, now)
	}
	set(hivev1.MachinePoolSynced, s.synced, s.reason, s.message)
	if d := s.decision; d != nil {
		set(hivev1.MachinePoolUnsupported, condition.Status(d.Unsupported.IsTrue()), d.Unsupported.Reason, d.Unsupported.Message)
		set(hivev1.MachinePoolNotEnough, condition.Status(d.NotEnough.IsTrue()), d.NotEnough.Reason, d.NotEnough.Message)
		mp.Status.Replicas, mp.Status.MachineSets = int32(d.Replicas), d.Sets
		own(mp, d.Owned)
	}
	kstatus.ReportMachinePool(mp, now)
	if _, err := patch.Status(ctx, r.Client, before, mp); err != nil {
		return fmt.Errorf("reporting on %s: %w", client.ObjectKeyFromObject(mp), err)
	}
	r.announce(mp, before.Status.Conditions, s)
	return nil
}

// announce tells once of what a person must mend.
func (r *Reconciler) announce(mp *hivev1.MachinePool, before []hivev1.Condition, s state) {
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
