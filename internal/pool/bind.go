package pool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// completeBindings completes bindings of which one of the two writes is missing: it writes the
// cluster into the claim, or the claim into the cluster. If two clusters name a claim that names
// none, the claim gets the oldest. A pool that is being deleted completes bindings too: nothing
// else would, and the pool cannot be deleted before the claim is. A claim that is held gets its
// cluster once it is admitted: it may be another one than the claim of that name that the cluster
// was reserved for, also if it was created before that, in a cache that did not show it yet.
func (d *draft) completeBindings() {
	completed := map[string]bool{}
	for _, m := range d.buckets[Claimed] {
		c, exists := d.claims[m.Claim]
		incomplete := c.Cluster == "" && !c.Held || c.Cluster == m.Name && d.unawareOfClaim[m.Name]
		readable := m.Unreadable == "" && !c.Unreadable
		if exists && readable && incomplete && !c.Deleting && !completed[c.Name] {
			completed[c.Name] = true
			d.addBinding(c, m, BindingIncomplete, "the binding was interrupted")
		}
	}
}

// bindWaitingClaims binds the oldest running clusters to the first claims in the queue. A set gets all its clusters
// in one pass, or none.
func (d *draft) bindWaitingClaims() {
	n := d.servableCount(len(d.buckets[Assignable]))
	hasPriorities := slices.ContainsFunc(d.waiting, func(c Claim) bool { return c.Priority != 0 })
	for i := range n {
		if !d.isLocked(d.waiting[i]) { // the cluster is kept for it otherwise
			d.addBinding(d.waiting[i], d.buckets[Assignable][i], ClaimWaiting, d.bindingReason(d.waiting[i], hasPriorities))
		}
	}
	bound := d.buckets[Assignable][:n]
	d.buckets[Claimed] = append(slices.Clip(d.buckets[Claimed]), bound...)
	d.buckets[Assignable] = d.buckets[Assignable][n:]
	d.waiting = d.waiting[n:]
}

func (d *draft) addBinding(c Claim, m *Member, cause Cause, reason string) {
	d.steps = append(d.steps, Step{Verb: Bind, Cluster: m.Name, Claim: c.Name, After: d.lockOf(c), Cause: cause, Reason: reason})
}

// servedTogether returns the number of claims, from the first one in list, that get clusters together or not at
// all.
func (d *draft) servedTogether(list []Claim) int {
	set := list[0].Set.Name
	if set == "" || d.begunSets[set] {
		return 1
	}
	n := 1
	for n < len(list) && list[n].Set.Name == set {
		n++
	}
	return n
}

// lockOf returns the claim of the set of c that must get its cluster before c does: the first one, by name. It returns "" if c is that
// claim, if a claim of the set has a cluster, or if c belongs to no set. A set that moves to another pool deletes its claims in
// the same order, each only if it has no cluster, and stops at the first that has one. So either the pool gets the first claim, and
// then all, or the set does.
func (d *draft) lockOf(c Claim) string {
	if c.Set.Name == "" {
		return ""
	}
	first := c
	for _, o := range d.Claims {
		switch {
		case o.Set.Name != c.Set.Name || o.Deleting:
		case o.Cluster != "":
			return ""
		case compareNames(o, first) < 0:
			first = o
		}
	}
	if first.Name == c.Name {
		return ""
	}
	return first.Name
}

// isLocked reports whether c must wait for the first claim of its set, which gets no cluster in this plan.
func (d *draft) isLocked(c Claim) bool {
	lock := d.lockOf(c)
	return lock != "" && !slices.ContainsFunc(d.steps, func(s Step) bool { return s.Verb == Bind && s.Claim == lock })
}

// servableCount returns how many of the waiting claims, in their order, get one of n clusters now. A set for which
// n is not enough ends it: the clusters are kept for the set, and no claim behind it gets one.
func (d *draft) servableCount(n int) int {
	count := 0
	for count < len(d.waiting) {
		together := d.servedTogether(d.waiting[count:])
		if count+together > n {
			break
		}
		count += together
	}
	return count
}

// compareNames orders the claims of a set by their numbers, which are the ends of their names.
func compareNames(a, b Claim) int {
	return cmp.Or(len(a.Name)-len(b.Name), strings.Compare(a.Name, b.Name))
}

// bindingReason explains why a waiting claim gets a cluster now.
func (d *draft) bindingReason(c Claim, hasPriorities bool) string {
	switch {
	case d.begunSets[c.Set.Name]:
		return fmt.Sprintf("other claims of ClaimSet %s have clusters, oldest running cluster", c.Set.Name)
	case c.Set.Name != "":
		return fmt.Sprintf("ClaimSet %s is the first in the queue, and enough clusters run for it, oldest running cluster", c.Set.Name)
	case hasPriorities:
		return fmt.Sprintf("first claim in the queue, with priority %d, oldest running cluster", c.Priority)
	default:
		return "oldest claim, oldest running cluster"
	}
}
