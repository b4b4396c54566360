package page

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/explain/clusterstate"
	"hotspare.io/hotspare/internal/pool"
)

// conditionCheck matches a condition that has a problem.
type conditionCheck struct {
	conditionType, title string
	badStatus            corev1.ConditionStatus
	needsAction          bool
}

var poolChecks = []conditionCheck{
	{hivev1.PoolMissingDependencies, "Missing dependencies", corev1.ConditionTrue, true},
	{hivev1.PoolCapacityAvailable, "At capacity", corev1.ConditionFalse, false},
	{hivev1.PoolInventoryValid, "Invalid inventory", corev1.ConditionFalse, true},
	{hivev1.PoolAllClustersCurrent, "Outdated clusters", corev1.ConditionFalse, false},
}

// findPoolProblems returns the conditions of a pool that have a problem.
func findPoolProblems(p *hivev1.ClusterPool, now time.Time) []Problem {
	where, link := "pool "+p.Namespace+"/"+p.Name, PoolLink(p.Namespace, p.Name)
	var out []Problem
	if p.Unreadable != "" {
		out = append(out, Problem{NeedsAction: true, Object: where, Title: "Cannot be decoded", Message: p.Unreadable, Link: link})
	}
	for _, f := range poolChecks {
		for _, c := range p.Status.Conditions {
			if c.Type != f.conditionType || c.Status != f.badStatus || c.Reason == hivev1.ReasonInitialized {
				continue
			}
			out = append(out, Problem{
				NeedsAction: f.needsAction, Object: where, Title: f.title, Message: c.Message,
				Since: PastMoment(c.LastTransitionTime.Time, now), Link: link,
			})
		}
	}
	c := condition.Find(p.Status.Conditions, hivev1.PoolProgressing)
	if len(out) == 0 && c != nil && c.Reason == hivev1.ReasonBlocked { // otherwise another condition explains the wait
		out = append(out, Problem{NeedsAction: true, Object: where, Title: "Needs action", Message: c.Message, Since: PastMoment(c.LastTransitionTime.Time, now), Link: link})
	}
	return out
}

// poolFacts describes the specification of a pool.
func poolFacts(p *hivev1.ClusterPool) []Fact {
	s := p.Spec
	out := []Fact{{"Platform", describePlatform(s)}, {"Image set", s.ImageSetRef.Name}, {"Base domain", s.BaseDomain}}
	var limits []string
	if s.MaxSize != nil {
		limits = append(limits, "at most "+FormatCount(int(*s.MaxSize), "cluster"))
	}
	if s.MaxConcurrent != nil {
		limits = append(limits, fmt.Sprintf("%d installed or destroyed at a time", *s.MaxConcurrent))
	}
	if limits != nil {
		out = append(out, Fact{"Limits", strings.Join(limits, ", ")})
	}
	if l := s.ClaimLifetime; l != nil {
		var words []string
		if l.Default != nil {
			words = append(words, string(*l.Default))
		}
		if l.Maximum != nil {
			words = append(words, "at most "+string(*l.Maximum))
		}
		out = append(out, Fact{"Claim lifetime", strings.Join(words, ", ")})
	}
	if s.HibernateAfter != nil {
		out = append(out, Fact{"Claimed clusters hibernate after", string(*s.HibernateAfter)})
	}
	return out
}

func describePlatform(s hivev1.ClusterPoolSpec) string {
	words := s.Platform.Name()
	if l := s.Platform.Local; l != nil && l.Workers != nil {
		words += ", " + FormatCount(int(*l.Workers), "worker")
	}
	if e := s.Platform.Exec; e != nil {
		words += ", recipe " + e.Recipe
	}
	if hivev1.IsTrue(s.Annotations, hivev1.AnnotationFake) {
		words += ", fake"
	}
	return words
}

// Titles of the problems of a cluster.
const (
	titleBroken          = "Broken"
	titleFailedBootstrap = "Bootstrap fails"
)

// spareProblem identifies a problem that several spare clusters of a pool may have.
type spareProblem struct{ namespace, pool, title string }

// formatTitle returns the title of the problem if n clusters have it.
func (p spareProblem) formatTitle(n int) string {
	if p.title == titleFailedBootstrap {
		return FormatCount(n, "spare cluster") + " whose bootstrap fails"
	}
	return FormatCount(n, "broken spare cluster")
}

