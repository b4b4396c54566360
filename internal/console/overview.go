package console

import (
	"context"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/console/page"
	"hotspare.io/hotspare/internal/standing"
)

// overview is the first page.
func overview(ctx context.Context, l *Look, now time.Time, _ *http.Request) (any, error) {
	s, err := sceneOf(ctx, l)
	if err != nil {
		return nil, err
	}
	var regions v1alpha1.FleetRegionList
	var events corev1.EventList
	if err := l.List(ctx, &regions); err != nil {
		return nil, err
	}
	if err := l.List(ctx, &events); err != nil {
		return nil, err
	}
	return page.NewOverview(s, regions.Items, events.Items, now), nil
}

// sceneOf is what there is of pools in the namespace looked at, with their clusters,
// which live in namespaces of their own.
func sceneOf(ctx context.Context, l *Look) (page.Scene, error) {
	var pools hivev1.ClusterPoolList
	var claims hivev1.ClusterClaimList
	var clusters hivev1.ClusterDeploymentList
	if err := l.List(ctx, &pools); err != nil {
		return page.Scene{}, err
	}
	if err := l.List(ctx, &claims); err != nil {
		return page.Scene{}, err
	}
	missing := len(l.Missing)
	if err := l.ListAll(ctx, &clusters); err != nil {
		return page.Scene{}, err
	}
	s := page.Scene{Pools: pools.Items, Claims: claims.Items, Blind: len(l.Missing) > missing}
	for i := range clusters.Items {
		if cd := &clusters.Items[i]; l.Namespace == "" || standing.Home(cd) == l.Namespace {
			s.Clusters = append(s.Clusters, *cd)
		}
	}
	return s, nil
}
