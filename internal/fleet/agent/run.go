package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/agent/plan"
)

// PauseImage is the default image of placeholders.
const PauseImage = "registry.k8s.io/pause:3.10"

// Values of Options.Operator.
const (
	// Fleetshard means that operators on the data plane act on ManagedKafkas.
	Fleetshard = "fleetshard"
	// StandIn means that the agent creates pods that do nothing for each ManagedKafka, and reports
	// it as ready.
	StandIn = "stand-in"
)

// Options configure an agent.
type Options struct {
	// Hub and Plane are the configurations of the connections to the two sides.
	Hub, Plane *rest.Config
	// Namespace and Name are those of the DataPlaneAgent.
	Namespace, Name string
	// UID is the UID of the DataPlane; empty if it is not known.
	UID string
	// Operator is Fleetshard or StandIn.
	Operator string
	// Pause is the image of placeholders.
	Pause string
	// Version is the version of the agent.
	Version string
}

// isStandIn reports whether the agent itself acts as the operator.
func (o Options) isStandIn() bool { return o.Operator == StandIn }

// cacheSyncTimeout is the time that the caches have to sync. After that, the process exits, and its
// supervisor restarts it with increasing delays.
const cacheSyncTimeout = time.Minute

// Run runs the agent until ctx ends. It waits for a hub or a data plane that stops answering; at
// the start, the wait is bounded, and Run returns an error when it is exceeded.
func Run(ctx context.Context, o Options) error {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(o.Plane, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:   planeCacheOptions(),
		Client:  client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	})
	if err != nil {
		return fmt.Errorf("connecting to the data plane: %w", err)
	}
	hub, err := cluster.New(o.Hub, func(c *cluster.Options) {
		c.Scheme = scheme
		c.Cache = hubCacheOptions(o.Namespace, o.Name)
	})
	if err != nil {
		return fmt.Errorf("connecting to the hub: %w", err)
	}
	if err := mgr.Add(hub); err != nil {
		return fmt.Errorf("adding the hub: %w", err)
	}
	a := &Agent{
		Hub: hub.GetClient(), Plane: mgr.GetClient(), Live: mgr.GetAPIReader(),
		Key: types.NamespacedName{Namespace: o.Namespace, Name: o.Name}, UID: o.UID,
		StandIn: o.isStandIn(), Pause: o.Pause, Version: o.Version, Clock: clock.RealClock{},
	}
	if err := a.setUpWatches(mgr, hub); err != nil {
		return fmt.Errorf("setting up the watches: %w", err)
	}
	return mgr.Start(ctx)
}

// planeCacheOptions limits the cache to the objects that the agent has created, and the operators'
// ManagedKafkaAgents.
func planeCacheOptions() cache.Options {
	return cache.Options{
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{plan.LabelManagedBy: plan.ManagedBy}),
		DefaultTransform:     cache.TransformStripManagedFields(),
		ByObject:             map[client.Object]cache.ByObject{newObject(plan.ManagedKafkaAgent): {Label: labels.Everything()}},
	}
}

// hubCacheOptions limits the cache to the one object that the agent may read on the hub.
func hubCacheOptions(namespace, name string) cache.Options {
	return cache.Options{
		DefaultNamespaces:    map[string]cache.Config{namespace: {}},
		DefaultFieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name),
		DefaultTransform:     cache.TransformStripManagedFields(),
	}
}

// setUpWatches starts a pass of the agent for every change on either side.
func (a *Agent) setUpWatches(mgr manager.Manager, hub cluster.Cluster) error {
	c, err := controller.New("agent", mgr, controller.Options{
		Reconciler:         a,
		RateLimiter:        workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		CacheSyncTimeout:   cacheSyncTimeout,
		SkipNameValidation: ptr.To(true),
	})
	if err != nil {
		return err
	}
	pass := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: a.Key}}
	})
	var all []error
	for _, kind := range watchedKinds {
		all = append(all, c.Watch(source.Kind[client.Object](mgr.GetCache(), newObject(kind), pass)))
	}
	all = append(all, c.Watch(source.Kind[client.Object](hub.GetCache(), &v1alpha1.DataPlaneAgent{}, pass, predicate.GenerationChangedPredicate{})))
	return errors.Join(all...)
}
