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

// buildActivityPage is the page of what has happened. Events are written by events.k8s.io, and are
// the same objects in the core group.
func buildActivityPage(ctx context.Context, l *PageReader, now time.Time, r *http.Request) (any, error) {
	events, err := listEvents(ctx, l)
	if err != nil {
		return nil, err
	}
	return page.NewActivity(events, page.ParseFilter(r.URL.Query()), l.Namespace, now), nil
}

// listEvents are those of the namespace looked at, with those of its pools' clusters, which
// live in namespaces of their own, for who may see these.
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

// canWatchAll reports whether the viewer may see these kinds in all namespaces.
func (l *PageReader) canWatchAll(ctx context.Context, lists ...client.ObjectList) (bool, error) {
	for _, list := range lists {
		mapping, err := restMapping(list)
		if err != nil {
			return false, err
		}
		if seen, err := l.canWatch(ctx, mapping, ""); err != nil || !seen {
			return false, err
		}
	}
	return true, nil
}
