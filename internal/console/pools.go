package console

import (
	"context"
	"net/http"
	"slices"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/console/page"
)

// poolsPage is what the page of all pools shows.
type poolsPage struct {
	Pools []page.Pool
}

func pools(ctx context.Context, l *Look, now time.Time, _ *http.Request) (any, error) {
	s, err := sceneOf(ctx, l)
	if err != nil {
		return nil, err
	}
	return poolsPage{page.Pools(s, now)}, nil
}

// poolPage is what the page of one pool shows.
type poolPage struct {
	page.Pool
	May rights
	// Part is the one part shown, All whether all tiles are.
	Part string
	All  bool
}

// mostTiles is how many clusters a page shows unless it is asked for all.
const mostTiles = 200

// rights are what the viewer may do to a pool and its claims.
type rights struct {
	Claim, Release, Resize bool
	// Power has the clusters that they may hibernate and resume.
	Power map[string]bool
}

func onePool(ctx context.Context, l *Look, now time.Time, r *http.Request) (any, error) {
	s, err := sceneOf(ctx, l)
	if err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	i := slices.IndexFunc(s.Pools, func(p hivev1.ClusterPool) bool { return p.Namespace == l.Namespace && p.Name == name })
	if i < 0 {
		return nil, noPool(l, name)
	}
	p := page.OnePool(&s.Pools[i], s, now)
	may, err := rightsOn(ctx, l, &p)
	if err != nil {
		return nil, err
	}
	out := poolPage{Pool: p, May: may, All: r.URL.Query().Get("all") != ""}
	if part := r.URL.Query().Get("part"); page.IsPart(part) {
		out.Part = part
	}
	most := mostTiles
	if out.All {
		most = len(p.Tiles)
	}
	out.Trim(out.Part, most)
	return out, nil
}

func noPool(l *Look, name string) error {
	p := &problem{
		Status: http.StatusNotFound, Title: "There is no such pool",
		Why: "Namespace " + l.Namespace + " has no pool " + name + ".", Remedy: "It may have been deleted. Go on from all pools.",
	}
	if len(l.Missing) > 0 {
		p.Status, p.Title = http.StatusForbidden, "You may not see this pool"
		p.Why, p.Remedy = l.Missing[0], "Whoever runs the hub can let you list and watch them there."
	}
	return p
}

// rightsOn asks what the viewer may do to a pool.
func rightsOn(ctx context.Context, l *Look, p *page.Pool) (rights, error) {
	out := rights{Power: map[string]bool{}}
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
		if *ask.into, err = l.MayOn(ctx, ask.verb, group, ask.resource, p.Namespace); err != nil {
			return out, err
		}
	}
	everywhere, err := l.MayOn(ctx, "patch", group, "clusterdeployments", "")
	if err != nil {
		return out, err
	}
	for _, c := range p.Claims {
		if c.Cluster == "" {
			continue
		}
		yes := everywhere
		if !yes {
			if yes, err = l.MayOn(ctx, "patch", group, "clusterdeployments", c.Cluster); err != nil {
				return out, err
			}
		}
		out.Power[c.Cluster] = yes
	}
	return out, nil
}
