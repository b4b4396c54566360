package counts

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/sizing"
)

// noon is a Monday in winter.
var noon = time.Date(2026, 1, 12, 12, 0, 0, 0, time.UTC)

func berlin(t *testing.T) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func setting(running, size int) sizing.Setting { return sizing.Setting{Running: running, Size: size} }

// given is a pool whose counts, 2 of 6, were applied; the person's are 3 of 8. Nothing is learned yet.
func given() Snapshot {
	return Snapshot{
		Auto: true, Zone: time.UTC, Pool: setting(2, 6), Applied: &Applied{Setting: setting(2, 6), Static: setting(3, 8)},
		Sizing: sizing.Snapshot{Now: noon, Objective: sizing.Objective{Share: 0.99}, Limits: sizing.Limits{Size: sizing.Range{Max: 20}}},
	}
}

func describe(p Plan) string {
	out := fmt.Sprintf("static %d/%d", p.Static.Running, p.Static.Size)
	if m := p.Manual; m != nil {
		out += fmt.Sprintf(", respects %d/%d of %q until %s", m.Running, m.Size, m.By, m.Until.Format("2 15:04"))
	}
	if a := p.Apply; a != nil {
		out += fmt.Sprintf(", sets %d/%d", a.Running, a.Size)
	}
	if p.EndResume {
		out += ", ends the request"
	}
	return out
}

func TestWhoSetsTheCounts(t *testing.T) {
	byHand := func(s *Snapshot) { s.Pool = setting(5, 6) }
	for name, tc := range map[string]struct {
		change func(*Snapshot)
		want   string
	}{
		"the person's setting while nothing is known": {func(*Snapshot) {}, "static 3/8, sets 3/8"},
		"nothing to do":                              {func(s *Snapshot) { s.Pool, s.Applied.Setting = setting(3, 8), setting(3, 8) }, "static 3/8"},
		"a pool that is taken over is marked":        {func(s *Snapshot) { s.Applied = nil }, "static 2/6, sets 2/6"},
		"a recommendation changes nothing":           {func(s *Snapshot) { s.Auto = false }, "static 3/8"},
		"nor does it to a pool that was never taken": {func(s *Snapshot) { s.Auto, s.Applied = false, nil }, "static 2/6"},
		"a change by hand":                           {byHand, `static 5/6, respects 5/6 of "" until 13 00:00`},
		"one of somebody, in the morning":            {func(s *Snapshot) { byHand(s); s.Changed = &Change{noon.Add(-time.Hour), "kubectl-edit"} }, `static 5/6, respects 5/6 of "kubectl-edit" until 13 00:00`},
		"one of yesterday":                           {func(s *Snapshot) { byHand(s); s.Changed = &Change{noon.Add(-13 * time.Hour), "x"} }, "static 5/6, sets 5/6"},
		"one that seems to be of tomorrow":           {func(s *Snapshot) { byHand(s); s.Changed = &Change{noon.AddDate(0, 0, 1), "x"} }, `static 5/6, respects 5/6 of "x" until 13 00:00`},
		"one that was noticed before": {func(s *Snapshot) {
			byHand(s)
			s.Manual = &Manual{Setting: s.Pool, Since: noon.Add(-2 * time.Hour), By: "y"}
		}, `static 5/6, respects 5/6 of "y" until 13 00:00`},
		"one that was noticed yesterday": {func(s *Snapshot) { byHand(s); s.Manual = &Manual{Setting: s.Pool, Since: noon.AddDate(0, 0, -1)} }, "static 5/6, sets 5/6"},
		"another one than was noticed before": {func(s *Snapshot) {
			byHand(s)
			s.Manual = &Manual{Setting: setting(4, 6), Since: noon.AddDate(0, 0, -1)}
		}, `static 5/6, respects 5/6 of "" until 13 00:00`},
		"one beyond the limits":                       {func(s *Snapshot) { s.Pool = setting(5, 50) }, `static 5/50, respects 5/50 of "" until 13 00:00`},
		"one beyond the limits, the next day":         {func(s *Snapshot) { s.Pool = setting(5, 50); s.Changed = &Change{At: noon.AddDate(0, 0, -1)} }, "static 5/50, sets 5/20"},
		"a person ends it":                            {func(s *Snapshot) { byHand(s); s.Resume = true }, "static 5/6, sets 5/6, ends the request"},
		"a person ends nothing":                       {func(s *Snapshot) { s.Pool, s.Applied.Setting = setting(3, 8), setting(3, 8); s.Resume = true }, "static 3/8, ends the request"},
		"a request without a right to set":            {func(s *Snapshot) { s.Auto = false; s.Resume = true }, "static 3/8, ends the request"},
		"more are to run than exist: they do not":     {func(s *Snapshot) { s.Applied, s.Pool = nil, setting(9, 4) }, "static 9/4, sets 4/4"},
		"the counts are set back to what was applied": {func(s *Snapshot) { s.Manual = &Manual{Setting: setting(5, 6), Since: noon} }, "static 3/8, sets 3/8"},
	} {
		s := given()
		tc.change(&s)
		if got := describe(Decide(s)); got != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, tc.want)
		}
	}
}

