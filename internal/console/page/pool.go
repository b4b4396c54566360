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

// Snapshot is what there is of pools.
type Snapshot struct {
	Pools    []hivev1.ClusterPool
	Claims   []hivev1.ClusterClaim
	Clusters []hivev1.ClusterDeployment
	// ClustersHidden is set when clusters may not be seen: then pools and claims tell of them.
	ClustersHidden bool
}

// selectPool is the part of a scene that belongs to a pool.
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

// phaseHeadings are the phases of a pool's clusters as headings.
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
	// Phase is the heading of its phase.
	Phase string
	// State is what it does, in a word.
	State string
	// Claim has it; empty: none.
	Claim string
	Age   Moment
	// Problem says what is wrong, or what it is at; it may be empty.
	Problem string
}

// StateLabel is what a tile's cluster does, unless its part says so already.
func (t Tile) StateLabel() string {
	if t.Phase == t.State || t.Phase == phaseHeadings[pool.Broken] && t.State == clusterstate.Failed {
		return ""
	}
	return strings.ToLower(t.State)
}

// A Pool is a pool with all that is in it.
type Pool struct {
	Namespace, Name string
	Link            string
	// Size is how many spare clusters it keeps, Running how many of them run, which
	// RunningCount asks for.
	Size, Running, RunningCount int
	// DefaultLifetime is how long a claim lives that does not say; empty: until it is released.
	DefaultLifetime string
	// Counts has the parts that are not empty, in the order of Tiles.
	Counts []Count
	// Ready is how many can be claimed at once, Waiting how many claims wait, the first
	// of them since Longest.
	Ready, Waiting int
	LongestWait    Moment
	// Bar is Counts as lengths.
	Bar      []PhaseSegment
	Tiles    []Tile
	Claims   []Claim
	Plan     string
	Problems []Problem
	Age      Moment
	Facts    []Fact
	Deleting bool
	// ClustersHidden is set when its clusters may not be seen, so that there are no tiles.
	ClustersHidden bool
	// HiddenTiles is how many tiles Trim has left out.
	HiddenTiles int
}

// TrimTiles leaves out tiles above a number; those of one part only, if that is named. What
// is broken is not left out.
func (p *Pool) TrimTiles(part string, most int) {
	var broken, others []Tile
	for _, t := range p.Tiles {
		switch {
		case part != "" && phaseSlug(t.Phase) != part:
		case t.Phase == phaseHeadings[pool.Broken]:
			broken = append(broken, t)
		default:
			others = append(others, t)
		}
	}
	if left := max(0, most-len(broken)); len(others) > left {
		p.HiddenTiles = len(others) - left
		others = others[:left]
	}
	p.Tiles = slices.SortedStableFunc(slices.Values(append(others, broken...)), func(a, b Tile) int {
		return cmp.Compare(phasePosition[a.Phase], phasePosition[b.Phase])
	})
}

// phaseSlug is how addresses name a part.
func phaseSlug(part string) string { return strings.ToLower(part) }

// IsPhaseSlug reports whether addresses name a part so.
func IsPhaseSlug(part string) bool {
	for _, word := range phaseHeadings {
		if phaseSlug(word) == part {
			return true
		}
	}
	return false
}

// A Fact is a line of what somebody has specified.
type Fact struct{ Name, Value string }

// A Claim is a claim on a pool.
type Claim struct {
	Namespace, Name string
	State           string
	// Cluster is the one it has, Place its place among those that wait, such as 2nd.
	Cluster, Position string
	Age               Moment
	// Expected is when it is likely to be served, Ends when its lifetime ends.
	Expected, Ends Moment
	Problem        string
	// CanResume and Awake say what can be told to its cluster: at most one is set.
	CanResume, CanHibernate bool
	Releasing               bool
}

// NewPools are all pools of a scene, by namespace and name.
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

// NewSinglePool is a pool with what of the scene belongs to it.
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
	slices.SortFunc(out.Claims, compareClaims)
	out.Problems = findPoolProblems(p, now)
	return out
}

// compareClaims sorts claims: those that wait in their turn, then the others by age.
func compareClaims(a, b Claim) int {
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

// phaseOrder is that of tiles and counts: what can be had first, then what is to come.
var phaseOrder = []pool.Phase{pool.Assignable, pool.Standby, pool.Installing, pool.Claimed, pool.Broken, pool.Unreadable, pool.Removed, pool.Deleting}

// phasePosition is a part's in that order.
var phasePosition = func() map[string]int {
	out := map[string]int{}
	for i, part := range phaseOrder {
		out[phaseHeadings[part]] = i
	}
	return out
}()

// buildTiles has a tile for each cluster, by its part, then by age.
func buildTiles(s Snapshot, now time.Time) []Tile {
	out := make([]Tile, 0, len(s.Clusters))
	phases := clusterstate.ComputePhases(s.Pools, s.Clusters, s.Claims, now)
	for i := range s.Clusters {
		cd := &s.Clusters[i]
		phase := phases[types.NamespacedName{Namespace: cd.Namespace, Name: cd.Name}]
		out = append(out, Tile{
			Name: cd.Name, Phase: phaseHeadings[phase], State: clusterstate.OfCluster(cd),
			Claim: clusterstate.PoolReference(cd).ClaimName, Age: PastMoment(cd.CreationTimestamp.Time, now), Problem: clusterProblem(cd),
		})
	}
	slices.SortFunc(out, func(a, b Tile) int {
		return cmp.Or(cmp.Compare(phasePosition[a.Phase], phasePosition[b.Phase]), a.Age.At.Compare(b.Age.At), strings.Compare(a.Name, b.Name))
	})
	return out
}

// countFromStatus counts clusters that are not seen by what their pool and its claims say.
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
	for _, part := range phaseOrder {
		if word := phaseHeadings[part]; n[word] > 0 {
			out = append(out, Count{word, n[word]})
		}
	}
	return out
}

// clusterProblem says what is wrong with a cluster, or what it is at; it may have nothing to say.
func clusterProblem(cd *hivev1.ClusterDeployment) string {
	if c := problemCondition(cd); c != nil {
		return c.Message
	}
	return ""
}

// problemCondition is the condition that says what is wrong with a cluster; nil if none does.
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
