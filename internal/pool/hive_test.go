package pool_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hotspare.io/hotspare/internal/pool"
)

// Hive's defects that Decide is built not to have, where no other row shows it. All
// of them, with their tests, are in docs/hive-parity.md.
func TestHiveDefects(t *testing.T) {
	blocked := func(s *pool.Settings) { s.Blocked = "no image set" }
	tests := map[string]struct {
		set     pool.Settings
		members string
		claims  string
		want    string
	}{
		"B9: a broken one goes while none can be added":     {with(settings(1, 0), blocked), "a:broken", "x", "delete a"},
		"B9: and while the platform has no room":            {with(settings(1, 0), func(s *pool.Settings) { s.Room = ptr(0) }), "a:broken", "x", "delete a"},
		"B10: no count keeps a pool from going":             {with(settings(3, 1), func(s *pool.Settings) { s.Deleting = true }), "a:standby b:installing", "", "delete a, delete b"},
		"B18: a claim that goes asks for nothing":           {settings(0, 0), "", "x!", ""},
		"B18: nor for power":                                {settings(1, 0), "a:standby", "x!", ""},
		"B19: the third is woken when two do not come":      {settings(3, 0), "a:resuming=11m b:resuming=11m c:standby", "x", "start c, create"},
		"B19: and the claim gets the first that runs":       {settings(3, 0), "a:resuming=11m b:resuming=11m c:assignable", "x", "bind x c, create"},
		"B30: a full pool does not care what is missing":    {with(settings(1, 1), blocked), "a:assignable", "", ""},
		"B32: a stale install is not waited for":            {settings(3, 0), "a:standby b:installing+sleep+stale c:installing+sleep+stale", "", "delete c, delete b"},
		"B32: in its own place":                             {with(settings(2, 0), func(s *pool.Settings) { s.MaxConcurrent = ptr(3) }), "a:installing+sleep+stale b:installing+sleep+stale", "", "delete b, delete a"},
		"B32: unless a claim waits for it":                  {settings(1, 1), "a:installing+run+stale b:installing+sleep+stale", "x", "delete b"},
		"B32: and it can begin":                             {settings(1, 1), "a:installing+run+stale+stuck b:installing+run+stale+stuck", "x", "delete b, delete a"},
		"B32: or it could not be replaced":                  {with(settings(1, 1), blocked), "a:installing+run+stale", "", ""},
		"B32: what runs goes one at a time, when all stand": {settings(3, 0), "a:standby+stale b:standby+stale c:installing+sleep+stale", "", "delete c"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := pool.Snapshot{Settings: tc.set, Members: members(tc.members), Claims: claims(tc.claims), Now: noon}
			if got := brief(pool.Decide(s)); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

// B1: of five clusters that were recorded one is seen. The other four are no reason
// to make more, however long they stay away.
func TestWhatIsRecordedIsNotMadeTwice(t *testing.T) {
	s := pool.Snapshot{Settings: settings(5, 0), Members: members("a:installing+sleep"), Pending: []string{"b", "c", "d", "e"}, Now: noon}
	const recorded = "complete creation b, complete creation c, complete creation d, complete creation e"
	if got := brief(pool.Decide(s)); got != recorded {
		t.Errorf("got %q", got)
	}
	s.Settings.Size, s.Settings.MaxConcurrent = 9, ptr(5)
	if got := brief(pool.Decide(s)); got != recorded {
		t.Errorf("they are being installed, as far as maxConcurrent goes: got %q", got)
	}
}

// B28: the API server stores times in whole seconds, so many claims have the same age.
func TestThoseOfTheSameSecondAreInAnOrder(t *testing.T) {
	s := pool.Snapshot{
		Settings: settings(3, 1), Now: noon,
		Members: members("a:assignable b:assignable c:standby d:standby+stale e:installing f:installing"),
		Claims:  claims("z y x"),
	}
	for i := range s.Members {
		s.Members[i].Created = noon
	}
	for i := range s.Claims {
		s.Claims[i].Created = noon
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		r.Shuffle(len(s.Members), func(i, j int) { s.Members[i], s.Members[j] = s.Members[j], s.Members[i] })
		r.Shuffle(len(s.Claims), func(i, j int) { s.Claims[i], s.Claims[j] = s.Claims[j], s.Claims[i] })
		want := "bind x a, bind y b, start c, start d, hibernate e, hibernate f"
		if diff := cmp.Diff(want, brief(pool.Decide(s))); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestAStaleInstallIsCountedAsStale(t *testing.T) { // B32
	s := pool.Snapshot{Settings: settings(1, 0), Members: members("a:installing+sleep+stale"), Now: noon}
	if gone := pool.Decide(s).StepsOf(pool.Delete); len(gone) != 1 || gone[0].Cause != pool.Stale {
		t.Errorf("got %+v", gone)
	}
}

// B31: what a plan does to the claims is in the report of the same pass.
func TestTheReportForeseesWhatIsGivenAway(t *testing.T) {
	s := pool.Snapshot{Settings: settings(2, 2), Members: members("a:assignable b:assignable"), Claims: claims("x"), Now: noon}
	rep := pool.Decide(s).Report
	if rep.Count[pool.Assignable] != 1 || rep.Count[pool.Claimed] != 1 || rep.UnclaimedCount() != 1 || rep.Waiting != 0 {
		t.Errorf("got %+v", rep)
	}
}