// The counts of a pool that follows nobody's recommendation do not change, so a recommendation of one step down would
// never reach what the demand needs.
func TestARecommendationIsWhatThePoolShouldHave(t *testing.T) {
	for name, change := range map[string]func(*Snapshot){
		"mode Recommend":   func(s *Snapshot) { s.Auto = false },
		"a change by hand": func(*Snapshot) {},
	} {
		s := given()
		s.Pool, s.Sizing.Limits.Running.Max, s.Sizing.Limits.Size.Max = setting(9, 40), 1, 5
		s.Sizing.Durations = sizing.Durations{Resume: time.Minute, Install: time.Hour}
		s.Sizing.Learned = sizing.NewLearned(noon.AddDate(0, 0, -30), "UTC")
		for at := noon.AddDate(0, 0, -30); at.Before(noon); at = at.Add(12 * time.Hour) {
			s.Sizing.Learned.AddClaim(at, true)
		}
		s.Sizing.Learned.SetLeads(s.Sizing.Objective, s.Sizing.Durations)
		s.Sizing.Learned.Advance(noon)
		s.Sizing.Limits.Running.Max, s.Sizing.Limits.Size.Max = 0, 0
		change(&s)
		if p := Decide(s); !p.Recommended.Computed || p.Recommended.Running.Count > 3 || p.Recommended.Size.Count > 6 || p.Apply != nil {
			t.Errorf("%s: %+v of a pool with 9 of 40, with two claims a day", name, p.Recommended)
		}
	}
}

