// Package manager runs hotspare's controllers on a hub. It knows no platform: its caller passes in
// the implementations that install clusters and start and stop their machines.
package manager

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/event"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/cabundle"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/controller/bootstrapstep"
	"hotspare.io/hotspare/internal/controller/claimpolicy"
	"hotspare.io/hotspare/internal/controller/claimset"
	"hotspare.io/hotspare/internal/controller/clusterclaim"
	"hotspare.io/hotspare/internal/controller/clustergate"
	"hotspare.io/hotspare/internal/controller/clusterinstall"
	"hotspare.io/hotspare/internal/controller/clusterpool"
	"hotspare.io/hotspare/internal/controller/customization"
	"hotspare.io/hotspare/internal/controller/dataplane"
	"hotspare.io/hotspare/internal/controller/fleetregion"
	"hotspare.io/hotspare/internal/controller/machinepool"
	"hotspare.io/hotspare/internal/controller/namespace"
	"hotspare.io/hotspare/internal/controller/pooladmin"
	"hotspare.io/hotspare/internal/controller/poolpolicy"
	"hotspare.io/hotspare/internal/controller/power"
	"hotspare.io/hotspare/internal/controller/powerschedule"
	"hotspare.io/hotspare/internal/controller/provision"
	"hotspare.io/hotspare/internal/controller/serviceinstance"
	"hotspare.io/hotspare/internal/helmchart/renderprocess"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/install/fake"
	"hotspare.io/hotspare/internal/metrics"
	"hotspare.io/hotspare/internal/remote"
)

// Platforms are the dependencies of the controllers on platforms, by the key in spec.platform.
type Platforms struct {
	Executors install.Registry
	Actuators cloud.Registry
	// Workers contains the platforms whose workers are added and removed by hotspare, not by the
	// cluster itself.
	Workers map[string]install.Workers
	// Room contains the platforms that know how many more clusters fit.
	Room map[string]clusterpool.Room
	// Obstacles contains the platforms that may lack something that clusters need.
	Obstacles map[string]clusterpool.Obstacle
	// Recipes are the recipes of platform exec; nil if there are none.
	Recipes clusterpool.Recipes
	// Namespace is that of hotspare on the hub, with the ConfigMap of prices; empty uses the default prices.
	Namespace string
	// GlobalPullSecret names a Secret with registries that all clusters get; an empty name means
	// none.
	GlobalPullSecret types.NamespacedName
	// CertificateAuthorities contains the CA certificates that clients of clusters trust in
	// addition to those of the kubeconfigs; nil means none. Executors and Actuators were created
	// with it.
	CertificateAuthorities *cabundle.Source
	// Hub describes how the agents of data planes connect to the hub, and what they run.
	Hub dataplane.Hub
	// Diagnostics says where bundles about failed clusters are stored; nil collects none.
	Diagnostics *Diagnostics
	// HubIdentity is how the hub authenticates to clusters; nil always uses the administrator's kubeconfig.
	HubIdentity remote.HubIdentity
	// News receives clusters whose executor reports a change; nil if there is no such executor.
	News <-chan event.GenericEvent
}

// Scheme returns a scheme with the kinds that the controllers read and write.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, rbacv1.AddToScheme, hivev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err) // two kinds with one name: a bug in this program
		}
	}
	return s
}

// Rate limits of the client. The API server protects itself (priority and fairness); a lower limit
// here would only delay claims.
const (
	qps   = 2000
	burst = 4000
)

// New returns a manager with all controllers on the hub that cfg reaches. It must be the only
// manager of that hub. The caller starts it with Start. It serves metrics on scrapes, without
// authentication; nil serves none.
func New(ctx context.Context, cfg *rest.Config, p Platforms, scrapes net.Listener) (ctrl.Manager, error) {
	return NewReplica(ctx, cfg, p, Replica{Scrapes: scrapes})
}

