package pool

import (
	"fmt"
	"slices"
)

// A draft is a plan under construction: the snapshot sorted into buckets, and what remains of the
// limits. It sorts and passes members by reference: a pool may have thousands of members, and a
// pool in demand is reconciled fifty times a second.
type draft struct {
	Snapshot
	steps []Step
	// all has every member, oldest first; each is in one of the buckets.
	all     []*Member
	buckets map[Phase][]*Member
	// waiting has the claims that wait for a cluster, in the order in which they get one.
	waiting []Claim
	claims  map[string]Claim
	// begunSets names the sets of which a claim has a cluster, and unservableSets has those that this pool cannot serve.
	begunSets      map[string]bool
	unservableSets []UnservableSet
	// unawareOfClaim has the claimed members that do not record their claim yet.
	unawareOfClaim map[string]bool
	// protectedMembers names the members that would be deleted if the hub did not refuse it.
	protectedMembers []string
	// deferredDeletions names the members whose deletion waits until the limits allow it.
	deferredDeletions []string
	// plannedDeletions names the members that this plan deletes, reservedForClaims has the members that
	// waiting claims will get.
	plannedDeletions  map[string]bool
	reservedForClaims map[*Member]bool
	// creations maps members that do not exist yet to the indexes of the steps that create them.
	creations map[*Member]int
	// orphans has the claimed members whose claim does not exist, and which this plan keeps.
	orphans []*Member
	// room is the number of clusters that may still be added, budget the number that may still be
	// installed or destroyed at a time; both may be negative.
	room, budget int
	// deletions is the number of clusters that may still be destroyed at a time at a user's
	// request.
	deletions int
	// underWay is the number of clusters that are being installed or destroyed, or are about to be.
	underWay int
	// roomLimit is the limit that determines room, and roomReason describes it as text.
	roomLimit  Limit
	roomReason string
}

func newDraft(s Snapshot) *draft {
	d := &draft{
		Snapshot: s, all: s.listByAge(), buckets: map[Phase][]*Member{},
		claims: make(map[string]Claim, len(s.Claims)), unawareOfClaim: map[string]bool{}, plannedDeletions: map[string]bool{}, creations: map[*Member]int{},
		budget: limitOrUnlimited(s.Settings.MaxConcurrent), deletions: limitOrUnlimited(s.Settings.MaxConcurrent),
	}
	for _, c := range s.Claims {
		d.claims[c.Name] = c
	}
	served, claimOf := make(map[string]bool, len(s.Claims)), d.claimsByCluster()
	for i, m := range d.all {
		if claim := claimOf[m.Name]; m.Claim == "" && claim != "" {
			claimed := *m
			claimed.Claim, d.unawareOfClaim[m.Name] = claim, true
			m, d.all[i] = &claimed, &claimed
		}
		p := m.Phase(&s.Settings, s.Now)
		d.buckets[p] = append(d.buckets[p], m)
		if m.Deleting || m.isBeingInstalled() {
			d.underWay++
		}
		if m.Claim != "" {
			served[m.Claim] = true
		}
	}
	for _, c := range s.Claims {
		if c.Cluster == "" && !c.Deleting && !c.Unreadable && !c.Held && !served[c.Name] {
			d.waiting = append(d.waiting, c)
		}
	}
	d.planSets(served)
	d.room, d.roomLimit, d.roomReason = d.remainingRoom()
	d.underWay += len(s.Pending)
	d.budget -= d.underWay
	d.deletions -= len(d.buckets[Deleting])
	return d
}

// claimsByCluster maps each cluster to the claim that names it; if several do, to the oldest. A
// cluster may not record its claim, after a restore of a backup or because a cache shows the second
// of the two writes before the first. It belongs to that claim all the same.
func (d *draft) claimsByCluster() map[string]string {
	out := make(map[string]string, len(d.Claims))
	for _, c := range d.Claims {
		if c.Cluster == "" || c.Deleting {
			continue
		}
		if other, again := out[c.Cluster]; !again || compareClaimAge(c, d.claims[other]) < 0 {
			out[c.Cluster] = c.Name
		}
	}
	return out
}

// remainingRoom returns the number of clusters that may be added, the limit that determines it, and
// that limit as text.
func (d *draft) remainingRoom() (room int, by Limit, full string) {
	exist := len(d.all) + len(d.Pending)
	room, by = limitOrUnlimited(d.Settings.MaxSize)-exist, ByMaxSize
	full = fmt.Sprintf("maxSize is %d", limitOrUnlimited(d.Settings.MaxSize))
	if theirs := limitOrUnlimited(d.Settings.Room) - len(d.Pending); theirs < room {
		room, by, full = theirs, ByPlatform, d.Settings.NoRoom
	}
	if free := len(d.Settings.Free); d.Settings.Inventory && free < room {
		room, by, full = free, ByInventory, "no customization of the inventory is free"
	}
	return room, by, full
}

func (d *draft) addStep(v Verb, cluster string, cause Cause, reason string, args ...any) {
	d.steps = append(d.steps, Step{Verb: v, Cluster: cluster, Cause: cause, Reason: fmt.Sprintf(reason, args...)})
}

// isFrozen reports whether the pool may neither install nor destroy clusters.
func (d *draft) isFrozen() bool { return limitOrUnlimited(d.Settings.MaxConcurrent) <= 0 }

// wantedCount returns the number of unclaimed clusters that the pool should have.
func (d *draft) wantedCount() int { return d.Settings.Size + len(d.waiting) }

// existingCount returns the number of unclaimed clusters that exist or are about to, without broken
// ones. Unreadable clusters are not replaced, but claims do not wait for them.
func (d *draft) existingCount() int {
	return len(d.buckets[Installing]) + len(d.buckets[Standby]) + len(d.buckets[Assignable]) +
		min(len(d.buckets[Unreadable]), d.Settings.Size) + len(d.Pending)
}

// unclaimedMembers returns the members of the given phases, oldest first.
func (d *draft) unclaimedMembers(phases ...Phase) []*Member {
	var parts [][]*Member
	for _, p := range phases {
		if more := d.buckets[p]; len(more) > 0 {
			parts = append(parts, more)
		}
	}
	if len(parts) == 1 {
		return slices.Clip(parts[0])
	}
	out := slices.Concat(parts...)
	slices.SortFunc(out, CompareByAge)
	return out
}

func formatCount(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// unlimited stands for "no limit": it is larger than any pool.
const unlimited = 1 << 30

func limitOrUnlimited(n *int) int {
	if n == nil {
		return unlimited
	}
	return *n
}

// listByAge returns all members, oldest first, in a list that the caller may change.
func (s *Snapshot) listByAge() []*Member {
	if s.ByAge != nil {
		return slices.Clone(s.ByAge)
	}
	out := make([]*Member, len(s.Members))
	for i := range s.Members {
		out[i] = &s.Members[i]
	}
	slices.SortFunc(out, CompareByAge)
	return out
}
