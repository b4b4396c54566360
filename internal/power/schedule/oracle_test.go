package schedule

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

var (
	seed   = flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the random schedules")
	worlds = flag.Int("worlds", 40, "random schedules to live through")
)

// zones are such that change their clocks in many ways, and such that never do.
var zones = []string{
	"UTC", "Europe/Berlin", "Europe/Dublin", "America/New_York", "America/Havana", "America/Santiago", "America/St_Johns",
	"Africa/Cairo", "Africa/Casablanca", "Asia/Beirut", "Asia/Kathmandu", "Asia/Tokyo", "Australia/Lord_Howe", "Pacific/Chatham", "Pacific/Auckland",
}

// rule is a cron expression as sets, and naive about everything.
type rule struct {
	minutes, hours []int
	weekdays       []int // empty: all
	zone           *time.Location
	power          hivev1.PowerState
}

func (r rule) String() string {
	days := "*"
	if len(r.weekdays) > 0 {
		days = numbers(r.weekdays)
	}
	return fmt.Sprintf("%s %s * * %s", numbers(r.minutes), numbers(r.hours), days)
}

func numbers(in []int) string {
	var out []string
	for _, n := range in {
		out = append(out, strconv.Itoa(n))
	}
	return strings.Join(out, ",")
}

func (r rule) matches(year int, month time.Month, day, minute int) bool {
	weekday := int(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Weekday())
	return slices.Contains(r.hours, minute/60) && slices.Contains(r.minutes, minute%60) &&
		(len(r.weekdays) == 0 || slices.Contains(r.weekdays, weekday))
}

// oracle watches the clocks minute by minute.
type oracle struct {
	rules []rule
	// shown is the latest that each rule's clock has ever shown.
	shown []time.Time
	// all are the slots so far.
	all []Slot
}

// minute lets one pass.
func (o *oracle) minute(now time.Time) {
	var slot Slot
	for i, r := range o.rules {
		l := now.In(r.zone)
		shows := time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), 0, 0, time.UTC)
		if o.shown[i].IsZero() {
			o.shown[i] = shows
			continue
		}
		for o.shown[i].Before(shows) { // more than one minute when the clock leaps
			o.shown[i] = o.shown[i].Add(time.Minute)
			at := o.shown[i]
			if r.matches(at.Year(), at.Month(), at.Day(), at.Hour()*60+at.Minute()) && slot.Power != hivev1.PowerRunning {
				slot = Slot{now, r.power}
			}
		}
	}
	if !slot.IsZero() {
		o.all = append(o.all, slot)
	}
}

// last is the last slot after a moment; naive, too.
func (o *oracle) last(after time.Time) Slot {
	if n := len(o.all); n > 0 && o.all[n-1].At.After(after) {
		return o.all[n-1]
	}
	return Slot{}
}

// few are up to n different numbers below most.
func few(r *rand.Rand, n, most int) []int {
	set := map[int]bool{}
	for range 1 + r.IntN(n) {
		set[r.IntN(most)] = true
	}
	return slices.Sorted(maps.Keys(set))
}

func randomRules(r *rand.Rand) []rule {
	var out []rule
	for range 1 + r.IntN(3) {
		zone, err := time.LoadLocation(zones[r.IntN(len(zones))])
		if err != nil {
			panic(err)
		}
		for _, power := range []hivev1.PowerState{hivev1.PowerHibernating, hivev1.PowerRunning} {
			one := rule{minutes: few(r, 2, 60), zone: zone, power: power, hours: few(r, 2, 24)}
			if r.IntN(2) == 0 {
				one.hours = few(r, 3, 4) // where clocks change
			}
			if r.IntN(3) == 0 {
				one.weekdays = few(r, 5, 7)
			}
			out = append(out, one)
		}
	}
	return out
}

func windowsOf(rules []rule) []v1alpha1.Window {
	var out []v1alpha1.Window
	for i := 0; i < len(rules); i += 2 {
		out = append(out, v1alpha1.Window{
			Hibernate: v1alpha1.Cron(rules[i].String()), Resume: v1alpha1.Cron(rules[i+1].String()), TimeZone: rules[i].zone.String(),
		})
	}
	return out
}

