package pool

import (
	"cmp"
	"slices"
	"time"
)

// Decide returns the plan for a snapshot. The order of its parts matters: it retires clusters
// before it counts anything, serves claims before it sets power, so that only claims that still
// wait ask for more, and creates clusters before it replaces any.
func Decide(s Snapshot) Plan {
	d := newDraft(s)
	if d.isReleasable() {
		d.removeFinalizer()
		return d.finishPlan()
	}
	d.addFinalizer()
	d.reportInvalidCustomizations()
	d.dropUnusableNames()
	d.retireClusters()
	d.completeBindings()
	if d.Settings.Deleting {
		d.deleteUnclaimed()
		return d.finishPlan()
	}
	d.bindWaitingClaims()
	d.setPowerStates()
	d.completeCreations()
	d.createMissing()
	d.replaceBroken()
	d.deleteSurplus()
	d.replaceStale()
	return d.finishPlan()
}

// verbOrder is the order of the steps in a plan.
var verbOrder = []Verb{
	AddFinalizer, RemoveFinalizer, Bind, Start, Hibernate, SetPosition, ReportInvalid, DropName, CompleteCreation, Create, Delete,
}

// Verbs returns all verbs, in the order of the steps in a plan.
func Verbs() []Verb { return slices.Clone(verbOrder) }

// finishPlan adds the steps that depend on the others, sorts the steps, and reports on them.
func (d *draft) finishPlan() Plan {
	d.steps = slices.DeleteFunc(d.steps, func(s Step) bool { return (s.Verb == Start || s.Verb == Hibernate) && d.plannedDeletions[s.Cluster] })
	r := d.buildReport()
	next := d.RecheckAfter
	for _, delay := range []time.Duration{d.nextDeadline(), d.postponeSteps(r), d.planPositions(r.Queue), d.dropDelay()} {
		next = soonerDelay(next, delay)
	}
	slices.SortStableFunc(d.steps, func(a, b Step) int {
		return cmp.Compare(slices.Index(verbOrder, a.Verb), slices.Index(verbOrder, b.Verb))
	})
	return Plan{Steps: d.steps, Report: r, Next: next}
}
