package clusterpool

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/pool"
	"hotspare.io/hotspare/internal/pool/facts"
)

// readings remember what was read from the clusters of pools. Of a thousand of them a
// few change between two passes, and to read them all again is most of what a pass costs.
type readings struct {
	mu sync.Mutex
	of map[types.NamespacedName]*readingsOf
}

// readingsOf are those of one pool, which one pass at a time uses.
type readingsOf struct {
	by map[string]reading
	// room is where the last snapshot had its members, and the next one has.
	room []pool.Member
	// homes are the clusters whose namespace was made for them, by name.
	homes map[string]types.UID
	// claimMissing is since when the claim of a claimed cluster has not existed, by the
	// cluster's name. It begins anew with the process, which only makes the cluster live longer.
	claimMissing map[string]time.Time
	// unaware are the clusters that were given to a claim which was gone before it was told,
	// by name. A process that does not know waits longer, no more.
	unawareMu sync.Mutex
	unaware   map[string]types.UID
}

// reading is what was read from cd, which is not changed: another version is another object.
type reading struct {
	cd     *hivev1.ClusterDeployment
	member pool.Member
}

// pool are the readings of a pool.
func (r *readings) pool(key types.NamespacedName) *readingsOf {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[types.NamespacedName]*readingsOf{}
	}
	if r.of[key] == nil {
		r.of[key] = &readingsOf{by: map[string]reading{}, homes: map[string]types.UID{}, claimMissing: map[string]time.Time{}}
	}
	return r.of[key]
}

// forget lets go of a pool that is gone.
func (r *readings) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, key)
}

// read is facts.Of, of those clusters only that have changed.
func (r *readingsOf) read(cd *hivev1.ClusterDeployment, now time.Time) pool.Member {
	if known, found := r.by[cd.Name]; found && known.cd == cd {
		return known.member
	}
	m := facts.Of(cd, now)
	if facts.Timeless(cd) {
		r.by[cd.Name] = reading{cd, m}
	} else {
		delete(r.by, cd.Name)
	}
	return m
}

// isHome reports whether the namespace of cd is known to have been made for it.
func (r *readingsOf) isHome(cd *hivev1.ClusterDeployment) bool {
	uid, known := r.homes[cd.Name]
	return known && uid == cd.UID
}

// noteHome records that the namespace of cd was made for it.
func (r *readingsOf) noteHome(cd *hivev1.ClusterDeployment) { r.homes[cd.Name] = cd.UID }

// dateMissingClaims sets ClaimMissingSince of the members whose claim does not exist.
func (r *readingsOf) dateMissingClaims(s *seen, members []pool.Member, now time.Time) {
	before := r.claimMissing
	r.claimMissing = map[string]time.Time{}
	for i := range members {
		m := &members[i]
		if m.Claim == "" || s.claims[m.Claim] != nil || m.Deleting {
			continue
		}
		since, known := before[m.Name]
		if !known {
			since = now
		}
		r.claimMissing[m.Name], m.ClaimMissingSince = since, since
		m.ClaimUnaware = r.isUnaware(s.clusters[m.Name])
	}
}

// noteUnaware records that the claim of cd was deleted before it was told of cd. The steps
// of a pass are carried out several at a time.
func (r *readingsOf) noteUnaware(cd *hivev1.ClusterDeployment) {
	r.unawareMu.Lock()
	defer r.unawareMu.Unlock()
	if r.unaware == nil {
		r.unaware = map[string]types.UID{}
	}
	r.unaware[cd.Name] = cd.UID
}

func (r *readingsOf) isUnaware(cd *hivev1.ClusterDeployment) bool {
	r.unawareMu.Lock()
	defer r.unawareMu.Unlock()
	uid, known := r.unaware[cd.Name]
	return known && uid == cd.UID
}

// keep lets go of clusters that are not there any more, and keeps the room that members take.
func (r *readingsOf) keep(clusters map[string]*hivev1.ClusterDeployment, members []pool.Member) {
	r.room = members
	isGone := func(name string) bool { return clusters[name] == nil }
	if len(r.by) > len(clusters) { // those that went are as many as came, at most, and go when they are more
		maps.DeleteFunc(r.by, func(name string, _ reading) bool { return isGone(name) })
	}
	r.unawareMu.Lock()
	maps.DeleteFunc(r.unaware, func(name string, _ types.UID) bool { return isGone(name) })
	r.unawareMu.Unlock()
	if len(r.homes) > len(clusters) {
		maps.DeleteFunc(r.homes, func(name string, _ types.UID) bool { return isGone(name) })
	}
}
