package console

import (
	"net/url"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

func (h *hub) get(key string, o client.Object) error {
	namespace, name, _ := strings.Cut(key, "/")
	return h.store.Get(h.t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, o)
}

func TestClaiming(t *testing.T) {
	for name, c := range map[string]struct {
		form     url.Values
		said     string
		life     hivev1.Duration
		priority string
	}{
		"with a name":                  {url.Values{"claim": {" x "}}, "Claim x created.", "", ""},
		"with a lifetime":              {url.Values{"claim": {"x"}, "lifetime": {"8h"}}, "Claim x created.", "8h", ""},
		"with what is no lifetime":     {url.Values{"claim": {"x"}, "lifetime": {"long"}}, `Failed: lifetime "long" is not a duration: enter one such as 8h or 90m`, "", ""},
		"with a lifetime that is over": {url.Values{"claim": {"x"}, "lifetime": {"-1h"}}, `Failed: lifetime "-1h" is not a duration`, "", ""},
		"with a priority":              {url.Values{"claim": {"x"}, "priority": {"-30"}}, "Claim x created.", "", "-30"},
		"with what is no priority":     {url.Values{"claim": {"x"}, "priority": {"2000"}}, `Failed: priority "2000" is not a whole number from -1000 to 1000: enter one such as 30, or none`, "", ""},
		"with a name that is taken":    {url.Values{"claim": {"mine"}}, `Failed: namespace default already has a claim "mine": choose another name`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			pool := poolOf("default", "dev")
			h := newHub(t, pool, claimed(pool, "mine", "dev-1"))
			b := newRig(t, h).in("admin-token-of-the-hub")
			if said := flat(b.send("/pools/default/dev/claim", c.form)); !strings.Contains(said, c.said) {
				t.Errorf("it says %q, want %q", said, c.said)
			}
			var made hivev1.ClusterClaim
			err := h.get("default/x", &made)
			if wants := strings.HasPrefix(c.said, "Claim"); wants != (err == nil) {
				t.Fatalf("made: %v", err)
			}
			if err == nil && (made.Spec.ClusterPoolName != "dev" || (c.life == "") != (made.Spec.Lifetime == nil) || c.life != "" && *made.Spec.Lifetime != c.life) {
				t.Errorf("made %+v", made.Spec)
			}
			if got := made.Annotations[hivev1.AnnotationPriority]; got != c.priority {
				t.Errorf("its priority is %q, want %q", got, c.priority)
			}
		})
	}
	t.Run("without a name one is made up", func(t *testing.T) {
		h := newHub(t, poolOf("default", "dev"))
		b := newRig(t, h).in("admin-token-of-the-hub")
		if said := b.send("/pools/default/dev/claim", url.Values{}); !strings.Contains(said, "Claim dev-") {
			t.Errorf("it says %q", said)
		}
	})
}

// flat collapses white space.
func flat(s string) string { return strings.Join(strings.Fields(s), " ") }

func TestReleasing(t *testing.T) {
	pool, other := poolOf("default", "dev"), poolOf("default", "other")
	h := newHub(t, pool, other, claimed(pool, "mine", "dev-1"), claimed(other, "theirs", ""))
	b := newRig(t, h).in("admin-token-of-the-hub")
	if said := b.send("/pools/default/dev/release", url.Values{"claim": {"theirs"}}); !strings.Contains(said, `pool dev no longer has a claim "theirs"`) {
		t.Errorf("another pool's: %q", said)
	}
	if said := b.send("/pools/default/dev/release?namespace=default", url.Values{"claim": {"mine"}}); !strings.Contains(said, "Claim mine released.") {
		t.Errorf("it says %q", said)
	}
	if err := h.get("default/mine", &hivev1.ClusterClaim{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("mine: %v", err)
	}
	if err := h.get("default/theirs", &hivev1.ClusterClaim{}); err != nil {
		t.Errorf("theirs: %v", err)
	}
	if said := b.send("/pools/default/dev/release", url.Values{"claim": {"mine"}}); !strings.Contains(said, "Failed:") {
		t.Errorf("a second time: %q", said)
	}
}

func TestResizingChangesWhatTheFormChanged(t *testing.T) {
	form := func(size, running string) url.Values {
		return url.Values{"size": {size}, "size-was": {"2"}, "running": {running}, "running-was": {"0"}}
	}
	for name, c := range map[string]struct { // the pool has 3 and 1 by now
		form          url.Values
		said          string
		size, running int32
	}{
		"the size":              {form("5", "0"), "Pool dev keeps 5 spare clusters, 1 of them running.", 5, 1},
		"how many run":          {form("2", "2"), "Pool dev keeps 3 spare clusters, 2 of them running.", 3, 2},
		"both":                  {form("0", "7"), "Pool dev keeps 0 spare clusters, 0 of them running.", 0, 7},
		"neither":               {form("2", "0"), "No changes.", 3, 1},
		"to what is no number":  {form("many", "0"), `Failed: the number of spare clusters is "many": enter a number, 0 or more`, 3, 1},
		"to less than nothing":  {form("-1", "0"), `Failed: the number of spare clusters is "-1"`, 3, 1},
		"to more than there is": {form("2", "99999999999"), `Failed: the number of running clusters is "99999999999"`, 3, 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, poolOf("default", "dev"))
			b := newRig(t, h).in("admin-token-of-the-hub")
			if said := flat(b.send("/pools/default/dev/resize", c.form)); !strings.Contains(said, c.said) {
				t.Errorf("it says %q, want %q", said, c.said)
			}
			var p hivev1.ClusterPool
			if err := h.get("default/dev", &p); err != nil || p.Spec.Size != c.size || p.Spec.RunningCount != c.running {
				t.Errorf("size %d, running %d, %v", p.Spec.Size, p.Spec.RunningCount, err)
			}
		})
	}
}

