package pool

import (
	"cmp"
	"slices"
)

// deleteIfBudgetAllows plans a deletion that the pool itself chooses, within the limit on
// concurrent work. It returns false if the deletion is not planned. Deleting a cluster that is
// being installed needs no budget: it frees what its deletion takes.
func (d *draft) deleteIfBudgetAllows(m *Member, cause Cause, reason string, args ...any) bool {
	if m.Unreadable != "" {
		return false
	}
	if d.isFrozen() || d.budget <= 0 && !m.isBeingInstalled() {
		d.deferredDeletions = append(d.deferredDeletions, m.Name)
		return false
	}
	d.addDeletion(m, cause, reason, args...)
	return true
}

// deleteOnRequest plans a deletion that a user asked for. The deletion does not wait for installs,
// only for other deletions: at most maxConcurrent clusters are destroyed at a time.
func (d *draft) deleteOnRequest(m *Member, cause Cause, reason string, args ...any) {
	if m.Unreadable != "" {
		return
	}
	if !d.Settings.Deleting && (d.isFrozen() || d.deletions <= 0 && !m.isBeingInstalled()) {
		d.deferredDeletions = append(d.deferredDeletions, m.Name)
		return
	}
	d.addDeletion(m, cause, reason, args...)
}

func (d *draft) addDeletion(m *Member, cause Cause, reason string, args ...any) {
	d.deletions--
	if !m.isBeingInstalled() {
		d.budget--
	}
	d.plannedDeletions[m.Name] = true
	d.addStep(Delete, m.Name, cause, reason, args...)
}

// retireClusters deletes clusters that are marked for removal, and claimed clusters whose claim is
// being deleted, has another cluster, or does not exist.
func (d *draft) retireClusters() {
	for _, m := range d.buckets[Removed] {
		d.deleteOnRequest(m, MarkedForRemoval, "it is marked for removal")
	}
	for _, m := range d.buckets[Claimed] {
		c, exists := d.claims[m.Claim]
		switch {
		case !exists && m.ClaimUnaware:
			d.deleteOnRequest(m, ClaimReleased, "its claim %s was deleted before the cluster was written into it", m.Claim)
		case !exists && hasElapsed(m.ClaimMissingSince, missingClaimDelay, d.Now):
			d.deleteOnRequest(m, ClaimMissing, "its claim %s has not existed for ten minutes", m.Claim)
		case !exists:
			d.orphans = append(d.orphans, m)
		case c.Deleting:
			d.deleteOnRequest(m, ClaimReleased, "its claim %s is being deleted", m.Claim)
		case c.Cluster != "" && c.Cluster != m.Name:
			d.deleteOnRequest(m, ClaimServed, "its claim %s has cluster %s", m.Claim, c.Cluster)
		}
	}
}

// deleteUnclaimed deletes every unclaimed cluster of a pool that is being deleted, all at once, as
// Hive does: maxConcurrent paces the work of a pool that stays.
func (d *draft) deleteUnclaimed() {
	for _, m := range d.unclaimedMembers(Installing, Standby, Assignable, Broken) {
		d.deleteOnRequest(m, PoolDeleted, "the pool is being deleted")
	}
}

func (d *draft) replaceBroken() {
	for _, m := range d.replaceableMembers(Broken) {
		d.replaceMember(m, m.DefectCause(d.Settings, d.Now), cmp.Or(m.Displaced, m.Withdrawn, "it is broken"))
	}
}

// replaceableMembers returns the members of a phase that the pool may delete by its own choice: not
// those that it has adopted, which nothing could replace (ADR 0024).
func (d *draft) replaceableMembers(p Phase) []*Member {
	members := d.buckets[p]
	if !slices.ContainsFunc(members, func(m *Member) bool { return m.Adopted }) {
		return members
	}
	return slices.DeleteFunc(slices.Clone(members), func(m *Member) bool { return m.Adopted })
}

