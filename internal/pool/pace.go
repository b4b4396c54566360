package pool

import "time"

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
	// backlogLimit is the number of a pool's clusters that may wait for the controllers that
	// install them. Those controllers have one queue for all pools: with more, one large pool would
	// delay the others.
	backlogLimit = 32
	// backlogPeriod is how long a new cluster counts as waiting in that queue: a cluster that is
	// not picked up by then does not wait in a queue.
	backlogPeriod = time.Minute
)

// postponeSteps marks the creations and deletions that this pass leaves for a later one, and
// returns the delay before that pass; 0 if it postpones nothing. r is the report of the same plan.
func (d *draft) postponeSteps(r Report) time.Duration {
	var next time.Duration
	most, delay := d.creationLimit(r)
	if d.countPlanned(Create) > most {
		next = delay
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
// serves a claim.
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
	if left := d.backlogLeft(); left < batchSize {
		return left, nextStepDelay
	}
	return batchSize, nextBatchDelay
}

// backlogLeft returns the number of clusters that may still be created before the controllers that
// install clusters pick up the existing ones. Fake clusters count until they are installed, since
// only the controllers' queue delays them.
func (d *draft) backlogLeft() int {
	left := backlogLimit - len(d.Pending)
	for i := range d.Members {
		m := &d.Members[i]
		waits := !m.Installed && !m.Deleting && !m.GaveUp && (!m.Begun || d.Settings.Fake && m.isProgressing())
		if waits && d.Now.Sub(m.Created) < backlogPeriod {
			left--
		}
	}
	return max(0, left)
}

// isInDemand reports whether the pool served a claim within demandPeriod.
func (d *draft) isInDemand() bool {
	for i := range d.Members {
		m := &d.Members[i]
		if m.Claim != "" && !m.ClaimedAt.IsZero() && d.Now.Sub(m.ClaimedAt) < demandPeriod {
			return true
		}
	}
	return false
}

// grewRecently reports whether a cluster was created within demandPeriod.
func (d *draft) grewRecently() bool {
	for i := range d.Members {
		if d.Now.Sub(d.Members[i].Created) < demandPeriod {
			return true
		}
	}
	return false
}

// soonerDelay returns the shorter of two delays; 0 means never.
func soonerDelay(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
