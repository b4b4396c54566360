package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/sizing"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

var promise = sizing.Objective{Share: 0.99}

// hub is a pool that is observed.
type hub struct {
	*testing.T
	t        *Tracker
	now      time.Time
	claims   []Claim
	clusters []Cluster
	made     int
	held     []string
}

func newHub(t *testing.T) *hub { return &hub{T: t, t: NewTracker(nil), now: noon} }

// pass lets time pass, and observes.
func (h *hub) pass(after time.Duration) {
	h.now = h.now.Add(after)
	h.t.Observe(Objects{Now: h.now, Claims: h.claims, Clusters: h.clusters, Waiting: h.waiting(), Held: h.held}, promise, "UTC")
}

// waiting returns how many claims have no cluster.
func (h *hub) waiting() int {
	n := 0
	for _, c := range h.claims {
		if c.Running.IsZero() {
			n++
		}
	}
	return n
}

// claim creates a claim that is served at once, or not yet.
func (h *hub) claim(served bool) {
	h.made++
	c := Claim{ID: fmt.Sprint("claim-", h.made), Created: h.now, AtOnce: served}
	if served {
		c.Running = h.now
	}
	h.claims = append(h.claims, c)
}

// restart loses everything that is not in the record. It was saved, or this process is the first to
// save it.
func (h *hub) restart(save bool) {
	h.Helper()
	if !save {
		h.t = NewTracker(nil)
		return
	}
	r, problem, err := h.read()
	if err := errors.Join(problem, err); err != nil {
		h.Fatal(err)
	}
	h.t = NewTracker(r)
}

// read reads what was saved.
func (h *hub) read() (r *Record, problem, err error) {
	h.Helper()
	binaryData, data := h.save()
	return Read(binaryData, data, h.now)
}

// save returns the record as the maps of a ConfigMap.
func (h *hub) save() (binaryData map[string][]byte, data map[string]string) {
	h.Helper()
	binaryData, data, err := h.t.Write(h.now)
	if err != nil {
		h.Fatal(err)
	}
	return binaryData, data
}

func (h *hub) wantClaims(n int) {
	h.Helper()
	if got := h.t.Demand.Claims(); got != n {
		h.Errorf("%d claims, want %d", got, n)
	}
}

func TestClaimsAreCountedOnce(t *testing.T) {
	h := newHub(t)
	h.now = noon.AddDate(0, 0, -9)
	h.claim(true)
	h.now = noon
	h.claim(true)
	h.pass(0)
	h.wantClaims(2) // those that existed are imported
	for range 5 {
		h.pass(time.Minute)
		h.claim(true)
		h.pass(0)
	}
	h.wantClaims(7)
	h.restart(true)
	h.pass(time.Second)
	h.wantClaims(7)
	h.claim(true)
	h.pass(time.Minute)
	h.wantClaims(8)
	h.restart(true)
	h.pass(20 * time.Minute)
	h.wantClaims(8)
	h.claims = nil // deleted
	h.pass(time.Minute)
	h.wantClaims(8)
	if !h.t.Since.Equal(noon) {
		t.Errorf("recorded since %s, want %s", h.t.Since, noon)
	}
}

func TestManyOldClaimsAreNotCountedAgain(t *testing.T) {
	h := newHub(t)
	for range 3000 {
		h.now = h.now.Add(time.Minute)
		h.claim(true)
	}
	h.pass(0)
	h.restart(true)
	h.pass(time.Minute)
	h.wantClaims(3000)
}

func TestNobodyLookedDuringAGap(t *testing.T) {
	h := newHub(t)
	h.pass(0)
	h.claim(true)
	h.pass(time.Minute)
	h.restart(true)
	h.now = h.now.Add(5 * time.Hour)
	h.claim(true) // of those that were created meanwhile, most may be gone
	h.pass(5 * time.Hour)
	h.wantClaims(1)
	if gaps := h.t.Demand.Gaps(); len(gaps) != 1 || gaps[0].To.Sub(gaps[0].From) != 10*time.Hour {
		t.Errorf("gaps %v", gaps)
	}
	h.claim(true)
	h.pass(time.Minute)
	h.wantClaims(2)
	h.pass(9 * time.Hour) // the machine was suspended
	if gaps := h.t.Demand.Gaps(); len(gaps) != 2 {
		t.Errorf("gaps %v", gaps)
	}
	h.restart(true)
	h.pass(30 * time.Minute) // a short pause is none: claims that exist still are recorded
	if gaps := h.t.Demand.Gaps(); len(gaps) != 2 {
		t.Errorf("gaps %v", gaps)
	}
}

