package pool

import "slices"

// completeBindings completes bindings of which one of the two writes is missing: it writes the
// cluster into the claim, or the claim into the cluster. If two clusters name a claim that names
// none, the claim gets the oldest. A pool that is being deleted completes bindings too: nothing
// else would, and the pool cannot be deleted before the claim is.
func (d *draft) completeBindings() {
	completed := map[string]bool{}
	for _, m := range d.buckets[Claimed] {
		c, exists := d.claims[m.Claim]
		incomplete := c.Cluster == "" || c.Cluster == m.Name && d.unawareOfClaim[m.Name]
		readable := m.Unreadable == "" && !c.Unreadable
		if exists && readable && incomplete && !c.Deleting && !completed[c.Name] {
			completed[c.Name] = true
			d.addBinding(c, m, BindingIncomplete, "the binding was interrupted")
		}
	}
}

// bindWaitingClaims binds the oldest running clusters to the oldest waiting claims.
func (d *draft) bindWaitingClaims() {
	n := min(len(d.waiting), len(d.buckets[Assignable]))
	for i := range n {
		d.addBinding(d.waiting[i], d.buckets[Assignable][i], ClaimWaiting, "oldest claim, oldest running cluster")
	}
	bound := d.buckets[Assignable][:n]
	d.buckets[Claimed] = append(slices.Clip(d.buckets[Claimed]), bound...)
	d.buckets[Assignable] = d.buckets[Assignable][n:]
	d.waiting = d.waiting[n:]
}

func (d *draft) addBinding(c Claim, m *Member, cause Cause, reason string) {
	d.steps = append(d.steps, Step{Verb: Bind, Cluster: m.Name, Claim: c.Name, Cause: cause, Reason: reason})
}

// reserveForClaims chooses the clusters that waiting claims will get: first clusters that are
// resuming, then hibernating ones, then installs, each oldest first (enhancement: replace broken
// clusters). It chooses a struggling cluster only if there is no other.
func (d *draft) reserveForClaims(list []*Member) {
	left := len(d.waiting)
	if left == 0 {
		return
	}
	d.reservedForClaims = map[string]bool{}
	choose := func(fits func(*Member) bool) {
		for _, m := range list {
			if left > 0 && !d.reservedForClaims[m.Name] && fits(m) {
				d.reservedForClaims[m.Name] = true
				left--
			}
		}
	}
	healthy := func(m *Member) bool { return !m.isStruggling(d.Settings, d.Now) }
	choose(func(m *Member) bool { return healthy(m) && m.Installed && m.Wanted != Hibernating })
	choose(func(m *Member) bool { return healthy(m) && m.Installed })
	choose(healthy)
	choose(func(*Member) bool { return true })
}
