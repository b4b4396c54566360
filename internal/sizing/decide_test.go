package sizing

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"hotspare.io/hotspare/internal/sizing/calendar"
	"hotspare.io/hotspare/internal/sizing/demand"
)

var seedFlag = flag.Uint64("sizing.seed", 0, "seed of random histories; 0 chooses one")

func newRand(t *testing.T) *rand.Rand {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-sizing.seed=%d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// monday is the first Monday of 2026, at midnight.
var monday = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

func given() Snapshot {
	return Snapshot{
		Now: monday, Static: Setting{Running: 3, Size: 6}, Current: Setting{Running: 3, Size: 6}, Objective: Objective{Share: 0.99},
		Durations: Durations{Resume: 5 * time.Minute, Install: 40 * time.Minute},
	}
}

// learnWeeks learns from weeks of claims at a rate for each hour of the week.
func learnWeeks(r *rand.Rand, weeks int, rate func(local time.Time) float64, zone *time.Location) *Learned {
	s := given()
	l := NewLearned(monday.AddDate(0, 0, -7*weeks), zone.String())
	l.SetLeads(s.Objective, s.Durations)
	for at := l.At; at.Before(monday); at = at.Add(time.Minute) {
		l.Advance(at)
		for range poisson(r, rate(at.In(zone))/60) {
			l.AddClaim(at, true)
		}
	}
	l.Advance(monday)
	return l
}

func poisson(r *rand.Rand, mean float64) int {
	n := 0
	for limit, p := math.Exp(-mean), r.Float64(); p > limit; n++ {
		p *= r.Float64()
	}
	return n
}

// officeHours is 12 claims an hour from Monday to Friday from 8 to 18, and 0.5 otherwise.
func officeHours(local time.Time) float64 {
	if d := local.Weekday(); d != time.Saturday && d != time.Sunday && local.Hour() >= 8 && local.Hour() < 18 {
		return 12
	}
	return 0.5
}

// runningAt returns the running count that demand alone asks for at a time after monday.
func runningAt(l *Learned, at time.Time) Target {
	later := *l
	later.SkipUnobserved(at)
	s := given()
	s.Now, s.Learned, s.Current = at, &later, Setting{}
	return Decide(s).Running
}

func TestTheBusyHoursGetMoreClusters(t *testing.T) {
	l := learnWeeks(newRand(t), 8, officeHours, time.UTC)
	night, morning := runningAt(l, monday.Add(3*time.Hour)), runningAt(l, monday.Add(9*time.Hour+30*time.Minute))
	if night.Count > 2 || morning.Count < 3 || morning.Count > 8 {
		t.Errorf("night %+v, morning %+v", night, morning)
	}
	for _, word := range []string{"Mon 9-10: ", "claims an hour expected", "a resume takes 5 min", fmt.Sprintf("%d running", morning.Count)} {
		if !strings.Contains(morning.Reason, word) {
			t.Errorf("the reason %q lacks %q", morning.Reason, word)
		}
	}
}

func TestDaylightSavingDoesNotShiftTheWorkingDay(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	l := learnWeeks(newRand(t), 8, officeHours, berlin) // in winter
	summer := time.Date(2026, 6, 1, 0, 0, 0, 0, berlin) // a Monday
	before, after := runningAt(l, summer.Add(7*time.Hour+30*time.Minute)), runningAt(l, summer.Add(8*time.Hour+30*time.Minute))
	if before.Count >= after.Count || !strings.HasPrefix(after.Reason, "Mon 8-9") {
		t.Errorf("7:30 in Berlin %+v, 8:30 %+v", before, after)
	}
}

func TestTheHourThatComesTwiceCountsTwice(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		day   time.Time
		hours float64
		of    int // the hour that comes twice, or not at all
		want  float64
	}{
		{time.Date(2026, 10, 25, 0, 0, 0, 0, berlin), 25, 2, 2},
		{time.Date(2026, 3, 29, 0, 0, 0, 0, berlin), 23, 2, 0},
	} {
		l := NewLearned(c.day, "Europe/Berlin")
		l.SetLeads(given().Objective, given().Durations)
		for at := c.day; at.Before(c.day.AddDate(0, 0, 1)); at = at.Add(20 * time.Minute) {
			l.AddClaim(at, true)
		}
		l.Advance(c.day.AddDate(0, 0, 1))
		const keep = 0.98 // a day of UTC has begun meanwhile
		if l.Hours < keep*c.hours || l.Hours > c.hours || l.WeekHours[c.of] < keep*c.want || l.WeekClaims[c.of] > 3*c.want || l.WeekClaims[c.of] < 3*keep*c.want {
			t.Errorf("%s: %.2f hours, hour %d %.2f hours and %.2f claims", c.day, l.Hours, c.of, l.WeekHours[c.of], l.WeekClaims[c.of])
		}
		if l.WeekHours[c.of+2] > 1 || l.WeekHours[c.of+2] < keep {
			t.Errorf("%s: another hour has %.2f hours", c.day, l.WeekHours[c.of+2])
		}
	}
}

