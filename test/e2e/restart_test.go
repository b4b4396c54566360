package e2e

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

func TestARestartedHubIsTheSameHub(t *testing.T) {
	h := own(t)
	ns := h.namespace(t)
	paper, real := fakePool(ns, "paper", 3, 1), localPool(ns, "real", 0, 0)
	h.create(t, paper, real)
	h.settled(t, paper)
	claims := []*hivev1.ClusterClaim{claimOn(paper, "a"), claimOn(real, "b")}
	for _, c := range claims {
		h.create(t, c)
		h.served(t, c)
	}
	h.settled(t, paper)
	before, url := h.identities(t, paper, real), h.url

	if err := h.down(); err != nil {
		t.Fatal(err)
	}
	if r := h.run(t, "", "status"); r.code == 0 || r.err == "" {
		t.Errorf("status of a hub that is down: exit code %d\n%s", r.code, r.all())
	}
	began := time.Now()
	h.restart(t)
	t.Logf("the hub was ready %.1fs after it was started again", time.Since(began).Seconds())

	if h.url != url {
		t.Errorf("its URL is %s and was %s", h.url, url)
	}
	h.settled(t, paper)
	for _, c := range claims {
		h.served(t, c)
	}
	workable(t, h, h.kubeconfigOf(t, ns, "b"))
	t.Logf("a local cluster ran pods after %.1fs", time.Since(began).Seconds())
	if diff := cmp.Diff(before, h.identities(t, paper, real)); diff != "" {
		t.Errorf("its clusters have changed:\n%s", diff)
	}
	says(t, h.hotspare(t, "status"), url, "reachable", "0 waiting, 2 served", "paper", "real")
}

// identities are the UIDs of pools' clusters by cluster, pool and claim.
func (h *hub) identities(t *testing.T, pools ...*hivev1.ClusterPool) map[string]types.UID {
	t.Helper()
	out := map[string]types.UID{}
	for _, p := range pools {
		for _, cd := range h.clusters(t, p) {
			out[strings.Join([]string{cd.Name, p.Name, cd.Spec.ClusterPoolRef.ClaimName}, " ")] = cd.UID
		}
	}
	if len(out) == 0 {
		t.Fatalf("no clusters in %v", slices.Collect(maps.Keys(out)))
	}
	return out
}

func TestDownOnAFolderWithoutAHubSaysSo(t *testing.T) {
	h := &hub{dir: t.TempDir()}
	says(t, h.hotspare(t, "down"), "is not running on "+h.dir)
}
