package console

import (
	"context"
	"net/http"
	"slices"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/console/page"
	"hotspare.io/hotspare/internal/explain/poolplan"
)

// poolsPage is the content of the page of all pools.
type poolsPage struct {
	Pools []page.Pool
}

func buildPoolsPage(ctx context.Context, l *PageReader, now time.Time, _ *http.Request) (any, error) {
	s, err := readPoolSnapshot(ctx, l)
	if err != nil {
		return nil, err
	}
	return poolsPage{page.NewPools(s, now)}, nil
}

// poolPage is the content of the page of one pool.
type poolPage struct {
	page.Pool
	Permissions poolPermissions
	History     page.History
	// Phase is the only phase shown, or empty. ShowAll is set if no tile is left out.
	Phase   string
	ShowAll bool
}

// maxTiles is how many clusters a page shows unless the viewer requests all.
const maxTiles = 200

// poolPermissions has the actions on a pool and its claims that the viewer may perform.
type poolPermissions struct {
	Claim, Release, Resize bool
	// Power has the clusters that the viewer may hibernate and resume.
	Power map[string]bool
}

func buildPoolPage(ctx context.Context, l *PageReader, now time.Time, r *http.Request) (any, error) {
	s, err := readPoolSnapshot(ctx, l)
	if err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	i := slices.IndexFunc(s.Pools, func(p hivev1.ClusterPool) bool { return p.Namespace == l.Namespace && p.Name == name })
	if i < 0 {
		return nil, poolNotFound(l, name)
	}
	p := page.NewSinglePool(&s.Pools[i], s, now)
	policy, err := readPolicy(ctx, l, name)
	if err != nil {
		return nil, err
	}
	p.Policy = poolplan.DescribePoolPolicy(policy)
	history, err := readHistory(ctx, l, name, policy, r.URL.Query().Get("span"), now)
	if err != nil {
		return nil, err
	}
	permissions, err := readPermissions(ctx, l, &p)
	if err != nil {
		return nil, err
	}
	out := poolPage{Pool: p, Permissions: permissions, History: history, ShowAll: r.URL.Query().Get("all") != ""}
	if phase := r.URL.Query().Get("phase"); page.IsPhaseSlug(phase) {
		out.Phase = phase
	}
	limit := maxTiles
	if out.ShowAll {
		limit = len(p.Tiles)
	}
	out.TrimTiles(out.Phase, limit)
	return out, nil
}

// readPolicy returns the PoolPolicy of a pool in the page's namespace; nil if it has none, or if the viewer may
// not see it.
func readPolicy(ctx context.Context, l *PageReader, pool string) (*v1alpha1.PoolPolicy, error) {
	list, err := readPolicies(ctx, l)
	if err != nil {
		return nil, err
	}
	for i := range list {
		if list[i].Name == pool && list[i].Namespace == l.Namespace {
			return &list[i], nil
		}
	}
	return nil, nil
}

// readPolicies returns the PoolPolicies in the page's namespace that the viewer may see.
func readPolicies(ctx context.Context, l *PageReader) ([]v1alpha1.PoolPolicy, error) {
	for _, verb := range []string{"list", "watch"} {
		if yes, err := l.IsAllowedIn(ctx, verb, v1alpha1.GroupVersion.Group, "poolpolicies", l.Namespace); err != nil || !yes {
			return nil, err
		}
	}
	var list v1alpha1.PoolPolicyList
	if err := l.List(ctx, &list); err != nil {
		return nil, err
	}
	return list.Items, nil
}

func poolNotFound(l *PageReader, name string) error {
	p := &errorPage{
		Status: http.StatusNotFound, Title: "Pool not found",
		Message: "Namespace " + l.Namespace + " has no pool " + name + ".", Remedy: "It may have been deleted. Continue with the list of pools.",
	}
	if len(l.Missing) > 0 {
		p.Status, p.Title = http.StatusForbidden, "You do not have access to this pool"
		p.Message, p.Remedy = l.Missing[0], "Ask an administrator of the hub for permission to list and watch them there."
	}
	return p
}

// readPermissions asks the hub which actions on a pool the viewer may perform.
func readPermissions(ctx context.Context, l *PageReader, p *page.Pool) (poolPermissions, error) {
	out := poolPermissions{Power: map[string]bool{}}
	group := hivev1.GroupVersion.Group
	for _, ask := range []struct {
		verb, resource string
		into           *bool
	}{
		{"create", "clusterclaims", &out.Claim},
		{"delete", "clusterclaims", &out.Release},
		{"patch", "clusterpools", &out.Resize},
	} {
		var err error
		if *ask.into, err = l.IsAllowedIn(ctx, ask.verb, group, ask.resource, p.Namespace); err != nil {
			return out, err
		}
	}
	everywhere, err := l.IsAllowedIn(ctx, "patch", group, "clusterdeployments", "")
	if err != nil {
		return out, err
	}
	for _, c := range p.Claims {
		if c.Cluster == "" {
			continue
		}
		yes := everywhere
		if !yes {
			if yes, err = l.IsAllowedIn(ctx, "patch", group, "clusterdeployments", c.Cluster); err != nil {
				return out, err
			}
		}
		out.Power[c.Cluster] = yes
	}
	return out, nil
}