// findClusterProblems returns the problems of clusters. Broken spare clusters need no action
// because their pool replaces them, and those whose bootstrap fails because hotspare repeats it: those of
// one pool with the same problem are one problem.
func findClusterProblems(s Snapshot, now time.Time) []Problem {
	var out []Problem
	spares := map[spareProblem]int{} // index in out of each problem
	many := map[spareProblem]int{}
	members := clusterstate.ComputeMembers(s.Pools, s.Clusters, s.Claims, now)
	for i := range s.Clusters {
		cd := &s.Clusters[i]
		t, found := findClusterProblem(cd, members[types.NamespacedName{Namespace: cd.Namespace, Name: cd.Name}], now)
		if !found {
			continue
		}
		ref := clusterstate.PoolReference(cd)
		if t.NeedsAction || ref.PoolName == "" {
			out = append(out, t)
			continue
		}
		key := spareProblem{ref.Namespace, ref.PoolName, t.Title}
		if many[key]++; many[key] == 1 {
			spares[key] = len(out)
			out = append(out, t)
			continue
		}
		one := &out[spares[key]]
		one.Object, one.Title = "pool "+ref.Namespace+"/"+ref.PoolName, key.formatTitle(many[key])
		if t.Since.At.Before(one.Since.At) {
			one.Since = t.Since
		}
	}
	return out
}

// findClusterProblem returns the problem of a cluster. A pool replaces its broken spare clusters.
func findClusterProblem(cd *hivev1.ClusterDeployment, m clusterstate.Member, now time.Time) (Problem, bool) {
	ref := clusterstate.PoolReference(cd)
	t := Problem{NeedsAction: ref.PoolName == "" || ref.ClaimName != "", Object: "cluster " + cd.Name}
	if ref.PoolName != "" {
		t.Link = PoolLink(ref.Namespace, ref.PoolName)
	}
	switch away := condition.Find(cd.Status.Conditions, hivev1.ClusterUnreachable); {
	case clusterstate.OfCluster(cd) == clusterstate.Failed:
		t.Title = titleBroken
		c := problemCondition(cd)
		if c == nil {
			t.Since = PastMoment(cd.CreationTimestamp.Time, now)
			return t, true
		}
		t.Message, t.Since = c.Message, PastMoment(c.LastTransitionTime.Time, now)
		return t, true
	case m.Bootstrap.Failing:
		t.Title, t.Message = titleFailedBootstrap, formatSentence(m.Bootstrap.Message)
		if m.Phase == pool.Broken {
			t.Title = titleBroken
		}
		if since := m.Bootstrap.Since; !since.IsZero() {
			t.Since = PastMoment(since, now)
		}
		return t, true
	case t.NeedsAction && clusterstate.OfCluster(cd) == clusterstate.Running && away != nil && away.Status == corev1.ConditionTrue:
		t.Title, t.Message, t.Since = "Unreachable", away.Message, PastMoment(away.LastTransitionTime.Time, now)
		return t, true
	default:
		return t, false
	}
}

// findClaimProblems returns the claims that cannot be served as they are.
func findClaimProblems(claims []hivev1.ClusterClaim, now time.Time) []Problem {
	var out []Problem
	for i := range claims {
		c := &claims[i]
		t := Problem{
			NeedsAction: true, Object: "claim " + c.Namespace + "/" + c.Name, Message: claimProblem(c),
			Since: PastMoment(c.CreationTimestamp.Time, now), Link: PoolLink(c.Namespace, c.Spec.ClusterPoolName),
		}
		switch {
		case c.DeletionTimestamp != nil:
			continue
		case clusterstate.OfClaim(c) == clusterstate.Lost:
			t.Title = "Cluster deleted"
		case c.Spec.Namespace == "" && cannotBeServed(c):
			t.Title = "Cannot be served"
		default:
			continue
		}
		out = append(out, t)
	}
	return out
}

// cannotBeServed reports whether a claim will not be served by waiting alone.
func cannotBeServed(c *hivev1.ClusterClaim) bool {
	for _, k := range c.Status.Conditions {
		if k.Type != hivev1.ClaimPending || k.Status != corev1.ConditionTrue {
			continue
		}
		switch k.Reason {
		case hivev1.ReasonPoolNotFound, hivev1.ReasonPoolDeleting, hivev1.ReasonInvalidLifetime, hivev1.ReasonUnreadable,
			hivev1.ReasonNotPermitted, hivev1.ReasonCreatorUnknown:
			return true
		}
	}
	return false
}

var regionChecks = []struct {
	typ, what string
	bad       bool
}{
	{v1alpha1.RegionValid, "Invalid specification", true},
	{v1alpha1.RegionPoolSuitable, "Unsuitable pools", true},
	{v1alpha1.RegionCapacityAvailable, "No capacity for some sizes", false},
}

// findRegionProblems returns the conditions of regions that have a problem.
func findRegionProblems(regions []v1alpha1.FleetRegion, now time.Time) []Problem {
	var out []Problem
	for i := range regions {
		r := &regions[i]
		for _, f := range regionChecks {
			for _, c := range r.Status.Conditions {
				if c.Type != f.typ || c.Status != metav1.ConditionFalse {
					continue
				}
				out = append(out, Problem{
					NeedsAction: f.bad, Object: "region " + r.Namespace + "/" + r.Name, Title: f.what, Message: c.Message,
					Since: PastMoment(c.LastTransitionTime.Time, now), Link: RegionLink(r.Namespace, r.Name),
				})
			}
		}
	}
	return out
}
