// Package inventory decides what the customizations of an inventory are to a pool:
// which can be taken for a new cluster, which are used by one, which are broken, and
// which of the pool's clusters have to be replaced because of theirs.
//
// It is pure: a snapshot in, the books out. It is the enhancement's status.inventory
// (seed 001), with two additions: who failed last, so that a failure is counted
// once however often it is seen, and why an entry is as it is, in words.
package inventory

import (
	"cmp"
	"maps"
	"slices"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// Attempts is how many clusters may fail to install with a customization, one after
// the other, before it counts as broken by the cloud. The enhancement leaves the number open.
const Attempts = 3

// Snapshot is what the books are made from.
type Snapshot struct {
	// Listed are the names in the pool's spec, in their order.
	Listed []string
	// Recorded are the books that were kept last, by name.
	Recorded map[string]Entry
	// Customizations are those that exist of the listed, recorded and used ones, by name.
	Customizations map[string]Customization
	// Clusters are the pool's clusters, those being deleted too.
	Clusters []Cluster
	// Pending are the names recorded for clusters that are not there yet.
	Pending []string
}

// Customization is one that exists.
type Customization struct {
	// Version is its Version.
	Version string
	// Holder is the cluster that has its lease; empty when it is free.
	Holder string
	// Deleting is set while it is being deleted.
	Deleting bool
	// Fault says why it cannot be applied to this pool's clusters; empty when it can.
	Fault string
}

// Cluster is one of the pool's.
type Cluster struct {
	Name string
	// Customization is the one that it was made with, Version that one's version then.
	Customization, Version string
	// Claimed is set when it is given to a claim, Installed when its install is done,
	// Failed when it will never be.
	Claimed, Installed, Failed bool
	// Failure says why it failed, in words.
	Failure string
}

// Entry is what the books say of one customization.
type Entry struct {
	Version  string
	Status   hivev1.InventoryStatus
	Attempts int
	// Cluster is the pool's cluster, or recorded name, that uses it; empty when none does.
	Cluster string
	// Failed is the cluster whose failure was counted last, Failure what it was, in words.
	Failed, Failure string
	// Message says what is wrong; empty when nothing is.
	Message string
}

// Plan are what there is to know.
type Plan struct {
	// Entries has every customization that is listed, or used by the pool.
	Entries map[string]Entry
	// Free can be taken for a new cluster, the best first.
	Free []string
	// Outdated has the unclaimed clusters that are to be replaced, in time, and why.
	Outdated map[string]string
	// Withdrawn has the unclaimed clusters whose customization is no longer the pool's to
	// use, and why: to be deleted at once (enhancement: removing an entry).
	Withdrawn map[string]string
	// Displaced has the unclaimed clusters whose customization another cluster holds:
	// to be replaced at once. Whoever acts on it makes sure of it first.
	Displaced map[string]string
	// Homeless are the pending names that no customization is left for.
	Homeless []string
	// Homes are the customizations of the other pending names.
	Homes map[string]string
}

// Decide makes the books.
func Decide(s Snapshot) Plan {
	k := planner{Snapshot: s, users: s.clustersByCustomization(), listed: map[string]bool{}, plan: Plan{
		Entries: map[string]Entry{}, Outdated: map[string]string{}, Withdrawn: map[string]string{}, Displaced: map[string]string{}, Homes: map[string]string{},
	}}
	for _, name := range s.Listed {
		k.listed[name] = true
	}
	k.retainRecorded()
	for _, name := range k.customizationNames() {
		k.addEntry(name)
	}
	k.listFree()
	k.assignFree()
	k.findReplacements()
	return k.plan
}

type planner struct {
	Snapshot
	listed map[string]bool
	// users are the pool's clusters by their customization; the holder first.
	users map[string][]Cluster
	// pending are the pending names by the customization that is theirs.
	pending map[string]string
	plan    Plan
}

func (s Snapshot) clustersByCustomization() map[string][]Cluster {
	out := map[string][]Cluster{}
	for _, c := range s.Clusters {
		if c.Customization != "" {
			out[c.Customization] = append(out[c.Customization], c)
		}
	}
	for name, users := range out {
		holder := s.Customizations[name].Holder
		slices.SortFunc(users, func(a, b Cluster) int {
			return cmp.Or(cmp.Compare(trueFirst(a.Name == holder), trueFirst(b.Name == holder)), cmp.Compare(a.Name, b.Name))
		})
	}
	return out
}

// trueFirst puts what is so before what is not.
func trueFirst(is bool) int {
	if is {
		return 0
	}
	return 1
}

// retainRecorded leaves each pending name the customization that is recorded for it, if it can
// still be made with that. Also one that is no longer listed: another process may be
// making the cluster right now. Were two recorded for it, the one that it holds counts.
func (k *planner) retainRecorded() {
	k.pending = map[string]string{}
	holds := func(name string) bool { return k.Customizations[name].Holder == k.Recorded[name].Cluster }
	names := slices.Sorted(maps.Keys(k.Recorded))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(trueFirst(holds(a)), trueFirst(holds(b))) })
	for _, name := range names {
		e := k.Recorded[name]
		if !slices.Contains(k.Pending, e.Cluster) || k.plan.Homes[e.Cluster] != "" {
			continue
		}
		c, exists := k.Customizations[name]
		if exists && !c.Deleting && c.Fault == "" && (c.Holder == "" || c.Holder == e.Cluster) && len(k.users[name]) == 0 {
			k.pending[name] = e.Cluster
			k.plan.Homes[e.Cluster] = name
		}
	}
}

