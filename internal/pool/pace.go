package pool

import (
	"fmt"
	"slices"
	"time"
)

const (
	// batchSize is the maximum number of clusters that a pass creates, and that it deletes: a claim
	// that arrives meanwhile waits for the end of the pass.
	batchSize = 16
	// nextBatchDelay is the delay before the pass that follows a full batch of new clusters.
	nextBatchDelay = time.Millisecond
	// nextStepDelay is the delay before the pass that executes the postponed steps of this plan.
	nextStepDelay = 100 * time.Millisecond
	// demandPeriod is how long a pool counts as in demand after it served a claim. The API stores
	// that time in seconds, so a shorter period than one second would have no effect.
	demandPeriod = 2 * time.Second
	// burstSize and burstPeriod define a burst of claims: see isBurst.
	burstSize   = 16
	burstPeriod = 10 * time.Second
	// backlogLimit is the number of a pool's clusters that may wait for the controllers that
	// install them. Those controllers have one queue for all pools: with more, one large pool would
	// delay the others.
	backlogLimit = 32
	// backlogPeriod is how long a new cluster counts as waiting in that queue: a cluster that is
	// not picked up by then does not wait in a queue.
	backlogPeriod = time.Minute
)

const (
	// positionDelay is the age from which the position of a waiting claim is set: most claims are
	// served earlier, and writing a status that nobody reads only costs time.
	positionDelay = 5 * time.Second
	// positionPeriod is the minimum time between two updates of the positions of a pool's claims.
	// positionRate is the number of positions set per second: all claims move up when one is
	// served.
	positionPeriod = 10 * time.Second
	positionRate   = 10
	// estimateTolerance is how far an estimate may move before it is set again.
	estimateTolerance = 10 * time.Second
)

// postponeSteps marks the creations and deletions that this pass leaves for a later one, and
// returns the delay before that pass; 0 if it postpones nothing. r is the report of the same plan.
func (d *draft) postponeSteps(r Report) time.Duration {
	var next time.Duration
	most := 0
	if planned := d.countPlanned(Create); planned > 0 {
		var delay time.Duration
		if most, delay = d.creationLimit(r); planned > most {
			next = delay
		}
	}
	if d.countPlanned(Delete) > batchSize {
		next = soonerDelay(next, nextStepDelay)
	}
	created, deleted := 0, 0
	for i := range d.steps {
		switch s := &d.steps[i]; s.Verb {
		case Create:
			created++
			s.Later = created > most
		case Delete:
			deleted++
			s.Later = deleted > batchSize
		}
	}
	return next
}

// creationLimit returns the maximum number of clusters that this pass creates, and the delay before
// the next pass if the plan has more. A new cluster costs the API server several times as much work
// as a served claim. So while the pool serves claims, and half of its size is assignable for the
// next ones, it creates clusters one at a time with a pause between them, and never in a pass that
// serves a claim. In a burst that takes more of the pool, it replaces no cluster that was given
// within burstPeriod. When a claim waits, it creates all at full speed.
func (d *draft) creationLimit(r Report) (most int, next time.Duration) {
	enough := r.Waiting == 0 && 2*r.Count[Assignable] >= d.Settings.Size
	switch {
	case enough && d.countPlanned(Bind) > 0:
		return 0, nextStepDelay
	case enough && r.InDemand:
		if len(d.Pending) > 0 || r.Count[Installing] > 0 || d.grewRecently() {
			return 0, nextStepDelay
		}
		return 1, nextStepDelay
	}
	most, next = batchSize, nextBatchDelay
	if left := d.backlogLeft(); left < most {
		most, next = left, nextStepDelay
	}
	if given := d.countGiven(burstPeriod) + d.countNewBindings(); r.Waiting == 0 && d.isBurst(given) {
		if before := max(0, d.wantedCount()-d.existingCount()-given); before < most {
			most, next = before, nextStepDelay
		}
	}
	return most, next
}

// isBurst reports whether given, the number of clusters that claims get within burstPeriod until now, is a burst: many, and
// more than twice as many as in the same time before that. Steady demand is none, because replacements that lag behind it
// would empty the pool.
func (d *draft) isBurst(given int) bool {
	before := d.countGiven(2*burstPeriod) - d.countGiven(burstPeriod)
	return given > burstSize && given > 2*before
}

// countNewBindings returns the number of waiting claims that get a cluster in this plan.
func (d *draft) countNewBindings() int {
	n := 0
	for _, s := range d.steps {
		if s.Verb == Bind && s.Cause == ClaimWaiting {
			n++
		}
	}
	return n
}

// backlogLeft returns the number of clusters that may still be created before the controllers that
// install clusters pick up the existing ones. Fake clusters count until they are installed, since
// only the controllers' queue delays them.
func (d *draft) backlogLeft() int {
	left := backlogLimit - len(d.Pending)
	for _, m := range d.all {
		waits := !m.Installed && !m.Deleting && !m.GaveUp && (!m.Begun || d.Settings.Fake && m.isProgressing())
		if waits && d.Now.Sub(m.Created) < backlogPeriod {
			left--
		}
	}
	return max(0, left)
}

