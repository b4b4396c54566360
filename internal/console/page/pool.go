package page

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/explain/clusterstate"
	"hotspare.io/hotspare/internal/pool"
)

// Snapshot has the objects of pools.
type Snapshot struct {
	Pools    []hivev1.ClusterPool
	Claims   []hivev1.ClusterClaim
	Clusters []hivev1.ClusterDeployment
	// ClustersHidden is set if the viewer may not see clusters. The page then uses the status of
	// pools and claims.
	ClustersHidden bool
}

// selectPool returns the part of a snapshot that belongs to a pool.
func (s *Snapshot) selectPool(p *hivev1.ClusterPool) Snapshot {
	part := Snapshot{Pools: []hivev1.ClusterPool{*p}, ClustersHidden: s.ClustersHidden}
	for i := range s.Claims {
		if c := &s.Claims[i]; c.Namespace == p.Namespace && c.Spec.ClusterPoolName == p.Name {
			part.Claims = append(part.Claims, *c)
		}
	}
	for i := range s.Clusters {
		if ref := clusterstate.PoolReference(&s.Clusters[i]); ref.Namespace == p.Namespace && ref.PoolName == p.Name {
			part.Clusters = append(part.Clusters, s.Clusters[i])
		}
	}
	return part
}

// phaseHeadings are the headings of the phases of a pool's clusters.
var phaseHeadings = map[pool.Phase]string{
	pool.Installing: "Installing",
	pool.Standby:    "Standby",
	pool.Assignable: "Assignable",
	pool.Claimed:    "Claimed",
	pool.Broken:     "Broken",
	pool.Unreadable: "Unreadable",
	pool.Removed:    "Marked",
	pool.Deleting:   "Deleting",
}

// A Tile is a cluster of a pool.
type Tile struct {
	Name string
	// Phase is the heading of the cluster's phase.
	Phase string
	// State is the cluster's state in one word.
	State string
	// Depth is the depth of the cluster's sleep; empty if it is stopped or does not hibernate.
	Depth string
	// Claim is the claim that has the cluster; empty if none has.
	Claim string
	Age   Moment
	// Problem describes what is wrong with the cluster or what it waits for; it may be empty.
	Problem string
	// Progress describes what the cluster does before a claim may get it; empty if that is unknown, or if Problem
	// describes it.
	Progress string
}

// StateLabel returns the state in lower case, or nothing if the phase already implies it.
func (t Tile) StateLabel() string {
	if t.Phase == t.State || t.Phase == phaseHeadings[pool.Broken] && t.State == clusterstate.Failed {
		return t.Depth
	}
	return strings.TrimSpace(strings.ToLower(t.State) + " " + t.Depth)
}

// A Pool is a pool with everything in it.
type Pool struct {
	Namespace, Name string
	Link            string
	// Size is the desired number of spare clusters. Running is how many of them should run:
	// RunningCount, but at most Size.
	Size, Running, RunningCount int
	// DefaultLifetime is the lifetime of claims that do not set one; empty if they live until they
	// are released.
	DefaultLifetime string
	// Counts has the phases that have clusters, in the order of Tiles.
	Counts []Count
	// Ready is how many clusters can be claimed immediately, Waiting how many claims wait. The
	// oldest of these has waited since LongestWait.
	Ready, Waiting int
	LongestWait    Moment
	// Bar is Counts as segments.
	Bar    []PhaseSegment
	Tiles  []Tile
	Claims []Claim
	Plan   string
	// Policy says what the pool's PoolPolicy recommends or sets, and why; empty if it has none.
	Policy   string
	Problems []Problem
	Age      Moment
	Facts    []Fact
	Deleting bool
	// ClustersHidden is set if the viewer may not see the clusters. Tiles is then empty.
	ClustersHidden bool
	// HiddenTiles is how many tiles TrimTiles has left out.
	HiddenTiles int
}