func TestAClockThatIsSetBackChangesNoCount(t *testing.T) {
	l := learnWeeks(newRand(t), 4, officeHours, time.UTC)
	before := runningAt(l, monday)
	l.Advance(monday.AddDate(0, 0, -3))
	l.AddArrival(monday.Add(-time.Hour))
	if !l.At.Equal(monday) {
		t.Errorf("it is %s", l.At)
	}
	if after := runningAt(l, monday); after.Count > before.Count+1 || after.Count < before.Count {
		t.Errorf("%+v became %+v", before, after)
	}
}

func TestALongerResumeRaisesTheCountsAtOnce(t *testing.T) {
	r := newRand(t)
	var h demand.History
	s := given()
	for at := monday.AddDate(0, 0, -27); at.Before(monday); at = at.Add(time.Minute) {
		for range poisson(r, officeHours(at)/60) {
			h.Add(fmt.Sprint(at, h.Claims()), at, false, monday)
		}
	}
	running := func(resume time.Duration) int {
		d := Durations{Resume: resume, Install: 40 * time.Minute}
		l := Relearn(&h, time.Time{}, s.Objective, d, "", nil, monday)
		if l.FitsLeads(s.Objective, Durations{Resume: 5 * resume, Install: d.Install}) {
			t.Error("a resume that takes five times as long has the same scores")
		}
		return runningAt(l, monday.Add(9*time.Hour+30*time.Minute)).Count
	}
	if short, long := running(2*time.Minute), running(10*time.Minute); long < short+2 {
		t.Errorf("2 minutes: %d running, 10 minutes: %d", short, long)
	}
}

// A resume that becomes slower in small steps is learned anew, too.
func TestALeadThatRisesInSmallStepsHasOtherScores(t *testing.T) {
	l := &Learned{}
	o := given().Objective
	for steps := 0; ; steps++ {
		d := Durations{Resume: time.Duration(float64(5*time.Minute) * math.Pow(1.1, float64(steps))), Install: 40 * time.Minute}
		if steps > 0 && !l.FitsLeads(o, d) {
			if d.Resume <= 10*time.Minute || d.Resume > 11*time.Minute {
				t.Errorf("the scores of 5 minutes do not count for %s", d.Resume)
			}
			return
		}
		if d.Resume > 20*time.Minute {
			t.Fatalf("the scores of 5 minutes count for %s", d.Resume)
		}
		l.SetLeads(o, d)
	}
}

