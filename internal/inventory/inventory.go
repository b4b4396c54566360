// Package inventory decides the state of each customization of an inventory for a pool: which
// customizations a new cluster can take, which a cluster uses, which are broken, and which of the
// pool's clusters must be replaced because of their customization.
//
// It is pure: Decide turns a Snapshot into a Plan. The plan is the enhancement's status.inventory
// (seed 001), with two additions: the cluster that failed last, so that each failure is counted
// once however often it is observed, and a message that explains the state of an entry.
package inventory

import (
	"cmp"
	"maps"
	"slices"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// MaxAttempts is how many clusters in a row may fail to install with a customization before it counts
// as broken by the cloud. The enhancement leaves the number open.
const MaxAttempts = 3

// A Snapshot is everything that a plan depends on.
type Snapshot struct {
	// Listed are the names in the pool's spec, in order.
	Listed []string
	// Recorded are the entries of the last plan, by name.
	Recorded map[string]Entry
	// Customizations are the existing ones among the listed, recorded and used customizations, by
	// name.
	Customizations map[string]Customization
	// Clusters are the pool's clusters, including those being deleted.
	Clusters []Cluster
	// Pending are the names recorded for clusters that do not exist yet.
	Pending []string
}

// A Customization is an existing customization.
type Customization struct {
	// Version is the result of CustomizationVersion.
	Version string
	// Holder is the cluster that has its lease; empty if it is free.
	Holder string
	// Deleting is set while it is being deleted.
	Deleting bool
	// Fault explains why it cannot be applied to this pool's clusters; empty if it can.
	Fault string
}

// A Cluster is one of the pool's clusters.
type Cluster struct {
	Name string
	// Customization is the customization that it was made with, Version that customization's
	// version at that time.
	Customization, Version string
	// Claimed is set if it is bound to a claim, Installed if its install is done, Failed if its
	// install has failed permanently.
	Claimed, Installed, Failed bool
	// Failure explains why it failed.
	Failure string
}

// An Entry is the state of one customization in the inventory.
type Entry struct {
	Version  string
	Status   hivev1.InventoryStatus
	Attempts int
	// Cluster is the pool's cluster, or recorded name, that uses it; empty if none does.
	Cluster string
	// Failed is the cluster whose failure was counted last, Failure the error of that failure.
	Failed, Failure string
	// Message explains what is wrong; empty if nothing is.
	Message string
}

// A Plan is the state of the inventory, and what follows from it for the pool's clusters.
type Plan struct {
	// Entries has every customization that is listed, or that the pool uses.
	Entries map[string]Entry
	// Free lists the customizations that a new cluster can take, best first.
	Free []string
	// Outdated maps the unclaimed clusters that must eventually be replaced to the reason.
	Outdated map[string]string
	// Withdrawn maps the unclaimed clusters whose customization the pool may no longer use to the
	// reason. They must be deleted at once (enhancement: removing an entry).
	Withdrawn map[string]string
	// Displaced maps the unclaimed clusters whose customization another cluster has to the reason.
	// They must be replaced at once; the caller must confirm it first.
	Displaced map[string]string
	// Unassigned are the pending names for which no customization is left.
	Unassigned []string
	// Assigned maps the other pending names to the customizations that are reserved for them.
	Assigned map[string]string
}

// Decide returns the plan for a snapshot.
func Decide(s Snapshot) Plan {
	k := planner{Snapshot: s, users: s.clustersByCustomization(), listed: map[string]bool{}, plan: Plan{
		Entries: map[string]Entry{}, Outdated: map[string]string{}, Withdrawn: map[string]string{}, Displaced: map[string]string{}, Assigned: map[string]string{},
	}}
	for _, name := range s.Listed {
		k.listed[name] = true
	}
	k.retainRecorded()
	for _, name := range k.customizationNames() {
		k.decideEntry(name)
	}
	k.listFree()
	k.assignFreeToPending()
	k.findReplacements()
	return k.plan
}

type planner struct {
	Snapshot
	listed map[string]bool
	// users maps each customization to the pool's clusters that use it, the lease holder first.
	users map[string][]Cluster
	// pending maps customizations to the pending names that they are reserved for.
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

// trueFirst is a sort key that orders true before false.
func trueFirst(is bool) int {
	if is {
		return 0
	}
	return 1
}

// retainRecorded keeps the customization that is recorded for each pending name, if a cluster can
// still be made with it. It keeps one that is no longer listed too: another process may be creating
// the cluster right now. If two are recorded for a name, it keeps the one whose lease that name
// has.
func (p *planner) retainRecorded() {
	p.pending = map[string]string{}
	holds := func(name string) bool { return p.Customizations[name].Holder == p.Recorded[name].Cluster }
	names := slices.Sorted(maps.Keys(p.Recorded))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(trueFirst(holds(a)), trueFirst(holds(b))) })
	for _, name := range names {
		e := p.Recorded[name]
		if !slices.Contains(p.Pending, e.Cluster) || p.plan.Assigned[e.Cluster] != "" {
			continue
		}
		c, exists := p.Customizations[name]
		if exists && !c.Deleting && c.Fault == "" && (c.Holder == "" || c.Holder == e.Cluster) && len(p.users[name]) == 0 {
			p.pending[name] = e.Cluster
			p.plan.Assigned[e.Cluster] = name
		}
	}
}

