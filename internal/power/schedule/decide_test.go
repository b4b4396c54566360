package schedule

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// The cases are about one evening. The cluster "a" runs and has been told to in the
// morning; its delay is 860 ms, that of "slow" 43 s.
var (
	evening = time.Date(2026, 11, 20, 19, 0, 0, 0, time.UTC)
	morning = evening.Add(-11 * time.Hour)
	woken   = Slot{morning, hivev1.PowerRunning}
	asleep  = Slot{evening, hivev1.PowerHibernating}
)

type with func(*Snapshot)

func seen(changes ...with) Snapshot {
	table, faults := Parse([]v1alpha1.Window{{Hibernate: "0 19 * * *", Resume: "0 8 * * *"}})
	if len(faults) > 0 {
		panic(faults)
	}
	s := Snapshot{
		Timetable: table, Created: evening.AddDate(0, -1, 0),
		Record:   Record{Slot: woken, Outcome: v1alpha1.OutcomeTaken, StartedAt: morning, FinishedAt: morning.Add(time.Minute), Clusters: 1},
		Clusters: []Cluster{{Name: "a", Seed: "54", Since: evening.AddDate(0, -2, 0), PowerState: hivev1.PowerRunning, LastSlot: woken}},
	}
	for _, c := range changes {
		c(&s)
	}
	return s
}

func cluster(change func(*Cluster)) with { return func(s *Snapshot) { change(&s.Clusters[0]) } }

func another(name, seed string) with {
	return func(s *Snapshot) {
		c := s.Clusters[0]
		c.Name, c.Seed = name, seed
		s.Clusters = append([]Cluster{c}, s.Clusters...)
	}
}

func record(o v1alpha1.Outcome, slot Slot, started time.Duration) with {
	return func(s *Snapshot) { s.Record = Record{Slot: slot, Outcome: o, StartedAt: evening.Add(started)} }
}

func skip(until time.Duration) with { return func(s *Snapshot) { s.SkipUntil = evening.Add(until) } }

// says is a decision in words: outcome, steps, when to look again.
func says(d Plan) string {
	out := []string{fmt.Sprintf("%s of %s", d.Record.Outcome, d.Record.At.Format("15:04"))}
	for _, s := range d.Steps {
		out = append(out, s.String())
	}
	return strings.Join(append(out, "look in "+d.RequeueAfter.Round(time.Second).String()), "; ")
}

