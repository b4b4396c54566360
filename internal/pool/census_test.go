package pool_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hotspare.io/hotspare/internal/pool"
)

func TestCensus(t *testing.T) {
	tests := map[string]struct {
		members, claims string
		change          func(*pool.Snapshot)
		want            pool.Census
		unclaimed       int
	}{
		"of an empty pool is zero": {want: pool.Census{}},
		"has each member in one phase": {
			members:   "a:deleting b:marked c:claimed=x d:broken e:installing f:standby g:assignable h:resuming=1m",
			claims:    "x=c",
			want:      pool.Census{Members: map[pool.Phase]int{"deleting": 1, "marked": 1, "claimed": 1, "broken": 1, "installing": 1, "standby": 2, "assignable": 1}, Given: 1, Served: 1},
			unclaimed: 4,
		},
		"counts what was given though it is being deleted, or is marked": {
			members: "a:claimed=x b:claimed=y c:claimed=z", claims: "x=a y=b! z=c",
			change: func(s *pool.Snapshot) { s.Members[1].Deleting, s.Members[2].Marked = true, true },
			want:   pool.Census{Members: map[pool.Phase]int{"claimed": 1, "deleting": 1, "marked": 1}, Given: 3, Served: 2, Leaving: 1},
		},
		"counts as stale what differs and what does not say, also broken ones, and nothing that is given or going": {
			members: "a:standby+stale b:assignable c:broken+stale d:claimed=x+stale e:deleting+stale f:marked+stale g:installing", claims: "x=d",
			change: func(s *pool.Snapshot) { s.Members[6].Version = "" },
			want: pool.Census{
				Members: map[pool.Phase]int{"standby": 1, "assignable": 1, "broken": 1, "claimed": 1, "deleting": 1, "marked": 1, "installing": 1},
				Given:   1, Stale: 3, Served: 1,
			},
			unclaimed: 3,
		},
		"tells how long the oldest waiting claim has waited, and foresees no binding": {
			members: "a:assignable", claims: "gone! x y",
			want:      pool.Census{Members: map[pool.Phase]int{"assignable": 1}, Waiting: 2, Leaving: 1, LongestWait: 99 * time.Minute},
			unclaimed: 1,
		},
		"has a claim served that was given a cluster and not told yet": {
			members: "a:claimed=x", claims: "x",
			want: pool.Census{Members: map[pool.Phase]int{"claimed": 1}, Given: 1, Served: 1},
		},
		"knows no wait before its beginning": {
			claims: "x", change: func(s *pool.Snapshot) { s.Claims[0].Created = noon.Add(time.Second) },
			want: pool.Census{Waiting: 1},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := pool.Snapshot{Settings: settings(3, 1), Members: members(tc.members), Claims: claims(tc.claims), Now: noon}
			if tc.change != nil {
				tc.change(&s)
			}
			if tc.want.Members == nil {
				tc.want.Members = map[pool.Phase]int{}
			}
			got := s.CountMembersAndClaims()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if got.ClaimableCount() != tc.unclaimed {
				t.Errorf("%d unclaimed, want %d", got.ClaimableCount(), tc.unclaimed)
			}
			rand.Shuffle(len(s.Members), func(i, j int) { s.Members[i], s.Members[j] = s.Members[j], s.Members[i] })
			rand.Shuffle(len(s.Claims), func(i, j int) { s.Claims[i], s.Claims[j] = s.Claims[j], s.Claims[i] })
			if diff := cmp.Diff(got, s.CountMembersAndClaims()); diff != "" {
				t.Errorf("the order of the lists matters:\n%s", diff)
			}
		})
	}
}

func TestCausesOfReplacement(t *testing.T) {
	patient := with(settings(1, 1), func(s *pool.Settings) { s.ResumeTimeout = 10 * time.Minute })
	tests := map[string]struct {
		members string
		change  func(*pool.Snapshot)
		want    pool.Cause
	}{
		"an install that was given up":          {members: "a:broken", want: pool.InstallFailed},
		"a power change that timed out":         {members: "a:standby+timedout", want: pool.PowerFailed},
		"machines that fail in a resume":        {members: "a:resuming=1m+tried", want: pool.PowerFailed},
		"a resume that takes too long":          {members: "a:resuming=10m", want: pool.ResumeTimedOut},
		"a cluster that cannot be reached":      {members: "a:assignable", change: func(s *pool.Snapshot) { s.Members[0].UnreachableSince = noon.Add(-time.Hour) }, want: pool.Unreachable},
		"a cluster that is not ready any more":  {members: "a:standby", change: func(s *pool.Snapshot) { s.Members[0].UnreadySince = noon.Add(-time.Hour) }, want: pool.Unready},
		"a stale cluster":                       {members: "a:assignable+stale", want: pool.Stale},
		"surplus is not replaced":               {members: "a:assignable", change: func(s *pool.Snapshot) { s.Settings.Size = 0 }, want: pool.AboveSize},
		"what is marked is not":                 {members: "a:marked", want: pool.MarkedForRemoval},
		"a claimed cluster is not":              {members: "a:claimed=x+longlost", want: pool.ClaimMissing},
		"nor are broken ones of a dying pool":   {members: "a:broken", change: func(s *pool.Snapshot) { s.Settings.Deleting = true }, want: pool.PoolDeleted},
		"nor is a stale cluster of a dying one": {members: "a:standby+stale", change: func(s *pool.Snapshot) { s.Settings.Deleting = true }, want: pool.PoolDeleted},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := pool.Snapshot{Settings: patient, Members: members(tc.members), Now: noon}
			if tc.change != nil {
				tc.change(&s)
			}
			steps := pool.Decide(s).StepsOf(pool.Delete)
			if len(steps) != 1 {
				t.Fatalf("deletes %v, want one", steps)
			}
			if steps[0].Cause != tc.want {
				t.Errorf("cause %q, want %q", steps[0].Cause, tc.want)
			}
			if broken := steps[0].Cause.IsDefect(); broken != (s.Members[0].DefectCause(&s.Settings, s.Now) != "" && !s.Settings.Deleting) {
				t.Errorf("cause %q: defective is %t", steps[0].Cause, broken)
			}
		})
	}
}

func TestPowersCountWhatIsInstalledAndStays(t *testing.T) {
	member := func(change func(*pool.Member)) pool.Member {
		m := pool.Member{Installed: true, Wanted: pool.Running}
		change(&m)
		return m
	}
	s := pool.Snapshot{Now: noon, Members: []pool.Member{
		member(func(m *pool.Member) { m.Running = true }),
		member(func(m *pool.Member) { m.Running, m.Claim = true, "x" }),
		member(func(m *pool.Member) { m.Wanted = pool.Hibernating }),
		member(func(m *pool.Member) { m.Wanted, m.PowerFailed = pool.Hibernating, true }),
		member(func(m *pool.Member) { m.MachinesFailed = true }),
		member(func(*pool.Member) {}),
		member(func(m *pool.Member) { m.Installed = false }),
		member(func(m *pool.Member) { m.Running, m.Deleting = true, true }),
		member(func(m *pool.Member) { m.Running, m.Unreadable = true, "spec" }),
	}}
	want := map[pool.PowerCondition]int{pool.PowerUp: 2, pool.PowerStarting: 1, pool.PowerDown: 1, pool.PowerFailing: 2}
	if diff := cmp.Diff(want, s.CountInstalledByPower()); diff != "" {
		t.Error(diff)
	}
}
