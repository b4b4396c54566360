package main

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// clusterNews reports changes of clusters to the controllers.
type clusterNews struct {
	ctx    context.Context
	events chan event.GenericEvent
}

// maxNews is the number of changes that wait for the controllers.
const maxNews = 1024

func newClusterNews(ctx context.Context) *clusterNews {
	return &clusterNews{ctx: ctx, events: make(chan event.GenericEvent, maxNews)}
}

// report reports that a cluster has changed. It waits while too many changes wait for the controllers.
func (n *clusterNews) report(cluster types.NamespacedName) {
	changed := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name}}
	select {
	case n.events <- event.GenericEvent{Object: changed}:
	case <-n.ctx.Done():
	}
}