// customizationNames returns the customizations that the plan has entries for: those that are
// listed or used.
func (p *planner) customizationNames() []string {
	out := slices.Clone(p.Listed)
	for name := range p.users {
		out = append(out, name)
	}
	for name := range p.pending {
		out = append(out, name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// decideEntry decides the entry of one customization.
func (p *planner) decideEntry(name string) {
	c, exists := p.Customizations[name]
	e, known := p.Recorded[name]
	e.Message = ""
	if !known {
		e = Entry{Attempts: MaxAttempts}
	}
	e.Cluster = p.pending[name]
	used := e.Cluster != ""
	var user Cluster
	if users := p.users[name]; len(users) > 0 {
		user, used, e.Cluster = users[0], true, users[0].Name
	}
	e.countOutcome(user)
	switch {
	case user.Version != "":
		e.Version = user.Version
	case exists && !used:
		if e.Version != c.Version || p.Recorded[name].Status == hivev1.InventoryMissing && !c.Deleting {
			e.restoreAttempts()
		}
		e.Version = c.Version
	}
	e.Status, e.Message = p.entryStatus(name, e, user, used)
	p.plan.Entries[name] = e
}

// countOutcome counts a success, or a failure that has not been counted yet.
func (e *Entry) countOutcome(user Cluster) {
	switch {
	case user.Installed:
		e.restoreAttempts()
	case user.Failed && e.Failed != user.Name:
		e.Attempts, e.Failed, e.Failure = max(0, e.Attempts-1), user.Name, user.Failure
	}
}

func (e *Entry) restoreAttempts() { e.Attempts, e.Failed, e.Failure = MaxAttempts, "", "" }

func (p *planner) entryStatus(name string, e Entry, user Cluster, used bool) (hivev1.InventoryStatus, string) {
	c, exists := p.Customizations[name]
	switch {
	case !exists && p.listed[name]:
		return hivev1.InventoryMissing, "it does not exist: create it, or remove it from the list"
	case !p.listed[name]:
		return hivev1.InventoryToBeDeleted, "it is no longer in the pool's inventory"
	case used && c.Deleting:
		return hivev1.InventoryToBeDeleted, "it is being deleted"
	case user.Failed && e.Attempts == 0:
		return hivev1.InventoryBrokenByCloud, e.exhaustedMessage()
	case user.Version != "" && user.Version != c.Version:
		return hivev1.InventoryToBeUpdated, "it was changed after the cluster was created"
	case used:
		return hivev1.InventoryReserved, ""
	}
	return c.unusedStatus(e)
}

// unusedStatus returns the status of a customization that no cluster of the pool uses.
func (c Customization) unusedStatus(e Entry) (hivev1.InventoryStatus, string) {
	switch {
	case c.Holder != "" && c.Deleting:
		return hivev1.InventoryUnavailable, "cluster " + c.Holder + " uses it, and it is being deleted: remove it from the list"
	case c.Holder != "":
		return hivev1.InventoryUnavailable, "cluster " + c.Holder + " uses it"
	case c.Deleting:
		return hivev1.InventoryMissing, "it is being deleted: remove it from the list"
	case c.Fault != "":
		return hivev1.InventoryBrokenByConfiguration, c.Fault
	case e.Attempts == 0:
		return hivev1.InventoryBrokenByCloud, e.exhaustedMessage()
	case e.Failed != "":
		return hivev1.InventoryAvailable, e.failureMessage()
	}
	return hivev1.InventoryAvailable, ""
}

// failureMessage describes the failure that was counted last.
func (e Entry) failureMessage() string {
	if e.Failure == "" {
		return "cluster " + e.Failed + " failed to install"
	}
	return "cluster " + e.Failed + " failed to install: " + e.Failure
}

func (e Entry) exhaustedMessage() string {
	return e.failureMessage() + "; it was the last attempt: change the customization, or remove it from the list and add it again, to retry"
}

// listFree lists the customizations that can be taken: those with the fewest failures first, so
// that a customization that keeps failing does not starve one that works; then in the order of the
// list.
func (p *planner) listFree() {
	for _, name := range p.Listed {
		if p.plan.Entries[name].Status == hivev1.InventoryAvailable && !slices.Contains(p.plan.Free, name) {
			p.plan.Free = append(p.plan.Free, name)
		}
	}
	slices.SortStableFunc(p.plan.Free, func(a, b string) int {
		return cmp.Compare(p.plan.Entries[b].Attempts, p.plan.Entries[a].Attempts)
	})
}

// assignFreeToPending assigns a free customization to each pending name that has none.
func (p *planner) assignFreeToPending() {
	for _, name := range p.Pending {
		if p.plan.Assigned[name] != "" {
			continue
		}
		if len(p.plan.Free) == 0 {
			p.plan.Unassigned = append(p.plan.Unassigned, name)
			continue
		}
		p.plan.ReserveFor(name)
	}
}

// ReserveFor reserves the best free customization for the cluster of that name, which is about to
// be created, and returns it. Free must not be empty.
func (p *Plan) ReserveFor(cluster string) string {
	name := p.Free[0]
	p.Free = p.Free[1:]
	e := p.Entries[name]
	e.Status, e.Cluster, e.Message = hivev1.InventoryReserved, cluster, ""
	p.Entries[name], p.Assigned[cluster] = e, name
	return name
}

// findReplacements finds the unclaimed clusters that must be replaced.
func (p *planner) findReplacements() {
	for name, users := range p.users {
		c, exists := p.Customizations[name]
		for _, u := range users {
			switch {
			case u.Claimed:
			case exists && c.Holder != "" && c.Holder != u.Name:
				p.plan.Displaced[u.Name] = "cluster " + c.Holder + " has its customization " + name
			case len(p.Listed) == 0: // without an inventory all are stale, and are replaced one by one
				p.plan.Outdated[u.Name] = "the pool no longer has an inventory, and it was created with customization " + name
			case !p.listed[name]:
				p.plan.Withdrawn[u.Name] = "its customization " + name + " is no longer in the inventory"
			case exists && c.Deleting:
				p.plan.Withdrawn[u.Name] = "its customization " + name + " is being deleted"
			case exists && u.Version != "" && u.Version != c.Version:
				p.plan.Outdated[u.Name] = "its customization " + name + " was changed"
			}
		}
	}
}