// changes are some days around which clocks change, somewhere.
var changes = []time.Time{
	time.Date(2026, 3, 7, 0, 0, 0, 0, time.UTC), time.Date(2026, 3, 28, 0, 0, 0, 0, time.UTC), time.Date(2026, 4, 3, 0, 0, 0, 0, time.UTC),
	time.Date(2026, 4, 22, 0, 0, 0, 0, time.UTC), time.Date(2026, 9, 5, 0, 0, 0, 0, time.UTC), time.Date(2026, 9, 26, 0, 0, 0, 0, time.UTC),
	time.Date(2026, 10, 3, 0, 0, 0, 0, time.UTC), time.Date(2026, 10, 24, 0, 0, 0, 0, time.UTC), time.Date(2026, 10, 31, 0, 0, 0, 0, time.UTC),
	time.Date(2026, 2, 14, 0, 0, 0, 0, time.UTC), time.Date(2026, 3, 21, 0, 0, 0, 0, time.UTC), time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC),
}

// A world has a schedule, clusters, and what happens to them. In each minute slots
// come at :00, everybody looks at :48, people change things at :50, and the
// controller goes and comes at :55.
type world struct {
	*rand.Rand
	t      *testing.T
	oracle oracle
	seen   Snapshot
	up     bool
	look   time.Time // when the controller looks next

	// What the oracle thinks: the slot that is noted, and the clusters' power.
	noted Slot
	power map[string]hivev1.PowerState
	// told contains the steps that were taken, to check that none is taken twice.
	told map[string]bool
	took int
	// made is the number of clusters created.
	made int
}

func newWorld(t *testing.T, r *rand.Rand) *world {
	t.Helper()
	w := &world{
		Rand: r, t: t, oracle: oracle{rules: randomRules(r)}, up: true,
		power: map[string]hivev1.PowerState{}, told: map[string]bool{},
	}
	w.oracle.shown = make([]time.Time, len(w.oracle.rules))
	table, faults := Parse(windowsOf(w.oracle.rules))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	w.seen.Timetable = table
	return w
}

func (w *world) live(days int) {
	w.t.Helper()
	begin := changes[w.IntN(len(changes))]
	w.seen.Created = begin
	w.oracle.minute(begin)
	for now := begin.Add(time.Minute); now.Before(begin.AddDate(0, 0, days)); now = now.Add(time.Minute) {
		w.oracle.minute(now)
		w.oracleTakes(now)
		w.controllerUntil(now, now.Add(48*time.Second))
		w.compare(now)
		w.peopleAct(now.Add(50 * time.Second))
		w.controllerUntil(now.Add(48*time.Second), now.Add(55*time.Second))
		if w.IntN(400) == 0 {
			w.up = !w.up
			w.look = now.Add(55 * time.Second)
		}
		w.controllerUntil(now.Add(55*time.Second), now.Add(time.Minute-time.Nanosecond))
	}
}

// oracleTakes takes the last slot that was not noted yet, if the controller runs.
func (w *world) oracleTakes(now time.Time) {
	slot := w.oracle.last(laterTime(w.noted.At, w.seen.Created))
	if !w.up || slot.IsZero() {
		return
	}
	w.noted = slot
	if slot.At.Before(w.seen.SkipUntil) {
		return
	}
	for _, c := range w.seen.Clusters {
		if c.Since.Before(slot.At) && !c.ChangedAt.After(slot.At) {
			w.power[c.Name] = slot.Power
		}
	}
}

// controllerUntil lets the controller look when it wants to.
func (w *world) controllerUntil(from, to time.Time) {
	for w.up && !w.look.After(to) {
		now := laterTime(from, w.look)
		w.pass(now)
		if !w.look.After(now) {
			w.t.Fatalf("at %s it wants to look at once", now)
		}
	}
}

// pass is what the controller does. One write in five fails, and so may be the last
// of its process; but none right before everybody looks: a slot is recorded in time for the longest delay to end before that.
func (w *world) pass(now time.Time) {
	d := Decide(w.seen, now)
	w.look = now.Add(time.Second)
	fails := func() bool { return now.Second() < 40 && w.IntN(5) == 0 }
	if (w.seen.Record.Slot.isSameSlot(d.Record.Slot) || now.Second() < 2) && fails() {
		return
	}
	w.seen.Record = d.Record
	for _, s := range d.Steps {
		if fails() {
			return
		}
		w.take(s)
	}
	w.look = now.Add(time.Hour * 24 * 365)
	if d.RequeueAfter > 0 {
		w.look = now.Add(d.RequeueAfter)
	}
}

func (w *world) take(s Step) {
	key := s.Cluster + " " + s.Slot.String()
	if w.told[key] {
		w.t.Errorf("%s was told twice of %s", s.Cluster, s.Slot)
	}
	w.told[key] = true
	w.took++
	for i := range w.seen.Clusters {
		if c := &w.seen.Clusters[i]; c.Name == s.Cluster {
			c.PowerState, c.LastSlot = s.Slot.Power, s.Slot
		}
	}
}

