package inventoryview

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/explain/remedy"
)

// pool lists customizations; those of its status are added by books.
func pool(namespace, name string, listed ...string) hivev1.ClusterPool {
	p := hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	for _, n := range listed {
		p.Spec.Inventory = append(p.Spec.Inventory, hivev1.InventoryEntry{Name: n})
	}
	return p
}

// books gives a pool a status: "foo Reserved dev-1", with the cluster if it has one.
func books(p hivev1.ClusterPool, entries ...string) hivev1.ClusterPool {
	p.Status.Inventory = map[string]hivev1.InventoryEntryStatus{}
	for _, e := range entries {
		words := append(strings.Fields(e), "")
		st := hivev1.InventoryEntryStatus{Status: hivev1.InventoryStatus(words[1]), Attempts: 2}
		if words[2] != "" {
			st.ClusterDeployment = &hivev1.ClusterDeploymentReference{Name: words[2], Namespace: words[2]}
		}
		p.Status.Inventory[words[0]] = st
	}
	return p
}

// custom is a customization, with the cluster that has its lease.
func custom(namespace, name, cluster string) hivev1.ClusterDeploymentCustomization {
	c := hivev1.ClusterDeploymentCustomization{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if cluster != "" {
		c.Status.ClusterDeploymentRef = &corev1.ObjectReference{Namespace: cluster, Name: cluster}
		c.Status.ClusterPoolRef = &corev1.ObjectReference{Namespace: namespace, Name: "dev"}
	}
	return c
}

// cluster is one of pool dev; a claim may have it.
func cluster(name, claim string) hivev1.ClusterDeployment {
	cd := hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name}}
	cd.Spec.ClusterPoolRef = &hivev1.ClusterPoolReference{Namespace: "default", PoolName: "dev", ClaimName: claim}
	return cd
}

