package pool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"hotspare.io/hotspare/internal/claimqueue"
)

// A ClaimSet is the ClaimSet that a claim belongs to. All claims of a set have an equal one. The zero value means
// that the claim belongs to none.
type ClaimSet struct {
	Name    string
	Created time.Time
	// Size is the number of claims of the set. Its claims get no cluster while one of them does not wait on this
	// pool, unless another one has a cluster.
	Size int
}

// An UnservableSet is a set that waits outside the queue: the claims behind it are served.
type UnservableSet struct {
	Set string
	// Reason explains why the pool cannot have enough clusters for it.
	Reason string
}

// planSets removes the claims of sets that cannot be served from the claims that wait, and sorts the others: a set
// is in the queue as one claim of its own creation and priority. The claims of a set that was served in part are
// the first: a process that is killed between two bindings leaves one, and the next pass finishes it. Without sets,
// the order is that of package claimqueue.
func (d *draft) planSets(served map[string]bool) {
	if !slices.ContainsFunc(d.Claims, func(c Claim) bool { return c.Set.Name != "" }) {
		slices.SortFunc(d.waiting, compareWaitingClaims)
		return
	}
	d.begunSets = d.findBegunSets(served)
	waiting := map[string]int{}
	for _, c := range d.waiting {
		waiting[c.Set.Name]++
	}
	d.waiting = slices.DeleteFunc(d.waiting, func(c Claim) bool {
		return c.Set.Name != "" && !d.begunSets[c.Set.Name] && waiting[c.Set.Name] < c.Set.Size
	})
	most, reason := d.mostUnclaimed()
	d.waiting = slices.DeleteFunc(d.waiting, func(c Claim) bool {
		if c.Set.Name == "" || d.begunSets[c.Set.Name] || c.Set.Size <= most {
			return false
		}
		d.addUnservableSet(c.Set, reason)
		return true
	})
	slices.SortFunc(d.unservableSets, func(a, b UnservableSet) int { return strings.Compare(a.Set, b.Set) })
	slices.SortFunc(d.waiting, d.compareUnits)
}

// findBegunSets names the sets of which a claim has a cluster. served has the claims that clusters name.
func (d *draft) findBegunSets(served map[string]bool) map[string]bool {
	out := map[string]bool{}
	for _, c := range d.Claims {
		if c.Set.Name != "" && !c.Deleting && (c.Cluster != "" || served[c.Name]) {
			out[c.Set.Name] = true
		}
	}
	return out
}

func (d *draft) addUnservableSet(set ClaimSet, reason string) {
	if !slices.ContainsFunc(d.unservableSets, func(s UnservableSet) bool { return s.Set == set.Name }) {
		d.unservableSets = append(d.unservableSets, UnservableSet{set.Name, fmt.Sprintf("it needs %s, and %s", formatCount(set.Size, "cluster"), reason)})
	}
}

// mostUnclaimed returns how many unclaimed clusters the pool can have at a time if all its claims are released, as
// things are now, and explains the limit as text. A larger set would keep the clusters of the pool from all other
// claims, and never get them.
func (d *draft) mostUnclaimed() (most int, why string) {
	usable := len(d.buckets[Installing]) + len(d.buckets[Standby]) + len(d.buckets[Assignable])
	switch {
	case d.Settings.Blocked != "":
		return usable, fmt.Sprintf("the pool has %d that are free, and creates no more: %s", usable, d.Settings.Blocked)
	case d.isFrozen():
		return usable, fmt.Sprintf("the pool has %d that are free, and creates no more: maxConcurrent is 0", usable)
	}
	stuck := d.countStuck()
	most, why = limitOrUnlimited(d.Settings.MaxSize)-stuck, fmt.Sprintf("maxSize is %d", limitOrUnlimited(d.Settings.MaxSize))
	exist := len(d.all) + len(d.Pending) - stuck
	if d.Settings.Inventory {
		if entries := d.countInventory(); entries-stuck < most {
			most, why = entries-stuck, fmt.Sprintf("the inventory has customizations for %d", entries)
		}
	}
	if room := limitOrUnlimited(d.Settings.Room) - len(d.Pending); room < unlimited/2 && exist+max(0, room) < most {
		most, why = exist+max(0, room), fmt.Sprintf("the platform has room for %d: %s", exist+max(0, room), d.Settings.NoRoom)
	}
	if stuck > 0 {
		why += fmt.Sprintf(", and %s cannot be removed", formatCount(stuck, "cluster"))
	}
	return most, why
}

// countStuck returns the number of members that keep their places until a person acts: clusters whose deletion makes no
// progress or is refused, and those that cannot be read.
func (d *draft) countStuck() int {
	n := 0
	for _, m := range d.all {
		if m.DeletionError != "" || m.Unreadable != "" || m.Protected && !m.Deleting && (m.Marked || m.isBroken(&d.Settings, d.Now)) {
			n++
		}
	}
	return n
}

// countInventory returns the number of clusters that the pool's inventory is enough for, with those that it is used
// for now.
func (d *draft) countInventory() int {
	n := len(d.Settings.Free) + len(d.Pending)
	for _, m := range d.all {
		if m.Withdrawn == "" && m.Displaced == "" {
			n++
		}
	}
	return n
}

// compareUnits compares waiting claims by the places of their sets in the queue, and within a set by name.
func (d *draft) compareUnits(a, b Claim) int {
	return cmp.Or(
		cmp.Compare(d.rankUnit(a), d.rankUnit(b)),
		claimqueue.Compare(a.unit(), b.unit()),
		cmp.Compare(a.Set.Name, b.Set.Name), // a claim may have the name of a set
		compareNames(a, b),
	)
}

func (d *draft) rankUnit(c Claim) int {
	if d.begunSets[c.Set.Name] {
		return 0
	}
	return 1
}

// unit returns the entry of the queue that c is served with: its set or, without one, the claim itself.
func (c Claim) unit() claimqueue.Entry {
	if c.Set.Name == "" {
		return c.entry()
	}
	return claimqueue.Entry{Name: c.Set.Name, Created: c.Set.Created, Priority: c.Priority}
}

// describeKept describes how many running clusters are kept for the first set in the queue.
func (d *draft) describeKept() []string {
	n := len(d.buckets[Assignable])
	if n == 0 || len(d.waiting) == 0 || d.Settings.Deleting || d.waiting[0].Set.Name == "" {
		return nil
	}
	set := d.waiting[0].Set
	return []string{fmt.Sprintf("keeping %d for ClaimSet %s, which needs %d at once", n, set.Name, set.Size)}
}

// describeUnservableSets describes the sets that the pool cannot serve.
func (d *draft) describeUnservableSets() []string {
	var out []string
	for _, s := range d.unservableSets {
		out = append(out, fmt.Sprintf("ClaimSet %s cannot be served, and lets the claims behind it pass: %s", s.Set, s.Reason))
	}
	return out
}

// isOutsideQueue reports whether a claim without a cluster waits, with its set, outside the queue.
func (d *draft) isOutsideQueue(c Claim) bool {
	if c.Set.Name == "" || c.Unreadable {
		return false
	}
	isWaiting := slices.ContainsFunc(d.waiting, func(w Claim) bool { return w.Name == c.Name })
	return !isWaiting && !slices.ContainsFunc(d.all, func(m *Member) bool { return m.Claim == c.Name })
}
