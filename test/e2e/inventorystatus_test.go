package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// scene is a pool p whose clusters take the customization a first.
type scene struct {
	*hub
	t    *testing.T
	ns   string
	pool *hivev1.ClusterPool
}

// stock makes a pool of clusters on paper with customizations, and waits until it has
// all that it wants.
func (s *scene) stock(name string, size int32, entries ...string) *hivev1.ClusterPool {
	s.t.Helper()
	p := fakePool(s.ns, name, size, size)
	p.Spec.Inventory = inventoryOf(entries...)
	s.create(s.t, p)
	s.settled(s.t, p)
	return p
}

// make makes customizations that name a cluster as themselves.
func (s *scene) make(names ...string) {
	s.t.Helper()
	for _, name := range names {
		s.create(s.t, customization(s.ns, name, replace("metadata/name", name)))
	}
}

// claimed is the cluster of a, which somebody has claimed.
func (s *scene) claimed(names ...string) *hivev1.ClusterDeployment {
	s.t.Helper()
	s.make(names...)
	s.pool = s.stock("p", 1, names...)
	c := claimOn(s.pool, "mine")
	s.create(s.t, c)
	return s.served(s.t, c)
}

// list changes what the pool lists.
func (s *scene) list(names ...string) {
	s.t.Helper()
	var entries []string
	for _, name := range names {
		entries = append(entries, fmt.Sprintf(`{"name":%q}`, name))
	}
	s.kubectl(s.t, "patch", "clusterpool", s.pool.Name, "-n", s.ns, "--type=merge", "-p",
		fmt.Sprintf(`{"spec":{"inventory":[%s]}}`, strings.Join(entries, ",")))
}

func (s *scene) releaseMine() {
	s.t.Helper()
	s.hotspare(s.t, "claim", "release", "mine", "-n", s.ns)
}

// tell prints what users see.
func (s *scene) tell(what string) string {
	s.t.Helper()
	out := s.hotspare(s.t, "inventory", "list", "-n", s.ns)
	s.t.Logf("%s:\n%s", what, out)
	return out
}

// Each status of an entry has a way to it, and, if it is a bad one, a way back.
func TestEachStatusOfAnInventoryIsReached(t *testing.T) {
	h := shared(t)
	rows := map[hivev1.InventoryStatus]struct {
		how   string
		reach func(*scene)
		then  string
		leave func(*scene)
	}{
		hivev1.InventoryAvailable: {
			how:   "the pool has all the clusters that it wants",
			reach: func(s *scene) { s.make("a", "b"); s.pool = s.stock("p", 1, "b", "a") },
		},
		hivev1.InventoryReserved: {
			how:   "the pool has made a cluster with it",
			reach: func(s *scene) { s.make("a"); s.pool = s.stock("p", 1, "a") },
		},
		hivev1.InventoryBrokenByConfiguration: {
			how: "a patch replaces what is not there",
			reach: func(s *scene) {
				s.create(s.t, customization(s.ns, "a", replace("metadata/names", "a")))
				s.make("b")
				s.pool = s.stock("p", 1, "a", "b")
			},
			then: "its path is corrected",
			leave: func(s *scene) {
				s.kubectl(s.t, "patch", "clusterdeploymentcustomization", "a", "-n", s.ns, "--type=json", "-p",
					`[{"op":"replace","path":"/spec/installConfigPatches/0/path","value":"metadata/name"}]`)
				s.entry(s.t, s.pool, "a", hivev1.InventoryAvailable)
			},
		},
		hivev1.InventoryBrokenByCloud: {how: "its port is taken, and three clusters have failed", reach: (*scene).squatted, then: "it has another port", leave: (*scene).moved},
		hivev1.InventoryMissing:       {how: "it is listed and does not exist", reach: (*scene).unmade, then: "it is made", leave: (*scene).madeLate},
		hivev1.InventoryUnavailable:   {how: "another pool has made a cluster with it", reach: (*scene).outrun, then: "the other pool is deleted", leave: (*scene).inherit},
		hivev1.InventoryToBeDeleted:   {how: "it is taken off the list under a claimed cluster", reach: (*scene).delisted, then: "the cluster is released", leave: (*scene).forgotten},
		hivev1.InventoryToBeUpdated:   {how: "it is edited under a claimed cluster", reach: (*scene).edited, then: "the cluster is released", leave: (*scene).renewed},
	}
	for _, status := range statuses {
		t.Run(string(status), func(t *testing.T) {
			parallelSubtest(t)
			row, ok := rows[status]
			if !ok {
				t.Fatal("nobody knows how to reach it")
			}
			s := &scene{hub: h, t: t, ns: h.namespace(t)}
			row.reach(s)
			s.entry(t, s.pool, "a", status)
			says(t, s.tell(row.how), string(status))
			if row.leave == nil {
				return
			}
			row.leave(s)
			if out := s.tell(row.then); strings.Contains(out, string(status)) {
				t.Errorf("it is still %s", status)
			}
		})
	}
}