// NewReplica returns a manager like New, but allows other replicas on the same hub.
func NewReplica(ctx context.Context, cfg *rest.Config, p Platforms, one Replica) (ctrl.Manager, error) {
	registry := prometheus.NewRegistry()
	counts := metrics.New(registry, clock.RealClock{})
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst = qps, burst
	cfg.Wrap(counts.WrapTransport)
	mgr, err := ctrl.NewManager(cfg, one.withLeaderElection(ctrl.Options{
		Scheme:  Scheme(),
		Metrics: metricsserver.Options{BindAddress: "0"}, // see serveMetrics
		Cache:   cacheOptions(),
		Client: client.Options{Cache: &client.CacheOptions{
			DisableFor: []client.Object{&corev1.Secret{}},
		}},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	}))
	if err != nil {
		return nil, fmt.Errorf("creating the manager: %w", err)
	}
	recorder, err := newEventRecorders(mgr, cfg)
	if err != nil {
		return nil, err
	}
	if err := setUpControllers(ctx, mgr, p, recorder, counts); err != nil {
		return nil, fmt.Errorf("setting up the controllers: %w", err)
	}
	if err := one.serveMetrics(ctx, mgr, registry); err != nil {
		return nil, fmt.Errorf("setting up the metrics: %w", err)
	}
	return mgr, nil
}

// fieldManager is the field manager of the controllers' writes. The policies that preserve fields
// which clients with Hive's types do not know do not apply to a write that names a field manager.
const fieldManager = "hotspare"

// newFieldOwnerClient returns the manager's client, with fieldManager as its field owner.
func newFieldOwnerClient(mgr ctrl.Manager) client.Client {
	return client.WithFieldOwner(mgr.GetClient(), fieldManager)
}

// setUpControllers adds every controller. They communicate only through the API.
func setUpControllers(ctx context.Context, mgr ctrl.Manager, p Platforms, recorder func(controller string) events.EventRecorder, counts *metrics.Metrics) error {
	if err := setUpPoolControllers(ctx, mgr, p, recorder, counts); err != nil {
		return err
	}
	c, live, now := newFieldOwnerClient(mgr), mgr.GetAPIReader(), clock.RealClock{}
	provisions := &provision.Reconciler{
		Client: c, Live: live, Executors: p.Executors, Fake: fake.Executor{}, Clock: now,
		Events: recorder("provision"), Wake: p.News, Metrics: counts, GlobalPullSecret: p.GlobalPullSecret,
		CertificateAuthorities: p.CertificateAuthorities.SecretNames(), StoresBundles: p.Diagnostics != nil,
	}
	if err := provisions.SetupWithManager(mgr); err != nil {
		return err
	}
	installs := &clusterinstall.Reconciler{Client: c, Live: live, Clock: now, Events: recorder("clusterinstall"), Metrics: counts}
	if err := installs.SetupWithManager(mgr); err != nil {
		return err
	}
	spokes := remote.New(live, p.CertificateAuthorities)
	spokes.RenderChart = renderprocess.Render
	spokes.UseHubIdentity(p.HubIdentity)
	powers := &power.Reconciler{
		Client: c, Actuators: p.Actuators, Remote: spokes, Clock: now,
		Events: recorder("power"), Metrics: counts,
	}
	if err := powers.SetupWithManager(ctx, mgr); err != nil {
		return err
	}
	gates := &clustergate.Reconciler{Client: c, Spokes: spokes, Clock: now, Events: recorder("clustergate"), Metrics: counts}
	if err := gates.SetupWithManager(mgr); err != nil {
		return err
	}
	steps := &bootstrapstep.Reconciler{Client: c, Live: live, Spokes: spokes, Clock: now, Events: recorder("bootstrapstep"), Metrics: counts}
	if err := steps.SetupWithManager(mgr); err != nil {
		return err
	}
	groups := &machinepool.Reconciler{
		Client: c, Spokes: spokes, Workers: p.Workers, Clock: now, Events: recorder("machinepool"), Metrics: counts,
	}
	if err := groups.SetupWithManager(mgr); err != nil {
		return err
	}
	schedules := &powerschedule.Reconciler{Client: c, Live: live, Clock: now, Events: recorder("powerschedule"), Metrics: counts}
	if err := schedules.SetupWithManager(mgr); err != nil {
		return err
	}
	if err := (&namespace.Reconciler{Client: c, Live: live, Metrics: counts}).SetupWithManager(mgr); err != nil {
		return err
	}
	if err := setUpDiagnostics(mgr, p.Diagnostics, spokes, recorder("diagnostics"), counts); err != nil {
		return err
	}
	return setUpFleetControllers(ctx, mgr, p, spokes, recorder, counts)
}

