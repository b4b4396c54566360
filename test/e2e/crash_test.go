package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

func TestAKillInTheMiddleOfInstallsAndDestroysLeavesNothingBehind(t *testing.T) {
	h := own(t)
	pool := localPool(h.namespace(t), "dev", 2, 1)
	h.create(t, pool)
	eventually(t, "an install is under way", func(context.Context) error { return h.installing(t, pool) })
	h.kill(t)

	h.restart(t)
	h.settled(t, pool)
	eventually(t, "everything fits together", h.sound)
	if n := len(h.clusters(t, pool)); n != 2 {
		t.Errorf("the pool has %d clusters, want 2", n)
	}

	t.Log("the pool is deleted; the kill comes when a cluster is about to go")
	h.delete(t, pool)
	eventually(t, "a destroy is under way", func(context.Context) error {
		for _, cd := range h.clusters(t, pool) {
			if cd.DeletionTimestamp != nil {
				return nil
			}
		}
		return errors.New("no cluster is being deleted")
	})
	h.kill(t)

	h.restart(t)
	h.gone(t, pool)
	eventually(t, "everything fits together", h.sound)
	for _, dir := range []string{h.machines(), h.installs()} {
		if left, err := foldersIn(dir); err != nil || len(left) > 0 {
			t.Errorf("left in %s: %v, %v", dir, left, err)
		}
	}
}

// installing is an error unless a machine of a cluster runs that is not installed.
func (h *hub) installing(t *testing.T, p *hivev1.ClusterPool) error {
	t.Helper()
	for _, cd := range h.clusters(t, p) {
		if cd.Spec.Installed || cd.Spec.ClusterMetadata == nil {
			continue
		}
		if machines, err := processesOf(filepath.Join(h.machines(), cd.Spec.ClusterMetadata.InfraID)); err != nil || len(machines) > 0 {
			return err
		}
	}
	return errors.New("no machine runs")
}

func TestAKillInABurstOfClaimsGivesEachClaimOneCluster(t *testing.T) {
	const burst, middle = 40, 10
	h := own(t)
	pool := fakePool(h.namespace(t), "ci", burst, burst)
	h.create(t, pool)
	h.settled(t, pool)

	claims := make([]*hivev1.ClusterClaim, burst)
	for i := range claims {
		claims[i] = claimOn(pool, fmt.Sprintf("claim-%02d", i))
	}
	assigned := h.watchAssigned(t, pool.Namespace)
	var wg sync.WaitGroup
	for _, c := range claims {
		wg.Go(func() { _ = h.Create(t.Context(), c.DeepCopy()) }) // those that the kill stops are made below
	}
	for range middle {
		select {
		case <-assigned:
		case <-patient(t).Done():
			t.Fatal("hardly a claim was given a cluster")
		}
	}
	h.kill(t)
	wg.Wait()

	h.restart(t)
	for _, c := range claims {
		if err := h.Create(t.Context(), c); client.IgnoreAlreadyExists(err) != nil {
			t.Fatalf("creating claim %s: %v", c.Name, err)
		}
	}
	for _, c := range claims {
		h.served(t, c)
	}
	h.settled(t, pool)
	eventually(t, "everything fits together", h.sound)
	if n := len(h.clusters(t, pool)); n != 2*burst {
		t.Errorf("the pool has %d clusters, want %d that are claimed and as many that are not", n, burst)
	}
}

// watchAssigned returns a channel that gets a name for each claim that is given a cluster.
func (h *hub) watchAssigned(t *testing.T, namespace string) <-chan string {
	t.Helper()
	w, err := h.Watch(t.Context(), &hivev1.ClusterClaimList{}, client.InNamespace(namespace))
	if err != nil {
		t.Fatalf("watching claims: %v", err)
	}
	out := make(chan string, 100)
	go func() {
		defer w.Stop()
		var told []string
		for e := range w.ResultChan() {
			c, ok := e.Object.(*hivev1.ClusterClaim)
			if ok && e.Type != watch.Deleted && c.Spec.Namespace != "" && !slices.Contains(told, c.Name) {
				told = append(told, c.Name)
				out <- c.Name
			}
		}
	}()
	return out
}
