package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// TestAPoolOfLocalClustersServesClaims follows a pool through all that its users
// do with it.
func TestAPoolOfLocalClustersServesClaims(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	h.hotspare(t, "pool", "create", "dev", "-n", ns, "--size", "3", "--running", "1")
	pool := localPool(ns, "dev", 3, 1)
	h.settled(t, pool)
	asleep, awake := h.oneAwake(t, pool)

	t.Log("a claim gets the cluster that runs")
	h.hotspare(t, "claim", "create", "dev", "-n", ns, "--name", "first", "--wait")
	first := h.served(t, claimOn(pool, "first"))
	if first.Name != awake {
		t.Errorf("the claim has cluster %s, but %s was running when it came", first.Name, awake)
	}
	workable(t, h, h.kubeconfigOf(t, ns, "first"))

	t.Log("a second claim gets one that slept")
	h.hotspare(t, "claim", "create", "dev", "-n", ns, "--name", "second", "--wait")
	second := h.served(t, claimOn(pool, "second"))
	if !slices.Contains(asleep, second.Name) {
		t.Errorf("the second claim has cluster %s, want one of %v, which were asleep", second.Name, asleep)
	}
	workable(t, h, h.kubeconfigOf(t, ns, "second"))

	t.Log("the pool refills")
	h.settled(t, pool)

	t.Log("claim run hands a command a cluster that works, and takes it back")
	r := h.run(t, "", "claim", "run", "dev", "-n", ns, "--", binary, "kubectl", "wait", "--for=condition=Ready", "nodes", "--all", "--timeout=4m")
	if r.code != 0 || strings.Count(r.out, "condition met") != 2 {
		t.Errorf("claim run: exit code %d, want both nodes ready\n%s", r.code, r.all())
	}

	t.Log("what is released is destroyed")
	h.hotspare(t, "claim", "release", "first", "second", "-n", ns, "--wait")
	for _, cd := range []*hivev1.ClusterDeployment{first, second} {
		eventually(t, "cluster "+cd.Name+" leaves nothing behind", func(ctx context.Context) error { return h.traces(ctx, cd) })
	}

	t.Log("a deleted pool takes its clusters along")
	h.hotspare(t, "pool", "delete", "dev", "-n", ns)
	h.gone(t, pool)
	for _, cd := range h.clusters(t, pool) {
		t.Errorf("the pool is gone, its cluster %s is not", cd.Name)
	}
}

// oneAwake waits until two clusters of a pool sleep and one runs, and returns their names.
func (h *hub) oneAwake(t *testing.T, p *hivev1.ClusterPool) (asleep []string, awake string) {
	t.Helper()
	eventually(t, "two clusters sleep and one runs", func(context.Context) error {
		power := byPower(h.clusters(t, p))
		if len(power[hivev1.StatusRunning]) != 1 || len(power[hivev1.StatusHibernating]) != 2 {
			return fmt.Errorf("clusters by power state: %v", power)
		}
		asleep, awake = power[hivev1.StatusHibernating], power[hivev1.StatusRunning][0]
		return nil
	})
	return asleep, awake
}

// kubeconfigOf writes the kubeconfig of a claim's cluster to a file.
func (h *hub) kubeconfigOf(t *testing.T, namespace, claim string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), claim+".kubeconfig")
	h.hotspare(t, "cluster", "kubeconfig", claim, "--claim", "-n", namespace, "-o", path)
	return path
}

// workable checks that a cluster's nodes are ready and that it runs pods.
func workable(t *testing.T, h *hub, kubeconfig string) {
	t.Helper()
	kubectl := func(args ...string) string {
		return h.kubectl(t, append([]string{"--kubeconfig", kubeconfig}, args...)...)
	}
	kubectl("wait", "--for=condition=Ready", "nodes", "--all", "--timeout=4m")
	if nodes := strings.Fields(kubectl("get", "nodes", "-o", "name")); len(nodes) != 2 {
		t.Errorf("nodes %v, want one control plane and one worker", nodes)
	}
	kubectl("create", "deployment", "web", "--image=registry.example/web", "--replicas=2")
	kubectl("rollout", "status", "deployment/web", "--timeout=4m")
	phases := strings.Fields(kubectl("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].status.phase}"))
	if !slices.Equal(phases, []string{"Running", "Running"}) {
		t.Errorf("phases of the deployment's pods %v, want two Running", phases)
	}
	if r := h.run(t, "", "kubectl", "--kubeconfig", kubeconfig, "top", "pods"); r.code == 0 || !strings.Contains(r.all(), "Metrics API not available") {
		t.Errorf("top: exit code %d, want that pods that are not containers have no metrics\n%s", r.code, r.all())
	}
}

// traces is an error while anything of a destroyed cluster is left.
func (h *hub) traces(ctx context.Context, cd *hivev1.ClusterDeployment) error {
	var errs []error
	ns := &corev1.Namespace{}
	if err := h.Get(ctx, client.ObjectKey{Name: cd.Namespace}, ns); err == nil {
		errs = append(errs, fmt.Errorf("namespace %s is there: %s", ns.Name, ns.Status.Phase))
	} else if client.IgnoreNotFound(err) != nil {
		errs = append(errs, err)
	}
	infraID := cd.Spec.ClusterMetadata.InfraID
	for _, dir := range []string{h.machines(), h.installs()} {
		folders, err := foldersIn(dir)
		errs = append(errs, err)
		if slices.Contains(folders, infraID) {
			errs = append(errs, fmt.Errorf("folder %s/%s is there", dir, infraID))
		}
	}
	left, err := processesOf(filepath.Join(h.machines(), infraID))
	if len(left) > 0 {
		errs = append(errs, fmt.Errorf("its processes run: %v", left))
	}
	return errors.Join(append(errs, err)...)
}
