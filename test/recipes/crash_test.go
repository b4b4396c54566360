//go:build realclusters

package recipes

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var lives = flag.Int("lives", 3, "the number of clusters in whose life hotspare is killed four times")

// life is the life of one cluster of a pool, during whose steps hotspare is killed with SIGKILL.
type life struct {
	*hub
	random *rand.Rand
	pool   string
	// infraID identifies the cluster once it is created.
	infraID string
}

// Hotspare is killed at a random moment of create, stop, start and destroy of each cluster, and started
// again. It continues the step: nothing is created twice, and nothing is left behind.
func TestKillsOfHotspareLeakNothing(t *testing.T) {
	h := newHub(t)
	before := observeMachine(t, h.recipe.Dir)
	random := rand.New(rand.NewPCG(*seed, 1))
	fmt.Printf("seed %d\n", *seed)
	for i := range *lives {
		l := &life{hub: h, random: random, pool: fmt.Sprintf("life-%d", i)}
		l.create(t)
		l.changePower(t)
		l.destroy(t)
	}
	h.stop(t)
	compareMachine(t, h.recipe.Dir, before)
}

// killDuring begins a step, kills hotspare within the given time, and starts it again.
func (l *life) killDuring(t *testing.T, step string, within time.Duration, begin func()) {
	t.Helper()
	l.start(t)
	begin()
	after := time.Duration(l.random.Int64N(int64(within)))
	time.Sleep(after)
	l.kill(t)
	fmt.Printf("%s: killed hotspare %s after %-7s was requested\n", l.pool, after.Round(time.Millisecond), step)
	l.confirmOne(t, step)
	l.start(t)
	l.confirmOne(t, step)
}

// create creates the cluster, and claims it.
func (l *life) create(t *testing.T) {
	t.Helper()
	l.killDuring(t, "create", 15*time.Second, func() { l.createPool(t, l.pool, 1, 1) })
	l.patchPool(t, `{"spec":{"maxSize":1}}`) // a claimed cluster is not replaced
	l.run(t, "kubectl", "wait", "clusterpool/"+l.pool, "--for=jsonpath={.status.ready}=1", "--timeout=10m")
	l.run(t, "claim", "create", l.pool, "--name", l.pool, "--wait")
	l.patchPool(t, `{"spec":{"size":0}}`)
	name := l.clusterName(t)
	l.infraID = l.field(t, ".spec.clusterMetadata.infraID", "clusterdeployment", name, "-n", name)
	if restarts := l.field(t, ".status.installRestarts", "clusterdeployment", name, "-n", name); restarts != "" && restarts != "0" {
		t.Errorf("cluster %s was created in %s+1 attempts", name, restarts)
	}
	if got := l.folders(t); len(got) != 1 || got[0] != l.infraID {
		t.Errorf("cluster %s has the infraID %q, and the recipe has %q", name, l.infraID, got)
	}
	l.confirmProcesses(t, 1)
}

// changePower hibernates and resumes the cluster, and confirms that it is the same one afterward.
func (l *life) changePower(t *testing.T) {
	t.Helper()
	uid := l.readUID(t)
	l.killDuring(t, "stop", 3*time.Second, func() { l.run(t, "cluster", "hibernate", l.pool) })
	l.run(t, "cluster", "hibernate", l.pool, "--wait", "--timeout=10m")
	l.confirmProcesses(t, 0)
	l.killDuring(t, "start", 8*time.Second, func() { l.run(t, "cluster", "resume", l.pool) })
	l.run(t, "cluster", "resume", l.pool, "--wait", "--timeout=10m")
	l.confirmProcesses(t, 1)
	if now := l.readUID(t); now != uid {
		t.Errorf("namespace kube-system had the UID %q, and has %q after the resume", uid, now)
	}
}

// destroy releases the cluster, and deletes the pool.
func (l *life) destroy(t *testing.T) {
	t.Helper()
	name := l.clusterName(t)
	l.killDuring(t, "destroy", 2*time.Second, func() { l.run(t, "claim", "release", l.pool) })
	l.run(t, "kubectl", "wait", "--for=delete", "clusterdeployment/"+name, "-n", name, "--timeout=10m")
	l.run(t, "pool", "delete", l.pool)
	l.run(t, "kubectl", "wait", "--for=delete", "clusterpool/"+l.pool, "--timeout=10m")
	l.run(t, "kubectl", "wait", "--for=delete", "clusterdeployments", "--all", "--all-namespaces", "--timeout=10m")
	if got := l.folders(t); len(got) != 0 {
		t.Errorf("the recipe still has %q", got)
	}
	l.confirmProcesses(t, 0)
}

func (l *life) patchPool(t *testing.T, patch string) {
	t.Helper()
	l.run(t, "kubectl", "patch", "clusterpool", l.pool, "--type=merge", "-p", patch)
}

func (l *life) clusterName(t *testing.T) string {
	t.Helper()
	return l.field(t, ".spec.namespace", "clusterclaim", l.pool)
}

// readUID returns the UID of the namespace kube-system, which identifies the cluster.
func (l *life) readUID(t *testing.T) string {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	l.run(t, "cluster", "kubeconfig", l.pool, "-o", kubeconfig)
	return strings.TrimSpace(run(t, "kubectl", "--kubeconfig", kubeconfig, "get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}"))
}

// folders returns the infraIDs of the clusters that the recipe has.
func (l *life) folders(t *testing.T) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(l.state, l.recipe.Name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// confirmOne fails the test if the recipe has more than one cluster.
func (l *life) confirmOne(t *testing.T, step string) {
	t.Helper()
	if got := l.folders(t); len(got) > 1 {
		t.Errorf("after %s, the recipe has several clusters: %q", step, got)
	}
}

// confirmProcesses fails the test unless the number of running clusters is want: the first process of each is unshare.
func (l *life) confirmProcesses(t *testing.T, want int) {
	t.Helper()
	got := 0
	for _, line := range processes(t, l.recipe.Dir) {
		if _, command, _ := strings.Cut(line, " "); strings.HasPrefix(command, "unshare --fork --pid") {
			got++
		}
	}
	if got != want {
		t.Errorf("%d clusters run, want %d", got, want)
	}
}
