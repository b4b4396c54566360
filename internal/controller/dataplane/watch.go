package dataplane

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// Indexes of the cache.
const (
	byPlace   = "dataplane.place"   // FleetRegions and DataPlanes by provider and region
	byPlane   = "dataplane.plane"   // ServiceInstances by the data plane that they name, and DataPlanes by their own name
	byCluster = "dataplane.cluster" // DataPlanes by the claim or ClusterDeployment that they reference
)

func placeKey(provider, region string) string { return provider + "/" + region }

// planeName identifies a data plane for instances.
func planeName(provider, region, name string) string { return provider + "/" + region + "/" + name }

// claimKey and deploymentKey are the keys of a claim and of a ClusterDeployment in byCluster.
func claimKey(name string) string      { return "claim/" + name }
func deploymentKey(name string) string { return "deployment/" + name }

// AddIndexes adds the indexes that the controller uses.
func AddIndexes(ctx context.Context, ix client.FieldIndexer) error {
	for _, i := range []struct {
		of   client.Object
		name string
		keys client.IndexerFunc
	}{
		{&v1alpha1.FleetRegion{}, byPlace, func(o client.Object) []string {
			r := o.(*v1alpha1.FleetRegion) //nolint:forcetypeassert // indexes are of one kind
			return []string{placeKey(r.Spec.Provider, r.Spec.Region)}
		}},
		{&v1alpha1.DataPlane{}, byPlace, func(o client.Object) []string {
			dp := o.(*v1alpha1.DataPlane) //nolint:forcetypeassert // indexes are of one kind
			return []string{placeKey(dp.Spec.Provider, dp.Spec.Region)}
		}},
		{&v1alpha1.DataPlane{}, byPlane, func(o client.Object) []string {
			dp := o.(*v1alpha1.DataPlane) //nolint:forcetypeassert // indexes are of one kind
			return []string{planeName(dp.Spec.Provider, dp.Spec.Region, dp.Name)}
		}},
		{&v1alpha1.DataPlane{}, byCluster, func(o client.Object) []string {
			return clusterKeys(o.(*v1alpha1.DataPlane)) //nolint:forcetypeassert // indexes are of one kind
		}},
		{&v1alpha1.ServiceInstance{}, byPlane, func(o client.Object) []string {
			return planeKeys(o.(*v1alpha1.ServiceInstance)) //nolint:forcetypeassert // indexes are of one kind
		}},
	} {
		if err := ix.IndexField(ctx, i.of, i.name, i.keys); err != nil {
			return err
		}
	}
	return nil
}

func clusterKeys(dp *v1alpha1.DataPlane) []string {
	switch ref := dp.Spec.ClusterRef; {
	case ref == nil:
		return nil
	case ref.Claim != nil:
		return []string{claimKey(ref.Claim.Name)}
	case ref.Deployment != nil:
		return []string{deploymentKey(ref.Deployment.Name)}
	}
	return nil
}

func planeKeys(i *v1alpha1.ServiceInstance) []string {
	if i.Status.DataPlaneName == "" {
		return nil
	}
	return []string{planeName(i.Spec.Provider, i.Spec.Region, i.Status.DataPlaneName)}
}

// Errors are those of the hub; errors of a cluster are reported in the status and retried.
const (
	firstBackoff   = 50 * time.Millisecond
	longestBackoff = time.Minute
	// concurrency is the number of data planes that are reconciled at the same time: each may wait
	// for a cluster.
	concurrency = 10
)

// SetupWithManager adds the controller to mgr.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := AddIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	mapped := handler.EnqueueRequestsFromMapFunc
	return ctrl.NewControllerManagedBy(mgr).
		Named("dataplane").
		For(&v1alpha1.DataPlane{}).
		Watches(&v1alpha1.DataPlaneAgent{}, &handler.EnqueueRequestForObject{}). // it has the same name
		Watches(&hivev1.ClusterClaim{}, mapped(func(ctx context.Context, o client.Object) []reconcile.Request {
			return r.requestsByIndex(ctx, byCluster, claimKey(o.GetName()), o.GetNamespace())
		})).
		Watches(&hivev1.ClusterDeployment{}, mapped(r.requestsForCluster)).
		Watches(&hivev1.MachinePool{}, mapped(r.requestsForMachinePool), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.ServiceInstance{}, mapped(func(ctx context.Context, o client.Object) []reconcile.Request {
			return r.requestsByIndex(ctx, byPlane, strings.Join(planeKeys(o.(*v1alpha1.ServiceInstance)), ""), "") //nolint:forcetypeassert // the watch is of one kind
		})).
		Watches(&v1alpha1.FleetRegion{}, mapped(func(ctx context.Context, o client.Object) []reconcile.Request {
			fr := o.(*v1alpha1.FleetRegion) //nolint:forcetypeassert // the watch is of one kind
			return r.requestsByIndex(ctx, byPlace, placeKey(fr.Spec.Provider, fr.Spec.Region), "")
		}), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.InstanceType{}, mapped(r.requestsForType), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: concurrency,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstBackoff, longestBackoff),
		}).
		Complete(r.Metrics.WrapReconciler("dataplane", r))
}

// requestsByIndex returns the requests for the data planes with that value in an index, in one
// namespace or, if namespace is empty, in all.
func (r *Reconciler) requestsByIndex(ctx context.Context, index, value, namespace string) []reconcile.Request {
	if value == "" {
		return nil
	}
	var list v1alpha1.DataPlaneList
	if err := r.Client.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{index: value}, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing data planes")
		return nil
	}
	return requestsForPlanes(list.Items)
}

func requestsForPlanes(planes []v1alpha1.DataPlane) []reconcile.Request {
	var out []reconcile.Request
	for i := range planes {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&planes[i])})
	}
	return out
}

// requestsForCluster returns the requests for the data planes on a cluster.
func (r *Reconciler) requestsForCluster(ctx context.Context, o client.Object) []reconcile.Request {
	cd := o.(*hivev1.ClusterDeployment) //nolint:forcetypeassert // the watch is of one kind
	switch of := cd.Spec.ClusterPoolRef; {
	case of == nil:
		return r.requestsByIndex(ctx, byCluster, deploymentKey(cd.Name), cd.Namespace)
	case of.ClaimName == "":
		return nil // an unclaimed cluster
	default:
		return r.requestsByIndex(ctx, byCluster, claimKey(of.ClaimName), of.Namespace)
	}
}

// requestsForMachinePool returns the requests for the data planes on the cluster of a MachinePool.
func (r *Reconciler) requestsForMachinePool(ctx context.Context, o client.Object) []reconcile.Request {
	mp := o.(*hivev1.MachinePool) //nolint:forcetypeassert // the watch is of one kind
	var cd hivev1.ClusterDeployment
	key := types.NamespacedName{Namespace: mp.Namespace, Name: mp.Spec.ClusterDeploymentRef.Name}
	if found, err := getObject(ctx, r.Client, key, &cd); err != nil || !found {
		return nil // without its cluster, there is nothing to do
	}
	return r.requestsForCluster(ctx, &cd)
}

// requestsForType returns the requests for the data planes that take instances of a type.
func (r *Reconciler) requestsForType(ctx context.Context, o client.Object) []reconcile.Request {
	var list v1alpha1.DataPlaneList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing data planes")
		return nil
	}
	return requestsForPlanes(slices.DeleteFunc(slices.Clone(list.Items), func(dp v1alpha1.DataPlane) bool {
		return !slices.Contains(dp.Spec.InstanceTypes, o.GetName())
	}))
}
