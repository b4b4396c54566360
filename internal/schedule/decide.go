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

// Snapshot is what a decision depends on.
type Snapshot struct {
	Timetable Timetable
	// Created is when the schedule was made. Slots before are none of its.
	Created time.Time
	// SkipUntil is when skipping ends; zero if nothing is skipped.
	SkipUntil time.Time
	// Record is what was noted of the last slot.
	Record Record
	// Clusters are those that the schedule is for, in any order.
	Clusters []Cluster
}

// Cluster is one that may be told.
type Cluster struct {
	Name string
	// Seed makes the cluster's delay: the same each time, another for each cluster.
	Seed string
	// Since is when the cluster was made or, if that was later, given to its claim.
	// Slots before are none of its.
	Since time.Time
	// Changed is when somebody changed its power state by hand, as far as known.
	Changed time.Time
	// Wanted is its power state, as asked for.
	Wanted hivev1.PowerState
	// Told is the last slot that it was told of, by any schedule.
	Told Slot
}

// Record is what is noted of a slot. It is stored before the first cluster is told.
type Record struct {
	Slot
	Outcome v1alpha1.Outcome
	// StartedAt is when the slot was noticed, in whole seconds. Delays count from it.
	StartedAt time.Time
	// FinishedAt is when the outcome was known; zero while it is not.
	FinishedAt time.Time
	// Told is how many clusters were told.
	Told int
}

// Step tells one cluster of a slot.
type Step struct {
	Cluster string
	Slot    Slot
	// Changes is false if the cluster is asked already for what the slot wants. Then
	// only the slot is noted, so that a change by hand right afterwards is left alone.
	Changes bool
}

// String is the step in words.
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

// Plan is what to note, what to do, and when to look again.
type Plan struct {
	// Record is to be stored before a step is taken.
	Record Record
	// Steps are to be taken now, in the order of the clusters' names.
	Steps []Step
	// Next is the next slot.
	Next Slot
	// Look is when to look again; 0 if there is no need to.
	Look time.Duration
}

// MaxDelay bounds the time between a slot, or when it was noticed, and a cluster's
// being told. It spreads starts, so that a hundred clusters do not start at once.
const MaxDelay = 45 * time.Second

// settleDelay is when the pass comes that sees what the steps of this one have done.
const settleDelay = time.Second

// Decide says what the schedule has to do now. A slot is taken once, for the clusters
// that the schedule is for then; afterwards they are anybody's to change until the
// next one. A missed slot is taken when hotspare is back, but of several only the last.
func Decide(s Snapshot, now time.Time) Plan {
	d := Plan{Record: s.Record, Next: s.Timetable.NextSlot(now)}
	if !d.Next.IsZero() {
		d.Look = d.Next.At.Sub(now)
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

// isDropped reports whether a slot is not to be taken: it is skipped, or somebody has
// taken it out of the schedule while it was under way.
func isDropped(s Snapshot, slot Slot) bool {
	if slot.At.Before(s.SkipUntil) {
		return true
	}
	is := s.Timetable.LastSlot(slot.At.Add(-time.Second), slot.At)
	return is.IsZero() || is.Power != slot.Power
}

func (d *Plan) finishSlot(o v1alpha1.Outcome, now time.Time) {
	d.Record.Outcome, d.Record.FinishedAt = o, now.Truncate(time.Second)
}

// planSteps plans the steps that are due, and finishes when none is left.
func (d *Plan) planSteps(clusters []Cluster, now time.Time) {
	left := 0
	d.Record.Told = 0
	for _, c := range clusters {
		switch slot := d.Record.Slot; {
		case c.Told.isSameSlot(slot):
			d.Record.Told++
		case c.Told.takesPrecedence(slot), !c.Since.Before(slot.At), c.Changed.After(slot.At):
		default:
			left++
			d.planStep(c, now)
		}
	}
	slices.SortFunc(d.Steps, func(a, b Step) int { return cmp.Compare(a.Cluster, b.Cluster) })
	if left == 0 {
		d.finishSlot(v1alpha1.OutcomeTaken, now)
	}
}

// planStep tells a cluster now, or has a look later.
func (d *Plan) planStep(c Cluster, now time.Time) {
	wait := d.Record.StartedAt.Add(clusterDelay(c.Seed)).Sub(now)
	if wait <= 0 {
		d.Steps = append(d.Steps, Step{Cluster: c.Name, Slot: d.Record.Slot, Changes: c.Wanted != d.Record.Power})
		wait = settleDelay
	}
	if d.Look == 0 || wait < d.Look {
		d.Look = wait
	}
}

// clusterDelay is a cluster's own, in whole milliseconds.
func clusterDelay(seed string) time.Duration {
	h := fnv.New64a()
	h.Write([]byte(seed))
	return time.Duration(h.Sum64()%uint64(MaxDelay/time.Millisecond)) * time.Millisecond
}
