package cli

import (
	"cmp"
	"context"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/explain/clusterstate"
)

// listObjectStates are the states of a pool, its clusters and its claims, in that order.
func listObjectStates(p *hivev1.ClusterPool, s *hubSnapshot, now time.Time) []stateChange {
	out := []stateChange{{Time: now, Kind: "pool", Name: p.Name, State: cmp.Or(p.Status.Plan, "not looked at yet")}}
	for i := range s.clusters.Items {
		cd := &s.clusters.Items[i]
		state := valueOrNone(clusterstate.OfCluster(cd))
		if claim := clusterstate.PoolReference(cd).ClaimName; claim != "" {
			state += ", claimed by " + claim
		}
		out = append(out, stateChange{Time: now, Kind: "cluster", Name: cd.Name, State: state})
	}
	for i := range s.claims.Items {
		c := &s.claims.Items[i]
		state := clusterstate.OfClaim(c)
		if c.Spec.Namespace != "" {
			state += " on " + c.Spec.Namespace
		}
		out = append(out, stateChange{Time: now, Kind: "claim", Name: c.Name, State: state})
	}
	return out
}

// diffStates are what is new, what has changed, and then what is gone.
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

// watchForChanges tells that something of these kinds may have changed. Changes in quick succession
// are told once. It ends with ctx.
func (a *app) watchForChanges(ctx context.Context, h *hub, kinds ...client.ObjectList) <-chan struct{} {
	out := make(chan struct{}, 1)
	for _, list := range kinds {
		namespace := h.namespace
		if _, each := list.(*hivev1.ClusterDeploymentList); each {
			namespace = "" // each is in its own
		}
		go a.forwardChanges(ctx, h, list, namespace, out)
	}
	return out
}

// forwardChanges passes on that something changed, and opens the watch again when it ends: to
// miss one only means to hear of it with the next tick.
func (a *app) forwardChanges(ctx context.Context, h *hub, list client.ObjectList, namespace string, out chan<- struct{}) {
	for ctx.Err() == nil {
		if w, err := h.Watch(ctx, list, client.InNamespace(namespace)); err == nil {
			for open := true; open; _, open = <-w.ResultChan() { // once at first: for what changed before it was open
				select {
				case out <- struct{}{}:
				default: // told already
				}
			}
			w.Stop()
		}
		timer := a.Clock.NewTimer(watchRetryDelay)
		select {
		case <-timer.C():
		case <-ctx.Done():
		}
		timer.Stop()
	}
}
