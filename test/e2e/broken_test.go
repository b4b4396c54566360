package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// TestABrokenStandbyDoesNotHoldUpAClaim takes the disk of the standby that is
// next to be woken: seed 002.
func TestABrokenStandbyDoesNotHoldUpAClaim(t *testing.T) { // B19
	h := shared(t)
	ns := h.namespace(t)
	pool := localPool(ns, "dev", 2, 0)
	h.create(t, pool)
	h.settled(t, pool)
	var broken hivev1.ClusterDeployment
	eventually(t, "both clusters sleep", func(context.Context) error {
		clusters := h.clusters(t, pool)
		power := byPower(clusters)
		if len(power[hivev1.StatusHibernating]) != 2 {
			return fmt.Errorf("clusters by power state: %v", power)
		}
		broken = slices.MinFunc(clusters, func(a, b hivev1.ClusterDeployment) int {
			return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
		})
		return nil
	})
	disks, err := filepath.Glob(filepath.Join(h.machines(), broken.Spec.ClusterMetadata.InfraID, "*master*", "disk"))
	if err != nil || len(disks) != 1 {
		t.Fatalf("disks of %s: %v, %v", broken.Name, disks, err)
	}
	if err := os.RemoveAll(disks[0]); err != nil {
		t.Fatal(err)
	}

	t.Log("the claim is served by the other")
	h.hotspare(t, "claim", "create", "dev", "-n", ns, "--name", "mine", "--wait")
	if cd := h.served(t, claimOn(pool, "mine")); cd.Name == broken.Name {
		t.Error("the claim was given the broken cluster")
	}
	workable(t, h, h.kubeconfigOf(t, ns, "mine"))

	t.Log("the broken one is replaced, not put back to sleep")
	h.gone(t, cluster(broken.Name))
	h.settled(t, pool)
}
