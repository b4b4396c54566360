package up

import (
	"context"
	"fmt"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/event"
	crmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud/local"
	"hotspare.io/hotspare/internal/controller/clusterpool"
	"hotspare.io/hotspare/internal/controller/dataplane"
	"hotspare.io/hotspare/internal/embedded/hub"
	"hotspare.io/hotspare/internal/install"
	installlocal "hotspare.io/hotspare/internal/install/local"
	"hotspare.io/hotspare/internal/manager"
	"hotspare.io/hotspare/internal/platform"
)

// The keys of the platforms of this computer in spec.platform.
const (
	localPlatform = "local"
	execPlatform  = "exec"
)

// eventBuffer is the maximum number of finished installations that wait for the controllers to
// start.
const eventBuffer = 1024

// runManager runs the controllers, with the local platform and the actuators of clouds, until ctx
// ends. It calls ready when their caches have synced.
func runManager(ctx context.Context, o Options, h *hub.Hub, store *local.Store, ready func()) error {
	cfg := h.ClientConfig(hub.ManagerUser)
	news := make(chan event.GenericEvent, eventBuffer)
	onChange := newClusterNotifier(ctx, news)
	installer := installlocal.New(ctx, store, filepath.Join(o.Dir, "installs"), installlocal.Options{
		OnChange: onChange, ContainersObstacle: o.containersObstacle,
	})
	defer installer.Wait()
	others, err := platform.New(cfg, platform.Options{Jobs: o.installJobOptions(), CertificateAuthorities: o.CertificateAuthorities})
	if err != nil {
		return err
	}
	recipes, err := o.startRecipes(ctx, others.Secrets, onChange)
	if err != nil {
		return err
	}
	defer recipes.stop()
	others.Actuators[localPlatform], others.Actuators[execPlatform] = local.Actuator{Store: store}, recipes.actuator
	others.Executors[localPlatform], others.Executors[execPlatform] = installer, recipes.executor
	bundles, err := o.openBundleStore(ctx)
	if err != nil {
		return err
	}
	mgr, err := manager.New(ctx, cfg, manager.Platforms{
		Executors:   others.Executors,
		Actuators:   others.Actuators,
		Workers:     map[string]install.Workers{localPlatform: installlocal.Workers{Store: store}},
		Room:        map[string]clusterpool.Room{localPlatform: newClusterRoom(store, o.containersObstacle), execPlatform: recipes.executor.CountFits},
		Obstacles:   map[string]clusterpool.Obstacle{localPlatform: newContainersRequirement(o.containersObstacle)},
		Recipes:     recipes.catalog,
		Diagnostics: &manager.Diagnostics{Store: bundles, FindLogs: newLogFinder(o.Dir)},
		News:        news,
		HubIdentity: func(c *rest.Config) (certificate, key []byte, err error) {
			return installlocal.IssueHubIdentity(store, c)
		},

		Namespace:              managerNamespace,
		GlobalPullSecret:       o.GlobalPullSecret,
		CertificateAuthorities: others.CertificateAuthorities,
		Hub:                    dataplane.Hub{Server: h.URL(), CA: h.CACertPEM()},
	}, o.metricsListener)
	if err != nil {
		return err
	}
	if err := mgr.Add(crmanager.RunnableFunc(others.Tend)); err != nil {
		return err
	}
	go func() {
		if mgr.GetCache().WaitForCacheSync(ctx) {
			ready()
		}
	}()
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the controllers: %w", err)
	}
	return nil
}

// newClusterNotifier returns a function that triggers a pass over a cluster by news. It waits for room in news until
// ctx ends.
func newClusterNotifier(ctx context.Context, news chan<- event.GenericEvent) func(types.NamespacedName) {
	return func(cluster types.NamespacedName) {
		select {
		case news <- event.GenericEvent{Object: &hivev1.ClusterDeployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name},
		}}:
		case <-ctx.Done():
		}
	}
}

// newContainersRequirement returns a function that returns why no cluster of a pool that requires
// containers can be created on this computer; "" if one can, or if the pool does not require them.
func newContainersRequirement(containersObstacle func() string) clusterpool.Obstacle {
	return func(p hivev1.Platform) string {
		if p.Local == nil || p.Local.Containers != hivev1.LocalContainersAlways || p.Local.Workers != nil && *p.Local.Workers == 0 {
			return ""
		}
		if obstacle := containersObstacle(); obstacle != "" {
			return "spec.platform.local.containers is Always, but workers cannot run containers on this computer: " + obstacle
		}
		return ""
	}
}

// newClusterRoom returns a function that returns how many more clusters fit on this computer, and what
// prevents more.
func newClusterRoom(store *local.Store, containersObstacle func() string) clusterpool.Room {
	return func(p hivev1.Platform) (*int, string) {
		size := local.ClusterSize{Workers: 1}
		if p.Local != nil && p.Local.Workers != nil {
			size.Workers = int(*p.Local.Workers)
		}
		if size.Workers > 0 && p.Local != nil && p.Local.Containers != hivev1.LocalContainersNever {
			size.Containers = containersObstacle() == ""
		}
		n, why := store.CountClusterFits(size)
		return &n, why
	}
}