func TestEntries(t *testing.T) {
	for name, c := range map[string]struct {
		stock Objects
		want  []string
	}{
		"an empty stock has none": {Objects{}, nil},
		"a pool's are in the order of its spec, each once, and then those of its status": {
			Objects{Pools: []hivev1.ClusterPool{books(pool("default", "dev", "b", "a", "b"), "a Available", "b Available", "old ToBeDeleted", "gone Missing")}},
			[]string{"default/dev b Available 2/3", "default/dev a Available 2/3", "default/dev gone Missing 2/3", "default/dev old ToBeDeleted 2/3"},
		},
		"one that the pool has not looked at says so": {
			Objects{Pools: []hivev1.ClusterPool{pool("default", "dev", "a")}}, []string{"default/dev a: " + notSeen},
		},
		"one that no pool lists says so, and comes last of its namespace": {
			Objects{
				Pools:          []hivev1.ClusterPool{books(pool("default", "dev", "a"), "a Available"), books(pool("team-a", "x", "a"), "a Available")},
				Customizations: []hivev1.ClusterDeploymentCustomization{custom("default", "0-spare", ""), custom("default", "a", ""), custom("team-a", "a", "")},
			},
			[]string{"default/dev a Available 2/3", "default/ 0-spare: " + unlisted, "team-a/x a Available 2/3"},
		},
		"its user and the claim are told": {
			Objects{
				Pools:    []hivev1.ClusterPool{books(pool("default", "dev", "a"), "a Reserved dev-1")},
				Clusters: []hivev1.ClusterDeployment{cluster("dev-1", "alice")},
			},
			[]string{"default/dev a Reserved 2/3 used by dev-1 claimed by alice"},
		},
		"also a user of another pool, which only the lease tells": {
			Objects{
				Pools:          []hivev1.ClusterPool{books(pool("default", "edge", "a"), "a Unavailable")},
				Customizations: []hivev1.ClusterDeploymentCustomization{custom("default", "a", "dev-1")},
				Clusters:       []hivev1.ClusterDeployment{cluster("dev-1", "")},
			},
			[]string{"default/edge a Unavailable 2/3 used by dev-1"},
		},
		"a cluster of that name in another namespace is nobody's member": {
			Objects{
				Customizations: []hivev1.ClusterDeploymentCustomization{custom("default", "a", "dev-1")},
				Clusters:       []hivev1.ClusterDeployment{{ObjectMeta: metav1.ObjectMeta{Namespace: "pets", Name: "dev-1"}, Spec: cluster("", "eve").Spec}},
			},
			[]string{"default/ a used by dev-1: " + unlisted},
		},
		"namespaces have their own": {
			Objects{
				Pools:          []hivev1.ClusterPool{pool("team-a", "bare", "foo")},
				Customizations: []hivev1.ClusterDeploymentCustomization{custom("default", "foo", "dev-1"), custom("team-a", "foo", "")},
			},
			[]string{"default/ foo used by dev-1: " + unlisted, "team-a/bare foo: " + notSeen},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range c.stock.Entries() {
				got = append(got, e.inWords())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func (e Entry) inWords() string {
	words := e.Namespace + "/" + e.Pool + " " + e.Name
	for _, w := range []struct{ before, word string }{
		{" ", string(e.Status)}, {" ", e.Tries()}, {" used by ", e.Cluster}, {" claimed by ", e.Claim}, {": ", e.Message},
	} {
		if w.word != "" {
			words += w.before + w.word
		}
	}
	return words
}

func TestHolders(t *testing.T) {
	dying := cluster("dev-3", "bob")
	dying.DeletionTimestamp = &metav1.Time{}
	s := &Objects{Clusters: []hivev1.ClusterDeployment{cluster("dev-1", "alice"), cluster("dev-2", ""), dying}}
	for cluster, want := range map[string]string{
		"":      "nobody",
		"dev-1": "cluster dev-1 of pool dev, claimed by alice",
		"dev-2": "cluster dev-2 of pool dev, unclaimed",
		"dev-3": "cluster dev-3 of pool dev, which is being deleted",
		"dev-4": "cluster dev-4 of pool dev, which is about to be created, or was deleted",
	} {
		c := custom("default", "a", cluster)
		if got := s.DescribeHolder(&c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestListingHasAnEntryOfEachPool(t *testing.T) {
	s := &Objects{Pools: []hivev1.ClusterPool{pool("default", "dev", "a", "b"), pool("default", "edge", "b")}}
	var got []string
	for _, e := range s.EntriesNamed("b") {
		got = append(got, e.Pool)
	}
	if want := "dev edge"; strings.Join(got, " ") != want {
		t.Errorf("%v, want %s", got, want)
	}
}

var statuses = []hivev1.InventoryStatus{
	"", hivev1.InventoryAvailable, hivev1.InventoryReserved, hivev1.InventoryBrokenByConfiguration, hivev1.InventoryBrokenByCloud,
	hivev1.InventoryMissing, hivev1.InventoryUnavailable, hivev1.InventoryToBeDeleted, hivev1.InventoryToBeUpdated,
}

// Every status of the API has a meaning, and those that want a person a remedy.
func TestEveryStatusIsExplained(t *testing.T) {
	idle := []hivev1.InventoryStatus{hivev1.InventoryAvailable, hivev1.InventoryReserved}
	for _, status := range statuses {
		s := Entry{Namespace: "fleet", Pool: "dev", Name: "a", Status: status}.ExplainStatus(remedy.FormatPlainCommand)
		if s.Meaning == "" || (len(s.Remedy) == 0) != slices.Contains(idle, status) {
			t.Errorf("%q: %+v", status, s)
		}
		for _, do := range s.Remedy {
			if do.Command != "" && !strings.Contains(do.Command, "-n fleet") {
				t.Errorf("%q: the command is not about the entry's namespace: %s", status, do.Command)
			}
			if strings.HasSuffix(do.Text, ":") != (do.Command != "") {
				t.Errorf("%q: a colon and a command come together: %+v", status, do)
			}
		}
	}
	if got := (Entry{Status: "OfTomorrow"}).ExplainStatus(remedy.FormatPlainCommand); !cmp.Equal(got, StatusExplanation{}) {
		t.Errorf("of a status that is not known it says %+v", got)
	}
}

// Who has claimed the cluster of an entry that is to go decides when it goes.
func TestAClaimedClusterIsWaitedFor(t *testing.T) {
	for claim, want := range map[string]remedy.Remedy{
		"": {Text: "Nothing: the pool replaces the cluster.", Wait: true},
		"alice": {
			Text: "Nothing: its cluster stays as it is until its claim is released:", Command: "hotspare claim release alice -n fleet",
		},
	} {
		s := Entry{Namespace: "fleet", Status: hivev1.InventoryToBeUpdated, Claim: claim}.ExplainStatus(remedy.FormatPlainCommand)
		if diff := cmp.Diff([]remedy.Remedy{want}, s.Remedy); diff != "" {
			t.Error(diff)
		}
	}
}
