package pool_test

import (
	"testing"

	"hotspare.io/hotspare/internal/pool"
)

// Nothing waits without saying for what, and who can end it.
func TestAPoolThatWaitsSaysForWhat(t *testing.T) {
	const lacks = "1 install cannot begin: a: the base domain is not valid"
	tests := map[string]struct {
		decision
		progress pool.Progress
		words    string
	}{
		"nothing is to do": {decision{settings(1, 0), "a:standby", "", ""}, pool.Settled, "settled"},
		"an install that cannot begin is no progress": {
			decision{settings(1, 0), "a:installing+sleep+stuck", "", ""},
			pool.Held, "blocked; " + lacks,
		},
		"… although a claim waits": {
			decision{settings(0, 0), "a:installing+run+stuck", "x", ""},
			pool.Held, "blocked; 1 claim waiting; " + lacks,
		},
		"… another goes on": {
			decision{settings(2, 0), "a:installing+sleep+stuck b:installing+sleep", "", ""},
			pool.Advancing, "installing 2; " + lacks,
		},
		"… and uses up maxConcurrent": {
			decision{oneAtATime(3, 0), "a:installing+sleep+stuck", "x", "start a"},
			pool.Held, "blocked; 1 claim waiting; 3 short: maxConcurrent is 1 (being installed: a); " + lacks,
		},
		"… and is replaced": {
			decision{oneAtATime(1, 0), "a:installing+sleep+stuck+stale", "", "delete a"},
			pool.Advancing, "installing 1, deleting 1",
		},
		"a released cluster waits for another deletion": {
			decision{oneAtATime(0, 0), "a:deleting b:claimed=x", "x=b!", ""},
			pool.Advancing, "deleting 1; postponed deletions: b: maxConcurrent is 1 (being deleted: a)",
		},
		"… that does not get on": {
			decision{oneAtATime(0, 0), "a:deleting+undeletable b:claimed=x", "x=b!", ""},
			pool.Held, "blocked; postponed deletions: b: maxConcurrent is 1 (being deleted: a); the deletion of a makes no progress: the credentials are wrong",
		},
		"a released cluster that is protected": {
			decision{oneAtATime(0, 0), "a:claimed=x+protected", "x=a!", ""},
			pool.Held, "blocked; the deletion of a makes no progress: it is protected: remove its annotation hive.openshift.io/protected-delete",
		},
		"a broken one waits for an install": {
			decision{oneAtATime(2, 0), "a:installing+sleep b:broken c:standby", "", ""},
			pool.Advancing, "installing 1; postponed deletions: b: maxConcurrent is 1 (being installed: a)",
		},
		"a paused install": {
			decision{settings(2, 0), "a:installing+sleep+paused b:standby", "", ""},
			pool.Held, "blocked; a is paused: remove its annotation hive.openshift.io/reconcile-pause",
		},
		"a paused resume, and the next one is started": {
			decision{settings(2, 1), "a:resuming=1m+paused b:standby", "", "start b"},
			pool.Advancing, "resuming 1; a is paused: remove its annotation hive.openshift.io/reconcile-pause",
		},
		"a waiting claim gets one that is not paused": {
			decision{settings(1, 0), "a:standby+paused b:standby", "x", "start b"},
			pool.Advancing, "resuming 1; 1 claim waiting",
		},
		"a frozen pool": {
			decision{with(settings(1, 0), func(s *pool.Settings) { s.MaxConcurrent = ptr(0) }), "a:marked", "", ""},
			pool.Held, "blocked; 1 short: maxConcurrent is 0: raise it; postponed deletions: a: maxConcurrent is 0: raise it",
		},
		"one that comes up for ever": {
			decision{settings(1, 0), "a:resuming=11m", "", ""},
			pool.Held, "blocked; a does not resume: see why with hotspare cluster describe a; hotspare replaces such clusters if you delete them, " +
				"or set spec.powerstateTransitionToRunningTimeout",
		},
		"some that come up for ever": {
			decision{settings(2, 0), "a:resuming=11m b:resuming=12m", "", ""},
			pool.Held, "blocked; a, b do not resume: see why with hotspare cluster describe a; hotspare replaces such clusters if you delete them, " +
				"or set spec.powerstateTransitionToRunningTimeout",
		},
		"one that does not stop": {
			decision{settings(2, 0), "a:standby+powerfailed b:standby", "", ""},
			pool.Held, "blocked; a does not stop: see why with hotspare cluster describe a",
		},
		"some that do not stop": {
			decision{settings(2, 0), "a:standby+powerfailed b:standby+powerfailed", "", ""},
			pool.Held, "blocked; a, b do not stop: see why with hotspare cluster describe a",
		},
		"one that does not stop, and is paused": {
			decision{settings(1, 0), "a:standby+powerfailed+paused", "", ""},
			pool.Settled, "settled",
		},
		"one that comes up until its timeout": {
			decision{with(settings(1, 0), minute), "a:resuming=1m", "", ""},
			pool.Advancing, "resuming 1",
		},
		"what is stale cannot be replaced": {
			decision{with(settings(1, 0), func(s *pool.Settings) { s.Blocked = "no image set" }), "a:standby+stale", "", ""},
			pool.Held, "blocked; 1 stale: no image set",
		},
		"a deleted pool waits for its claims": {
			decision{deleted(settings(1, 0)), "a:claimed=x", "x=a", ""},
			pool.Held, "deleting the pool; still claimed: a: release the claims",
		},
		"a deleted pool whose clusters go": {
			decision{deleted(settings(1, 0)), "a:deleting", "", ""},
			pool.Advancing, "deleting the pool",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := pool.Decide(pool.Snapshot{Settings: tc.set, Members: members(tc.members), Claims: claims(tc.claims), Now: noon})
			if got := brief(p); got != tc.want {
				t.Errorf("it does  %q\nwant     %q", got, tc.want)
			}
			if r := p.Report; r.Progress != tc.progress || r.Words != tc.words {
				t.Errorf("got  %s: %s\nwant %s: %s", r.Progress, r.Words, tc.progress, tc.words)
			}
			if r := p.Report; (r.Progress == pool.Held) != (r.Blocked != "") {
				t.Errorf("%s, and it waits for %q", r.Progress, r.Blocked)
			}
		})
	}
}