// peopleAct makes clusters, changes their power by hand, and skips slots.
func (w *world) peopleAct(now time.Time) {
	switch w.IntN(300) {
	case 0:
		w.made++
		c := Cluster{Name: fmt.Sprintf("c%d", w.made), Since: now, PowerState: hivev1.PowerRunning}
		c.Seed = fmt.Sprintf("%s-%d", c.Name, w.Uint64())
		if w.seen.Clusters = append(w.seen.Clusters, c); len(w.seen.Clusters) > 8 {
			w.seen.Clusters = w.seen.Clusters[1:]
		}
		w.power[c.Name] = c.PowerState
	case 1, 2, 3:
		if len(w.seen.Clusters) == 0 {
			return
		}
		c := &w.seen.Clusters[w.IntN(len(w.seen.Clusters))]
		c.PowerState = map[hivev1.PowerState]hivev1.PowerState{
			hivev1.PowerRunning: hivev1.PowerHibernating, hivev1.PowerHibernating: hivev1.PowerRunning,
		}[c.PowerState]
		c.ChangedAt, w.power[c.Name] = now, c.PowerState
	case 4:
		if w.IntN(4) == 0 {
			w.seen.SkipUntil = now.Add(time.Duration(w.IntN(48*60)) * time.Minute)
		}
	}
	w.Shuffle(len(w.seen.Clusters), func(i, j int) {
		w.seen.Clusters[i], w.seen.Clusters[j] = w.seen.Clusters[j], w.seen.Clusters[i]
	})
}

func (w *world) compare(now time.Time) {
	w.t.Helper()
	if !w.up {
		return
	}
	for _, c := range w.seen.Clusters {
		if c.PowerState != w.power[c.Name] {
			w.t.Fatalf("at %s %s is %s and should be %s; windows %+v, record %+v, cluster %+v, slots %v",
				now, c.Name, c.PowerState, w.power[c.Name], windowsOf(w.oracle.rules), w.seen.Record, c, w.oracle.all[max(0, len(w.oracle.all)-3):])
		}
	}
	if w.noted != w.seen.Record.Slot {
		w.t.Fatalf("at %s the slot noted is %s and should be %s; windows %+v", now, w.seen.Record.Slot, w.noted, windowsOf(w.oracle.rules))
	}
}

func TestSchedulesDoWhatAClockWatcherWouldDo(t *testing.T) {
	t.Logf("-seed=%d", *seed)
	took := 0
	for i := range *worlds {
		r := rand.New(rand.NewPCG(*seed, uint64(i)))
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			w := newWorld(t, r)
			w.live(5)
			took += w.took
		})
	}
	t.Logf("%d steps", took)
	if took < *worlds {
		t.Error("so few steps were taken that this shows nothing")
	}
}

// Next and Last agree with somebody who watches the clocks, at every minute.
func TestNextAndLastAgreeWithAClockWatcher(t *testing.T) {
	t.Logf("-seed=%d", *seed)
	for i := range *worlds {
		w := newWorld(t, rand.New(rand.NewPCG(*seed, uint64(i))))
		begin := changes[w.IntN(len(changes))]
		w.oracle.minute(begin)
		want := w.seen.Timetable.NextSlot(begin)
		for now := begin.Add(time.Minute); now.Before(begin.AddDate(0, 0, 3)); now = now.Add(time.Minute) {
			n := len(w.oracle.all)
			w.oracle.minute(now)
			if came := len(w.oracle.all) > n; came != want.At.Equal(now) || came && !w.oracle.all[n].isSameSlot(want) {
				t.Fatalf("world %d: next is %s; the slots are %v; windows %+v", i, want, w.oracle.all, windowsOf(w.oracle.rules))
			}
			if want.At.Equal(now) {
				want = w.seen.Timetable.NextSlot(now)
			}
			if w.IntN(30) == 0 && !w.seen.Timetable.NextSlot(now).isSameSlot(want) {
				t.Fatalf("world %d: at %s next is %s, not %s; windows %+v", i, now, w.seen.Timetable.NextSlot(now), want, windowsOf(w.oracle.rules))
			}
			if w.IntN(60) == 0 {
				if got := w.seen.Timetable.LastSlot(begin, now); got != w.oracle.last(begin) {
					t.Fatalf("world %d: at %s the last is %q, not %q; windows %+v", i, now, got, w.oracle.last(begin), windowsOf(w.oracle.rules))
				}
			}
		}
	}
}
