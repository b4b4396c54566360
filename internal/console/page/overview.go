package page

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/explain/clusterstate"
	"hotspare.io/hotspare/internal/pool"
)

// Overview is the content of the first page.
type Overview struct {
	Pools []Pool
	// Cards are the pools that the page shows. If there are too many pools, those that need
	// attention come first. HiddenPools is how many are left out.
	Cards       []Pool
	HiddenPools int
	// Desired is the number of spare clusters that all pools should have, Ready the number that can
	// be claimed immediately.
	Desired, Ready int
	Clusters       []Count
	Hibernating    int
	Broken         int
	Served         int
	Waiting        int
	LongestWait    Moment
	Regions        int
	// Growing is the number of regions whose last decision is to create a data plane.
	Growing int
	// Month is what pools with a policy have cost; nil if there are none.
	Month    *MonthOverview
	Problems []Problem
	Events   []Event
	Empty    bool
	// ClustersHidden is set if the viewer may not see clusters, so that the numbers of broken and
	// hibernating clusters are unknown.
	ClustersHidden bool
}

// NewOverview summarizes everything that the viewer may see.
func NewOverview(s Snapshot, regions []v1alpha1.FleetRegion, events []corev1.Event, now time.Time) Overview {
	o := Overview{Pools: NewPools(s, now), Regions: len(regions), ClustersHidden: s.ClustersHidden}
	for _, p := range o.Pools {
		o.Desired += p.Size
		o.Ready += p.Ready
		o.Problems = append(o.Problems, p.Problems...)
	}
	all := buildTiles(s, now)
	o.Clusters = countTiles(all)
	for _, t := range all {
		switch {
		case t.Phase == phaseHeadings[pool.Broken], t.State == clusterstate.Failed:
			o.Broken++
		case t.State == clusterstate.Hibernating:
			o.Hibernating++
		}
	}
	o.Cards, o.HiddenPools = selectCards(o.Pools)
	o.countClaims(s.Claims, now)
	for i := range regions {
		if slices.ContainsFunc(regions[i].Status.InstanceTypes, isCreateDecision) {
			o.Growing++
		}
	}
	o.Problems = append(o.Problems, findClusterProblems(s, now)...)
	o.Problems = append(o.Problems, findClaimProblems(s.Claims, now)...)
	o.Problems = append(o.Problems, findRegionProblems(regions, now)...)
	slices.SortStableFunc(o.Problems, compareProblems)
	o.Events = FirstEvents(NewEvents(events, now), maxOverviewEvents)
	o.Empty = len(s.Pools) == 0 && len(s.Claims) == 0 && len(s.Clusters) == 0 && len(regions) == 0
	return o
}

// maxOverviewEvents is how many events the overview shows.
const maxOverviewEvents = 12

// maxCards is how many pools the overview shows.
const maxCards = 12

// selectCards limits the number of pools. It prefers pools that need attention.
func selectCards(pools []Pool) (shown []Pool, more int) {
	if len(pools) <= maxCards {
		return pools, 0
	}
	shown = slices.Clone(pools)
	slices.SortStableFunc(shown, func(a, b Pool) int { return b.attentionRank() - a.attentionRank() })
	return shown[:maxCards], len(pools) - maxCards
}

// attentionRank returns how urgently a pool needs attention.
func (p *Pool) attentionRank() int {
	broken := slices.ContainsFunc(p.Counts, func(c Count) bool { return c.What == phaseHeadings[pool.Broken] })
	switch {
	case p.Waiting > 0:
		return 2
	case broken || len(p.Problems) > 0:
		return 1
	default:
		return 0
	}
}

func isCreateDecision(t v1alpha1.RegionTypeStatus) bool {
	return t.Decision != nil && t.Decision.Action == "Create"
}

func (o *Overview) countClaims(claims []hivev1.ClusterClaim, now time.Time) {
	for i := range claims {
		c := &claims[i]
		switch clusterstate.OfClaim(c) {
		case clusterstate.Waiting:
			o.Waiting++
			if o.LongestWait.Zero() || c.CreationTimestamp.Time.Before(o.LongestWait.At) {
				o.LongestWait = PastMoment(c.CreationTimestamp.Time, now)
			}
		case clusterstate.Releasing:
		default:
			o.Served++
		}
	}
}

func compareProblems(a, b Problem) int {
	switch {
	case a.NeedsAction == b.NeedsAction:
		return 0
	case a.NeedsAction:
		return -1
	default:
		return 1
	}
}