// customizationNames are all customizations that the books have to do with: listed, or used.
func (k *planner) customizationNames() []string {
	out := slices.Clone(k.Listed)
	for name := range k.users {
		out = append(out, name)
	}
	for name := range k.pending {
		out = append(out, name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// addEntry makes the entry of one customization.
func (k *planner) addEntry(name string) {
	c, exists := k.Customizations[name]
	e, known := k.Recorded[name]
	e.Message = ""
	if !known {
		e = Entry{Attempts: Attempts}
	}
	e.Cluster = k.pending[name]
	used := e.Cluster != ""
	var user Cluster
	if users := k.users[name]; len(users) > 0 {
		user, used, e.Cluster = users[0], true, users[0].Name
	}
	e.countOutcome(user)
	switch {
	case user.Version != "":
		e.Version = user.Version
	case exists && !used:
		if e.Version != c.Version || k.Recorded[name].Status == hivev1.InventoryMissing && !c.Deleting {
			e.resetAttempts()
		}
		e.Version = c.Version
	}
	e.Status, e.Message = k.entryStatus(name, e, user, used)
	k.plan.Entries[name] = e
}

// countOutcome counts a success, or a failure that has not been counted.
func (e *Entry) countOutcome(user Cluster) {
	switch {
	case user.Installed:
		e.resetAttempts()
	case user.Failed && e.Failed != user.Name:
		e.Attempts, e.Failed, e.Failure = max(0, e.Attempts-1), user.Name, user.Failure
	}
}

func (e *Entry) resetAttempts() { e.Attempts, e.Failed, e.Failure = Attempts, "", "" }

func (k *planner) entryStatus(name string, e Entry, user Cluster, used bool) (hivev1.InventoryStatus, string) {
	c, exists := k.Customizations[name]
	switch {
	case !exists && k.listed[name]:
		return hivev1.InventoryMissing, "it does not exist: create it, or take it off the list"
	case !k.listed[name]:
		return hivev1.InventoryToBeDeleted, "it is no longer in the pool's inventory"
	case used && c.Deleting:
		return hivev1.InventoryToBeDeleted, "it is being deleted"
	case user.Failed && e.Attempts == 0:
		return hivev1.InventoryBrokenByCloud, e.exhaustedMessage()
	case user.Version != "" && user.Version != c.Version:
		return hivev1.InventoryToBeUpdated, "it was changed after the cluster was made"
	case used:
		return hivev1.InventoryReserved, ""
	}
	return c.unusedStatus(e)
}

// unusedStatus is what one is that no cluster of the pool uses.
func (c Customization) unusedStatus(e Entry) (hivev1.InventoryStatus, string) {
	switch {
	case c.Holder != "" && c.Deleting:
		return hivev1.InventoryUnavailable, "cluster " + c.Holder + " uses it, and it is being deleted: take it off the list"
	case c.Holder != "":
		return hivev1.InventoryUnavailable, "cluster " + c.Holder + " uses it"
	case c.Deleting:
		return hivev1.InventoryMissing, "it is being deleted: take it off the list"
	case c.Fault != "":
		return hivev1.InventoryBrokenByConfiguration, c.Fault
	case e.Attempts == 0:
		return hivev1.InventoryBrokenByCloud, e.exhaustedMessage()
	case e.Failed != "":
		return hivev1.InventoryAvailable, e.failureMessage()
	}
	return hivev1.InventoryAvailable, ""
}

// failureMessage tells of the one that was counted last.
func (e Entry) failureMessage() string {
	if e.Failure == "" {
		return "cluster " + e.Failed + " failed to install"
	}
	return "cluster " + e.Failed + " failed to install: " + e.Failure
}

func (e Entry) exhaustedMessage() string {
	return e.failureMessage() + "; it was the last attempt: change the customization, or take it off the list and put it back, to try again"
}

// listFree sorts what can be taken: what has failed least first, so that a customization
// that keeps failing starves none that works; then in the order of the list.
func (k *planner) listFree() {
	for _, name := range k.Listed {
		if k.plan.Entries[name].Status == hivev1.InventoryAvailable && !slices.Contains(k.plan.Free, name) {
			k.plan.Free = append(k.plan.Free, name)
		}
	}
	slices.SortStableFunc(k.plan.Free, func(a, b string) int {
		return cmp.Compare(k.plan.Entries[b].Attempts, k.plan.Entries[a].Attempts)
	})
}

// assignFree gives the pending names without a customization one that is free.
func (k *planner) assignFree() {
	for _, name := range k.Pending {
		if k.plan.Homes[name] != "" {
			continue
		}
		if len(k.plan.Free) == 0 {
			k.plan.Homeless = append(k.plan.Homeless, name)
			continue
		}
		k.plan.ReserveFor(name)
	}
}

// ReserveFor enters that the best free customization is for the cluster of that name,
// which is about to be made, and returns it.
func (b *Plan) ReserveFor(cluster string) string {
	name := b.Free[0]
	b.Free = b.Free[1:]
	e := b.Entries[name]
	e.Status, e.Cluster, e.Message = hivev1.InventoryReserved, cluster, ""
	b.Entries[name], b.Homes[cluster] = e, name
	return name
}

// findReplacements finds the unclaimed clusters that are to be replaced.
func (k *planner) findReplacements() {
	for name, users := range k.users {
		c, exists := k.Customizations[name]
		for _, u := range users {
			switch {
			case u.Claimed:
			case exists && c.Holder != "" && c.Holder != u.Name:
				k.plan.Displaced[u.Name] = "cluster " + c.Holder + " has its customization " + name
			case len(k.Listed) == 0: // without any inventory all are stale, and replaced one by one
				k.plan.Outdated[u.Name] = "the pool has no inventory any more, and it was made with customization " + name
			case !k.listed[name]:
				k.plan.Withdrawn[u.Name] = "its customization " + name + " is no longer in the inventory"
			case exists && c.Deleting:
				k.plan.Withdrawn[u.Name] = "its customization " + name + " is being deleted"
			case exists && u.Version != "" && u.Version != c.Version:
				k.plan.Outdated[u.Name] = "its customization " + name + " was changed"
			}
		}
	}
}
