package serviceinstance

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// Indexes of the cache. Other controllers that use the same cache have their own.
const (
	// byPlace indexes FleetRegions and ServiceInstances by provider and region.
	byPlace = "serviceinstance.place"
	// byPlane indexes ServiceInstances by their data plane.
	byPlane = "serviceinstance.plane"
	// byUID indexes ServiceInstances by their UID, which agents use.
	byUID = "serviceinstance.uid"
	// byName indexes DataPlanes and their agents by name.
	byName = "serviceinstance.name"
)

// AddIndexes adds the indexes that this controller needs to a cache.
func AddIndexes(ctx context.Context, ix client.FieldIndexer) error {
	for _, x := range []struct {
		kind client.Object
		name string
		key  func(client.Object) string
	}{
		{&v1alpha1.FleetRegion{}, byPlace, placeOf},
		{&v1alpha1.ServiceInstance{}, byPlace, placeOf},
		{&v1alpha1.ServiceInstance{}, byPlane, planeOf},
		{&v1alpha1.ServiceInstance{}, byUID, func(o client.Object) string { return string(o.GetUID()) }},
		{&v1alpha1.DataPlane{}, byName, client.Object.GetName},
		{&v1alpha1.DataPlaneAgent{}, byName, client.Object.GetName},
	} {
		if err := ix.IndexField(ctx, x.kind, x.name, func(o client.Object) []string { return []string{x.key(o)} }); err != nil {
			return fmt.Errorf("adding index %s to %T: %w", x.name, x.kind, err)
		}
	}
	return nil
}

func placeOf(o client.Object) string {
	switch o := o.(type) {
	case *v1alpha1.FleetRegion:
		return o.Spec.Provider + "/" + o.Spec.Region
	case *v1alpha1.DataPlane:
		return o.Spec.Provider + "/" + o.Spec.Region
	case *v1alpha1.ServiceInstance:
		return o.Spec.Provider + "/" + o.Spec.Region
	}
	return ""
}

// planeOf returns a data plane's provider, region and name: that of an instance, or that of the
// object itself.
func planeOf(o client.Object) string {
	if i, ok := o.(*v1alpha1.ServiceInstance); ok {
		return placeOf(o) + "/" + i.Status.DataPlaneName
	}
	return placeOf(o) + "/" + o.GetName()
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// enqueueByIndex adds requests for the instances that an index has for a key.
func (r *Reconciler) enqueueByIndex(ctx context.Context, q queue, index, key string) {
	var list v1alpha1.ServiceInstanceList
	if err := r.Client.List(ctx, &list, client.MatchingFields{index: key}, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing ServiceInstances", "index", index, "key", key)
		return
	}
	for n := range list.Items {
		q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[n])})
	}
}

// onReport enqueues the instances about which an agent reports a change. An agent reports up to a
// thousand instances every 30 seconds.
func (r *Reconciler) onReport() handler.EventHandler {
	wake := func(ctx context.Context, q queue, before, after *v1alpha1.DataPlaneAgent) {
		for _, uid := range changedInstances(before, after) {
			r.enqueueByIndex(ctx, q, byUID, uid)
		}
	}
	none := &v1alpha1.DataPlaneAgent{}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			wake(ctx, q, none, e.Object.(*v1alpha1.DataPlaneAgent))
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			wake(ctx, q, e.ObjectOld.(*v1alpha1.DataPlaneAgent), e.ObjectNew.(*v1alpha1.DataPlaneAgent))
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			wake(ctx, q, e.Object.(*v1alpha1.DataPlaneAgent), none)
		},
	}
}

// changedInstances returns the UIDs of the instances whose report has changed, or that are no
// longer listed.
func changedInstances(before, after *v1alpha1.DataPlaneAgent) []string {
	a, b := reportsByUID(before), reportsByUID(after)
	other := before.Unreadable != after.Unreadable ||
		reportedPlaneUID(before) != reportedPlaneUID(after) ||
		isPlaneAPISilent(before.Status.Report) != isPlaneAPISilent(after.Status.Report)
	found := map[string]bool{}
	for uid, e := range b {
		if old, there := a[uid]; !there || other || !equalReports(old, e) {
			found[uid] = true
		}
	}
	for uid := range a {
		if b[uid] == nil {
			found[uid] = true
		}
	}
	if before.Generation != after.Generation {
		listed := map[string]bool{}
		for _, in := range after.Spec.Instances {
			listed[in.UID] = true
		}
		for _, in := range before.Spec.Instances {
			if !listed[in.UID] && !in.Reserved {
				found[in.UID] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func reportedPlaneUID(a *v1alpha1.DataPlaneAgent) string {
	if a.Status.Report == nil {
		return ""
	}
	return a.Status.Report.DataPlaneUID
}

func reportsByUID(a *v1alpha1.DataPlaneAgent) map[string]*v1alpha1.InstanceReport {
	if a.Status.Report == nil {
		return nil
	}
	out := make(map[string]*v1alpha1.InstanceReport, len(a.Status.Report.Instances))
	for n := range a.Status.Report.Instances {
		if e := &a.Status.Report.Instances[n]; !e.Reserved {
			out[e.UID] = e
		}
	}
	return out
}

func equalReports(a, b *v1alpha1.InstanceReport) bool {
	return a.PlacementID == b.PlacementID && a.Phase == b.Phase && a.Reason == b.Reason && a.Message == b.Message &&
		a.Versions == b.Versions && slices.Equal(a.Routes, b.Routes)
}

// onPlane enqueues the instances of a data plane that was created or deleted, or whose state has
// changed.
func (r *Reconciler) onPlane() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			r.enqueueByIndex(ctx, q, byPlane, planeOf(e.Object))
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if planeStateOf(e.ObjectOld.(*v1alpha1.DataPlane)) != planeStateOf(e.ObjectNew.(*v1alpha1.DataPlane)) {
				r.enqueueByIndex(ctx, q, byPlane, planeOf(e.ObjectNew))
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			r.enqueueByIndex(ctx, q, byPlane, planeOf(e.Object))
		},
	}
}

// onRegion enqueues the instances of a region that was created or deleted.
func (r *Reconciler) onRegion() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			r.enqueueByIndex(ctx, q, byPlace, placeOf(e.Object))
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if deletionChanged(e) {
				r.enqueueByIndex(ctx, q, byPlace, placeOf(e.ObjectNew))
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			r.enqueueByIndex(ctx, q, byPlace, placeOf(e.Object))
		},
	}
}

func deletionChanged(e event.UpdateEvent) bool {
	return (e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
}

// instanceChanged accepts updates of an instance that a pass depends on. Its own writes are not
// among them, except the end of a placement.
func instanceChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		a, b := e.ObjectOld.(*v1alpha1.ServiceInstance), e.ObjectNew.(*v1alpha1.ServiceInstance)
		return deletionChanged(e) || a.Generation != b.Generation || a.Unreadable != b.Unreadable || len(a.Finalizers) != len(b.Finalizers) ||
			a.Status.DataPlaneName != b.Status.DataPlaneName || a.Status.Placements != b.Status.Placements
	}}
}