// setUpPoolControllers adds the controllers of pools and claims.
func setUpPoolControllers(ctx context.Context, mgr ctrl.Manager, p Platforms, recorder func(controller string) events.EventRecorder, counts *metrics.Metrics) error {
	c, live, now := newFieldOwnerClient(mgr), mgr.GetAPIReader(), clock.RealClock{}
	pools := &clusterpool.Reconciler{
		Client: c, Live: live, Clock: now, Room: p.Room, Obstacles: p.Obstacles, Recipes: p.Recipes, Metrics: counts,
		Installers: slices.Sorted(maps.Keys(p.Executors)),
		Events:     recorder("clusterpool"),
		Suffix:     func() string { return utilrand.String(5) },
		Policies:   claimpolicy.NewLister(c),
		Sets:       claimset.NewLister(c),
	}
	if err := pools.SetupWithManager(ctx, mgr); err != nil {
		return err
	}
	claims := &clusterclaim.Reconciler{
		Client: c, Live: live, Clock: now, Events: recorder("clusterclaim"), Metrics: counts,
		Policies: claimpolicy.NewLister(c), Sets: claimset.NewLister(c),
	}
	if err := claims.SetupWithManager(ctx, mgr); err != nil {
		return err
	}
	admissions := &claimpolicy.Reconciler{Client: c, Live: live, Clock: now, Events: recorder("claimpolicy"), Metrics: counts}
	if err := admissions.SetupWithManager(mgr); err != nil {
		return err
	}
	sets := &claimset.Reconciler{Client: c, Live: live, Clock: now, Events: recorder("claimset"), Metrics: counts}
	if err := sets.SetupWithManager(mgr); err != nil {
		return err
	}
	leases := &customization.Reconciler{Client: c, Live: live, Clock: now, Events: recorder("customization"), Metrics: counts}
	if err := leases.SetupWithManager(ctx, mgr); err != nil {
		return err
	}
	policies := &poolpolicy.Reconciler{Client: c, Live: live, Clock: now, Events: recorder("poolpolicy"), Namespace: p.Namespace, Metrics: counts}
	if err := policies.SetupWithManager(mgr); err != nil {
		return err
	}
	return (&pooladmin.Reconciler{Client: c, Metrics: counts}).SetupWithManager(ctx, mgr)
}

// setUpFleetControllers adds the controllers of data planes.
func setUpFleetControllers(
	ctx context.Context, mgr ctrl.Manager, p Platforms, spokes *remote.Connector, recorder func(controller string) events.EventRecorder, counts *metrics.Metrics,
) error {
	c, live, now := newFieldOwnerClient(mgr), mgr.GetAPIReader(), clock.RealClock{}
	started := now.Now()
	regions := &fleetregion.Reconciler{
		Client: c, Live: live, Clock: now, Started: started, Events: recorder("fleetregion"), Metrics: counts,
		Suffix: func() string { return utilrand.String(5) },
	}
	if err := regions.SetupWithManager(ctx, mgr); err != nil {
		return err
	}
	if err := (&fleetregion.TypeReconciler{Client: c, Clock: now, Metrics: counts}).SetupWithManager(mgr); err != nil {
		return err
	}
	planes := &dataplane.Reconciler{
		Client: c, Live: live, Spokes: spokes, Hub: p.Hub, Clock: now, Started: started, Events: recorder("dataplane"), Metrics: counts,
	}
	if err := planes.SetupWithManager(ctx, mgr); err != nil {
		return err
	}
	instances := &serviceinstance.Reconciler{Client: c, Live: live, Clock: now, Events: recorder("serviceinstance"), Metrics: counts}
	return instances.SetupWithManager(ctx, mgr)
}
