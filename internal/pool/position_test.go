package pool

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestPositionsOfWaitingClaims(t *testing.T) {
	old := noon.Add(-time.Hour)
	set := func(position int, ready time.Duration) func(*Claim) {
		return func(c *Claim) {
			if c.Position = position; ready != 0 {
				c.Ready = noon.Add(ready)
			}
		}
	}
	for name, tc := range map[string]struct {
		first, second func(*Claim)
		setAt         time.Time
		served        bool // a cluster that took half an hour to install, so that there are estimates
		want          string
		next          time.Duration
	}{
		"claims get their positions":                           {want: "a=1 b=2"},
		"a young claim gets none yet":                          {second: func(c *Claim) { c.Created = noon.Add(-time.Second) }, want: "a=1", next: 4 * time.Second},
		"a position that has not changed is left":              {first: set(1, 0), second: set(2, 0)},
		"claims move up":                                       {first: set(2, 0), second: set(3, 0), want: "a=1 b=2"},
		"not more often than every ten seconds":                {first: set(2, 0), setAt: noon.Add(-time.Second), next: 9 * time.Second},
		"then they do":                                         {first: set(2, 0), second: set(2, 0), setAt: noon.Add(-positionPeriod), want: "a=1"},
		"an estimate is set":                                   {first: set(1, 0), second: set(2, 0), served: true, want: "a=1+30m0s b=2+30m0s"},
		"an estimate that moved by less than 10 seconds stays": {first: set(1, 30*time.Minute+9*time.Second), second: set(2, 30*time.Minute-9*time.Second), served: true},
		"one that moved by more is set":                        {first: set(1, 30*time.Minute+10*time.Second), second: set(2, 30*time.Minute), served: true, want: "a=1+30m0s"},
		"an estimate that nothing leads to any more goes":      {first: set(1, 30*time.Minute), second: set(2, 0), want: "a=1"},
	} {
		t.Run(name, func(t *testing.T) {
			claims := []Claim{{Name: "a", Created: old}, {Name: "b", Created: old.Add(time.Second)}}
			for i, change := range []func(*Claim){tc.first, tc.second} {
				if change != nil {
					change(&claims[i])
				}
			}
			s := Snapshot{Claims: claims, PositionsSetAt: tc.setAt, Now: noon}
			if tc.served {
				s.Members = []Member{{Name: "c", Installed: true, Running: true, Claim: "z", InstallTook: 30 * time.Minute}}
				s.Claims = append(s.Claims, Claim{Name: "z", Cluster: "c"})
			} else {
				s.Settings.Blocked = "the pull secret is missing" // so that nothing leads to a cluster
			}
			p := Decide(s)
			var got []string
			for _, st := range p.StepsOf(SetPosition) {
				words := fmt.Sprint(st.Claim, "=", st.Position)
				if !st.Ready.IsZero() {
					words += "+" + st.Ready.Sub(noon).String()
				}
				got = append(got, words)
			}
			if words := strings.Join(got, " "); words != tc.want || p.Next != tc.next {
				t.Errorf("it sets %q and looks again in %v; want %q and %v", words, p.Next, tc.want, tc.next)
			}
		})
	}
}

func TestPositionsOfManyClaimsAreSetLessOften(t *testing.T) {
	s := Snapshot{Settings: Settings{Blocked: "the pull secret is missing"}, PositionsSetAt: noon, Now: noon}
	for i := range 1000 {
		s.Claims = append(s.Claims, Claim{Name: fmt.Sprint("x", i), Created: noon.Add(-time.Hour)})
	}
	if p := Decide(s); p.CountSteps(SetPosition) > 0 || p.Next != 100*time.Second {
		t.Errorf("it sets %d at once, and looks again in %v", p.CountSteps(SetPosition), p.Next)
	}
}
