package power

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
)

// record is the transition that a decision works on.
type record struct {
	hivev1.PowerTransition
	// isNew is set for a record that is not stored yet. No action may be taken for it.
	isNew bool
}

// currentRecord returns the ongoing transition to target, or a new one: when the target has
// changed, and when machines must be started or stopped again in a cluster that had completed its
// transition. Other late problems leave the record closed, so that no timeout counts from a
// resume of days ago (Hive D4).
func (s Snapshot) currentRecord(target hivev1.PowerState, act Action, now time.Time) record {
	var r record
	if s.continuesRecord(target, act) {
		r.PowerTransition = *s.Record.DeepCopy()
	} else {
		r = record{isNew: true, PowerTransition: hivev1.PowerTransition{Target: target, StartedAt: apiTime(s.transitionStart(target, act, now))}}
		if s.Record != nil && s.Record.Target == hivev1.PowerHibernating && target == hivev1.PowerRunning {
			r.Depth = s.wakeDepth()
		}
	}
	r.Deadline = nil
	if span := s.transitionTimeout(target); span > 0 && r.FinishedAt == nil {
		at := metav1.NewTime(r.StartedAt.Add(span))
		r.Deadline = &at
	}
	return r
}

// wakeDepth returns the depth from which a cluster wakes that hibernates, or is about to: then it is the depth of the deepest machine that
// sleeps already or, if none does, the shallowest one of the platform, because such a resume is short.
func (s Snapshot) wakeDepth() string {
	if s.Record.FinishedAt != nil || len(s.Machines) == 0 {
		return s.Record.Depth
	}
	var r record
	asleep := s
	asleep.Machines = slices.DeleteFunc(slices.Clone(s.Machines), func(m cloud.Machine) bool { return m.State != cloud.Stopped })
	if asleep.recordDepth(&r); r.Depth == "" {
		asleep.WantedDepth = cloud.DepthFreeze
		r.Depth = string(asleep.TargetDepth())
	}
	return r.Depth
}

func (s Snapshot) continuesRecord(target hivev1.PowerState, act Action) bool {
	if s.Record == nil || s.Record.Target != target {
		return false
	}
	arrived := s.Record.FinishedAt != nil || s.Record.StartedAt.Time.Equal(apiTime(s.InstalledAt).Time)
	return act == NoAction || !arrived
}

// driftedMachines returns the names of the machines that have left state want although no
// transition was requested. A new record is opened for them.
func (s Snapshot) driftedMachines(rec record, want cloud.State) string {
	old := s.Record
	if !rec.isNew || old == nil || old.Target != rec.Target || old.FinishedAt == nil {
		return ""
	}
	return s.machinesNotIn(want)
}

// transitionStart returns when a new transition starts: now, or the install time if the cluster's
// machines have run since its install. A record that starts at the install time is taken for the
// transition of the install. Any other transition therefore starts at least one second later: if
// it were taken for that of the install, every pass in that second would open it again.
func (s Snapshot) transitionStart(target hivev1.PowerState, act Action, now time.Time) time.Time {
	if s.Record == nil && target == hivev1.PowerRunning && act == NoAction && !s.InstalledAt.IsZero() {
		return s.InstalledAt
	}
	if apiTime(now).Time.Equal(apiTime(s.InstalledAt).Time) {
		return now.Add(time.Second)
	}
	return now
}

// transitionTimeout returns the time limit of a transition to target; 0 is none. Fake clusters
// have none (enhancement: replace broken clusters).
func (s Snapshot) transitionTimeout(target hivev1.PowerState) time.Duration {
	switch {
	case s.Fake:
		return 0
	case target == hivev1.PowerHibernating:
		return s.Limits.ToHibernating
	default:
		return s.Limits.ToRunning
	}
}

// noteMachineFailure records that machines failed, and keeps that until the target is reached: a
// machine that fails repeatedly starts in between.
func (r *record) noteMachineFailure(g *gap) {
	r.MachinesFailed = r.MachinesFailed || g != nil && g.machines
}

// markFinished closes the record because the target is reached. It keeps the time of the first
// call.
func (r *record) markFinished(now time.Time) {
	if r.FinishedAt == nil {
		at := metav1.NewTime(laterTime(apiTime(now).Time, r.StartedAt.Time)) // the start may be one second later: see transitionStart
		r.FinishedAt = &at
	}
	r.Deadline, r.LastError, r.MachinesFailed = nil, "", false
}

// isOverdue reports whether the transition has exceeded its time limit.
func (r record) isOverdue(now time.Time) bool {
	return r.Deadline != nil && !now.Before(r.Deadline.Time)
}

// poweredOnAt returns the time from which signs of life count; zero if the machines have not been
// off since the install.
func (r record) poweredOnAt(installed time.Time) time.Time {
	if r.StartedAt.Time.Equal(apiTime(installed).Time) {
		return time.Time{}
	}
	return r.StartedAt.Time
}

// completePlan adds the record to a plan: it removes the action if the record is not stored yet,
// and makes sure that a pass runs at the deadline.
func (r record) completePlan(d Plan) Plan {
	d.Record = r.toTransition()
	if r.isNew {
		d.CreateProbe = ""
	}
	if r.isNew && d.Action != NoAction {
		d.Action, d.Next = NoAction, nextPassDelay
	}
	return d
}

func (r record) toTransition() *hivev1.PowerTransition { return &r.PowerTransition }

// apiTime truncates t to whole seconds, as the API stores it.
func apiTime(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }

func timedOutMessage(doing string, after time.Duration, why string) string {
	return fmt.Sprintf("%s timed out after %s. %s", doing, after, why)
}