func TestAPoolThatIsBlockedWaitsToCreateWhatItHasRecorded(t *testing.T) {
	set := settings(1, 0)
	set.Blocked = "no image set"
	p := pool.Decide(pool.Snapshot{Settings: set, Pending: []string{"a"}, Now: noon})
	if r := p.Report; r.Progress != pool.Held || r.Blocked != "1 to be created: no image set" {
		t.Errorf("%s: %s", r.Progress, r.Words)
	}
}

func TestAPoolWaitsForAHubThatRefusesItsWrites(t *testing.T) {
	p := pool.Decide(pool.Snapshot{Settings: settings(1, 0), Pending: []string{"a"}, RefusedWrite: `namespaces "a" is forbidden: no team.`, Now: noon})
	want := `the hub refuses what the pool needs: namespaces "a" is forbidden: no team: its administrator can change the policy, webhook or right that refuses it`
	if r := p.Report; r.Progress != pool.Held || r.Blocked != want {
		t.Errorf("%s: %s", r.Progress, r.Blocked)
	}
	if brief(p) != "complete creation a" {
		t.Errorf("it does %q, and must try again", brief(p))
	}
	p = pool.Decide(pool.Snapshot{Settings: settings(0, 0), Members: members("a:standby"), RefusedWrite: "no", Now: noon})
	if r := p.Report; r.Progress != pool.Held || brief(p) != "delete a" {
		t.Errorf("a refused deletion: %s: %s: %s", r.Progress, r.Words, brief(p))
	}
	p = pool.Decide(pool.Snapshot{Settings: settings(1, 0), Members: members("a:standby"), RefusedWrite: "no", Now: noon})
	if r := p.Report; r.Progress != pool.Settled {
		t.Errorf("a deletion that is no longer needed: %s: %s", r.Progress, r.Words)
	}
}

// No cluster is created any more under a name that a deleted pool has recorded.
func TestADeletedPoolDoesNotWaitForItsRecordedNames(t *testing.T) {
	p := pool.Decide(pool.Snapshot{Settings: deleted(settings(1, 0)), Members: members("a:deleting+undeletable"), Pending: []string{"b"}, Now: noon})
	if r := p.Report; r.Progress != pool.Held {
		t.Errorf("%s: %s", r.Progress, r.Words)
	}
}
