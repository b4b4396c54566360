package console

import (
	"context"
	"net/http"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/console/page"
	"hotspare.io/hotspare/internal/explain/inventoryview"
)

// buildInventoryPage builds the page of pools' inventories.
func buildInventoryPage(ctx context.Context, l *PageReader, now time.Time, _ *http.Request) (any, error) {
	var pools hivev1.ClusterPoolList
	var customizations hivev1.ClusterDeploymentCustomizationList
	var clusters hivev1.ClusterDeploymentList
	if err := l.List(ctx, &pools); err != nil {
		return nil, err
	}
	if err := l.List(ctx, &customizations); err != nil {
		return nil, err
	}
	seen, err := l.listVisible(ctx, &clusters, l.ListAll) // each cluster has a namespace of its own
	if err != nil {
		return nil, err
	}
	s := &inventoryview.Objects{Pools: pools.Items, Customizations: customizations.Items, Clusters: clusters.Items}
	return page.NewInventory(s, !seen, now), nil
}
