package pool

import (
	"cmp"
	"slices"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/explain/clusterstate"
)

// listObjectStates returns the states of a pool, its clusters and its claims, in that order.
func listObjectStates(p *hivev1.ClusterPool, s *base.HubSnapshot, now time.Time) []stateChange {
	out := []stateChange{{Time: now, Kind: "pool", Name: p.Name, State: cmp.Or(p.Status.Plan, "not reconciled yet")}}
	for i := range s.Clusters.Items {
		cd := &s.Clusters.Items[i]
		state := base.ValueOrNone(clusterstate.OfCluster(cd))
		if claim := clusterstate.PoolReference(cd).ClaimName; claim != "" {
			state += ", claimed by " + claim
		}
		out = append(out, stateChange{Time: now, Kind: "cluster", Name: cd.Name, State: state})
	}
	for i := range s.Claims.Items {
		c := &s.Claims.Items[i]
		state := clusterstate.OfClaim(c)
		if c.Spec.Namespace != "" {
			state += " on " + c.Spec.Namespace
		}
		out = append(out, stateChange{Time: now, Kind: "claim", Name: c.Name, State: state})
	}
	return out
}

// diffStates returns new and changed objects, then deleted ones.
func diffStates(before, after []stateChange, now time.Time) []stateChange {
	var out []stateChange
	find := func(list []stateChange, c stateChange) int {
		return slices.IndexFunc(list, func(o stateChange) bool { return o.Kind == c.Kind && o.Name == c.Name })
	}
	for _, c := range after {
		i := find(before, c)
		switch {
		case i < 0:
			out = append(out, c)
		case before[i].State != c.State:
			c.Was = before[i].State
			out = append(out, c)
		}
	}
	for _, c := range before {
		if find(after, c) < 0 {
			out = append(out, stateChange{Time: now, Kind: c.Kind, Name: c.Name, Was: c.State})
		}
	}
	return out
}
