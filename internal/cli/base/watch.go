package base

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// WatchForChanges signals that objects of these kinds may have changed. Several changes in quick
// succession are one signal. It stops with ctx.
func (a *App) WatchForChanges(ctx context.Context, h *Hub, kinds ...client.ObjectList) <-chan struct{} {
	out := make(chan struct{}, 1)
	for _, list := range kinds {
		namespace := h.Namespace
		if _, each := list.(*hivev1.ClusterDeploymentList); each {
			namespace = "" // each cluster has its own namespace
		}
		go a.forwardChanges(ctx, h, list, namespace, out)
	}
	return out
}

// forwardChanges signals changes and reopens the watch when it ends. A missed change is seen with
// the next tick.
func (a *App) forwardChanges(ctx context.Context, h *Hub, list client.ObjectList, namespace string, out chan<- struct{}) {
	for ctx.Err() == nil {
		if w, err := h.Watch(ctx, list, client.InNamespace(namespace)); err == nil {
			for open := true; open; _, open = <-w.ResultChan() { // the first signal covers changes before the watch was open
				select {
				case out <- struct{}{}:
				default: // a signal is pending
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