// statuses are those of the enhancement's table.
var statuses = []hivev1.InventoryStatus{
	hivev1.InventoryAvailable, hivev1.InventoryReserved, hivev1.InventoryBrokenByConfiguration, hivev1.InventoryBrokenByCloud,
	hivev1.InventoryMissing, hivev1.InventoryUnavailable, hivev1.InventoryToBeDeleted, hivev1.InventoryToBeUpdated,
}

func (s *scene) squatted() {
	s.create(s.t, customization(s.ns, "a", add("platform/local/apiPort", squat(s.t))))
	s.pool = localPool(s.ns, "p", 1, 1)
	s.pool.Spec.InstallAttemptsLimit = ptr.To[int32](1)
	s.pool.Spec.Inventory = inventoryOf("a")
	s.create(s.t, s.pool)
}

// moved does not wait for the cluster: it takes a while, and another test has one.
func (s *scene) moved() {
	s.edit(s.t, s.ns, "a", 0, vacant(s.t, 1)[0])
	if e := s.entry(s.t, s.pool, "a", hivev1.InventoryReserved); e.Attempts != 3 {
		s.t.Errorf("it has %d attempts, want all", e.Attempts)
	}
}

func (s *scene) unmade() {
	s.make("b")
	s.pool = s.stock("p", 1, "a", "b")
}

func (s *scene) madeLate() {
	s.make("a")
	s.entry(s.t, s.pool, "a", hivev1.InventoryAvailable)
}

func (s *scene) outrun() {
	s.make("a", "b")
	s.stock("first", 1, "a")
	s.pool = s.stock("second", 1, "a", "b")
}

func (s *scene) inherit() {
	first := fakePool(s.ns, "first", 1, 1)
	s.delete(s.t, first)
	s.gone(s.t, first)
	s.entry(s.t, s.pool, "a", hivev1.InventoryAvailable)
}

func (s *scene) delisted() {
	s.claimed("a", "b")
	s.list("b")
}

func (s *scene) forgotten() {
	s.releaseMine()
	s.unlisted(s.t, s.pool, "a")
}

func (s *scene) edited() {
	s.claimed("a", "b")
	s.edit(s.t, s.ns, "a", 0, "renamed")
}

func (s *scene) renewed() {
	s.releaseMine()
	s.entry(s.t, s.pool, "a", hivev1.InventoryAvailable)
}

// A claimed cluster stays as it is, whatever becomes of its customization. One that
// nobody has claimed is replaced.
func TestAnEditReplacesTheClusterThatNobodyHasClaimed(t *testing.T) {
	h := shared(t)
	s := &scene{hub: h, t: t, ns: h.namespace(t)}
	mine := s.claimed("a", "b")
	story := h.chronicle(t, s.pool)
	h.settled(t, s.pool)
	before := h.entry(t, s.pool, "b", hivev1.InventoryReserved)

	s.edit(t, s.ns, "a", 0, "anna")
	s.edit(t, s.ns, "b", 0, "berta")
	h.entry(t, s.pool, "a", hivev1.InventoryToBeUpdated)
	h.gone(t, cluster(before.ClusterDeployment.Name))
	h.settled(t, s.pool)
	after := h.entry(t, s.pool, "b", hivev1.InventoryReserved)
	if name := get(t, h, cluster(after.ClusterDeployment.Name)).Spec.ClusterName; name != "berta" || after.Version == before.Version {
		t.Errorf("the new cluster is called %q, its entry was %+v and is %+v", name, before, after)
	}
	story.passed("b", hivev1.InventoryReserved, hivev1.InventoryToBeUpdated)
	if now := get(t, h, cluster(mine.Name)); now.UID != mine.UID || now.Spec.ClusterName != "a" || now.DeletionTimestamp != nil {
		t.Errorf("the claimed cluster is %+v", now.Spec)
	}
	h.entry(t, s.pool, "a", hivev1.InventoryToBeUpdated)
}

