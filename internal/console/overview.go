package console

import (
	"context"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/console/page"
	"hotspare.io/hotspare/internal/explain/clusterstate"
)

// buildOverviewPage builds the first page.
func buildOverviewPage(ctx context.Context, l *PageReader, now time.Time, _ *http.Request) (any, error) {
	s, err := readPoolSnapshot(ctx, l)
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
	policies, err := readPolicies(ctx, l)
	if err != nil {
		return nil, err
	}
	o := page.NewOverview(s, regions.Items, events.Items, now)
	o.Month = page.NewMonthOverview(policies, now)
	return o, nil
}

// readPoolSnapshot reads the pools and claims of the page's namespace, and the clusters of these
// pools, which have namespaces of their own.
func readPoolSnapshot(ctx context.Context, l *PageReader) (page.Snapshot, error) {
	var pools hivev1.ClusterPoolList
	var claims hivev1.ClusterClaimList
	var clusters hivev1.ClusterDeploymentList
	if err := l.List(ctx, &pools); err != nil {
		return page.Snapshot{}, err
	}
	if err := l.List(ctx, &claims); err != nil {
		return page.Snapshot{}, err
	}
	missing := len(l.Missing)
	if err := l.ListAll(ctx, &clusters); err != nil {
		return page.Snapshot{}, err
	}
	s := page.Snapshot{Pools: pools.Items, Claims: claims.Items, ClustersHidden: len(l.Missing) > missing}
	for i := range clusters.Items {
		if cd := &clusters.Items[i]; l.Namespace == "" || clusterstate.HomeNamespace(cd) == l.Namespace {
			s.Clusters = append(s.Clusters, *cd)
		}
	}
	return s, nil
}