// replaceMember plans the deletion of a member that a new one replaces.
func (d *draft) replaceMember(m *Member, why Cause, reason string) {
	d.deleteIfBudgetAllows(m, why, "%s", reason)
}

// deleteSurplus deletes clusters beyond the wanted number, in the order of cheapestFirst.
func (d *draft) deleteSurplus() {
	surplus := d.existingCount() - d.wantedCount()
	for _, p := range []Phase{Installing, Standby, Assignable} {
		for _, m := range d.cheapestFirst(d.replaceableMembers(p)) {
			if surplus <= 0 || !d.deleteIfBudgetAllows(m, AboveSize, "the pool has more clusters than its size, %d", d.Settings.Size) {
				return
			}
			surplus--
		}
	}
}

// cheapestFirst orders members by what their deletion costs: struggling members first, members
// reserved for waiting claims last, and newest first among equals.
func (d *draft) cheapestFirst(members []*Member) []*Member {
	rank := func(m *Member) int {
		switch {
		case m.isStruggling(d.Settings, d.Now) && m.Paused == "": // somebody may be investigating a paused cluster
			return 0
		case !d.reservedForClaims[m.Name]:
			return 1
		default:
			return 2
		}
	}
	out := slices.Clone(members)
	slices.Reverse(out)
	slices.SortStableFunc(out, func(a, b *Member) int { return cmp.Compare(rank(a), rank(b)) })
	return out
}

// replaceStale deletes stale clusters: first installs, then, in a settled pool on which no claim
// waits, one installed cluster at a time.
func (d *draft) replaceStale() {
	if d.Settings.Blocked != "" {
		return
	}
	d.replaceStaleInstalls()
	if len(d.waiting) > 0 || !d.hasEnoughClusters() {
		return
	}
	if len(d.buckets[Installing])+len(d.buckets[Deleting])+len(d.Pending)+len(d.replaceableMembers(Broken)) > 0 {
		return
	}
	for _, m := range d.unclaimedMembers(Standby, Assignable) {
		if m.isStale(d.Settings) {
			d.replaceMember(m, Stale, cmp.Or(m.Outdated, m.recipeReason(d.Settings), "it was created from an older version of the pool"))
			return
		}
	}
}

// replaceStaleInstalls deletes stale installs, and installs without progress that would use other
// Secrets by now. It deletes each at once: none is a spare yet, and waiting for its end would only
// delay its successor (Hive B32). It keeps an install that is reserved for a waiting claim while
// that install makes progress. An install that cannot begin, or whose last attempt failed, serves
// nobody: a user may have fixed its cause in the pool since.
func (d *draft) replaceStaleInstalls() {
	for _, m := range slices.Backward(d.buckets[Installing]) {
		switch {
		case d.plannedDeletions[m.Name], d.reservedForClaims[m.Name] && m.isProgressing():
		case m.isStale(d.Settings):
			d.replaceMember(m, Stale, cmp.Or(m.Outdated, m.recipeReason(d.Settings), "it is being created from an older version of the pool"))
		case m.couldSucceedNow(d.Settings):
			d.replaceMember(m, Stale, "its install does not succeed, and a Secret or customization that the pool refers to has changed since it started")
		}
	}
}

// hasEnoughClusters reports whether the pool has the wanted number of clusters, or as many spares
// as it can ever have: limited by the inventory's customizations, or by a maxSize below the size.
// Without the second case, such a pool would keep stale clusters forever. A pool that is short
// because claims have its clusters waits until they are released.
func (d *draft) hasEnoughClusters() bool {
	missing := d.wantedCount() - d.existingCount()
	if missing <= 0 {
		return missing == 0
	}
	ever := d.roomLimit == ByInventory || d.existingCount() >= limitOrUnlimited(d.Settings.MaxSize)
	return ever && d.room <= 0 && d.countPlanned(Create) == 0
}