// isInDemand reports whether the pool served a claim within demandPeriod.
func (d *draft) isInDemand() bool {
	return slices.ContainsFunc(d.all, func(m *Member) bool { return m.wasGivenWithin(demandPeriod, d.Now) })
}

// countGiven returns the number of claimed clusters that claims got within period.
func (d *draft) countGiven(period time.Duration) int {
	n := 0
	for _, m := range d.all {
		if m.wasGivenWithin(period, d.Now) {
			n++
		}
	}
	return n
}

// wasGivenWithin reports whether a claim got m within period. It omits times in the future, which a clock
// that was set back leaves.
func (m *Member) wasGivenWithin(period time.Duration, now time.Time) bool {
	since := now.Sub(m.ClaimedAt)
	return m.Claim != "" && since >= 0 && since < period
}

// grewRecently reports whether a cluster was created within demandPeriod.
func (d *draft) grewRecently() bool {
	for _, m := range d.all {
		if d.Now.Sub(m.Created) < demandPeriod {
			return true
		}
	}
	return false
}

// dropDelay returns the delay before the pass that replaces dropped names, which no event triggers;
// 0 if none is dropped.
func (d *draft) dropDelay() time.Duration {
	if d.countPlanned(DropName) == 0 {
		return 0
	}
	return nextBatchDelay
}

// planPositions plans to set the changed positions of waiting claims, and returns the time until
// the pool must be reconciled again; 0 if nothing is postponed.
func (d *draft) planPositions(queue []Wait) time.Duration {
	var next time.Duration
	var changed []Wait
	for _, w := range queue {
		claim := d.claims[w.Claim]
		if left := claim.Created.Add(positionDelay).Sub(d.Now); left > 0 {
			next = soonerDelay(next, left)
		} else if !claim.showsPosition(w) {
			changed = append(changed, w)
		}
	}
	if len(changed) == 0 {
		return next
	}
	pause := max(positionPeriod, time.Duration(len(changed))*time.Second/positionRate)
	if left := d.PositionsSetAt.Add(pause).Sub(d.Now); !d.PositionsSetAt.IsZero() && left > 0 {
		return soonerDelay(next, left)
	}
	for _, w := range changed {
		d.steps = append(d.steps, Step{
			Verb: SetPosition, Claim: w.Claim, Position: w.Position, Ready: w.Ready, Cause: ClaimWaiting,
			Reason: fmt.Sprintf("it is number %d in the queue", w.Position),
		})
	}
	return next
}

// showsPosition reports whether the status of c has the position and the estimate of w.
func (c Claim) showsPosition(w Wait) bool {
	if c.Position != w.Position || w.Ready.IsZero() != c.Ready.IsZero() {
		return false
	}
	return w.Ready.IsZero() || w.Ready.Sub(c.Ready).Abs() < estimateTolerance
}

// sourcesRecheck is how often the pool reads the objects that clusters are made from while an
// install makes no progress: Secrets are not watched.
const sourcesRecheck = 30 * time.Second

// nextDeadline returns the time until the first member becomes overdue or broken by the clock
// alone; 0 if none will.
func (d *draft) nextDeadline() time.Duration {
	var soonest time.Duration
	for _, m := range d.unclaimedMembers(Standby, Assignable) {
		for _, at := range m.timeoutDeadlines(&d.Settings) {
			if wait := at.Sub(d.Now); wait > 0 && (soonest == 0 || wait < soonest) {
				soonest = wait
			}
		}
	}
	if slices.ContainsFunc(d.buckets[Installing], func(m *Member) bool { return !m.isProgressing() }) && (soonest == 0 || soonest > sourcesRecheck) {
		soonest = sourcesRecheck
	}
	for _, m := range d.orphans {
		wait := missingClaimDelay
		if !m.ClaimMissingSince.IsZero() {
			wait = m.ClaimMissingSince.Add(missingClaimDelay).Sub(d.Now)
		}
		if soonest == 0 || wait < soonest {
			soonest = wait
		}
	}
	return soonest
}

func (m *Member) timeoutDeadlines(s *Settings) []time.Time {
	var out []time.Time
	for _, since := range []time.Time{m.ResumingSince, m.UnreachableSince, m.UnreadySince} {
		if since.IsZero() {
			continue
		}
		out = append(out, since.Add(s.slowResumeAfter()))
		if s.ResumeTimeout > 0 {
			out = append(out, since.Add(s.ResumeTimeout))
		}
	}
	if m.MachinesFailed && !m.ResumingSince.IsZero() {
		out = append(out, m.ResumingSince.Add(machineFailureTimeout))
	}
	if overdue := m.gatesOverdueTime(); !overdue.IsZero() {
		out = append(out, overdue, m.GatesDeadline)
	}
	if overdue := m.stepOverdueTime(); !overdue.IsZero() {
		out = append(out, overdue, m.StepDeadline)
	}
	return out
}

// soonerDelay returns the shorter of two delays; 0 means never.
func soonerDelay(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
