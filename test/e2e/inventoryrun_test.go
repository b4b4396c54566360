package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// Three customizations set a cluster's name and the port of its API. One is right, one
// has a slip in a path, and the port of one is somebody else's until it is edited.
func TestAnInventoryOfLocalClustersHandsOutNamesAndPorts(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	ports := vacant(t, 2)
	pool := localPool(ns, "prepared", 1, 1)
	pool.Spec.InstallAttemptsLimit = ptr.To[int32](1)
	pool.Spec.Inventory = inventoryOf("occupied", "typo", "good")
	h.create(t,
		customization(ns, "good", replace("metadata/name", "foo"), add("platform/local/apiPort", ports[0])),
		customization(ns, "occupied", replace("/metadata/name", "baz"), add("/platform/local/apiPort", squat(t))),
		customization(ns, "typo", replace("metadata/names", "bar"), add("platform/local/apiPort", ports[1])),
		pool)
	story := h.chronicle(t, pool)

	t.Log("the first on the list fails, the second does not apply, the third serves")
	h.settled(t, pool)
	h.hotspare(t, "claim", "create", pool.Name, "-n", ns, "--name", "mine", "--wait")
	cd := h.served(t, claimOn(pool, "mine"))
	h.madeWith(t, cd, "good", "foo", ports[0])
	config := h.kubeconfigOf(t, ns, "mine")
	if nodes := strings.Fields(h.kubectl(t, "--kubeconfig", config, "get", "nodes", "-o", "name")); len(nodes) != 2 {
		t.Errorf("nodes %v, want two", nodes)
	}
	h.kubectl(t, "--kubeconfig", config, "wait", "--for=condition=Ready", "nodes", "--all", "--timeout=4m")
	h.applied(t, ns, "good", hivev1.ReasonApplySucceeded)

	t.Log("what is broken is told")
	h.entry(t, pool, "typo", hivev1.InventoryBrokenByConfiguration)
	h.applied(t, ns, "typo", hivev1.ReasonBrokenBySyntax)
	spent := h.entry(t, pool, "occupied", hivev1.InventoryBrokenByCloud)
	if spent.Attempts != 0 {
		t.Errorf("%d attempts are left", spent.Attempts)
	}
	h.applied(t, ns, "occupied", hivev1.ReasonBrokenByCloud)
	valid := h.conditioned(t, pool, hivev1.PoolInventoryValid, corev1.ConditionFalse)
	says(t, valid.Reason, hivev1.ReasonInventoryInvalid)
	says(t, valid.Message, "occupied", "typo", "/metadata/names")
	says(t, spent.Message, spent.Failed+" failed to install", "is taken", "change the customization")
	says(t, h.hotspare(t, "inventory", "describe", "typo", "-n", ns), "names", "kubectl edit clusterdeploymentcustomization typo")
	says(t, h.hotspare(t, "inventory", "list", pool.Name, "-n", ns), "BrokenByCloud", "0/3", "BrokenByConfiguration", cd.Name)

	t.Log("an edit repairs it, and a cluster is made with it")
	h.edit(t, ns, "occupied", 1, ports[1])
	h.settled(t, pool)
	next := h.entry(t, pool, "occupied", hivev1.InventoryReserved)
	h.madeWith(t, get(t, h, cluster(next.ClusterDeployment.Name)), "occupied", "baz", ports[1])
	story.attempts("occupied", 3, 2, 1, 0, 3)
	story.attempts("typo", 3)
}

// madeWith checks that a cluster has a customization, its name and its port.
func (h *hub) madeWith(t *testing.T, cd *hivev1.ClusterDeployment, customization, name string, port int) {
	t.Helper()
	want := fmt.Sprintf("%s %s https://127.0.0.1:%d", customization, name, port)
	ref := cd.Spec.ClusterPoolRef.CustomizationRef
	if ref == nil || cd.Spec.ClusterMetadata == nil {
		t.Fatalf("cluster %s has customization %v, metadata %v", cd.Name, ref, cd.Spec.ClusterMetadata)
	}
	if got := fmt.Sprintf("%s %s %s", ref.Name, cd.Spec.ClusterName, cd.Status.APIURL); got != want {
		t.Errorf("cluster %s has %s, want %s", cd.Name, got, want)
	}
	if !strings.HasPrefix(cd.Spec.ClusterMetadata.InfraID, name+"-") {
		t.Errorf("its machines belong to %s, want %s-…", cd.Spec.ClusterMetadata.InfraID, name)
	}
	secret, _ := h.adminSecrets(t, cd)
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[hivev1.SecretKeyKubeconfig])
	if err != nil || config.Host != cd.Status.APIURL {
		t.Errorf("its kubeconfig leads to %v, %v", config, err)
	}
}

// customization is one with patches of the install-config.
func customization(namespace, name string, patches ...hivev1.PatchEntity) *hivev1.ClusterDeploymentCustomization {
	return &hivev1.ClusterDeploymentCustomization{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       hivev1.ClusterDeploymentCustomizationSpec{InstallConfigPatches: patches},
	}
}

func replace(path string, value any) hivev1.PatchEntity {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err) // a mistake in a test
	}
	return hivev1.PatchEntity{Op: "replace", Path: path, Value: &runtime.RawExtension{Raw: raw}}
}

func add(path string, value any) hivev1.PatchEntity {
	p := replace(path, value)
	p.Op = "add"
	return p
}

