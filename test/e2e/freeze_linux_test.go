package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/embedded/controlplane/flock"
	"hotspare.io/hotspare/internal/embedded/machine"
)

// TestAClusterIsFrozenAndThawed follows a claimed cluster through all that may happen to it while it is frozen.
func TestAClusterIsFrozenAndThawed(t *testing.T) {
	h := own(t)
	ns := h.namespace(t)
	pool := localPool(ns, "dev", 0, 0)
	c := claimOn(pool, "mine")
	h.create(t, pool, c)
	cd := h.served(t, c)
	kubeconfig := h.kubeconfigOf(t, ns, "mine")
	workable(t, h, kubeconfig)

	t.Log("a frozen cluster keeps its processes, and refuses clients")
	before := h.machineProcesses(t, cd)
	h.freeze(t, ns, cd)
	for name, pid := range before {
		if state := processState(pid); state != "T" {
			t.Errorf("the process of %s is in state %s", name, state)
		}
	}
	h.refuses(t, cd)
	says(t, h.hotspare(t, "cluster", "list", "-n", ns), "Hibernating (freeze)")
	says(t, h.hotspare(t, "cluster", "describe", "mine", "-n", ns), "Hibernating (freeze)", "should be hibernating, and is, at depth freeze")

	t.Log("it continues")
	h.thaw(t, ns, cd)
	if after := h.machineProcesses(t, cd); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the processes of the machines were %v and are %v", before, after)
	}
	h.kubectl(t, "--kubeconfig", kubeconfig, "scale", "deployment/web", "--replicas=3")
	h.kubectl(t, "--kubeconfig", kubeconfig, "rollout", "status", "deployment/web", "--timeout=4m")

	t.Log("a wish for a deeper sleep is followed, and one for a shallower sleep is not")
	h.freeze(t, ns, cd)
	h.hotspare(t, "cluster", "hibernate", "mine", "-n", ns, "--depth", "stop")
	h.asleepAt(t, cd, hivev1.DepthStop, "The cluster is hibernating.")
	h.hotspare(t, "cluster", "hibernate", "mine", "-n", ns, "--depth", "freeze")
	h.asleepAt(t, cd, hivev1.DepthStop, "applies to the next hibernation")
	h.thaw(t, ns, cd)

	t.Log("an orderly end of the hub stops what is frozen, and the next hub says so")
	h.freeze(t, ns, cd)
	if err := h.down(); err != nil {
		t.Fatal(err)
	}
	h.restart(t)
	h.asleepAt(t, cd, hivev1.DepthStop, "hotspare has ended while it was frozen, which stops it")
	h.thaw(t, ns, cd)

	t.Log("and so does a kill")
	h.freeze(t, ns, cd)
	h.kill(t)
	h.restart(t)
	h.asleepAt(t, cd, hivev1.DepthStop, "hotspare has ended while it was frozen, which stops it")
	h.thaw(t, ns, cd)

	t.Log("a depth that does not exist is reported, and is a stop")
	h.kubectl(t, "annotate", "clusterdeployment", cd.Name, "-n", cd.Namespace, "--overwrite", hivev1.AnnotationSleepDepth+"=nap")
	h.hotspare(t, "cluster", "hibernate", "mine", "-n", ns)
	h.asleepAt(t, cd, hivev1.DepthStop, `The annotation hotspare.io/sleep-depth is ignored: there is no depth of sleep "nap": choose one of freeze, suspend, stop.`)
	if r := h.run(t, "", "cluster", "hibernate", "mine", "-n", ns, "--depth", "nap"); r.code == 0 || !strings.Contains(r.all(), "choose one of freeze, suspend, stop") {
		t.Errorf("exit code %d\n%s", r.code, r.all())
	}
	h.thaw(t, ns, cd)

	t.Log("a cluster that is released while it is frozen is destroyed")
	h.freeze(t, ns, cd)
	h.hotspare(t, "claim", "release", "mine", "-n", ns, "--wait")
	eventually(t, "cluster "+cd.Name+" leaves nothing behind", func(ctx context.Context) error { return h.traces(ctx, cd) })
}

func (h *hub) freeze(t *testing.T, ns string, cd *hivev1.ClusterDeployment) {
	t.Helper()
	h.hotspare(t, "cluster", "hibernate", "mine", "-n", ns, "--depth", "freeze", "--wait")
	for range 5 {
		if !couldNotFreeze(get(t, h, cluster(cd.Name))) {
			break
		}
		h.thaw(t, ns, cd)
		h.hotspare(t, "cluster", "hibernate", "mine", "-n", ns, "--depth", "freeze", "--wait")
	}
	h.asleepAt(t, cd, hivev1.DepthFreeze, "The cluster is hibernating at depth freeze.")
}

func (h *hub) thaw(t *testing.T, ns string, cd *hivev1.ClusterDeployment) {
	t.Helper()
	began := time.Now()
	h.hotspare(t, "cluster", "resume", "mine", "-n", ns, "--wait")
	t.Logf("cluster %s could be used after %.1fs", cd.Name, time.Since(began).Seconds())
}

// asleepAt waits until the cluster sleeps at the depth, with a message.
func (h *hub) asleepAt(t *testing.T, cd *hivev1.ClusterDeployment, depth, message string) {
	t.Helper()
	eventually(t, "it sleeps at depth "+depth, func(context.Context) error {
		now := get(t, h, cluster(cd.Name))
		found := condition.Find(now.Status.Conditions, hivev1.ClusterHibernating)
		if r := now.Status.PowerTransition; now.Status.PowerState != hivev1.StatusHibernating || r == nil || r.Depth != depth || !strings.Contains(found.Message, message) {
			return fmt.Errorf("%s at %+v: %s", now.Status.PowerState, r, found.Message)
		}
		return nil
	})
}

// machineProcesses are the processes of the machines of a cluster, by machine.
func (h *hub) machineProcesses(t *testing.T, cd *hivev1.ClusterDeployment) map[string]int {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(h.machines(), cd.Spec.ClusterMetadata.InfraID, "*"))
	if err != nil || len(dirs) < 2 {
		t.Fatalf("machines %v: %v", dirs, err)
	}
	out := map[string]int{}
	for _, dir := range dirs {
		out[filepath.Base(dir)] = flock.ReadHolder(machine.LockPath(dir))
	}
	return out
}

// processState is the state of a process, as one letter.
func processState(pid int) string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return err.Error()
	}
	fields := strings.Fields(string(raw[slices.Index(raw, ')')+1:]))
	return fields[0]
}

// refuses checks that the API of a cluster refuses connections.
func (h *hub) refuses(t *testing.T, cd *hivev1.ClusterDeployment) {
	t.Helper()
	address := strings.TrimPrefix(get(t, h, cluster(cd.Name)).Status.APIURL, "https://")
	conn, err := net.DialTimeout("tcp4", address, patience)
	if err == nil {
		_ = conn.Close()
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("connecting to %s: %v", address, err)
	}
}
