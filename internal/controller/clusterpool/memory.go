package clusterpool

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/pool"
	"hotspare.io/hotspare/internal/pool/facts"
)

// poolCaches caches the state of each pool between passes.
type poolCaches struct {
	mu    sync.Mutex
	pools map[types.NamespacedName]*poolCache
}

// A poolCache caches the state of one pool. It is only a cache: without it a pass asks the API
// server, or repeats a write. One pass at a time uses a pool, so only the fields that watches and
// parallel steps use need a lock.
type poolCache struct {
	uid types.UID
	// version is the resourceVersion of the pool as this process last wrote it in a pass that had
	// certainly observed all clusters; empty if there was no such write.
	version string
	// template has the results of trying the inventory's customizations on the template; nil if
	// there are none.
	template *templateCache
	// positionsSetAt is when the positions of waiting claims were last set.
	positionsSetAt time.Time
	// statusWrittenAt is when the status of the pool was last written.
	statusWrittenAt time.Time
	// members has the members that were read, by name. Only a few of a thousand clusters change
	// between two passes, and reading all of them again would be most of the cost of a pass.
	members map[string]cachedMember
	// room is the buffer for the members of a snapshot, reused by the next snapshot.
	room []pool.Member
	// namespaceOwners maps names of clusters to the UIDs of those whose namespace was created for
	// them.
	namespaceOwners map[string]types.UID
	// claimMissingSince maps the name of a claimed cluster to the time since when its claim has not
	// existed. It starts over when the process restarts, which only delays the deletion of the
	// cluster.
	claimMissingSince map[string]time.Time

	// waiting reports whether claims waited in the last pass. A newer claim starts a pass itself.
	waiting atomic.Bool

	mu sync.Mutex
	// dependencies has the result of the last check of the pool's dependencies.
	dependencies dependencies
	// unaware maps the names of clusters to the UIDs of those whose claim was deleted before the
	// cluster was written into it. A process without this knowledge only waits longer.
	unaware map[string]types.UID
}

// A cachedMember is the member that was read from cluster. cluster never changes: another version
// of the cluster is another object.
type cachedMember struct {
	cluster *hivev1.ClusterDeployment
	member  pool.Member
}

// dependencies describes which objects that a pool refers to were missing, and when they were
// checked; sources is the version of those that were found.
type dependencies struct {
	at         time.Time
	generation int64
	missing    []string
	sources    string
}

// getOrAddPool returns the cache of a pool. A new pool of the same name gets an empty cache.
func (m *poolCaches) getOrAddPool(p *hivev1.ClusterPool) *poolCache {
	key := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pools == nil {
		m.pools = map[types.NamespacedName]*poolCache{}
	}
	if known := m.pools[key]; known != nil && known.uid == p.UID {
		return known
	}
	m.pools[key] = newPoolCache(p.UID)
	return m.pools[key]
}

func newPoolCache(uid types.UID) *poolCache {
	return &poolCache{
		uid: uid, members: map[string]cachedMember{}, namespaceOwners: map[string]types.UID{},
		claimMissingSince: map[string]time.Time{}, unaware: map[string]types.UID{},
	}
}

// findPool returns the cache of the pool of that name; nil if there is none.
func (m *poolCaches) findPool(key types.NamespacedName) *poolCache {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pools[key]
}

// removePool drops the cache of a pool that no longer exists.
func (m *poolCaches) removePool(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pools, key)
}

// expireDependencies makes the next pass check the pool's dependencies again.
func (m *poolCaches) expireDependencies(p *hivev1.ClusterPool) {
	if known := m.findPool(types.NamespacedName{Namespace: p.Namespace, Name: p.Name}); known != nil {
		known.setDependencies(dependencies{})
	}
}

// hasWaitingClaims reports whether claims waited on the pool of that name in its last pass.
func (m *poolCaches) hasWaitingClaims(key types.NamespacedName) bool {
	known := m.findPool(key)
	return known != nil && known.waiting.Load()
}

// recordPlan records what the watches and the next pass need to know of a plan that was made now.
func (m *poolCache) recordPlan(p pool.Plan, now time.Time) {
	m.waiting.Store(p.Report.Waiting > 0)
	switch {
	case len(p.Report.Queue) == 0:
		m.positionsSetAt = time.Time{}
	case p.CountSteps(pool.SetPosition) > 0:
		m.positionsSetAt = now
	}
}

func (m *poolCache) setDependencies(d dependencies) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dependencies = d
}

func (m *poolCache) getDependencies() dependencies {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dependencies
}

// getMember is facts.ReadMember, evaluated only for clusters that have changed.
func (m *poolCache) getMember(cd *hivev1.ClusterDeployment, now time.Time) pool.Member {
	if known, found := m.members[cd.Name]; found && known.cluster == cd {
		return known.member
	}
	member := facts.ReadMember(cd, now)
	if facts.IsIndependentOfTime(cd) {
		m.members[cd.Name] = cachedMember{cd, member}
	} else {
		delete(m.members, cd.Name)
	}
	return member
}

// isNamespaceOwner reports whether the namespace of cd is known to have been created for it.
func (m *poolCache) isNamespaceOwner(cd *hivev1.ClusterDeployment) bool {
	uid, known := m.namespaceOwners[cd.Name]
	return known && uid == cd.UID
}

// recordNamespaceOwner records that the namespace of cd was created for it.
func (m *poolCache) recordNamespaceOwner(cd *hivev1.ClusterDeployment) {
	m.namespaceOwners[cd.Name] = cd.UID
}

// setClaimMissingSince sets ClaimMissingSince of the members whose claim does not exist.
func (m *poolCache) setClaimMissingSince(s *observation, members []pool.Member, now time.Time) {
	before := m.claimMissingSince
	m.claimMissingSince = map[string]time.Time{}
	for i := range members {
		member := &members[i]
		if member.Claim == "" || s.claims[member.Claim] != nil || member.Deleting {
			continue
		}
		since, known := before[member.Name]
		if !known {
			since = now
		}
		m.claimMissingSince[member.Name], member.ClaimMissingSince = since, since
		member.ClaimUnaware = m.isClaimUnaware(s.clusters[member.Name])
	}
}

// recordClaimUnaware records that the claim of cd was deleted before cd was written into it.
func (m *poolCache) recordClaimUnaware(cd *hivev1.ClusterDeployment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unaware[cd.Name] = cd.UID
}

func (m *poolCache) isClaimUnaware(cd *hivev1.ClusterDeployment) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	uid, known := m.unaware[cd.Name]
	return known && uid == cd.UID
}

// removeDeletedClusters drops clusters that no longer exist. It keeps the memory of members for the
// next snapshot.
func (m *poolCache) removeDeletedClusters(clusters map[string]*hivev1.ClusterDeployment, members []pool.Member) {
	m.room = members
	isGone := func(name string) bool { return clusters[name] == nil }
	if len(m.members) > len(clusters) { // at most as many clusters were deleted as were created; the cache drops them once it is larger than the pool
		maps.DeleteFunc(m.members, func(name string, _ cachedMember) bool { return isGone(name) })
	}
	if len(m.namespaceOwners) > len(clusters) {
		maps.DeleteFunc(m.namespaceOwners, func(name string, _ types.UID) bool { return isGone(name) })
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.unaware, func(name string, _ types.UID) bool { return isGone(name) })
}