// TrimTiles limits the number of tiles, and to those of one phase if phase is not empty. It keeps
// all broken clusters.
func (p *Pool) TrimTiles(phase string, limit int) {
	var broken, others []Tile
	for _, t := range p.Tiles {
		switch {
		case phase != "" && phaseSlug(t.Phase) != phase:
		case t.Phase == phaseHeadings[pool.Broken]:
			broken = append(broken, t)
		default:
			others = append(others, t)
		}
	}
	if left := max(0, limit-len(broken)); len(others) > left {
		p.HiddenTiles = len(others) - left
		others = others[:left]
	}
	p.Tiles = slices.SortedStableFunc(slices.Values(append(others, broken...)), func(a, b Tile) int {
		return cmp.Compare(phasePosition[a.Phase], phasePosition[b.Phase])
	})
}

// phaseSlug returns a phase as it is in addresses.
func phaseSlug(heading string) string { return strings.ToLower(heading) }

// IsPhaseSlug reports whether a string is a phase as in addresses.
func IsPhaseSlug(slug string) bool {
	for _, heading := range phaseHeadings {
		if phaseSlug(heading) == slug {
			return true
		}
	}
	return false
}

// A Fact is a line of a specification.
type Fact struct{ Name, Value string }

// NewPools describes all pools of a snapshot, sorted by namespace and name.
func NewPools(s Snapshot, now time.Time) []Pool {
	var out []Pool
	for i := range s.Pools {
		out = append(out, newPool(&s.Pools[i], s.selectPool(&s.Pools[i]), now))
	}
	slices.SortFunc(out, func(a, b Pool) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return out
}

// NewSinglePool describes one pool with its part of the snapshot.
func NewSinglePool(p *hivev1.ClusterPool, s Snapshot, now time.Time) Pool {
	return newPool(p, s.selectPool(p), now)
}

func newPool(p *hivev1.ClusterPool, s Snapshot, now time.Time) Pool {
	out := Pool{
		Namespace: p.Namespace, Name: p.Name, Link: PoolLink(p.Namespace, p.Name),
		Size: int(p.Spec.Size), Running: int(min(p.Spec.RunningCount, p.Spec.Size)), RunningCount: int(p.Spec.RunningCount),
		Plan: p.Status.Plan, Age: PastMoment(p.CreationTimestamp.Time, now), Facts: poolFacts(p),
		Deleting: p.DeletionTimestamp != nil,
	}
	if l := p.Spec.ClaimLifetime; l != nil && l.Default != nil {
		out.DefaultLifetime = string(*l.Default)
	}
	out.Tiles = buildTiles(s, now)
	out.Counts, out.ClustersHidden = countTiles(out.Tiles), s.ClustersHidden
	if s.ClustersHidden {
		out.Counts = countFromStatus(p, s.Claims)
	}
	out.Bar = newPhaseSegments(out.Counts)
	for _, c := range out.Counts {
		if c.What == phaseHeadings[pool.Assignable] {
			out.Ready = c.N
		}
	}
	for i := range s.Claims {
		c := &s.Claims[i]
		out.Claims = append(out.Claims, newClaim(c, now))
		if clusterstate.OfClaim(c) != clusterstate.Waiting {
			continue
		}
		out.Waiting++
		if out.LongestWait.Zero() || c.CreationTimestamp.Time.Before(out.LongestWait.At) {
			out.LongestWait = PastMoment(c.CreationTimestamp.Time, now)
		}
	}
	slices.SortFunc(out.Claims, compareClaimsForDisplay)
	out.Problems = findPoolProblems(p, now)
	return out
}

// compareClaimsForDisplay sorts claims: waiting claims in the order in which they are served, then the others
// by age.
func compareClaimsForDisplay(a, b Claim) int {
	return cmp.Or(
		cmp.Compare(waitingRank(a), waitingRank(b)),
		a.Age.At.Compare(b.Age.At),
		strings.Compare(a.Namespace, b.Namespace),
		strings.Compare(a.Name, b.Name),
	)
}

func waitingRank(c Claim) int {
	if c.State == clusterstate.Waiting {
		return 0
	}
	return 1
}

// phaseOrder is the order of tiles and counts: first the clusters that can be claimed, then those
// that will be.
var phaseOrder = []pool.Phase{pool.Assignable, pool.Standby, pool.Installing, pool.Claimed, pool.Broken, pool.Unreadable, pool.Removed, pool.Deleting}

// phasePosition is the position of a phase in phaseOrder.
var phasePosition = func() map[string]int {
	out := map[string]int{}
	for i, phase := range phaseOrder {
		out[phaseHeadings[phase]] = i
	}
	return out
}()

// buildTiles returns a tile for each cluster, sorted by phase and age.
func buildTiles(s Snapshot, now time.Time) []Tile {
	out := make([]Tile, 0, len(s.Clusters))
	members := clusterstate.ComputeMembers(s.Pools, s.Clusters, s.Claims, now)
	for i := range s.Clusters {
		cd := &s.Clusters[i]
		m := members[types.NamespacedName{Namespace: cd.Namespace, Name: cd.Name}]
		t := Tile{
			Name: cd.Name, Phase: phaseHeadings[m.Phase], State: clusterstate.OfCluster(cd), Depth: clusterstate.SleepDepth(cd),
			Claim: clusterstate.PoolReference(cd).ClaimName, Age: PastMoment(cd.CreationTimestamp.Time, now), Problem: clusterProblem(cd),
		}
		switch words := formatSentence(m.Bootstrap.Message); {
		case t.Problem != "":
		case m.Bootstrap.Failing:
			t.Problem = words
		default:
			t.Progress = words
		}
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b Tile) int {
		return cmp.Or(cmp.Compare(phasePosition[a.Phase], phasePosition[b.Phase]), a.Age.At.Compare(b.Age.At), strings.Compare(a.Name, b.Name))
	})
	return out
}

