package facts

import (
	"slices"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/inventory"
	"hotspare.io/hotspare/internal/pool"
)

// A Roster keeps the members of one pool between two snapshots, oldest first, so that a snapshot reads and sorts only what
// has changed: of a thousand clusters, few change between two passes. The snapshots are the same as without it, except that
// a snapshot is valid only until the next one. Its zero value is empty.
type Roster struct {
	byName map[string]*rosterEntry
	// sorted has the entries, and byAge their members, oldest first.
	sorted []*rosterEntry
	byAge  []*pool.Member
	// marked is what the members were marked with.
	marked marks
}

// A rosterEntry is a member, and the object that it was read from. The object never changes: another version of a cluster is
// another object.
type rosterEntry struct {
	member  pool.Member
	cluster *hivev1.ClusterDeployment
	// dependsOnTime is set if the member must be read again although the cluster is the same.
	dependsOnTime bool
}

// marks are what MarkUntakenSteps and MarkUnpassedGates use of the settings, directly or by isStale. Whoever makes them use another
// setting adds it here, and to the changes of the test.
type marks struct {
	version, recipe, gates, steps                string
	gatesFromRecords, stepsUnknown, hasInventory bool
	stepsSince, watchedSince                     time.Time
}

func newMarks(s *pool.Settings, plan inventory.Plan) marks {
	return marks{
		version: s.Version, recipe: s.Recipe, gates: s.Gates, steps: s.Steps,
		gatesFromRecords: s.GatesFromRecords, stepsUnknown: s.StepsUnknown, stepsSince: s.StepsSince, watchedSince: s.WatchedSince,
		hasInventory: len(plan.Outdated)+len(plan.Withdrawn)+len(plan.Displaced) > 0,
	}
}

// updateMembers returns the members that read returns for the clusters, oldest first. m is what read marks them with.
func (r *Roster) updateMembers(clusters map[string]*hivev1.ClusterDeployment, m marks, read func(*hivev1.ClusterDeployment) pool.Member) []*pool.Member {
	// The plan of an inventory is another one in each pass, so its marks are set anew.
	everything := m != r.marked || m.hasInventory
	r.marked = m
	sorted := r.updateKnown(clusters, everything, read)
	if len(r.sorted) < len(clusters) {
		r.addNew(clusters, read)
		sorted = false
	}
	if !sorted {
		slices.SortFunc(r.sorted, func(a, b *rosterEntry) int { return pool.CompareByAge(&a.member, &b.member) })
	}
	r.byAge = r.byAge[:0]
	for _, e := range r.sorted {
		r.byAge = append(r.byAge, &e.member)
	}
	return r.byAge
}

// updateKnown removes the members that are gone, and reads those that have changed. It reports whether the others are still
// in order.
func (r *Roster) updateKnown(clusters map[string]*hivev1.ClusterDeployment, everything bool, read func(*hivev1.ClusterDeployment) pool.Member) bool {
	inOrder := true
	kept := r.sorted[:0]
	for _, e := range r.sorted {
		cd := clusters[e.member.Name]
		if cd == nil {
			delete(r.byName, e.member.Name)
			continue
		}
		if everything || e.dependsOnTime || cd != e.cluster {
			e.readMember(cd, read)
		}
		inOrder = inOrder && (len(kept) == 0 || pool.CompareByAge(&kept[len(kept)-1].member, &e.member) < 0)
		kept = append(kept, e)
	}
	clear(r.sorted[len(kept):])
	r.sorted = kept
	return inOrder
}

func (r *Roster) addNew(clusters map[string]*hivev1.ClusterDeployment, read func(*hivev1.ClusterDeployment) pool.Member) {
	if r.byName == nil {
		r.byName = make(map[string]*rosterEntry, len(clusters))
	}
	for name, cd := range clusters {
		if r.byName[name] != nil {
			continue
		}
		e := &rosterEntry{}
		e.readMember(cd, read)
		r.byName[name] = e
		r.sorted = append(r.sorted, e)
	}
}

func (e *rosterEntry) readMember(cd *hivev1.ClusterDeployment, read func(*hivev1.ClusterDeployment) pool.Member) {
	e.member, e.cluster, e.dependsOnTime = read(cd), cd, !isIndependentOfTime(cd)
}
