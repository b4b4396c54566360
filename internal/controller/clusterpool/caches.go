package clusterpool

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/pool"
	"hotspare.io/hotspare/internal/pool/facts"
	"hotspare.io/hotspare/internal/sparerequirements"
)

// A memo is a map for use by several goroutines. Its zero value is empty.
type memo[K comparable, V any] struct {
	mu sync.Mutex
	m  map[K]V
}

// load returns the value of a key; the zero value if there is none.
func (m *memo[K, V]) load(key K) V {
	value, _ := m.find(key)
	return value
}

// find returns the value of a key, and whether there is one.
func (m *memo[K, V]) find(key K) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, found := m.m[key]
	return value, found
}

func (m *memo[K, V]) store(key K, value V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.m == nil {
		m.m = map[K]V{}
	}
	m.m[key] = value
}

func (m *memo[K, V]) remove(key K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.m, key)
}

// trim deletes the obsolete keys if there are more than most keys.
func (m *memo[K, V]) trim(most int, obsolete func(K) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.m) > most {
		maps.DeleteFunc(m.m, func(key K, _ V) bool { return obsolete(key) })
	}
}

// poolCaches caches the state of each pool between passes.
type poolCaches struct {
	memo[types.NamespacedName, *poolCache]
}

// A poolCache caches the state of one pool. It is only a cache: without it a pass asks the API
// server, or repeats a write. One pass at a time uses a pool, so only the fields that watches and
// concurrent steps use are safe for concurrent use.
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
	// roster has the members of the last snapshot.
	roster facts.Roster
	// namespaceOwners maps names of clusters to the UIDs of those whose namespace was created for
	// them.
	namespaceOwners memo[string, types.UID]
	// claimMissingSince maps the name of a claimed cluster to the time since when its claim has not
	// existed. It starts over when the process restarts, which only delays the deletion of the
	// cluster.
	claimMissingSince map[string]time.Time

	// waiting reports whether claims waited in the last pass. A newer claim starts a pass itself.
	waiting atomic.Bool
	// dependencies has the result of the last check of the pool's dependencies; nil if it has expired.
	dependencies atomic.Pointer[dependencies]
	// required has the steps of the pool's bootstrap as they were read last.
	required sparerequirements.Memo
	// refusedWrite is why the hub refused to create or delete an object in the last pass; empty if it did not.
	refusedWrite string
	// unaware maps the names of clusters to the UIDs of those whose claim was deleted before the
	// cluster was written into it. A process without this knowledge only waits longer.
	unaware memo[string, types.UID]
}

// dependencies describes which objects that a pool refers to were missing, and when they were
// checked; sources is the version of those that were found.
type dependencies struct {
	at         time.Time
	generation int64
	missing    []string
	sources    string
	// recipe is the value of status.recipeVersion of the pool.
	recipe string
}

// getOrAddPool returns the cache of a pool. A new pool of the same name gets an empty cache.
func (c *poolCaches) getOrAddPool(p *hivev1.ClusterPool) *poolCache {
	key := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
	known := c.load(key)
	if known == nil || known.uid != p.UID {
		known = &poolCache{uid: p.UID}
		c.store(key, known)
	}
	return known
}

// expireDependencies makes the next pass check the pool's dependencies again.
func (c *poolCaches) expireDependencies(p *hivev1.ClusterPool) {
	if known := c.load(types.NamespacedName{Namespace: p.Namespace, Name: p.Name}); known != nil {
		known.dependencies.Store(nil)
	}
}

// hasWaitingClaims reports whether claims waited on the pool of that name in its last pass.
func (c *poolCaches) hasWaitingClaims(key types.NamespacedName) bool {
	known := c.load(key)
	return known != nil && known.waiting.Load()
}

// recordPlan records what the watches and the next pass need to know of a plan that was made now.
func (c *poolCache) recordPlan(p pool.Plan, now time.Time) {
	c.waiting.Store(p.Report.Waiting > 0)
	switch {
	case len(p.Report.Queue) == 0:
		c.positionsSetAt = time.Time{}
	case slices.ContainsFunc(p.Steps, func(st pool.Step) bool { return st.Verb == pool.SetPosition }):
		c.positionsSetAt = now
	}
}

// setClaimMissingSince sets ClaimMissingSince and ClaimUnaware of the claimed members.
func (c *poolCache) setClaimMissingSince(s *observation, members []*pool.Member, now time.Time) {
	before := c.claimMissingSince
	c.claimMissingSince = map[string]time.Time{}
	for _, member := range members {
		if member.Claim == "" {
			continue
		}
		member.ClaimMissingSince, member.ClaimUnaware = time.Time{}, false
		if s.claims[member.Claim] != nil || member.Deleting {
			continue
		}
		since, known := before[member.Name]
		if !known {
			since = now
		}
		c.claimMissingSince[member.Name], member.ClaimMissingSince = since, since
		cd := s.clusters[member.Name]
		uid, known := c.unaware.find(cd.Name)
		member.ClaimUnaware = known && uid == cd.UID
	}
}

// removeDeletedClusters drops clusters that no longer exist.
func (c *poolCache) removeDeletedClusters(clusters map[string]*hivev1.ClusterDeployment) {
	isDeleted := func(name string) bool { return clusters[name] == nil }
	// Most passes follow no deletion. A map that is no larger than the pool is not searched: it has
	// no more deleted clusters than the pool has new ones.
	c.namespaceOwners.trim(len(clusters), isDeleted)
	c.unaware.trim(0, isDeleted)
}
