package clusterstate

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/pool"
	"hotspare.io/hotspare/internal/pool/facts"
)

// Member is a cluster as its pool sees it.
type Member struct {
	Phase pool.Phase
	// Bootstrap is set in phases Standby and Broken.
	Bootstrap Bootstrap
}

// ComputeMembers returns each cluster as its pool sees it, by namespace and name, as the pool's controller computes it.
// It takes the state of customizations from the status of the pool.
func ComputeMembers(pools []hivev1.ClusterPool, clusters []hivev1.ClusterDeployment, claims []hivev1.ClusterClaim, now time.Time) map[types.NamespacedName]Member {
	all := groupByPool(pools, clusters, claims)
	out := make(map[types.NamespacedName]Member, len(clusters))
	for _, o := range all {
		s, err := buildSnapshot(o, now)
		if err != nil {
			continue // each cluster is classified separately below
		}
		for _, m := range s.ResolvedMembers() {
			if cd := o.Clusters[m.Name]; cd != nil {
				out[types.NamespacedName{Namespace: cd.Namespace, Name: cd.Name}] = newMember(&m, cd, &s.Settings, now)
			}
		}
	}
	for i := range clusters {
		cd := &clusters[i]
		key := types.NamespacedName{Namespace: cd.Namespace, Name: cd.Name}
		if _, known := out[key]; !known {
			m := facts.ReadMember(cd, now)
			out[key] = newMember(&m, cd, &pool.Settings{}, now)
		}
	}
	return out
}

func newMember(m *pool.Member, cd *hivev1.ClusterDeployment, s *pool.Settings, now time.Time) Member {
	out := Member{Phase: m.Phase(s, now)}
	switch out.Phase {
	case pool.Standby:
		out.Bootstrap = BootstrapOf(m, cd, "")
	case pool.Broken:
		out.Bootstrap = BootstrapOf(m, cd, m.DefectCause(s, now))
	}
	return out
}

// ComputePhases returns the phase of each cluster in its pool, as ComputeMembers does.
func ComputePhases(pools []hivev1.ClusterPool, clusters []hivev1.ClusterDeployment, claims []hivev1.ClusterClaim, now time.Time) map[types.NamespacedName]pool.Phase {
	members := ComputeMembers(pools, clusters, claims, now)
	out := make(map[types.NamespacedName]pool.Phase, len(members))
	for key, m := range members {
		out[key] = m.Phase
	}
	return out
}

// groupByPool sorts clusters and claims by their pools.
func groupByPool(pools []hivev1.ClusterPool, clusters []hivev1.ClusterDeployment, claims []hivev1.ClusterClaim) map[types.NamespacedName]facts.Objects {
	out := make(map[types.NamespacedName]facts.Objects, len(pools))
	for i := range pools {
		p := &pools[i]
		gates, steps := facts.RecordedRequirements(p)
		out[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = facts.Objects{
			Pool: p, SetsUnknown: true, Clusters: map[string]*hivev1.ClusterDeployment{}, Claims: map[string]*hivev1.ClusterClaim{},
			Gates: gates, Steps: steps,
		}
	}
	for i := range clusters {
		ref := PoolReference(&clusters[i])
		if o, found := out[types.NamespacedName{Namespace: ref.Namespace, Name: ref.PoolName}]; found {
			o.Clusters[clusters[i].Name] = &clusters[i]
		}
	}
	for i := range claims {
		if o, found := out[types.NamespacedName{Namespace: claims[i].Namespace, Name: claims[i].Spec.ClusterPoolName}]; found {
			o.Claims[claims[i].Name] = &claims[i]
		}
	}
	return out
}

func buildSnapshot(o facts.Objects, now time.Time) (pool.Snapshot, error) {
	o.AssumeCustomizations()
	books, err := o.DecideInventory()
	if err != nil {
		return pool.Snapshot{}, err
	}
	return o.PoolSnapshot(books, now)
}

// Tally counts the clusters and claims of a pool, in the phases of its plan. Its JSON is
// what pool list and status print: ready is assignable, failed is broken.
type Tally struct {
	Assignable int `json:"ready"`
	Standby    int `json:"standby"`
	Installing int `json:"installing"`
	Broken     int `json:"failed"`
	Deleting   int `json:"deleting"`
	Claimed    int `json:"claimed"`
	Waiting    int `json:"waiting"`
	Marked     int `json:"marked"`
	Unreadable int `json:"unreadable"`
}

// CountPool tallies the clusters of a pool and the claims on it that wait.
func CountPool(p *hivev1.ClusterPool, clusters []hivev1.ClusterDeployment, claims []hivev1.ClusterClaim, now time.Time) Tally {
	var t Tally
	for _, phase := range ComputePhases([]hivev1.ClusterPool{*p}, clusters, claims, now) {
		*t.counterFor(phase)++
	}
	for i := range claims {
		if OfClaim(&claims[i]) == Waiting {
			t.Waiting++
		}
	}
	return t
}

func (t *Tally) counterFor(p pool.Phase) *int {
	switch p {
	case pool.Assignable:
		return &t.Assignable
	case pool.Installing:
		return &t.Installing
	case pool.Broken:
		return &t.Broken
	case pool.Deleting:
		return &t.Deleting
	case pool.Claimed:
		return &t.Claimed
	case pool.Removed:
		return &t.Marked
	case pool.Unreadable:
		return &t.Unreadable
	default:
		return &t.Standby
	}
}