func TestAClaimIsLateUnlessItWasServedWithinTheObjective(t *testing.T) {
	for name, tc := range map[string]struct {
		objective sizing.Objective
		act       func(h *hub)
		late      int
		outcomes  float64
	}{
		"served at once":                {promise, func(h *hub) { h.claims[0].Running, h.claims[0].AtOnce = noon, true }, 0, 1},
		"served by a resume":            {promise, func(h *hub) { h.claims[0].Running = noon.Add(2 * time.Second) }, 1, 1},
		"within what it may wait":       {sizing.Objective{Share: 0.9, MaxWait: time.Minute}, func(h *hub) { h.claims[0].Running = noon.Add(time.Minute) }, 0, 1},
		"beyond that":                   {sizing.Objective{Share: 0.9, MaxWait: time.Minute}, func(h *hub) { h.claims[0].Running = noon.Add(61 * time.Second) }, 1, 1},
		"still waiting":                 {promise, func(*hub) {}, 0, 0},
		"deleted after waiting in vain": {promise, func(h *hub) { h.claims = nil }, 1, 1},
	} {
		h := newHub(t)
		h.pass(-time.Minute)
		h.now = noon
		h.claim(false)
		h.t.Observe(Objects{Now: h.now, Claims: h.claims}, tc.objective, "UTC")
		tc.act(h)
		for range 3 {
			h.now = h.now.Add(time.Minute)
			h.t.Observe(Objects{Now: h.now, Claims: h.claims}, tc.objective, "UTC")
		}
		late := 0
		for _, b := range h.t.Demand.Bins() {
			late += int(b.Late)
		}
		if late != tc.late || h.t.Learned.Outcomes.All.Claims != tc.outcomes {
			t.Errorf("%s: %d late of %g, want %d of %g", name, late, h.t.Learned.Outcomes.All.Claims, tc.late, tc.outcomes)
		}
	}
}

// Outcomes under counts that a person or a limit has set say nothing about the forecast.
func TestOutcomesOfTheForecastAreKeptApart(t *testing.T) {
	h := newHub(t)
	h.pass(0)
	ten, two := sizing.Setting{Running: 10, Size: 20}, sizing.Setting{Running: 2, Size: 20}
	pass := func(n Note) {
		h.claim(false)
		h.pass(time.Minute)
		h.claims[len(h.claims)-1].Running = h.now
		h.pass(time.Minute)
		h.t.Note(n, h.now)
	}
	chosen := Note{Pool: ten, Recommended: ten, Computed: true, FollowsForecast: true}
	for _, n := range []Note{
		chosen, // it counts for the next claim
		{Pool: two, Recommended: ten, Computed: true, FollowsForecast: true},
		{Pool: ten, Recommended: ten, Computed: true},
		chosen, chosen,
	} {
		pass(n)
	}
	check := func(what string, all, computed float64) {
		t.Helper()
		h.pass(time.Second)
		if o := h.t.Learned.Outcomes; math.Round(o.All.Claims) != all || math.Round(o.OfForecast.Claims) != computed || o.OfForecast.Served != 0 {
			t.Errorf("%s: %+v, want %g and %g", what, o, all, computed)
		}
	}
	check("after five claims", 5, 2)
	h.restart(true)
	check("after a restart", 5, 2)
	other := promise
	promise.Share = 0.9
	check("with another objective", 0, 0)
	h.restart(true)
	check("with another objective, after a restart", 0, 0)
	promise = other

	r, _, err := h.read()
	if err != nil {
		t.Fatal(err)
	}
	r.Outcomes = &Outcomes{Share: 0.99, Outcomes: sizing.Outcomes{OfForecast: sizing.Outcome{Claims: 1e300, Served: 1e300}}}
	if err := r.check(); err != nil || r.Outcomes != nil {
		t.Errorf("outcomes that nobody has counted: %v, %+v", err, r.Outcomes)
	}
}

func TestAClaimThatIsWithdrawnSaysNothing(t *testing.T) {
	h := newHub(t)
	h.pass(0)
	h.claim(false)
	h.pass(time.Second)
	h.claims = nil
	h.pass(time.Second)
	if h.t.Learned.Outcomes.All.Claims != 0 {
		t.Error("it counts as late")
	}
}