// inventoryOf is an inventory of these customizations.
func inventoryOf(names ...string) hivev1.Inventory {
	var out hivev1.Inventory
	for _, name := range names {
		out = append(out, hivev1.InventoryEntry{Name: name})
	}
	return out
}

// edit gives the nth patch of a customization another value.
func (h *hub) edit(t *testing.T, namespace, name string, n int, value any) {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	h.kubectl(t, "patch", "clusterdeploymentcustomization", name, "-n", namespace, "--type=json", "-p",
		fmt.Sprintf(`[{"op":"replace","path":"/spec/installConfigPatches/%d/value","value":%s}]`, n, raw))
}

// entry waits until a customization has a status in a pool's books.
func (h *hub) entry(t *testing.T, p *hivev1.ClusterPool, name string, status hivev1.InventoryStatus) hivev1.InventoryEntryStatus {
	t.Helper()
	var e hivev1.InventoryEntryStatus
	eventually(t, fmt.Sprintf("entry %s of pool %s is %s", name, p.Name, status), func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		if e = p.Status.Inventory[name]; e.Status != status {
			return fmt.Errorf("the inventory is %+v", p.Status.Inventory)
		}
		return nil
	})
	return e
}

// unlisted waits until a customization is in a pool's books no more.
func (h *hub) unlisted(t *testing.T, p *hivev1.ClusterPool, name string) {
	t.Helper()
	eventually(t, fmt.Sprintf("entry %s of pool %s goes", name, p.Name), func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		if e, ok := p.Status.Inventory[name]; ok {
			return fmt.Errorf("it is %+v", e)
		}
		return nil
	})
}

// applied waits until a customization's ApplySucceeded has a reason.
func (h *hub) applied(t *testing.T, namespace, name, reason string) {
	t.Helper()
	c := customization(namespace, name)
	eventually(t, fmt.Sprintf("customization %s is %s", name, reason), func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(c), c); err != nil {
			return err
		}
		if !slices.ContainsFunc(c.Status.Conditions, func(have metav1.Condition) bool {
			succeeded := have.Status == metav1.ConditionTrue
			return have.Type == hivev1.CustomizationApplySucceeded && have.Reason == reason && succeeded == (reason == hivev1.ReasonApplySucceeded)
		}) {
			return fmt.Errorf("its conditions are %+v", c.Status.Conditions)
		}
		return nil
	})
}

// vacant are ports that nobody listens on, from below those of outgoing connections.
func vacant(t *testing.T, n int) []int {
	t.Helper()
	var out []int
	for range n {
		l, port := listen(t)
		defer func() { _ = l.Close() }() // nothing was sent
		out = append(out, port)
	}
	return out
}

// squat is a port that is not vacant until the test ends.
func squat(t *testing.T) int {
	t.Helper()
	l, port := listen(t)
	t.Cleanup(func() { _ = l.Close() }) // nothing was sent
	return port
}

var nextPort = struct {
	sync.Mutex
	port int
}{port: 10000 + os.Getpid()%5000}

// listen takes no port that was handed out before: its cluster may be asleep.
func listen(t *testing.T) (net.Listener, int) {
	t.Helper()
	nextPort.Lock()
	defer nextPort.Unlock()
	for nextPort.port < 20000 {
		nextPort.port++
		if l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", nextPort.port)); err == nil {
			return l, nextPort.port
		}
	}
	t.Fatal("no port is free")
	return nil, 0
}

// chronicle is all that a pool's books have said.
type chronicle struct {
	t    *testing.T
	mu   sync.Mutex
	said map[string][]hivev1.InventoryEntryStatus
	log  []string
}

// chronicle watches a pool's books. What they said is logged when the test ends.
func (h *hub) chronicle(t *testing.T, p *hivev1.ClusterPool) *chronicle {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background()) // that of the test ends before its cleanup
	w, err := h.Watch(ctx, &hivev1.ClusterPoolList{}, client.InNamespace(p.Namespace), client.MatchingFields{"metadata.name": p.Name})
	if err != nil {
		cancel()
		t.Fatalf("watching pool %s: %v", p.Name, err)
	}
	c := &chronicle{t: t, said: map[string][]hivev1.InventoryEntryStatus{}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for e := range w.ResultChan() {
			if now, ok := e.Object.(*hivev1.ClusterPool); ok {
				c.note(now)
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		t.Logf("what the books of pool %s said:\n%s", p.Name, strings.Join(c.log, "\n"))
	})
	return c
}

func (c *chronicle) note(p *hivev1.ClusterPool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, e := range p.Status.Inventory {
		if said := c.said[name]; len(said) > 0 && cmp.Equal(said[len(said)-1], e) {
			continue
		}
		c.said[name] = append(c.said[name], e)
		line := fmt.Sprintf("  %s is %s, %d attempts", name, e.Status, e.Attempts)
		if e.ClusterDeployment != nil {
			line += ", cluster " + e.ClusterDeployment.Name
		}
		if e.Message != "" {
			line += ": " + e.Message
		}
		c.log = append(c.log, line)
	}
}

// attempts checks which attempts an entry had left, one after the other.
func (c *chronicle) attempts(entry string, want ...int32) {
	c.t.Helper()
	eventually(c.t, fmt.Sprintf("entry %s has had %v attempts", entry, want), func(context.Context) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		var got []int32
		for _, e := range c.said[entry] {
			got = append(got, e.Attempts)
		}
		if got = slices.Compact(got); !slices.Equal(got, want) {
			return fmt.Errorf("it had %v", got)
		}
		return nil
	})
}
