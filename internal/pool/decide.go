package pool

import (
	"cmp"
	"slices"
)

// Decide returns the plan for a snapshot. The order of its parts matters: it retires clusters
// before it counts anything, serves claims before it sets power, so that only claims that still
// wait ask for more, and creates clusters before it replaces any.
func Decide(s Snapshot) Plan {
	d := newDraft(s)
	d.retireClusters()
	d.completeBindings()
	if d.Settings.Deleting {
		d.deleteUnclaimed()
		return d.finishPlan()
	}
	d.bindWaitingClaims()
	d.setPowerStates()
	d.createMissing()
	d.replaceBroken()
	d.deleteSurplus()
	d.replaceStale()
	return d.finishPlan()
}

// verbOrder is the order of the steps in a plan.
var verbOrder = map[Verb]int{Bind: 0, Start: 1, Sleep: 2, SetPosition: 3, Create: 4, Delete: 5}

func (d *draft) finishPlan() Plan {
	d.steps = slices.DeleteFunc(d.steps, func(s Step) bool { return (s.Verb == Start || s.Verb == Sleep) && d.plannedDeletions[s.Cluster] })
	r := d.buildReport()
	next := soonerDelay(d.nextDeadline(), soonerDelay(d.postponeSteps(r), d.planPositions(r.Queue)))
	slices.SortStableFunc(d.steps, func(a, b Step) int { return cmp.Compare(verbOrder[a.Verb], verbOrder[b.Verb]) })
	return Plan{Steps: d.steps, Report: r, Next: next}
}