// A ClaimPolicy may hold a claim after the record has seen it. It is no demand while it is held, and the same claim afterwards.
func TestAClaimThatIsHeldLaterCountsOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		admitted, restarted bool
		want                float64 // outcomes
	}{
		"admitted": {true, false, 1}, "deleted while it is held": {false, false, 0},
		"admitted after a restart": {true, true, 0}, // its outcome is not known to the new process
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			h.pass(0)
			h.claim(false)
			h.pass(time.Second)
			h.held, h.claims = []string{"claim-1"}, nil
			h.pass(time.Hour)
			if tc.restarted {
				h.restart(true)
			}
			if h.held = nil; tc.admitted {
				h.claims = []Claim{{ID: "claim-1", Created: h.now, Running: h.now, AtOnce: true}}
			}
			h.pass(time.Minute)
			h.wantClaims(1)
			if got := h.t.Learned.Outcomes.All; got.Claims != tc.want || got.Served != tc.want {
				t.Errorf("outcomes %+v, want %g, all served", got, tc.want)
			}
			for _, b := range h.t.Demand.Bins() {
				if b.Claims == 0 || b.Late > 0 {
					t.Errorf("%+v", b)
				}
			}
			for _, q := range h.t.Quarters {
				if q.Unserved > 0 {
					t.Errorf("%d unserved", q.Unserved)
				}
			}
		})
	}
}

