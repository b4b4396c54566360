package fleetregion

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/facts"
)

// byPlace indexes FleetRegions, DataPlanes and ServiceInstances by provider and region.
const byPlace = "place"

func placeKey(provider, region string) string { return provider + "/" + region }

// AddIndexes adds the indexes that this controller needs to a cache.
func AddIndexes(ctx context.Context, ix client.FieldIndexer) error {
	for _, kind := range []client.Object{&v1alpha1.FleetRegion{}, &v1alpha1.DataPlane{}, &v1alpha1.ServiceInstance{}} {
		if err := ix.IndexField(ctx, kind, byPlace, func(o client.Object) []string { return []string{placeOf(o)} }); err != nil {
			return fmt.Errorf("indexing %T by provider and region: %w", kind, err)
		}
	}
	return nil
}

func placeOf(o client.Object) string {
	switch o := o.(type) {
	case *v1alpha1.FleetRegion:
		return placeKey(o.Spec.Provider, o.Spec.Region)
	case *v1alpha1.DataPlane:
		return placeKey(o.Spec.Provider, o.Spec.Region)
	case *v1alpha1.ServiceInstance:
		return placeKey(o.Spec.Provider, o.Spec.Region)
	}
	return ""
}

// requestsForRegions returns the requests for the regions that mine accepts; nil accepts all.
func (r *Reconciler) requestsForRegions(ctx context.Context, mine func(*v1alpha1.FleetRegion) bool, opts ...client.ListOption) []reconcile.Request {
	var list v1alpha1.FleetRegionList
	if err := r.Client.List(ctx, &list, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing FleetRegions")
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if mine == nil || mine(&list.Items[i]) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}

// requestsForPlane returns the requests for the regions of a data plane: same provider and region,
// in its namespace.
func (r *Reconciler) requestsForPlane(ctx context.Context, o client.Object) []reconcile.Request {
	return r.requestsForRegions(ctx, nil, client.InNamespace(o.GetNamespace()), client.MatchingFields{byPlace: placeOf(o)})
}

// requestsForInstance returns the requests for the regions of an instance, in any namespace.
func (r *Reconciler) requestsForInstance(ctx context.Context, o client.Object) []reconcile.Request {
	return r.requestsForRegions(ctx, nil, client.MatchingFields{byPlace: placeOf(o)})
}

func (r *Reconciler) requestsForType(ctx context.Context, o client.Object) []reconcile.Request {
	return r.requestsForRegions(ctx, func(region *v1alpha1.FleetRegion) bool {
		return slices.ContainsFunc(region.Spec.InstanceTypes, func(t v1alpha1.RegionType) bool { return t.Name == o.GetName() })
	})
}

func (r *Reconciler) requestsForPool(ctx context.Context, o client.Object) []reconcile.Request {
	return r.requestsForRegions(ctx, func(region *v1alpha1.FleetRegion) bool {
		source := region.Spec.ClusterSource.Claim
		return source != nil && slices.ContainsFunc(source.Pools, func(p v1alpha1.PoolSource) bool { return p.PoolRef.Name == o.GetName() })
	}, client.InNamespace(o.GetNamespace()))
}

// deletedPredicate accepts the deletion of an object, and the update that sets its deletion
// timestamp.
func deletedPredicate() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: deletionChanged,
	}
}

func deletionChanged(e event.UpdateEvent) bool {
	return (e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
}

// planeChanged accepts updates of a data plane that a plan depends on. A heartbeat is not one of
// them.
func planeChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		a, b := e.ObjectOld.(*v1alpha1.DataPlane), e.ObjectNew.(*v1alpha1.DataPlane)
		return deletionChanged(e) || a.Generation != b.Generation || a.Unreadable != b.Unreadable || !reflect.DeepEqual(planInputsOf(a), planInputsOf(b))
	}}
}

// planInputs are the fields of a data plane's status that a plan depends on.
type planInputs struct {
	v1alpha1.DataPlaneStatus
	silent, unknown, gone bool
	answered              string
}

// planInputsOf leaves out fields that are only informative: heartbeats, conditions, and when units
// were reported.
func planInputsOf(dp *v1alpha1.DataPlane) planInputs {
	b := planInputs{DataPlaneStatus: dp.Status, silent: meta.IsStatusConditionFalse(dp.Status.Conditions, v1alpha1.DataPlaneAgentLive)}
	listed := meta.FindStatusCondition(dp.Status.Conditions, v1alpha1.DataPlaneInstancesListed)
	b.gone = facts.IsClusterGone(dp)
	b.unknown = listed != nil && listed.Status == metav1.ConditionUnknown
	if a := dp.Status.Agent; a != nil && a.AnsweredAt != nil {
		b.answered = a.AnsweredAt.String()
	}
	b.Agent, b.Conditions, b.ObservedGeneration = nil, nil, 0
	b.Capacity = make(map[string]v1alpha1.TypeCapacity, len(dp.Status.Capacity))
	for name, c := range dp.Status.Capacity {
		b.Capacity[name] = v1alpha1.TypeCapacity{MaxNodes: c.MaxNodes, MaxUnits: c.MaxUnits, UsedUnits: c.UsedUnits, RemainingUnits: c.RemainingUnits, KnownUnits: c.KnownUnits}
	}
	return b
}

// instanceChanged accepts updates of an instance that a plan depends on.
func instanceChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		a, b := e.ObjectOld.(*v1alpha1.ServiceInstance), e.ObjectNew.(*v1alpha1.ServiceInstance)
		return deletionChanged(e) || a.Generation != b.Generation || len(a.Finalizers) != len(b.Finalizers) ||
			a.Status.DataPlaneName != b.Status.DataPlaneName || a.Status.Units != b.Status.Units || !equality.Semantic.DeepEqual(a.Status.Refusals, b.Status.Refusals)
	}}
}