func TestWithoutGoodDataTheOwnersSettingIsInEffect(t *testing.T) {
	r := newRand(t)
	warm := learnWeeks(r, 3, officeHours, time.UTC)
	for name, c := range map[string]struct {
		change func(*Snapshot)
		want   string
	}{
		"nothing is known":      {func(s *Snapshot) { s.Learned = nil }, "no claims were recorded yet"},
		"a day is known":        {func(s *Snapshot) { s.Learned = NewLearned(monday.AddDate(0, 0, -1), ""); s.Learned.Advance(monday) }, "0 claims in 1.0 days"},
		"the record is of 2036": {func(s *Snapshot) { s.Now = s.Now.AddDate(-10, 0, 0) }, "in the future"},
		"no durations":          {func(s *Snapshot) { s.Durations = Durations{} }, "how long a resume"},
		"an objective of 100 %": {func(s *Snapshot) { s.Objective.Share = 1 }, "objective of 100 %"},
		"a forecast that is wrong": {func(s *Snapshot) {
			s.Learned.Outcomes.OfForecast.Served *= 0.5
			s.Static = Setting{90, 99}
			s.Current = s.Static
		}, "the forecast is not trusted"},
	} {
		s := given()
		learned := *warm
		s.Learned = &learned
		c.change(&s)
		p := Decide(s)
		if p.Setting() != s.Static || !strings.Contains(p.Fallback, c.want) || p.Running.Cause != ByStatic || !strings.Contains(p.Running.Reason, c.want) {
			t.Errorf("%s: %+v, want %q", name, p, c.want)
		}
	}
	s := given()
	s.Learned = warm
	if p := Decide(s); p.Fallback != "" {
		t.Errorf("with good data: %q", p.Fallback)
	}
	wrong := *warm
	wrong.Outcomes.OfForecast.Served *= 0.5
	s.Learned, s.Static, s.Current, s.Now = &wrong, Setting{}, Setting{}, monday.Add(9*time.Hour)
	wrong.SkipUnobserved(s.Now)
	if p := Decide(s); p.Fallback == "" || p.Running.Count < 3 {
		t.Errorf("a lower setting replaced the computed one, although claims wait: %+v", p)
	}
}