func TestDurationsAreMeasured(t *testing.T) {
	h := newHub(t)
	install := &Duration{Cluster: "a", At: noon, Seconds: 2400}
	h.clusters = []Cluster{{Name: "a", Install: install}}
	h.pass(0)
	if got, want := h.t.Measured(), (sizing.Durations{Resume: 40 * time.Minute, Install: 40 * time.Minute}); got != want {
		t.Errorf("before the first resume: %+v, want %+v", got, want)
	}
	for i := range 250 {
		at := h.now.Add(time.Duration(i) * time.Second)
		h.clusters = []Cluster{
			{Name: "a", Install: install, Resume: &Duration{Cluster: "a", At: at, Seconds: int64(i%10 + 1)}},
			{Name: "b", Resume: &Duration{Cluster: "b", At: noon, Failed: true}},
		}
		h.pass(time.Second)
		h.pass(time.Second) // the same once more
	}
	d := h.t.Resumes
	if len(d) != 100 || d.Quantile(0.5) != 5*time.Second || d.Quantile(0.9) != 9*time.Second || d.Failed() != 0 {
		t.Errorf("%d resumes, median %s, p90 %s, %d failed", len(d), d.Quantile(0.5), d.Quantile(0.9), d.Failed())
	}
	if got, want := h.t.Measured(), (sizing.Durations{Resume: 9 * time.Second, Install: 40 * time.Minute}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Resumes from shallow depths are kept apart: a resume from stop takes as long as it takes.
func TestAJumpOfDurationsCountsAfterAFew(t *testing.T) {
	var d Details
	for range 100 {
		d.Resumes = append(d.Resumes, Duration{Seconds: 60})
	}
	for n, want := range []time.Duration{60, 60, 60, 300} {
		d.Resumes = append(d.Resumes[1:], Duration{Seconds: 300})
		if got := d.Measured().Resume; got != want*time.Second {
			t.Errorf("after %d long resumes: %s, want %s", n+1, got, want*time.Second)
		}
	}
	for range 30 {
		d.Resumes = append(d.Resumes[1:], Duration{Seconds: 20})
	}
	if got := d.Measured().Resume; got != 20*time.Second {
		t.Errorf("after 30 short resumes: %s", got)
	}
}

func TestResumesAreMeasuredByDepth(t *testing.T) {
	h := newHub(t)
	for i := range 250 {
		resume := &Duration{Cluster: "a", At: h.now, Seconds: int64(i%10 + 1)}
		h.clusters = []Cluster{
			{Name: "a", Resume: resume, ResumedFrom: cloud.DepthFreeze},
			{Name: "b", Resume: &Duration{Cluster: "b", At: h.now, Seconds: 300}, ResumedFrom: cloud.DepthStop},
			{Name: "c", Resume: &Duration{Cluster: "c", At: noon, Failed: true}, ResumedFrom: cloud.DepthSuspend},
			{Name: "d", Resume: &Duration{Cluster: "d", At: noon, Seconds: 200}},
		}
		h.pass(time.Second)
	}
	h.restart(true)
	d := h.t.ShallowResumes
	if len(d.Freeze) != 100 || d.Freeze.Quantile(0.5) != 5*time.Second || len(d.Suspend) != 1 || d.Suspend.Failed() != 1 || len(h.t.Resumes) != 100 {
		t.Errorf("%d from freeze, median %s; %+v from suspend; %d from stop", len(d.Freeze), d.Freeze.Quantile(0.5), d.Suspend, len(h.t.Resumes))
	}
	want := sizing.Durations{Resume: 5 * time.Minute, Shallow: sizing.PerShallowDepth[time.Duration]{Freeze: 9 * time.Second}, Install: 0}
	if got := h.t.Measured(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Whether the platform has refused a depth is seen when a spare goes to sleep: later, its processes may have ended, somebody may have
// claimed it, or wished another depth.
func TestRefusedDepthsAreThoseOfNewSleeps(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Cluster)
		want   bool
	}{
		"refused":                    {func(*Cluster) {}, true},
		"it sleeps as it should":     {func(c *Cluster) { c.Depth = cloud.DepthFreeze }, false},
		"it went to sleep long ago":  {func(c *Cluster) { c.AsleepSince = noon.Add(-time.Hour) }, false},
		"somebody has claimed it":    {func(c *Cluster) { c.State = Claimed }, false},
		"a depth that nobody wanted": {func(c *Cluster) { c.WantedDepth = cloud.DepthStop }, false},
	} {
		h := newHub(t)
		c := Cluster{Name: "a", State: Hibernating, Depth: cloud.DepthStop, WantedDepth: cloud.DepthFreeze, AsleepSince: noon.Add(-time.Minute)}
		tc.change(&c)
		h.clusters = []Cluster{c}
		h.pass(0)
		if got := h.t.RecentlyRefused(h.now); got.Freeze != tc.want || got.Suspend != tc.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestHoursAreCountedByDepth(t *testing.T) {
	h := newHub(t)
	h.clusters = []Cluster{
		{Name: "a"},
		{Name: "b", State: Hibernating, Depth: cloud.DepthFreeze},
		{Name: "c", State: Hibernating, Depth: cloud.DepthSuspend},
		{Name: "d", State: Hibernating},
		{Name: "e", State: Claimed, Depth: cloud.DepthFreeze},
	}
	h.pass(0)
	h.pass(time.Hour)
	h.restart(true)
	h.pass(time.Hour)
	want := sizing.PerShallowDepth[float64]{Freeze: 2, Suspend: 2}
	if h.t.ShallowHours != want || h.t.HibernatingHours != 6 {
		t.Errorf("%+v of %g hours", h.t.ShallowHours, h.t.HibernatingHours)
	}
	if q := h.t.Quarters[0]; q.Shallow != (sizing.PerShallowDepth[int64]{Freeze: 900, Suspend: 900}) || q.Clusters[Hibernating] != 2700 {
		t.Errorf("%+v", q)
	}
	h.pass(31 * 24 * time.Hour)
	if want := h.t.HibernatingHours / 3; want > 40 || h.t.ShallowHours.Freeze != want {
		t.Errorf("in the next month: %+v", h.t.ShallowHours)
	}
}

// olderDetails were written before resumes and hours were kept by depth.
const olderDetails = `{"since":"2026-03-02T12:00:00Z","until":"2026-03-02T13:00:00Z","resumes":[{"cluster":"a","at":"2026-03-02T12:30:00Z","seconds":300}],` +
	`"installs":[{"cluster":"a","at":"2026-03-02T12:20:00Z","seconds":2400}],"month":"2026-03","runningHours":1,"hibernatingHours":3}`

func TestARecordOfAnOlderVersionIsRead(t *testing.T) {
	h := newHub(t)
	h.pass(0)
	claims, _, err := h.t.Encode(h.now)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Decode(claims, olderDetails, noon.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.Measured(), (sizing.Durations{Resume: 5 * time.Minute, Install: 40 * time.Minute}); got != want || r.ShallowHours != (sizing.PerShallowDepth[float64]{}) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if _, details, err := (&Record{Details: r.Details}).Encode(noon); err != nil || strings.Contains(details, "shallow") {
		t.Errorf("what was not seen is written: %s, %v", details, err)
	}
	forged := strings.Replace(olderDetails, `"month"`, `"shallowHours":{"freeze":4},"month"`, 1)
	if r, err := Decode(claims, forged, noon.Add(time.Hour)); err != nil || r.ShallowHours.Freeze != 0 {
		t.Errorf("more hours of frozen clusters than of all that slept: %v, %v", r, err)
	}
}

func TestHoursOfAMonthAreCounted(t *testing.T) {
	h := newHub(t)
	h.now = time.Date(2026, 3, 31, 20, 0, 0, 0, time.UTC)
	h.clusters = []Cluster{{Name: "a"}, {Name: "b", State: Hibernating}, {Name: "c", State: Claimed}}
	prices := sizing.Prices{Running: 10, Hibernating: 1}
	spent := func() float64 { return h.t.Spent(prices, h.now) }
	h.pass(0)
	h.pass(time.Hour)
	if spent() != 11 {
		t.Errorf("after an hour: %g", spent())
	}
	h.restart(true)
	h.pass(time.Hour)
	if spent() != 22 {
		t.Errorf("after a restart: %g", spent())
	}
	h.pass(3 * time.Hour) // one of them in April
	if spent() != 11 {
		t.Errorf("in the next month: %g", spent())
	}
}

// A pool had one cluster, and nobody looked for two weeks. Nineteen others are an hour old now: they have not cost two weeks.
func TestClustersOfAGapCountFromTheirCreation(t *testing.T) {
	h := newHub(t)
	h.now = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	h.clusters = []Cluster{{Name: "a", Created: h.now}}
	h.pass(0)
	h.pass(time.Hour)
	h.now = h.now.AddDate(0, 0, 14)
	for i := range 19 {
		h.clusters = append(h.clusters, Cluster{Name: fmt.Sprint(i), Created: h.now.Add(-time.Hour)})
	}
	h.pass(0)
	if want := 1 + 14*24 + 19.0; h.t.RunningHours != want {
		t.Errorf("%g hours, want %g", h.t.RunningHours, want)
	}
}

func TestARecordIsSavedNowAndThen(t *testing.T) {
	h := newHub(t)
	saves := 0
	for range 240 {
		h.pass(time.Minute)
		if h.t.NeedsSave(h.now) {
			h.t.MarkSaved(h.now)
			saves++
		}
	}
	if saves != 4 {
		t.Errorf("%d saves in four idle hours, want the first and one an hour", saves)
	}
	saves = 0
	for range 60 {
		h.claim(true)
		h.pass(time.Minute)
		if h.t.NeedsSave(h.now) {
			h.t.MarkSaved(h.now)
			saves++
		}
	}
	if saves > 20 || saves < 15 {
		t.Errorf("%d saves in a busy hour, want one every three minutes", saves)
	}
}

func TestAClockThatIsSetBack(t *testing.T) {
	h := newHub(t)
	for range 300 {
		h.claim(true)
		h.pass(time.Minute)
	}
	before := h.t.Demand.Bins()
	h.now = h.now.AddDate(-1, 0, 0)
	h.claim(true)
	h.pass(0)
	if diff := cmp.Diff(before, h.t.Demand.Bins()); diff != "" {
		t.Errorf("the record has changed: %s", diff)
	}
	if h.t.NeedsSave(h.now) || !h.t.IsAhead(h.now) {
		t.Error("it would be saved")
	}
	h.now = h.now.AddDate(1, 0, 0)
	h.pass(time.Minute)
	if h.t.IsAhead(h.now) || h.t.Demand.Claims() < 300 {
		t.Errorf("%d claims, once the clock is right", h.t.Demand.Claims())
	}
}

// A clock is ahead for a while, as that of a computer that keeps local time, and is then corrected. Nothing waits until it gets there again,
// and nothing of that time counts.
func TestAClockThatWasAhead(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"nine hours": 9 * time.Hour, "twenty days": 480 * time.Hour, "three years": 3 * 365 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			h.clusters = []Cluster{{Name: "a", Created: noon}}
			for range 300 {
				h.claim(true)
				h.pass(time.Minute)
			}
			h.t.Demand.AddGap(noon.Add(-9*time.Hour), noon.Add(-6*time.Hour))
			h.t.RefusedDepths.Freeze = noon
			h.t.MarkSaved(h.now)
			right, hours, quarters, gaps := h.now, h.t.RunningHours, len(h.t.Quarters), h.t.Demand.Gaps()
			h.now = h.now.Add(ahead)
			h.clusters[0].Depth, h.clusters[0].WantedDepth, h.clusters[0].State = cloud.DepthStop, cloud.DepthFreeze, Hibernating
			h.clusters[0].AsleepSince = h.now
			for range 5 {
				h.pass(time.Minute)
				h.t.Note(Note{}, h.now)
				if h.t.NeedsSave(h.now) {
					t.Fatal("the wrong time is saved")
				}
			}
			h.clusters[0] = Cluster{Name: "a", Created: noon}
			h.now = right.Add(6 * time.Minute)
			if h.t.IsAhead(h.now) {
				t.Fatal("the record waits for the wrong time")
			}
			h.pass(0)
			h.claim(true)
			h.pass(time.Minute)
			h.wantClaims(301)
			if diff := cmp.Diff(gaps, h.t.Demand.Gaps()); diff != "" {
				t.Error(diff)
			}
			if want := hours + 7.0/60; math.Abs(h.t.RunningHours-want) > 1e-9 || h.t.HibernatingHours != 0 {
				t.Errorf("%g hours, want %g", h.t.RunningHours, want)
			}
			if n := len(h.t.Quarters); n < quarters || n > quarters+1 {
				t.Errorf("%d quarters, want %d", n, quarters)
			}
			if !h.t.RefusedDepths.Freeze.Equal(noon) || h.t.Learned.At.After(h.now) || !h.t.Until.Equal(h.now) || !h.t.NeedsSave(h.now.Add(saveInterval)) {
				t.Errorf("refused at %s, learned until %s, recorded until %s", h.t.RefusedDepths.Freeze, h.t.Learned.At, h.t.Until)
			}
		})
	}
}

// The record of a quiet time is saved as before once it is clear that the clock is right.
func TestATimeWithoutAPassIsSavedLater(t *testing.T) {
	h := newHub(t)
	h.pass(0)
	h.t.MarkSaved(h.now)
	h.pass(5 * time.Hour)
	minutes := 0
	for ; !h.t.NeedsSave(h.now) && minutes < 100; minutes++ {
		h.pass(time.Minute)
	}
	if want := int(jumpDelay/time.Minute) + 1; minutes != want {
		t.Errorf("saved after %d minutes, want %d", minutes, want)
	}
	if n := len(h.t.Demand.Gaps()); n != 1 {
		t.Errorf("%d gaps", n)
	}
	h.pass(5 * time.Hour)
	h.t.MarkUnsaved() // its ConfigMap would be deleted with an earlier pool of this name
	if !h.t.NeedsSave(h.now) {
		t.Error("a record that must be saved at once is not")
	}
}

func TestWhatIsNoRecordIsRefused(t *testing.T) {
	h := newHub(t)
	h.clusters = []Cluster{{Name: "a", Install: &Duration{Cluster: "a", At: noon, Seconds: 60}}}
	h.claim(true)
	h.pass(0)
	claims, details, err := h.t.Encode(h.now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Decode(claims, details, h.now); err != nil {
		t.Fatal(err)
	}
	if _, err := Decode(claims, details, h.now.AddDate(-1, 0, 0)); !errors.Is(err, ErrFuture) {
		t.Errorf("one from the future: %v", err)
	}
	for name, tc := range map[string]struct{ old, new string }{
		"nothing":                     {details, ""},
		"a list":                      {details, "[]"},
		"no beginning":                {`"since":"2026`, `"from":"2026`},
		"an end before that":          {`"until":"2026`, `"until":"2025`},
		"a negative duration":         {`"seconds":60`, `"seconds":-60`},
		"an endless duration":         {`"seconds":60`, `"seconds":99999999999`},
		"a duration in words":         {`"seconds":60`, `"seconds":"long"`},
		"negative hours":              {`"month":`, `"runningHours":-5,"month":`},
		"a duration of -1 at a depth": {`"month":`, `"shallowResumes":{"freeze":[{"cluster":"a","at":"2026-03-02T12:00:00Z","seconds":-1}]},"month":`},
	} {
		bad := strings.Replace(details, tc.old, tc.new, 1)
		if bad == details {
			t.Fatalf("%s: %s has no %s", name, details, tc.old)
		}
		if _, err := Decode(claims, bad, h.now); err == nil || errors.Is(err, ErrFuture) {
			t.Errorf("%s was read: %v", name, err)
		}
	}
	if _, err := Decode(claims[1:], details, h.now); err == nil {
		t.Error("broken claims were read")
	}
}

// No bytes lead to more than a recommendation: whatever is read can be used, and in time.
func TestForgedRecordsDoNoHarm(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	h := newHub(t)
	for i := range 200 {
		h.claims = append(h.claims, Claim{ID: fmt.Sprint(i), Created: noon.Add(-time.Duration(i) * time.Hour), Running: noon, AtOnce: true})
	}
	h.clusters = []Cluster{{Name: "a", Install: &Duration{Cluster: "a", At: noon, Seconds: 60}}}
	h.pass(0)
	claims, details, err := h.t.Encode(h.now)
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for range 500 {
		raw, text := append([]byte{}, claims...), []byte(details)
		raw[r.IntN(len(raw))] = byte(r.Uint32())
		if r.IntN(2) == 0 {
			text[r.IntN(len(text))] = byte('0' + r.IntN(10))
		}
		rec, err := Decode(raw, string(text), h.now)
		if err != nil {
			continue
		}
		read++
		tr := NewTracker(rec)
		tr.Observe(Objects{Now: h.now.Add(time.Minute), Claims: h.claims, Clusters: h.clusters}, promise, "UTC")
		p := sizing.Decide(sizing.Snapshot{
			Now: h.now.Add(time.Minute), Learned: tr.Learned, Objective: promise, Durations: tr.Measured(),
			Limits: sizing.Limits{Size: sizing.Range{Max: 7}, Running: sizing.Range{Max: 4}},
		})
		if p.Size.Count > 7 || p.Running.Count > 4 || p.Running.Count < 0 {
			t.Fatalf("%+v", p)
		}
		if _, _, err := tr.Encode(h.now); err != nil {
			t.Fatal(err)
		}
	}
	if read < 20 {
		t.Errorf("only %d of 500 were read: the test checks too little", read)
	}
}

// A forged record must not keep a budget spent, or have durations that no later one replaces.
func TestForgedDetails(t *testing.T) {
	h := newHub(t)
	h.pass(0)
	for name, tc := range map[string]struct {
		forge   func(*Details)
		refused string
	}{
		"hours of a month": {func(d *Details) { d.RunningHours = 1e300 }, "its hours of the month are not numbers from 0 to 744000000"},
		"a resume of another century": {func(d *Details) {
			d.Resumes = Durations{{Cluster: "a", At: h.now.AddDate(200, 0, 0), Seconds: 1}}
		}, `a duration of cluster "a" is from 22`},
		"a refused depth": {func(d *Details) { d.RefusedDepths.Freeze = h.now.AddDate(200, 0, 0) }, ""},
	} {
		forged := h.t.Record
		tc.forge(&forged.Details)
		claims, details, err := forged.Encode(h.now)
		if err != nil {
			t.Fatal(err)
		}
		rec, err := Decode(claims, details, h.now)
		if tc.refused != "" {
			if err == nil || !strings.Contains(err.Error(), tc.refused) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || !rec.RefusedDepths.Freeze.IsZero() {
			t.Errorf("%s: %v, %+v", name, err, rec)
		}
	}
}

func TestForgedTimesAreDropped(t *testing.T) {
	h := newHub(t)
	h.pass(0)
	_, details, err := h.t.Encode(h.now)
	if err != nil {
		t.Fatal(err)
	}
	raw := []byte{1, 2} // the version, two bins
	for _, start := range []int64{-1e12, 1e12} {
		raw = binary.AppendVarint(raw, start)
		raw = binary.AppendUvarint(raw, math.MaxUint32<<3)
	}
	raw = append(raw, 2) // gaps
	for _, at := range []time.Time{h.now.AddDate(-300, 0, 0), h.now.AddDate(-200, 0, 0), h.now.Add(-time.Hour), h.now.AddDate(200, 0, 0)} {
		raw = binary.AppendVarint(raw, at.Unix())
	}
	raw = append(raw, 0) // no claim is known
	rec, err := Decode(raw, details, h.now)
	if err != nil {
		t.Fatal(err)
	}
	if n := rec.Demand.Claims(); n != 0 {
		t.Errorf("%d claims", n)
	}
	tr := NewTracker(rec)
	now := h.now.Add(2 * time.Hour)
	tr.Observe(Objects{Now: now}, promise, "UTC")
	if tr.Learned.At.After(now) {
		t.Errorf("it has learned until %s", tr.Learned.At)
	}
}
