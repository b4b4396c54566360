package e2e

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// ciNamespace is in the files of testdata/ci-tools, which are in production.
const ciNamespace = "fake-cluster-pool"

func TestTheFakePoolsOfOpenShiftCIWorkUnchanged(t *testing.T) {
	h := shared(t)
	h.ensureNamespaces(t, ciNamespace)
	dir := filepath.Join("testdata", "ci-tools")

	h.kubectl(t, "apply", "-f", dir)
	pools := map[string]*hivev1.ClusterPool{}
	for name, size := range map[string]int32{"fake-ocp-4-11-amd64-aws": 100, "fake-ocp-4-18-amd64-aws": 30, "fake-ocp-4-18-multi-aws": 30} {
		p := fakePool(ciNamespace, name, size, 0)
		h.settled(t, p)
		if p.Spec.Size != size {
			t.Errorf("pool %s has size %d, want %d as in its file", name, p.Spec.Size, size)
		}
		pools[name] = p
	}
	t.Cleanup(func() {
		for _, p := range pools {
			if err := h.Delete(context.Background(), p); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		}
	})

	t.Log("ci-operator's own test claims from the pool with owner fake, version 4.18 and architecture multi")
	var found hivev1.ClusterPoolList
	if err := h.List(t.Context(), &found, client.MatchingLabels{
		"product": "ocp", "version": "4.18", "architecture": "multi", "cloud": "aws", "owner": "fake",
	}); err != nil || len(found.Items) != 1 {
		t.Fatalf("found %d pools, want 1; %v", len(found.Items), err)
	}
	multi := pools["fake-ocp-4-18-multi-aws"]
	claim := claimOn(&found.Items[0], "e2e-claim")
	h.create(t, claim)
	h.served(t, claim)
	h.delete(t, claim)
	h.gone(t, claim)

	t.Log("the same files, applied by the server, change no cluster")
	h.settled(t, multi)
	before := h.identities(t, multi)
	out := h.kubectl(t, "apply", "--server-side", "--force-conflicts", "-f", dir)
	if n := strings.Count(out, "serverside-applied"); n != 5 {
		t.Errorf("%d files were applied, want 5:\n%s", n, out)
	}
	h.settled(t, multi)
	if c := statusOf(multi, hivev1.PoolAllClustersCurrent); c != corev1.ConditionTrue {
		t.Errorf("%s is %s", hivev1.PoolAllClustersCurrent, c)
	}
	if diff := cmp.Diff(before, h.identities(t, multi)); diff != "" {
		t.Errorf("the pool's clusters have changed:\n%s", diff)
	}

	t.Log("a pool with hibernationConfig: null is made by the server, too")
	h.delete(t, multi)
	h.gone(t, multi)
	h.kubectl(t, "apply", "--server-side", "-f", filepath.Join(dir, multi.Name+"_clusterpool.yaml"))
	h.settled(t, multi)
}

// ensureNamespaces makes namespaces that several tests use. They stay.
func (h *hub) ensureNamespaces(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := h.Create(t.Context(), ns); client.IgnoreAlreadyExists(err) != nil {
			t.Fatalf("creating namespace %s: %v", name, err)
		}
	}
}