func TestADayEndsAtMidnightOfItsZone(t *testing.T) {
	for name, tc := range map[string]struct{ at, zone, want string }{
		"in UTC":                        {"2026-01-12T12:00:00Z", "UTC", "2026-01-13T00:00:00Z"},
		"in Berlin":                     {"2026-01-12T12:00:00Z", "Europe/Berlin", "2026-01-12T23:00:00Z"},
		"in Berlin, after midnight":     {"2026-01-12T23:00:00Z", "Europe/Berlin", "2026-01-13T23:00:00Z"},
		"a day of 23 hours":             {"2026-03-28T23:30:00Z", "Europe/Berlin", "2026-03-29T22:00:00Z"},
		"a day of 25 hours":             {"2026-10-24T22:30:00Z", "Europe/Berlin", "2026-10-25T23:00:00Z"},
		"a midnight that is left out":   {"2026-04-23T12:00:00Z", "Africa/Cairo", "2026-04-23T22:00:00Z"},
		"the last day of a year":        {"2026-12-31T12:00:00Z", "UTC", "2027-01-01T00:00:00Z"},
		"where offsets have 45 minutes": {"2026-01-12T18:14:00Z", "Asia/Kathmandu", "2026-01-12T18:15:00Z"},
	} {
		zone, err := time.LoadLocation(tc.zone)
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339, tc.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := NextMidnight(at, zone).Format(time.RFC3339); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func TestWhatIsRecordedOnThePoolIsReadAgain(t *testing.T) {
	a := Applied{Setting: setting(2, 6), Static: setting(3, 8), RunningLoweredAt: noon}
	if got := ParseApplied(a.String()); got == nil || *got != a {
		t.Errorf("%s: %+v", a, got)
	}
	for _, text := range []string{"", "x", "[]", `{"running":-1,"size":2,"static":{}}`, `{"running":1,"size":99999999999,"static":{}}`} {
		if got := ParseApplied(text); got != nil {
			t.Errorf("%q was read: %+v", text, got)
		}
	}
}

func TestAChangeIsDescribedByItsReason(t *testing.T) {
	p := Decide(given())
	got := strings.Join(p.Describe(setting(2, 6)), "; ")
	want := "spec.runningCount from 2 to 3: your setting: no claims were recorded yet; spec.size from 6 to 8: your setting: no claims were recorded yet"
	if got != want {
		t.Errorf("got %s", got)
	}
}

// history is a pool and its policy, over a random time.
type history struct {
	*testing.T
	r *rand.Rand
	s Snapshot
	// hand is what a person has set, until when it must stay; zero if nothing must.
	hand      sizing.Setting
	handUntil time.Time
	// lowered is when each count was lowered by the policy: running, size.
	lowered [2]time.Time
	// rate is the number of claims an hour.
	rate float64
	l    *sizing.Learned
}

func newHistory(t *testing.T, r *rand.Rand) *history {
	t.Helper()
	h := &history{T: t, r: r, rate: 1 + 5*r.Float64()}
	h.s = given()
	h.s.Applied, h.s.Zone = nil, berlin(t)
	h.s.Sizing.Durations = sizing.Durations{Resume: 5 * time.Minute, Install: 40 * time.Minute}
	// Two days before the clocks go forward.
	h.s.Sizing.Now = time.Date(2026, 3, 27, 22, 0, 0, 0, time.UTC)
	h.lose()
	h.editPolicy()
	return h
}

// lose begins to learn from two weeks of claims.
func (h *history) lose() {
	now := h.s.Sizing.Now
	h.l = sizing.NewLearned(now.AddDate(0, 0, -14), "Europe/Berlin")
	h.l.SetLeads(h.s.Sizing.Objective, h.s.Sizing.Durations)
	for at := h.l.At; at.Before(now); at = at.Add(10 * time.Minute) {
		h.arrive(at, 10*time.Minute)
	}
	h.s.Sizing.Learned = h.l
}

func (h *history) arrive(at time.Time, span time.Duration) {
	h.l.Advance(at)
	for mean := h.rate * span.Hours(); h.r.Float64() < mean; mean-- {
		h.l.AddClaim(at, h.r.IntN(50) > 0)
	}
}

func (h *history) editPolicy() {
	l := &h.s.Sizing.Limits
	l.Running = sizing.Range{Min: h.r.IntN(2), Max: 1 + h.r.IntN(8)}
	l.Size = sizing.Range{Min: h.r.IntN(3), Max: 2 + h.r.IntN(20)}
	l.Running.Min, l.Size.Min = min(l.Running.Min, l.Running.Max), min(l.Size.Min, l.Size.Max)
}

func (h *history) changeByHand() {
	h.s.Pool = setting(h.r.IntN(10), h.r.IntN(30))
	h.s.Changed = &Change{At: h.s.Sizing.Now, By: "kubectl-edit"}
	h.handUntil = time.Time{}
	// A request to end a change that no pass has carried out yet ends this one, too: it has no time.
	if h.s.Applied != nil && h.s.Applied.Setting != h.s.Pool && !h.s.Resume {
		h.hand, h.handUntil = h.s.Pool, NextMidnight(h.s.Sizing.Now, h.s.Zone)
	}
}

// step lets something happen.
func (h *history) step() {
	now := &h.s.Sizing.Now
	switch h.r.IntN(60) {
	case 0:
		h.changeByHand()
	case 1:
		h.editPolicy()
	case 2:
		*now = now.Add(time.Duration(h.r.IntN(600)) * time.Minute) // asleep
	case 3:
		*now = now.Add(-time.Duration(h.r.IntN(300)) * time.Minute) // the clock is set back
		h.handUntil = time.Time{}                                   // it is respected from now on, or longer
	case 4:
		h.rate = min(10*h.rate, 60)
	case 5:
		h.rate = max(h.rate/10, 0.1)
	case 6:
		h.s.Manual = nil // the status was lost
	case 7:
		h.lose()
	case 8:
		h.s.Sizing.Learned = nil
	case 9:
		h.s.Resume, h.handUntil = true, time.Time{}
	case 10:
		h.s.Auto, h.handUntil = !h.s.Auto, time.Time{}
	default:
		span := time.Duration(15+h.r.IntN(400)) * time.Second
		*now = now.Add(span)
		h.arrive(*now, span)
	}
	h.s.Sizing.Waiting = h.r.IntN(8) / 7 * h.r.IntN(5)
}

// pass decides, checks the plan, and writes what it says.
func (h *history) pass() {
	h.Helper()
	now, before := h.s.Sizing.Now, h.s.Pool
	p := Decide(h.s)
	h.check(p)
	if a := p.Apply; a != nil {
		if h.r.IntN(10) == 0 {
			return // the process dies before the write
		}
		h.checkSteps(before, p, now)
		h.s.Pool, h.s.Applied, h.s.Changed = a.Setting, a, &Change{At: now, By: "hotspare"}
	}
	if h.r.IntN(10) > 0 { // or after it
		h.s.Manual = p.Manual
	}
	if p.EndResume {
		h.s.Resume = false
	}
	again := h.s
	if q := Decide(again); q.Apply != nil && q.Apply.Setting != h.s.Pool && p.Apply == nil {
		h.Fatalf("the same moment gives another plan: %s, then %s\n%+v", describe(p), describe(q), again)
	}
}

func (h *history) check(p Plan) {
	h.Helper()
	l, n := h.s.Sizing.Limits, p.Recommended.Setting()
	if n.Size > l.Size.Max || n.Running > l.Running.Max || n.Running > n.Size || n.Running < min(l.Running.Min, l.Size.Max) || n.Size < l.Size.Min {
		h.Fatalf("%+v is outside of %+v", n, l)
	}
	if p.Apply != nil && (p.Apply.Setting != n || !h.s.Auto || p.Manual != nil) {
		h.Fatalf("%s applies something else than %+v", describe(p), n)
	}
	if h.s.Auto && h.s.Sizing.Now.Before(h.handUntil) && (p.Apply != nil || p.Manual == nil || p.Manual.Setting != h.hand) {
		h.Fatalf("%s at %s does not respect %+v until %s", describe(p), h.s.Sizing.Now, h.hand, h.handUntil)
	}
	if m := p.Manual; m != nil && (m.Until.Sub(h.s.Sizing.Now) > 25*time.Hour || !h.s.Sizing.Now.Before(m.Until)) {
		h.Fatalf("%s waits without end", describe(p))
	}
}

// checkSteps checks that counts go down one at a time, unless a limit asks for more.
func (h *history) checkSteps(before sizing.Setting, p Plan, now time.Time) {
	h.Helper()
	before = effective(before)
	for i, c := range []struct {
		from     int
		to       sizing.Target
		most     int
		interval time.Duration
	}{
		{before.Running, p.Recommended.Running, h.s.Sizing.Limits.Running.Max, time.Minute},
		{before.Size, p.Recommended.Size, h.s.Sizing.Limits.Size.Max, time.Hour},
	} {
		if c.to.Count >= c.from {
			continue
		}
		lowered := h.lowered[i]
		h.lowered[i] = now
		switch {
		case c.to.Cause == sizing.ByMaximum, c.to.Cause == sizing.BySize:
		case c.from-c.to.Count > max(1, (c.from+19)/20):
			h.Fatalf("from %d to %d at once: %s", c.from, c.to.Count, c.to.Reason)
		case !lowered.After(now) && now.Sub(lowered) < c.interval-time.Second && h.s.Applied != nil && h.s.Applied.Setting == h.s.Pool:
			h.Fatalf("lowered at %s and again at %s: %s", lowered, now, c.to.Reason)
		case h.s.Sizing.Waiting > 0:
			h.Fatalf("from %d to %d while %d claims wait", c.from, c.to.Count, h.s.Sizing.Waiting)
		}
	}
}

// Changes by hand, edits of the policy, clocks that jump, daylight saving time, demand times ten,
// what was learned is lost, and a process that dies around its write: see check and checkSteps.
func TestRandomHistories(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	applied := 0
	for range 20 {
		h := newHistory(t, r)
		for range 300 {
			h.step()
			h.pass()
		}
		if h.s.Applied != nil {
			applied++
		}
	}
	if applied < 10 {
		t.Errorf("only %d of 20 policies have set a count: the histories check too little", applied)
	}
}
