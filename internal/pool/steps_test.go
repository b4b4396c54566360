package pool_test

import (
	"testing"
	"time"

	"hotspare.io/hotspare/internal/pool"
)

// Steps that concern the pool itself, its customizations and the names that its status records.
func TestStepsOfThePoolItself(t *testing.T) {
	stocked := with(settings(1, 0), func(s *pool.Settings) { s.Inventory, s.Free = true, []string{"c"} })
	unprotected := func(s pool.Settings) pool.Settings {
		return with(s, func(s *pool.Settings) { s.FinalizerMissing = true })
	}
	invalid := func(c pool.InvalidCustomization) []pool.InvalidCustomization {
		c.Name, c.Message = "c", "pool p: no"
		return []pool.InvalidCustomization{c}
	}
	for name, tc := range map[string]struct {
		in   pool.Snapshot
		want string
	}{
		"a pool without the finalizer gets it before a cluster is created": {
			pool.Snapshot{Settings: unprotected(settings(1, 0))},
			"add finalizer: the pool must exist until its clusters are deleted\ncreate a cluster: size is 1",
		},
		"a deleted pool does not get it": {pool.Snapshot{Settings: unprotected(deleted(settings(1, 0)))}, ""},
		"a deleted pool without clusters loses it, and nothing else is done": {
			pool.Snapshot{Settings: deleted(settings(1, 0)), Pending: []string{"a"}, Unusable: map[string]pool.Cause{"a": pool.NamespaceForeign}},
			"remove finalizer: the pool is being deleted and has no clusters",
		},
		"a deleted pool with a cluster keeps it": {pool.Snapshot{Settings: deleted(settings(1, 0)), Members: members("a:deleting")}, ""},
		"a cluster is created under each recorded name": {
			pool.Snapshot{Settings: settings(2, 0), Pending: []string{"a", "b"}},
			"complete the creation of a: its name is recorded, and the cluster does not exist yet\n" +
				"complete the creation of b: its name is recorded, and the cluster does not exist yet",
		},
		"with the customization that is reserved for it": {
			pool.Snapshot{Settings: stocked, Pending: []string{"a"}, Reserved: map[string]string{"a": "c"}},
			"complete the creation of a with c: its name is recorded, and the cluster does not exist yet",
		},
		"a name without a customization waits": {pool.Snapshot{Settings: stocked, Pending: []string{"a"}}, ""},
		"nothing is created while a dependency is missing": {
			pool.Snapshot{Settings: with(settings(1, 0), func(s *pool.Settings) { s.Blocked = "no Secret" }), Pending: []string{"a"}}, "",
		},
		"a name that cannot be used is dropped, and still counts": {
			pool.Snapshot{Settings: settings(1, 0), Pending: []string{"a"}, Unusable: map[string]pool.Cause{"a": pool.SecretsOutdated}},
			"drop the recorded name a: its Secrets are outdated: the pool, or a Secret that the pool refers to, was edited after they were created",
		},
		"also in a deleted pool": {
			pool.Snapshot{
				Settings: deleted(settings(1, 0)), Members: members("b:deleting"),
				Pending: []string{"a"}, Unusable: map[string]pool.Cause{"a": pool.CustomizationExhausted},
			},
			"drop the recorded name a: no customization of the inventory is left for it",
		},
		"an invalid customization is reported": {
			pool.Snapshot{Settings: settings(0, 0), Invalid: invalid(pool.InvalidCustomization{})},
			"report customization c as invalid: pool p: no",
		},
		"once": {pool.Snapshot{Settings: settings(0, 0), Invalid: invalid(pool.InvalidCustomization{Reported: "pool p: no", ReportedByPool: true})}, ""},
		"again when the reason has changed": {
			pool.Snapshot{Settings: settings(0, 0), Invalid: invalid(pool.InvalidCustomization{Reported: "pool p: never", ReportedByPool: true})},
			"report customization c as invalid: pool p: no",
		},
		"another pool's report stays": {
			pool.Snapshot{Settings: settings(0, 0), Invalid: invalid(pool.InvalidCustomization{Reported: "pool q: no"})}, "",
		},
		"unless it is reserved for a name": {
			pool.Snapshot{Settings: settings(0, 0), Invalid: invalid(pool.InvalidCustomization{Reported: "pool q: no", ReservedForName: true})},
			"report customization c as invalid: pool p: no",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.in.Now = noon
			if got := pool.Decide(tc.in).String(); got != tc.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, tc.want)
			}
		})
	}
}

func TestThePassAfterADroppedNameDoesNotWaitForAnEvent(t *testing.T) {
	s := pool.Snapshot{Settings: settings(1, 0), Pending: []string{"a"}, Unusable: map[string]pool.Cause{"a": pool.SecretsOutdated}, Now: noon}
	if got := pool.Decide(s).Next; got != time.Millisecond {
		t.Errorf("the next pass is in %s", got)
	}
}

func TestObjectsThatAreNotWatchedAreReadAgain(t *testing.T) {
	s := pool.Snapshot{Settings: settings(0, 0), RecheckAfter: 5 * time.Second, Now: noon}
	if got := pool.Decide(s).Next; got != 5*time.Second {
		t.Errorf("the next pass is in %s", got)
	}
}