func TestDecide(t *testing.T) {
	told := cluster(func(c *Cluster) { c.LastSlot, c.PowerState = asleep, hivev1.PowerHibernating })
	for name, tc := range map[string]struct {
		seen Snapshot
		at   time.Duration // after 19:00
		want string
	}{
		"before the slot there is nothing to do":   {seen(), -time.Minute, "Taken of 08:00; look in 1m0s"},
		"at its time the slot is begun":            {seen(), 0, "Underway of 19:00; look in 1s"},
		"each cluster is told after its delay":     {seen(record(v1alpha1.OutcomeUnderway, asleep, 0)), 2 * time.Second, "Underway of 19:00; hibernate a: slot of 2026-11-20T19:00:00Z; look in 1s"},
		"steps are in the order of names":          {seen(another("b", "54"), record(v1alpha1.OutcomeUnderway, asleep, 0)), time.Minute, "Underway of 19:00; hibernate a: slot of 2026-11-20T19:00:00Z; hibernate b: slot of 2026-11-20T19:00:00Z; look in 1s"},
		"a slow one comes later":                   {seen(another("slow", "26"), record(v1alpha1.OutcomeUnderway, asleep, 0)), 2 * time.Second, "Underway of 19:00; hibernate a: slot of 2026-11-20T19:00:00Z; look in 1s"},
		"when all are told the slot is taken":      {seen(told, record(v1alpha1.OutcomeUnderway, asleep, 0)), time.Minute, "Taken of 19:00; look in 12h59m0s"},
		"a slot without clusters is taken at once": {seen(func(s *Snapshot) { s.Clusters = nil }), 0, "Taken of 19:00; look in 13h0m0s"},
		"one that sleeps already is told, so that waking it counts as a change": {
			seen(cluster(func(c *Cluster) { c.PowerState = hivev1.PowerHibernating }), record(v1alpha1.OutcomeUnderway, asleep, 0)), time.Minute,
			"Underway of 19:00; leave to hibernate a: slot of 2026-11-20T19:00:00Z; look in 1s",
		},
		"a change by hand afterwards is left alone": {
			seen(told, cluster(func(c *Cluster) { c.PowerState = hivev1.PowerRunning }), record(v1alpha1.OutcomeUnderway, asleep, 0)), time.Minute,
			"Taken of 19:00; look in 12h59m0s",
		},
		"after the slot was taken nobody is told any more": {
			seen(record(v1alpha1.OutcomeTaken, asleep, 0)), time.Hour, "Taken of 19:00; look in 12h0m0s",
		},
		"a missed slot is made up for, delays counted from when it is noticed": {
			seen(another("slow", "26")), 3 * time.Hour, "Underway of 19:00; look in 1s",
		},
		"a change by hand after a missed slot stands": {
			seen(cluster(func(c *Cluster) { c.ChangedAt = evening.Add(time.Hour) })), 3 * time.Hour, "Taken of 19:00; look in 10h0m0s",
		},
		"a change by hand before a missed slot does not": {
			seen(cluster(func(c *Cluster) { c.ChangedAt = evening.Add(-time.Hour) }), record(v1alpha1.OutcomeUnderway, asleep, 3*time.Hour)), 4 * time.Hour,
			"Underway of 19:00; hibernate a: slot of 2026-11-20T19:00:00Z; look in 1s",
		},
		"a cluster made or claimed after the slot is none of its": {
			seen(cluster(func(c *Cluster) { c.Since = evening.Add(time.Second) })), time.Minute, "Taken of 19:00; look in 12h59m0s",
		},
		"a slot before the schedule was made is none": {
			seen(func(s *Snapshot) { s.Created, s.Record = evening.Add(time.Minute), Record{} }), time.Hour, " of 00:00; look in 12h0m0s",
		},
		"what is skipped is noted, and not made up for": {seen(skip(time.Hour)), 2 * time.Hour, "Skipped of 19:00; look in 11h0m0s"},
		"skipping ends with the slot at that time":      {seen(skip(0)), 0, "Underway of 19:00; look in 1s"},
		"skipping in the middle spares the rest":        {seen(skip(time.Hour), record(v1alpha1.OutcomeUnderway, asleep, 0)), time.Minute, "Skipped of 19:00; look in 12h59m0s"},
		"a slot that was taken out of the schedule stops": {
			seen(record(v1alpha1.OutcomeUnderway, Slot{evening.Add(-time.Minute), hivev1.PowerHibernating}, 0)), -time.Second, "Skipped of 18:59; look in 1s",
		},
		"a newer slot takes the place of one that is under way": {
			seen(record(v1alpha1.OutcomeUnderway, woken, 0)), time.Hour, "Underway of 19:00; look in 1s",
		},
		"another schedule's later slot wins": {
			seen(cluster(func(c *Cluster) { c.LastSlot = Slot{evening.Add(time.Minute), hivev1.PowerRunning} })), 2 * time.Minute, "Taken of 19:00; look in 12h58m0s",
		},
		"another schedule's slot of the same moment wins if it wakes": {
			seen(cluster(func(c *Cluster) { c.LastSlot = Slot{evening, hivev1.PowerRunning} })), time.Minute, "Taken of 19:00; look in 12h59m0s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, says(Decide(tc.seen, evening.Add(tc.at)))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAHundredClustersDoNotStartInOneSecond(t *testing.T) {
	seconds := map[time.Duration]int{}
	for i := range 100 {
		uid := fmt.Sprintf("6f1c1a4e-0000-4000-8000-%012d", i)
		d := clusterDelay(uid)
		if d < 0 || d >= MaxDelay || d != clusterDelay(uid) {
			t.Fatalf("the delay of %s is %s", uid, d)
		}
		seconds[d.Truncate(time.Second)]++
	}
	for at, n := range seconds {
		if n > 10 {
			t.Errorf("%d start in second %s", n, at)
		}
	}
	if len(seconds) < 30 {
		t.Errorf("all start within %d seconds", len(seconds))
	}
}
