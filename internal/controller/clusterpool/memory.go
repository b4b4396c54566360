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

// poolCaches holds what this process remembers of each pool between its passes.
type poolCaches struct {
	mu    sync.Mutex
	pools map[types.NamespacedName]*poolCache
}

// poolCache is what this process remembers of one pool. It is a cache only: without it a pass
// asks the API server, or writes something again. One pass at a time uses a pool, so that
// only the fields which watches and parallel steps use need a lock.
type poolCache struct {
	uid types.UID
	// version is the resourceVersion of the pool as this process last wrote it in a pass that
	// was sure to have seen all clusters; empty if there was none.
	version string
	// template has what was found out about the customizations of the inventory; nil if nothing was.
	template *templateCache
	// positionsSetAt is when the positions of waiting claims were last set.
	positionsSetAt time.Time
	// statusWrittenAt is when the status of the pool was last written.
	statusWrittenAt time.Time
	// members has the members that were read, by name. Of a thousand clusters a few change
	// between two passes, and to read them all again is most of what a pass costs.
	members map[string]cachedMember
	// room is where the last snapshot had its members, and the next one has.
	room []pool.Member
	// namespaceOwners has the clusters whose namespace was made for them, by name.
	namespaceOwners map[string]types.UID
	// claimMissingSince is since when the claim of a claimed cluster has not existed, by the
	// cluster's name. It begins again with the process, which only makes the cluster live longer.
	claimMissingSince map[string]time.Time

	// waiting reports whether claims waited in the last pass. A claim that came since then
	// starts a pass itself.
	waiting atomic.Bool

	mu sync.Mutex
	// dependencies is what was missing when it was last looked for.
	dependencies dependencies
	// unaware has the clusters that were given to a claim which was deleted before it was told
	// of them, by name. A process that does not know waits longer, no more.
	unaware map[string]types.UID
}

// cachedMember is the member that was read from cluster, which is not changed: another version
// of the cluster is another object.
type cachedMember struct {
	cluster *hivev1.ClusterDeployment
	member  pool.Member
}

// dependencies says which objects that a pool refers to were missing, and when they were
// looked for; sources is the version of those that were found.
type dependencies struct {
	at         time.Time
	generation int64
	missing    []string
	sources    string
}

// getOrAddPool returns what is remembered of a pool, which is nothing for a new pool of the same name.
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

// findPool returns what is remembered of the pool of that name; nil if nothing is.
func (m *poolCaches) findPool(key types.NamespacedName) *poolCache {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pools[key]
}

// removePool drops a pool that does not exist any more.
func (m *poolCaches) removePool(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pools, key)
}

// expireDependencies has the next pass look for what the pool refers to.
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

// getMember is facts.Of, for those clusters only that have changed.
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

// isNamespaceOwner reports whether the namespace of cd is known to have been made for it.
func (m *poolCache) isNamespaceOwner(cd *hivev1.ClusterDeployment) bool {
	uid, known := m.namespaceOwners[cd.Name]
	return known && uid == cd.UID
}

// recordNamespaceOwner records that the namespace of cd was made for it.
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

// recordClaimUnaware records that the claim of cd was deleted before it was told of cd.
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

// removeDeletedClusters drops clusters that do not exist any more. It keeps the memory that members
// take for the next snapshot.
func (m *poolCache) removeDeletedClusters(clusters map[string]*hivev1.ClusterDeployment, members []pool.Member) {
	m.room = members
	isGone := func(name string) bool { return clusters[name] == nil }
	if len(m.members) > len(clusters) { // at most as many are gone as came, and they are dropped when there are more
		maps.DeleteFunc(m.members, func(name string, _ cachedMember) bool { return isGone(name) })
	}
	if len(m.namespaceOwners) > len(clusters) {
		maps.DeleteFunc(m.namespaceOwners, func(name string, _ types.UID) bool { return isGone(name) })
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.unaware, func(name string, _ types.UID) bool { return isGone(name) })
}
