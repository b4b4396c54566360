package pool

import "time"

const (
	// batchSize is the most clusters that a pass creates, and the most that it deletes: a claim
	// that arrives meanwhile waits for the end of the pass.
	batchSize = 16
	// nextBatchDelay is when the pass after a full batch of new clusters begins.
	nextBatchDelay = time.Millisecond
	// nextStepDelay is when a pass begins that takes the steps which this plan leaves for later.
	nextStepDelay = 100 * time.Millisecond
	// demandPeriod is how long a pool counts as in demand after it served a claim. The API
	// keeps that time in seconds: less than one second would be none.
	demandPeriod = 2 * time.Second
	// backlogLimit is how many clusters of a pool may wait for the controllers that install
	// them. Those take the clusters of all pools in one queue: with more, a pool of any size
	// would delay the others.
	backlogLimit = 32
	// backlogPeriod is how long a new cluster counts as waiting in that queue: one that is
	// not taken by then does not wait in a queue.
	backlogPeriod = time.Minute
)

// postponeSteps marks the creations and deletions that a later pass takes, and returns when that pass
// begins; 0 if there is nothing left for it. r is the report of the same plan.
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

// creationLimit returns how many clusters this pass creates at most, and when the next pass
// begins if the plan has more. The API server has several times as much work with a new
// cluster as with a claim that is served. So while claims are being served, and half of the
// pool is there for the next ones, clusters are created one at a time, with a pause between
// them, and by no pass that serves a claim.
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

// backlogLeft returns how many more clusters may be created before the controllers that
// install clusters take those that exist; of a pool of fake clusters, before these are
// installed, since only the controllers' queue takes time.
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

// isInDemand reports whether the pool served a claim a moment ago.
func (d *draft) isInDemand() bool {
	for i := range d.Members {
		m := &d.Members[i]
		if m.Claim != "" && !m.ClaimedAt.IsZero() && d.Now.Sub(m.ClaimedAt) < demandPeriod {
			return true
		}
	}
	return false
}

// grewRecently reports whether a cluster was created a moment ago.
func (d *draft) grewRecently() bool {
	for i := range d.Members {
		if d.Now.Sub(d.Members[i].Created) < demandPeriod {
			return true
		}
	}
	return false
}

// soonerDelay returns the shorter of two delays, of which 0 stands for never.
func soonerDelay(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
