package console

import (
	"context"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/console/page"
)

// buildActivityPage builds the page of events. Controllers write events in group events.k8s.io; the
// core group serves the same objects.
func buildActivityPage(ctx context.Context, l *PageReader, now time.Time, r *http.Request) (any, error) {
	events, err := listEvents(ctx, l)
	if err != nil {
		return nil, err
	}
	return page.NewActivity(events, page.ParseFilter(r.URL.Query()), l.Namespace, now), nil
}

// listEvents lists the events of the page's namespace. If the viewer may see them, it includes the
// events of the clusters of the namespace's pools, because each cluster has a namespace of its own.
func listEvents(ctx context.Context, l *PageReader) ([]corev1.Event, error) {
	var events corev1.EventList
	var clusters hivev1.ClusterDeploymentList
	all, err := l.canWatchAll(ctx, &events, &clusters)
	if err != nil {
		return nil, err
	}
	if l.Namespace == "" || !all {
		err := l.List(ctx, &events)
		return events.Items, err
	}
	if err := l.ListAll(ctx, &events); err != nil {
		return nil, err
	}
	if err := l.ListAll(ctx, &clusters); err != nil {
		return nil, err
	}
	return page.SelectNamespaceEvents(events.Items, clusters.Items, l.Namespace), nil
}

// canWatchAll reports whether the viewer may list and watch the kinds in all namespaces.
func (r *PageReader) canWatchAll(ctx context.Context, lists ...client.ObjectList) (bool, error) {
	for _, list := range lists {
		mapping, err := restMapping(list)
		if err != nil {
			return false, err
		}
		if seen, err := r.canWatch(ctx, mapping, ""); err != nil || !seen {
			return false, err
		}
	}
	return true, nil
}