func TestOnlyAClaimsClusterIsToldToSleep(t *testing.T) {
	pool := poolOf("default", "dev")
	h := newHub(t, pool, clusterOf(pool, "dev-1", "mine"), claimed(pool, "mine", "dev-1"), clusterOf(pool, "dev-2", "theirs"), claimed(pool, "liar", "dev-2"), claimed(pool, "waits", ""))
	b := newRig(t, h).in("admin-token-of-the-hub")
	for _, c := range []struct {
		deed, claim, said string
		want              hivev1.PowerState
	}{
		{"hibernate", "mine", "Cluster dev-1 is hibernating.", hivev1.PowerHibernating},
		{"resume", "mine", "Cluster dev-1 is resuming.", hivev1.PowerRunning},
		{"hibernate", "waits", "Failed: claim waits has no cluster yet", hivev1.PowerRunning},
		{"hibernate", "liar", "Failed: cluster dev-2 no longer belongs to claim liar", hivev1.PowerRunning},
		{"hibernate", "nobody", `Failed: pool dev no longer has a claim "nobody"`, hivev1.PowerRunning},
	} {
		if said := flat(b.send("/pools/default/dev/"+c.deed, url.Values{"claim": {c.claim}})); !strings.Contains(said, c.said) {
			t.Errorf("%s %s: it says %q", c.deed, c.claim, said)
		}
		for _, name := range []string{"dev-1", "dev-2"} {
			var cd hivev1.ClusterDeployment
			want := hivev1.PowerRunning
			if name == "dev-1" {
				want = c.want
			}
			if err := h.get(name+"/"+name, &cd); err != nil || cd.Spec.PowerState != want {
				t.Errorf("%s %s: %s is %s, %v", c.deed, c.claim, name, cd.Spec.PowerState, err)
			}
		}
	}
}

// The hub checks every write, whatever a browser sends.
func TestDeedsAreDoneWithTheViewersOwnRights(t *testing.T) {
	pool := poolOf("default", "dev")
	h := newHub(t, pool, clusterOf(pool, "dev-1", "mine"), claimed(pool, "mine", "dev-1"))
	h.admit("eve", "token-of-eve", only("list clusterpools -", "watch clusterpools -"))
	b := newRig(t, h).in("token-of-eve")
	for path, form := range map[string]url.Values{
		"claim": {"claim": {"x"}}, "release": {"claim": {"mine"}}, "hibernate": {"claim": {"mine"}}, "resize": {"size": {"9"}, "size-was": {"3"}},
	} {
		if said := b.send("/pools/default/dev/"+path, form); !strings.Contains(said, "Failed:") || !strings.Contains(said, "forbidden") || !strings.Contains(said, "Ask an administrator") {
			t.Errorf("%s: it says %q", path, said)
		}
	}
	var p hivev1.ClusterPool
	var cd hivev1.ClusterDeployment
	if h.get("default/dev", &p) != nil || p.Spec.Size != 3 || h.get("dev-1/dev-1", &cd) != nil || cd.Spec.PowerState != hivev1.PowerRunning ||
		h.get("default/mine", &hivev1.ClusterClaim{}) != nil || h.get("default/x", &hivev1.ClusterClaim{}) == nil {
		t.Error("something was done")
	}
}
