package schedule

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// Snapshot is the input of Decide.
type Snapshot struct {
	Timetable Timetable
	// Created is when the schedule was created. It ignores earlier slots.
	Created time.Time
	// SkipUntil is when skipping ends; zero if no slot is skipped.
	SkipUntil time.Time
	// Record is the record of the last slot.
	Record Record
	// Clusters are the clusters that the schedule selects, in any order.
	Clusters []Cluster
}

// Cluster is a cluster that the schedule selects.
type Cluster struct {
	Name string
	// Seed determines the cluster's delay, which is always the same for the same cluster and
	// differs between clusters.
	Seed string
	// Since is when the cluster was created or, if that was later, assigned to its claim. Earlier
	// slots do not apply to it.
	Since time.Time
	// ChangedAt is when somebody last changed its power state manually, if known.
	ChangedAt time.Time
	// PowerState is its spec.powerState.
	PowerState hivev1.PowerState
	// LastSlot is the last slot that any schedule recorded on it.
	LastSlot Slot
}

// Record is the record of a slot. It is stored before the first cluster is changed.
type Record struct {
	Slot
	Outcome v1alpha1.Outcome
	// StartedAt is when the slot was noticed, in whole seconds. Delays count from it.
	StartedAt time.Time
	// FinishedAt is when the outcome became known; zero until then.
	FinishedAt time.Time
	// Clusters is the number of clusters on which the slot has been recorded.
	Clusters int
}

// Step applies a slot to one cluster.
type Step struct {
	Cluster string
	Slot    Slot
	// Changes is false if the cluster already has the power state of the slot. Then only the slot
	// is recorded, so that a manual change right afterwards is left alone.
	Changes bool
}

// String returns the step as text.
func (s Step) String() string {
	verb := "resume"
	if s.Slot.Power == hivev1.PowerHibernating {
		verb = "hibernate"
	}
	if !s.Changes {
		verb = "leave to " + verb
	}
	return fmt.Sprintf("%s %s: slot of %s", verb, s.Cluster, s.Slot.At.UTC().Format(time.RFC3339))
}

// Plan is what to record, what to do, and when to look again.
type Plan struct {
	// Record must be stored before a step is taken.
	Record Record
	// Steps must be taken now, in the order of the clusters' names.
	Steps []Step
	// Next is the next slot.
	Next Slot
	// RequeueAfter is the delay until the next pass; 0 if none is needed.
	RequeueAfter time.Duration
}

// MaxDelay bounds the time between a slot, or when it was noticed, and the change of a cluster.
// It spreads starts, so that a hundred clusters do not start at once.
const MaxDelay = 45 * time.Second

// settleDelay is the delay before the pass that sees the results of this pass's steps.
const settleDelay = time.Second

// Decide decides what the schedule does now. A slot is applied once, to the clusters that the
// schedule selects at that time; afterwards anyone may change them until the next slot. A missed
// slot is applied when hotspare runs again; of several missed slots, only the last one is.
func Decide(s Snapshot, now time.Time) Plan {
	d := Plan{Record: s.Record, Next: s.Timetable.NextSlot(now)}
	if !d.Next.IsZero() {
		d.RequeueAfter = d.Next.At.Sub(now)
	}
	if last := s.Timetable.LastSlot(laterTime(s.Created, s.Record.At), now); !last.IsZero() {
		d.Record = Record{Slot: last, Outcome: v1alpha1.OutcomeUnderway, StartedAt: now.Truncate(time.Second)}
	}
	if d.Record.Outcome != v1alpha1.OutcomeUnderway {
		return d
	}
	if isDropped(s, d.Record.Slot) {
		d.finishSlot(v1alpha1.OutcomeSkipped, now)
		return d
	}
	d.planSteps(s.Clusters, now)
	return d
}

// isDropped reports whether a slot must not be applied: it is skipped, or it was removed from the
// schedule while it was in progress.
func isDropped(s Snapshot, slot Slot) bool {
	if slot.At.Before(s.SkipUntil) {
		return true
	}
	is := s.Timetable.LastSlot(slot.At.Add(-time.Second), slot.At)
	return is.IsZero() || is.Power != slot.Power
}

func (p *Plan) finishSlot(o v1alpha1.Outcome, now time.Time) {
	p.Record.Outcome, p.Record.FinishedAt = o, now.Truncate(time.Second)
}

// planSteps plans the steps that are due, and finishes the slot when none is left.
func (p *Plan) planSteps(clusters []Cluster, now time.Time) {
	left := 0
	p.Record.Clusters = 0
	for _, c := range clusters {
		switch slot := p.Record.Slot; {
		case c.LastSlot.isSameSlot(slot):
			p.Record.Clusters++
		case c.LastSlot.takesPrecedence(slot), !c.Since.Before(slot.At), c.ChangedAt.After(slot.At):
		default:
			left++
			p.planStep(c, now)
		}
	}
	slices.SortFunc(p.Steps, func(a, b Step) int { return cmp.Compare(a.Cluster, b.Cluster) })
	if left == 0 {
		p.finishSlot(v1alpha1.OutcomeTaken, now)
	}
}

// planStep plans the step if the cluster's delay has passed; otherwise it schedules a later pass.
func (p *Plan) planStep(c Cluster, now time.Time) {
	wait := p.Record.StartedAt.Add(clusterDelay(c.Seed)).Sub(now)
	if wait <= 0 {
		p.Steps = append(p.Steps, Step{Cluster: c.Name, Slot: p.Record.Slot, Changes: c.PowerState != p.Record.Power})
		wait = settleDelay
	}
	if p.RequeueAfter == 0 || wait < p.RequeueAfter {
		p.RequeueAfter = wait
	}
}

// clusterDelay returns the delay of the cluster with this seed, in whole milliseconds.
func clusterDelay(seed string) time.Duration {
	h := fnv.New64a()
	h.Write([]byte(seed))
	return time.Duration(h.Sum64()%uint64(MaxDelay/time.Millisecond)) * time.Millisecond
}