// formatSentence returns a clause as a sentence; an empty one stays empty.
func formatSentence(clause string) string {
	if clause == "" {
		return ""
	}
	return strings.ToUpper(clause[:1]) + clause[1:] + "."
}

// countFromStatus counts the clusters of a pool from the status of the pool and its claims.
func countFromStatus(p *hivev1.ClusterPool, claims []hivev1.ClusterClaim) []Count {
	claimed := 0
	for i := range claims {
		if claims[i].Spec.Namespace != "" && claims[i].DeletionTimestamp == nil {
			claimed++
		}
	}
	var out []Count
	for _, c := range []Count{
		{phaseHeadings[pool.Assignable], int(p.Status.Ready)},
		{phaseHeadings[pool.Standby], int(p.Status.Standby)},
		{phaseHeadings[pool.Claimed], claimed},
	} {
		if c.N > 0 {
			out = append(out, c)
		}
	}
	return out
}

func countTiles(tiles []Tile) []Count {
	n := map[string]int{}
	for _, t := range tiles {
		n[t.Phase]++
	}
	var out []Count
	for _, phase := range phaseOrder {
		if heading := phaseHeadings[phase]; n[heading] > 0 {
			out = append(out, Count{heading, n[heading]})
		}
	}
	return out
}

// clusterProblem describes what is wrong with a cluster or what it waits for; it may be empty.
func clusterProblem(cd *hivev1.ClusterDeployment) string {
	if c := problemCondition(cd); c != nil {
		return c.Message
	}
	return ""
}

// problemCondition returns the condition that describes what is wrong with a cluster; nil if none
// does.
func problemCondition(cd *hivev1.ClusterDeployment) *hivev1.Condition {
	for _, w := range []struct {
		typ string
		is  corev1.ConditionStatus
	}{
		{hivev1.ClusterProvisionStopped, corev1.ConditionTrue},
		{hivev1.ClusterRequirementsMet, corev1.ConditionFalse},
		{hivev1.ClusterProvisionFailed, corev1.ConditionTrue},
	} {
		c := condition.Find(cd.Status.Conditions, w.typ)
		if c != nil && c.Status == w.is && c.Reason != hivev1.ReasonInitialized && !cd.Spec.Installed {
			return c
		}
	}
	if clusterstate.OfCluster(cd) == clusterstate.Failed {
		return condition.Find(cd.Status.Conditions, hivev1.ClusterHibernating)
	}
	return nil
}