func TestACustomizationThatIsDeletedStaysUntilItsClusterIsGone(t *testing.T) {
	h := shared(t)
	s := &scene{hub: h, t: t, ns: h.namespace(t)}
	mine := s.claimed("a", "b")
	a := get(t, h, customization(s.ns, "a"))
	h.delete(t, a)
	h.entry(t, s.pool, "a", hivev1.InventoryToBeDeleted)
	says(t, s.tell("it is deleted under a claimed cluster"), "ToBeDeleted", mine.Name)
	says(t, h.hotspare(t, "inventory", "describe", "a", "-n", s.ns), "a cluster of this pool still uses it", "claim release mine")
	if now := get(t, h, a); now.Status.ClusterDeploymentRef == nil || now.Status.ClusterDeploymentRef.Name != mine.Name {
		t.Errorf("it has lost its cluster: %+v", now.Status)
	}
	if now := get(t, h, cluster(mine.Name)); now.UID != mine.UID || now.DeletionTimestamp != nil {
		t.Errorf("the claimed cluster is being deleted: %+v", now.ObjectMeta)
	}

	s.releaseMine()
	h.gone(t, a)
	h.gone(t, cluster(mine.Name))
	h.entry(t, s.pool, "a", hivev1.InventoryMissing)
	h.settled(t, s.pool)
}

func TestADeletedPoolGivesAllCustomizationsBack(t *testing.T) {
	h := shared(t)
	s := &scene{hub: h, t: t, ns: h.namespace(t)}
	s.make("a", "b")
	pool := s.stock("p", 2, "a", "b")
	h.delete(t, pool)
	h.gone(t, pool)
	eventually(t, "nobody has them", func(ctx context.Context) error { return h.free(ctx, s.ns) })
	says(t, s.tell("the pool is deleted"), "a", "b")
	for _, name := range []string{"a", "b"} {
		c := customization(s.ns, name)
		h.delete(t, c)
		h.gone(t, c)
	}
}

func TestAnInventorySmallerThanItsPoolServesClaimsOneByOne(t *testing.T) {
	h := shared(t)
	s := &scene{hub: h, t: t, ns: h.namespace(t)}
	s.make("a", "b")
	pool := fakePool(s.ns, "p", 3, 3)
	pool.Spec.Inventory = inventoryOf("a", "b")
	h.create(t, pool)
	capacity := h.conditioned(t, pool, hivev1.PoolCapacityAvailable, corev1.ConditionFalse)
	says(t, capacity.Reason, hivev1.ReasonInventoryExhausted)
	valid := h.conditioned(t, pool, hivev1.PoolInventoryValid, corev1.ConditionFalse)
	says(t, valid.Reason, hivev1.ReasonInventoryTooSmall)
	says(t, valid.Message, "2 of 2", "3")

	first, second, third := claimOn(pool, "first"), claimOn(pool, "second"), claimOn(pool, "third")
	h.create(t, first, second)
	given := map[string]bool{h.served(t, first).Name: true, h.served(t, second).Name: true}
	h.create(t, third)
	pending := h.conditioned(t, third, hivev1.ClaimPending, corev1.ConditionTrue)
	if len(given) != 2 || len(h.clusters(t, pool)) != 2 || third.Spec.Namespace != "" {
		t.Errorf("clusters %v, and the third claim has %q: %+v", given, third.Spec.Namespace, pending)
	}
	says(t, h.hotspare(t, "pool", "describe", pool.Name, "-n", s.ns), "no customization of the inventory is free")

	h.hotspare(t, "claim", "release", "first", "-n", s.ns)
	if cd := h.served(t, third); given[cd.Name] {
		t.Errorf("the third claim has cluster %s, which another had", cd.Name)
	}
}

// passed checks that an entry went from one status to another.
func (c *chronicle) passed(entry string, from, to hivev1.InventoryStatus) {
	c.t.Helper()
	eventually(c.t, fmt.Sprintf("entry %s went from %s to %s", entry, from, to), func(context.Context) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		for i, e := range c.said[entry] {
			if i > 0 && c.said[entry][i-1].Status == from && e.Status == to {
				return nil
			}
		}
		return fmt.Errorf("it was %+v", c.said[entry])
	})
}
