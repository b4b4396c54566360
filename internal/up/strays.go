package up

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/internal/cloud/local"
	"hotspare.io/hotspare/internal/infraid"
)

// strayInterval is how often hotspare looks for machines without a cluster: no event reports them.
const strayInterval = 30 * time.Second

// stopStrayMachines stops the machines of clusters that the hub does not know, until ctx ends. Such
// machines exist after a hub was restored without its machines, or machines without their hub. They
// keep their disks: hotspare local remove deletes them.
func stopStrayMachines(ctx context.Context, hub client.Reader, store *local.Store) error {
	log := ctrl.Log.WithName("machines")
	var before []string
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		// List the store first: the name of a cluster is recorded before its machines are created.
		stored, err := store.ListClusters()
		if err != nil {
			log.Error(err, "finding machines without a cluster")
			return
		}
		known, err := infraid.ListReferenced(ctx, hub)
		if err != nil {
			if ctx.Err() == nil {
				log.Error(err, "finding machines without a cluster")
			}
			return
		}
		now := listStrayClusters(stored, known)
		for _, infraID := range now {
			if !slices.Contains(before, infraID) {
				log.Info("found machines of a cluster that the hub does not know: hotspare local remove removes them", "infraID", infraID)
				continue // the cluster may be being deleted
			}
			if err := store.StopCluster(infraID); err != nil {
				log.Error(err, "stopping machines without a cluster", "infraID", infraID)
			}
		}
		before = now
	}, strayInterval)
	return nil
}

// listStrayClusters returns the infraIDs in stored that are not in known.
func listStrayClusters(stored []string, known map[string]string) []string {
	return slices.DeleteFunc(slices.Clone(stored), func(infraID string) bool { return known[infraID] != "" })
}