func TestGuards(t *testing.T) {
	number := func(n int) *int { return &n }
	none := 0.0
	entry := func(i calendar.Item) *calendar.Calendar {
		i.Name, i.Start = "Freeze", "2026-01-05"
		c, err := calendar.Parse([]calendar.Item{i})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for name, c := range map[string]struct {
		change func(*Snapshot)
		want   Setting
		cause  Cause
	}{
		"the owner's setting":                   {func(*Snapshot) {}, Setting{3, 6}, ByStatic},
		"a calendar entry wins":                 {func(s *Snapshot) { s.Calendar = entry(calendar.Item{Running: number(5), Demand: &none}) }, Setting{5, 6}, ByCalendar},
		"down by one":                           {func(s *Snapshot) { s.Current = Setting{9, 20} }, Setting{8, 19}, ByPace},
		"not twice in an interval":              {func(s *Snapshot) { s.Current.Running = 9; s.RunningLoweredAt = monday.Add(-30 * time.Second) }, Setting{9, 9}, ByPace},
		"down again after it":                   {func(s *Snapshot) { s.Current.Running = 9; s.RunningLoweredAt = monday.Add(-time.Minute) }, Setting{8, 8}, ByPace},
		"not while claims wait":                 {func(s *Snapshot) { s.Current.Running = 5; s.Waiting = 2 }, Setting{5, 6}, ByWaiting},
		"one for claims that wait":              {func(s *Snapshot) { s.Static.Running, s.Current.Running = 0, 0; s.Waiting = 1 }, Setting{1, 6}, ByWaiting},
		"one even of a pool of none":            {func(s *Snapshot) { s.Static, s.Current = Setting{}, Setting{}; s.Waiting = 1 }, Setting{1, 1}, ByWaiting},
		"the minimum":                           {func(s *Snapshot) { s.Limits.Running.Min = 4 }, Setting{4, 6}, ByMinimum},
		"the maximum, at once":                  {func(s *Snapshot) { s.Current.Running = 9; s.Limits.Running.Max = 2 }, Setting{2, 8}, ByMaximum},
		"the size limits what runs":             {func(s *Snapshot) { s.Limits.Size.Max = 2 }, Setting{2, 2}, BySize},
		"a budget without prices has no effect": {func(s *Snapshot) { s.Limits.Budget = Budget{Set: true, Limit: 1} }, Setting{3, 6}, ByStatic},
		"the budget is spent": {func(s *Snapshot) {
			s.Limits.Prices, s.Limits.Budget = Prices{Running: 1, Hibernating: 0.1}, Budget{Set: true, Limit: 100, Spent: 100}
		}, Setting{0, 0}, ByBudget},
		"the budget pays for sleeping clusters only": {func(s *Snapshot) {
			s.Limits.Prices, s.Limits.Budget = Prices{Running: 1, Hibernating: 0.1}, Budget{Set: true, Limit: 744, Spent: 744 - 0.35*27*24}
		}, Setting{0, 3}, ByBudget},
		"frozen clusters cost more of the budget": {func(s *Snapshot) {
			frozen := 0.25
			s.Limits.Prices, s.Sleeping.Freeze = Prices{Running: 1, Hibernating: 0.1, Frozen: &frozen}, 1
			s.Limits.Budget = Budget{Set: true, Limit: 744, Spent: 744 - 0.35*27*24}
		}, Setting{0, 2}, ByBudget},
		"a recommendation is not paced": {func(s *Snapshot) { s.Current = Setting{9, 20}; s.Unpaced, s.Waiting = true, 2 }, Setting{3, 6}, ByStatic},
		"the record is of the future": {func(s *Snapshot) {
			s.Current, s.Learned = Setting{2, 4}, NewLearned(monday.Add(2*time.Hour), "UTC")
		}, Setting{2, 4}, ByStatic},
		"an entry of the calendar begins within a resume": {func(s *Snapshot) {
			s.Now = monday.Add(-4 * time.Minute)
			s.Calendar = entry(calendar.Item{Running: number(5), Size: number(9)})
		}, Setting{5, 9}, ByCalendar},
		"one begins within an install": {func(s *Snapshot) {
			s.Now = monday.Add(-30 * time.Minute)
			s.Calendar = entry(calendar.Item{Running: number(5), Size: number(9)})
		}, Setting{3, 9}, ByStatic},
		"a lower one does not begin early": {func(s *Snapshot) {
			s.Now = monday.Add(-4 * time.Minute)
			s.Calendar = entry(calendar.Item{Running: number(0), Size: number(0)})
		}, Setting{3, 6}, ByStatic},
		"clocks were set back": {func(s *Snapshot) { s.Current.Running = 9; s.RunningLoweredAt = monday.Add(time.Hour) }, Setting{8, 8}, ByPace},
	} {
		s := given()
		c.change(&s)
		p := Decide(s)
		if p.Setting() != c.want || p.Running.Cause != c.cause {
			t.Errorf("%s: %+v because %q (%s), want %+v because %q", name, p.Setting(), p.Running.Cause, p.Running.Reason, c.want, c.cause)
		}
	}
}

// A rate that fell to a fraction as soon as a little less than planned was spent deleted spares, and installed them again.
func TestMoreSpendingNeverRaisesWhatMayBeSpent(t *testing.T) {
	r := newRand(t)
	for range 200 {
		now := monday.Add(time.Duration(r.IntN(31*24)) * time.Hour)
		limit, before := 1000*r.Float64(), math.Inf(1)
		for part := range 400 {
			rate := affordableRate(Budget{Set: true, Limit: limit, Spent: limit * float64(part) / 300}, now)
			if rate > before || rate < 0 || before-rate > limit/24 && !math.IsInf(before, 1) {
				t.Fatalf("at %s, %d/300 of %g spent: %g an hour after %g", now, part, limit, rate, before)
			}
			before = rate
		}
	}
}

// Random snapshots: the limits are never passed, counts go down by a twentieth at a time, claims that wait
// are served, the terse plan is the same, and the stored Learned decides the same.
func TestNoSnapshotPassesTheGuards(t *testing.T) {
	r := newRand(t)
	for range 60 {
		l := NewLearned(monday.AddDate(0, 0, -r.IntN(60)), []string{"", "Europe/Berlin", "Asia/Kathmandu", "no/zone"}[r.IntN(4)])
		s := given()
		s.Objective = Objective{Share: r.Float64(), MaxWait: time.Duration(r.IntN(10)) * time.Minute}
		s.Durations = Durations{Resume: time.Duration(r.IntN(2000)-100) * time.Second, Install: time.Duration(r.IntN(9000)-100) * time.Second}
		s.Durations.Shallow = PerShallowDepth[time.Duration]{Freeze: time.Duration(r.IntN(90)) * time.Second, Suspend: time.Duration(r.IntN(900)) * time.Second}
		l.SetLeads(s.Objective, s.Durations)
		for range r.IntN(800) {
			l.AddClaim(l.At.Add(time.Duration(r.NormFloat64()*float64(time.Hour))), r.IntN(20) > 0)
		}
		s.Learned = l
		for range 30 {
			l.Advance(l.At.Add(time.Duration(r.IntN(300)) * time.Second))
			s.randomize(r)
			s.Now = l.At
			p := Decide(s)
			checkPlan(t, s, p)
			s.Current = p.Setting()
		}
	}
}

func (s *Snapshot) randomize(r *rand.Rand) {
	s.Waiting = r.IntN(3) / 2 * r.IntN(9)
	s.Sleeping = PerShallowDepth[int]{Freeze: r.IntN(3), Suspend: r.IntN(3)}
	s.Static = Setting{Running: r.IntN(9), Size: r.IntN(20)}
	s.Limits = Limits{Running: Range{Min: r.IntN(3), Max: r.IntN(12)}, Size: Range{Min: r.IntN(4), Max: r.IntN(25)}, Interval: time.Duration(r.IntN(600)) * time.Second}
	if r.IntN(2) == 0 {
		s.Limits.Budget = Budget{Set: true, Limit: 2000 * r.Float64(), Spent: 2000 * r.Float64()}
		s.Limits.Prices = Prices{Running: r.Float64(), Hibernating: r.Float64() / 5}
		if frozen := r.Float64(); r.IntN(2) == 0 {
			s.Limits.Prices.Frozen = &frozen
		}
	}
	s.RunningLoweredAt = s.Now.Add(-time.Duration(r.IntN(900)) * time.Second)
	s.SizeLoweredAt = s.Now.Add(-time.Duration(r.IntN(48)) * time.Hour)
}

func checkPlan(t *testing.T, s Snapshot, p Plan) {
	t.Helper()
	run, size := p.Running.Count, p.Size.Count
	most := s.Limits.Running.Max
	affordable := !s.Limits.Budget.Set || s.Limits.Prices.Running == 0 ||
		s.costPerHour(run, size) <= affordableRate(s.Limits.Budget, s.Now)+1e-6
	limited := p.Running.Cause == ByMaximum || p.Running.Cause == ByBudget || p.Running.Cause == BySize
	switch {
	case run < 0 || size < 0 || run > size:
		t.Fatalf("%d of %d run\n%+v", run, size, s)
	case most > 0 && run > most, s.Limits.Size.Max > 0 && size > s.Limits.Size.Max:
		t.Fatalf("%+v passes the maximum\n%+v", p, s.Limits)
	case !affordable:
		t.Fatalf("%+v passes the budget\n%+v", p, s.Limits)
	case run < s.Limits.Running.Min && !limited:
		t.Fatalf("%+v passes the minimum\n%+v", p, s.Limits)
	case run < s.Current.Running-max(1, (s.Current.Running+19)/20) && !limited:
		t.Fatalf("from %d to %d at once: %+v", s.Current.Running, run, p)
	case s.Waiting > 0 && !limited && (run < s.Current.Running || run == 0):
		t.Fatalf("%d claims wait, and %d run: %+v", s.Waiting, run, p)
	case p.Running.Reason == "" || p.Size.Reason == "" || p.Running.Cause == "":
		t.Fatalf("no reason: %+v", p)
	}
	terse := s
	terse.Terse = true
	if got := Decide(terse).Setting(); got != p.Setting() {
		t.Fatalf("terse: %+v, want %+v", got, p.Setting())
	}
	raw, err := json.Marshal(s.Learned)
	if err != nil {
		t.Fatal(err)
	}
	var stored Learned
	if err := json.Unmarshal(raw, &stored); err != nil {
		t.Fatal(err)
	}
	stored.Advance(s.Learned.At)
	restored := s
	restored.Learned = &stored
	if got := Decide(restored).Setting(); got != p.Setting() {
		t.Fatalf("after it was stored: %+v, want %+v", got, p.Setting())
	}
}

func TestWhatIsLearnedStaysSmall(t *testing.T) {
	l := learnWeeks(newRand(t), 30, func(time.Time) float64 { return 60 }, time.UTC)
	raw, err := json.Marshal(l)
	if err != nil || len(raw) > 40_000 {
		t.Errorf("%d bytes, %v", len(raw), err)
	}
}

func TestTheWorthOfTheNextClusterFalls(t *testing.T) {
	r := newRand(t)
	for range 500 {
		c := claims{mean: math.Exp(12*r.Float64() - 8), dispersion: 3 * r.Float64(), leadHours: 0.01 + r.Float64()}
		w := newWorth(c)
		last := math.Inf(1)
		for n := range 200 {
			v := w.next()
			if v > last*(1+1e-9) || math.IsNaN(v) {
				t.Fatalf("%+v: cluster %d is worth %g, the one before %g", c, n+1, v, last)
			}
			last = v
		}
		rank := r.IntN(30)
		if price := scoreOf(c, rank); countAt(c, price-1e-6, 100) < rank+1 || countAt(c, price+1e-6, 100) > rank && price > -100 {
			t.Fatalf("%+v: the score of rank %d does not fit the counts", c, rank)
		}
	}
}

func TestThePriceIsTheQuantileOfTheScores(t *testing.T) {
	r := newRand(t)
	var s scores
	for range 4000 {
		s.add(-10 * r.Float64())
	}
	if got := s.logThreshold(0.1, 0, Method{}); math.Abs(got+9) > 0.3 {
		t.Errorf("the price of 10 %% is %g, want about -9", got)
	}
	if strict, loose := s.logThreshold(0.1, 2, Method{}), s.logThreshold(0.1, -1, Method{}); strict >= loose {
		t.Errorf("a margin makes it %g, and without %g", strict, loose)
	}
	s.forget(3600)
	if s.Total > 1 || len((&scores{}).Counts) != 0 || (&scores{}).logThreshold(0.1, 1, Method{}) != lowestScore {
		t.Errorf("after ten years: %+v", s.Total)
	}
}

// The price is the same as that of a search that estimates all bins.
func TestThePriceIsFoundWithFewEstimates(t *testing.T) {
	r := newRand(t)
	for range 400 {
		var s scores
		for range r.IntN(3000) {
			score := -12 * math.Pow(r.Float64(), 3)
			if r.IntN(8) > 0 {
				s.add(score)
			}
			if r.IntN(2) == 0 {
				s.expect(score-r.Float64(), 2.5*r.Float64())
			}
		}
		miss, margin := 0.2*r.Float64(), 4*r.Float64()-1
		m := Method{WithoutModel: r.IntN(4) == 0}
		if got, want := s.findLogThreshold(miss, margin, m), s.searchAllBins(miss, margin, m); got != want {
			t.Fatalf("miss %g, margin %g, %+v: %g, want %g", miss, margin, m, got, want)
		}
	}
}

// searchAllBins is findLogThreshold without bounds.
func (s *scores) searchAllBins(miss, margin float64, m Method) float64 {
	allowed := s.Total * miss
	seen, expected, last := 0.0, 0.0, 0.0
	for i, n := range s.Counts {
		seen += n
		if s.Expected != nil {
			expected += s.Expected[i]
		}
		waiting := estimateWaiting(seen, expected, margin, m)
		if waiting > allowed {
			return lowestScore + scoreWidth*(float64(i)+interpolate(allowed-last, waiting-last))
		}
		last = math.Max(last, waiting)
	}
	return lowestScore
}

func TestRelearnedIsCloseToLearned(t *testing.T) {
	r := newRand(t)
	var h demand.History
	l := NewLearned(monday.AddDate(0, 0, -27), "")
	s := given()
	l.SetLeads(s.Objective, s.Durations)
	n := 0
	for at := l.At; at.Before(monday); at = at.Add(time.Minute) {
		for range poisson(r, officeHours(at)/60) {
			n++
			l.AddClaim(at, true)
			h.Add(fmt.Sprint(n), at, false, monday)
		}
	}
	l.Advance(monday)
	again := Relearn(&h, time.Time{}, s.Objective, s.Durations, "", nil, monday)
	for hour := range 24 {
		at := monday.Add(time.Duration(hour)*time.Hour + 30*time.Minute)
		a, b := runningAt(l, at), runningAt(again, at)
		if d := a.Count - b.Count; d < -2 || d > 2 {
			t.Errorf("%d:30: learned %s, from the record %s", hour, a.Reason, b.Reason)
		}
	}
	if diff := cmp.Diff(l.WeekClaims, again.WeekClaims, cmpopts.EquateApprox(0.01, 0.5)); diff != "" {
		t.Error(diff)
	}
}

func TestAGapIsNotATimeWithoutDemand(t *testing.T) {
	s := given()
	rate := func(gap, claimsAfter bool) float64 {
		var h demand.History
		begin := monday.AddDate(0, 0, -20)
		for i := range 240 {
			h.Add(fmt.Sprint(i), begin.Add(time.Duration(i)*time.Hour), false, monday)
		}
		if gap {
			h.AddGap(begin.AddDate(0, 0, 10), monday.Add(-time.Hour))
		}
		if claimsAfter {
			h.Add("last", monday.Add(-30*time.Minute), false, monday)
		}
		return Relearn(&h, time.Time{}, s.Objective, s.Durations, "", nil, monday).averageRate()
	}
	for _, claimsAfter := range []bool{false, true} {
		if with, without := rate(true, claimsAfter), rate(false, claimsAfter); with < 0.85 || without > 0.65 {
			t.Errorf("one claim an hour: %.2f with a gap, %.2f without", with, without)
		}
	}
}

func TestTheTimeBeforeTheFirstClaimIsLearnedAgain(t *testing.T) {
	s := given()
	var h demand.History
	for i := range 25 {
		h.Add(fmt.Sprint(i), monday.Add(-time.Duration(i)*4*time.Hour), false, monday)
	}
	since := monday.AddDate(0, 0, -23)
	if hours := Relearn(&h, since, s.Objective, s.Durations, "", nil, monday).Hours; hours < 400 { // old ones weigh less
		t.Errorf("%.0f hours of 23 days are learned again", hours)
	}
	if l := Relearn(&h, monday.AddDate(-300, 0, 0), s.Objective, s.Durations, "", nil, monday); l.Hours > 732*24 {
		t.Errorf("%.0f hours are learned again", l.Hours)
	}
}

func TestAForecastNoticesThatDemandHasStopped(t *testing.T) {
	s := given()
	l := NewLearned(monday.AddDate(0, 0, -60), "")
	l.SetLeads(s.Objective, s.Durations)
	for at := l.At; at.Before(monday.AddDate(0, 0, -30)); at = at.Add(10 * time.Minute) {
		l.AddClaim(at, true)
	}
	forecast := func(now time.Time) Forecast {
		l.Advance(now)
		s.Now, s.Learned = now, l
		f := ForecastHour(s)
		if f == nil {
			t.Fatal("no forecast")
		}
		return *f
	}
	if busy := forecast(monday.AddDate(0, 0, -30)); busy.Mean < 4 {
		t.Errorf("six claims an hour: %+v", busy)
	}
	if silent := forecast(monday); silent.Low > 0 || silent.Mean > 1 {
		t.Errorf("a month without a claim: %+v", silent)
	}
}

// A count of hundreds falls within two hours, and one of up to 20 by one a minute.
func TestALargeCountFallsFaster(t *testing.T) {
	for _, tc := range []struct{ from, minutes int }{{1, 1}, {20, 20}, {21, 20}, {40, 30}, {300, 65}} {
		minutes := 0
		for n := tc.from; n > 0; minutes++ {
			n = stepDown(0, n)
		}
		if minutes != tc.minutes {
			t.Errorf("from %d to 0 in %d minutes, want %d", tc.from, minutes, tc.minutes)
		}
	}
	if n := stepDown(299, 300); n != 299 {
		t.Errorf("a step to 299 goes to %d", n)
	}
}

// The warm-up ends once: a demand that stops does not bring back the owner's setting, and a rare one is learned, too.
func TestEnoughWasSeenOnceItWas(t *testing.T) {
	for name, tc := range map[string]struct {
		claims       int
		every, quiet time.Duration
		fallback     bool
	}{
		"many, and then none for forty days": {25, 10 * time.Hour, 40 * 24 * time.Hour, false},
		"one every ten days":                 {20, 240 * time.Hour, time.Hour, false},
		"too few":                            {19, 240 * time.Hour, time.Hour, true},
		"too short a time":                   {100, time.Hour, time.Hour, true},
	} {
		s := given()
		l := NewLearned(monday, "")
		l.SetLeads(s.Objective, s.Durations)
		for range tc.claims {
			l.AddClaim(l.At.Add(tc.every), true)
		}
		l.Advance(l.At.Add(tc.quiet))
		s.Learned, s.Now = l, l.At
		if p := Decide(s); (p.Fallback != "") != tc.fallback {
			t.Errorf("%s: %q", name, p.Fallback)
		}
	}
}

// A pool with more claims than are learned from is known all the same.
func TestABusyRecordIsEnough(t *testing.T) {
	var h demand.History
	begin := monday.AddDate(0, 0, -14)
	for at := begin; at.Before(monday); at = at.Add(30 * time.Second) {
		for i := range 12 {
			h.Add(fmt.Sprint(at, i), at, false, at)
		}
	}
	s := given()
	s.Learned, s.Now = Relearn(&h, begin, s.Objective, s.Durations, "", nil, monday), monday
	if p := Decide(s); p.Fallback != "" {
		t.Errorf("with %d claims: %s", h.Claims(), p.Fallback)
	}
}

// Outcomes of one objective say nothing about another.
func TestAnotherObjectiveIsMeasuredAnew(t *testing.T) {
	s := given()
	s.Objective.Share = 0.9
	l := NewLearned(monday.AddDate(0, 0, -60), "")
	l.SetLeads(s.Objective, s.Durations)
	for i := range 1000 {
		l.AddClaim(l.At.Add(time.Hour), i%10 > 0)
	}
	for _, to := range []Objective{{Share: 0.99}, {Share: 0.99, MaxWait: time.Minute}} {
		l.SetLeads(to, s.Durations)
		s.Objective, s.Learned, s.Now = to, l, l.At
		if p := Decide(s); p.Fallback != "" || l.margin(to) != 1 {
			t.Errorf("%+v: %q, margin %g", to, p.Fallback, l.margin(to))
		}
		l.AddOutcome(false, true)
	}
	l.SetLeads(s.Objective, s.Durations)
	if l.Outcomes.OfForecast.Claims != 1 {
		t.Errorf("the same objective: %g claims", l.Outcomes.OfForecast.Claims)
	}
}

// Outcomes of a count that a person has chosen neither raise computed counts nor make them untrusted; status says them all the same.
func TestOutcomesOfOtherCountsSayNothing(t *testing.T) {
	s := given()
	l := learnWeeks(newRand(t), 8, func(time.Time) float64 { return 2 }, time.UTC)
	s.Learned, s.Now = l, l.At
	l.Outcomes = Outcomes{}
	want := Decide(s)
	for range 300 {
		l.AddOutcome(false, false)
	}
	got := Decide(s)
	if got.Setting() != want.Setting() || got.Fallback != "" || got.Coverage.Seen != 0 || got.Coverage.Claims < 250 {
		t.Errorf("%+v, want %+v", got, want)
	}
	for range 300 {
		l.AddOutcome(false, true)
	}
	if got := Decide(s); got.Fallback == "" || got.Running.Count < want.Running.Count {
		t.Errorf("after 300 outcomes of computed counts: %+v", got)
	}
}

func TestWhichCountsFollowTheForecast(t *testing.T) {
	for cause, want := range map[Cause]bool{
		ByDemand: true, ByStatic: true, ByPace: true, ByWaiting: true, ByMinimum: false, ByMaximum: false, ByBudget: false, ByCalendar: false,
	} {
		if got := (Plan{Computed: true, Running: Target{Cause: cause}}).FollowsForecast(); got != want {
			t.Errorf("%s: %t", cause, got)
		}
		if got := (Plan{Computed: true, Running: Target{Cause: BySize}, Size: Target{Cause: cause}}).FollowsForecast(); got != want {
			t.Errorf("the size by %s: %t", cause, got)
		}
	}
	if (Plan{Running: Target{Cause: ByStatic}}).FollowsForecast() {
		t.Error("the owner's setting counts as that of the forecast")
	}
}
