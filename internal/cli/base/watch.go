package base

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// WatchForChanges tells that something of these kinds may have changed. Changes in quick succession
// are told once. It ends with ctx.
func (a *App) WatchForChanges(ctx context.Context, h *Hub, kinds ...client.ObjectList) <-chan struct{} {
	out := make(chan struct{}, 1)
	for _, list := range kinds {
		namespace := h.Namespace
		if _, each := list.(*hivev1.ClusterDeploymentList); each {
			namespace = "" // each is in its own
		}
		go a.forwardChanges(ctx, h, list, namespace, out)
	}
	return out
}

// forwardChanges passes on that something changed, and opens the watch again when it ends: to
// miss one only means to hear of it with the next tick.
func (a *App) forwardChanges(ctx context.Context, h *Hub, list client.ObjectList, namespace string, out chan<- struct{}) {
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
