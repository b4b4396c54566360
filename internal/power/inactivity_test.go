package power

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
)

// usedCluster is a claimed cluster with its users, clients, platform and hub, as a small program. Its times are true;
// the clock of the hub jumps.
type usedCluster struct {
	*rand.Rand
	limit time.Duration
	// now is the true time, and skew what the clock of the hub adds to it.
	now      time.Time
	skew     time.Duration
	setBack  time.Duration // the sum of all jumps backwards
	setAhead time.Duration
	claimed  time.Time // by the clock of the hub

	wanted     hivev1.PowerState
	inactivity InactivityRecord
	record     *hivev1.PowerTransition
	machine    cloud.State
	until      time.Time
	held       bool

	// What the API server counts, in true time.
	upSince, lastUse time.Time
	open, requests   int
	silent           bool // the API server reports nothing
	// waiting are the clients that wait at the held address; a scan makes no request.
	waiting, scans int
	history        []string
}

func newUsedCluster(seed uint64) *usedCluster {
	c := &usedCluster{
		Rand: rand.New(rand.NewPCG(seed, 1)), now: now, claimed: now, wanted: hivev1.PowerRunning, machine: cloud.Running,
		upSince: now.Add(-time.Hour), lastUse: now.Add(-time.Hour),
	}
	c.limit = time.Duration(10+c.IntN(600)) * time.Second
	return c
}

func (c *usedCluster) clock() time.Time { return c.now.Add(c.skew) }

func (c *usedCluster) isUp() bool { return c.machine == cloud.Running }

// advance lets true time pass.
func (c *usedCluster) advance(span time.Duration) {
	c.now = c.now.Add(span)
	if c.now.Before(c.until) {
		return
	}
	switch c.machine {
	case cloud.Starting:
		c.machine = cloud.Running
		c.restartServer()
		c.requests += c.waiting // held clients send their requests at once
		if c.waiting > 0 {
			c.lastUse = c.now
		}
		c.waiting, c.scans = 0, 0
	case cloud.Stopping:
		c.machine = cloud.Stopped
	}
}

func (c *usedCluster) restartServer() {
	c.upSince, c.lastUse, c.open, c.requests = c.now, c.now, 0, 0
}

// connect is one connection of a client; a scan makes no request. It reports whether it is served or held.
func (c *usedCluster) connect(scan bool) bool {
	switch {
	case c.isUp():
		if !scan {
			c.requests, c.lastUse = c.requests+1, c.now
		}
		return true
	case !c.held || c.machine == cloud.Stopping:
		return false
	case scan:
		c.scans++
	default:
		c.waiting++
	}
	return true
}

func (c *usedCluster) observe() Snapshot {
	s := Snapshot{
		Seed: "uid", DesiredState: c.wanted, Installed: true, Actuator: true, Platform: "local", InfraID: "x", InstalledAt: installed,
		Pooled: true, ClaimedAt: c.claimed, Record: c.record, Limits: Limits{Inactivity: c.limit}, Inactivity: c.inactivity, HoldsAddresses: true,
		Machines: cloud.Machines{{Name: "m", State: c.machine, ControlPlane: true}},
	}
	if c.wanted == hivev1.PowerHibernating {
		s.WaitingConnections = c.waiting + c.scans
	}
	if !s.NeedsSpoke() {
		return s
	}
	s.Spoke = Spoke{Queried: true, Reachable: c.isUp(), UnreachableReason: "connection refused"}
	if !c.isUp() {
		return s
	}
	s.Spoke.Nodes = []Node{{Name: "m", Ready: true, Renewed: c.clock().Add(time.Second), ReadySince: installed}}
	if s.NeedsResumeProbe() {
		acted(&s)
	}
	if s.NeedsActivity() && !c.silent {
		a := &Activity{Open: c.open, Requests: c.requests}
		if c.open == 0 {
			a.Idle = c.now.Sub(c.lastUse)
		}
		s.Spoke.Activity = a
	}
	return s
}

// pass is one pass of the controller. It may die before its write.
func (c *usedCluster) pass(t *testing.T, mayDie bool) Plan {
	t.Helper()
	s := c.observe()
	d := Decide(s, c.clock())
	c.history = append(c.history, fmt.Sprintf("%s wants %s %q, machine %s, open %d, requests %d, waiting %d+%d: %s",
		c.now.Format(time.TimeOnly), c.wanted, c.inactivity, c.machine, c.open, c.requests, c.waiting, c.scans, d))
	c.check(t, s, d)
	c.held = d.HoldAddress
	if mayDie && c.IntN(8) == 0 {
		return d
	}
	switch {
	case d.Action == HibernateInactive:
		c.wanted, c.inactivity, d.Next = hivev1.PowerHibernating, d.Inactivity, 0 // the watch triggers the next pass
		return d
	case d.Action == Wake:
		c.wanted, c.inactivity, d.Next = hivev1.PowerRunning, d.Inactivity, 0
		return d
	case d.Inactivity != c.inactivity:
		c.inactivity = d.Inactivity
		d.Next = 0
		return d
	case d.Action == Start && c.machine == cloud.Stopped:
		c.machine, c.until = cloud.Starting, c.now.Add(time.Duration(c.IntN(20))*time.Second)
	case d.Action == Stop && c.machine == cloud.Running:
		c.machine, c.until = cloud.Stopping, c.now.Add(time.Duration(c.IntN(10))*time.Second)
	}
	c.record = d.Record
	return d
}

// check holds for every decision.
func (c *usedCluster) check(t *testing.T, s Snapshot, d Plan) {
	t.Helper()
	agree(t, d)
	switch d.Action {
	case HibernateInactive:
		limit := c.limit
		if c.inactivity.State == InactiveWoken && c.requests == 0 {
			limit = min(limit, unusedWakeLimit)
		}
		idle, sinceClaim := c.now.Sub(c.lastUse), c.clock().Sub(c.claimed)
		switch {
		case s.Spoke.Activity == nil:
			t.Error("it sleeps although its activity is not known")
		case c.open > 0:
			t.Errorf("it sleeps with %d open requests", c.open)
		case idle < limit:
			t.Errorf("it sleeps %s after the last request, and the limit is %s", idle, limit)
		case sinceClaim < limit:
			t.Errorf("it sleeps %s after the claim, and the limit is %s", sinceClaim, limit)
		}
	case Wake:
		if c.inactivity.State != InactiveHibernating {
			t.Errorf("a connection ends a sleep that somebody wanted (%q)", c.inactivity)
		}
		if c.waiting+c.scans == 0 {
			t.Error("it wakes, and no client waits")
		}
	}
	if d.Next == 0 && c.wanted == hivev1.PowerRunning && d.Action == NoAction && d.Inactivity == c.inactivity {
		t.Error("no further pass is planned")
	}
}

// disturb does one thing that may happen.
func (c *usedCluster) disturb() {
	switch c.IntN(12) {
	case 0, 1:
		c.connect(false)
	case 2:
		c.connect(true)
	case 3:
		if c.isUp() {
			c.open, c.requests = c.open+1, c.requests+1
		}
	case 4, 5:
		if c.open > 0 {
			c.open, c.lastUse = c.open-1, c.now
		}
	case 6:
		c.silent = !c.silent
	case 7: // its process is killed, and starts again
		if c.isUp() {
			c.restartServer()
		}
	case 8:
		jump := time.Duration(c.IntN(7200)-3600) * time.Second
		c.skew += jump
		c.setBack, c.setAhead = c.setBack+max(-jump, 0), c.setAhead+max(jump, 0)
	case 9:
		c.wanted = hivev1.PowerRunning
	case 10:
		c.wanted = hivev1.PowerHibernating // the user leaves the record alone, as kubectl does
	case 11:
		c.held = false // the hub is killed: it holds no address, and drops the clients that wait
		c.waiting, c.scans = 0, 0
	}
}

// settle runs passes as their plans say, for span.
func (c *usedCluster) settle(t *testing.T, span time.Duration, until func() bool) bool {
	t.Helper()
	for end := c.now.Add(span); c.now.Before(end); {
		if until() {
			return true
		}
		next := c.pass(t, false).Next
		if c.until.After(c.now) { // the platform reports a change of the machine
			next = min(next, c.until.Sub(c.now))
		}
		c.advance(max(min(next, end.Sub(c.now)), time.Millisecond))
	}
	return until()
}

func (c *usedCluster) fail(t *testing.T, seed uint64, format string, args ...any) {
	t.Helper()
	t.Fatalf("seed %d: %s\n%s", seed, fmt.Sprintf(format, args...), strings.Join(c.history[max(len(c.history)-40, 0):], "\n"))
}

func TestHistoriesOfInactivity(t *testing.T) {
	first := rand.Uint64()
	for i := range uint64(500) {
		seed := first + i
		c := newUsedCluster(seed)
		for range 60 {
			c.disturb()
			next := c.pass(t, true).Next
			if c.IntN(3) > 0 {
				next = time.Duration(c.Int64N(int64(c.limit)))
			}
			c.advance(max(next, time.Millisecond))
			if t.Failed() {
				c.fail(t, seed, "a rule is broken")
			}
		}
		// Whatever has happened: once it runs and nobody uses it, it sleeps in time.
		c.silent, c.wanted = false, hivev1.PowerRunning
		if c.open > 0 {
			c.open, c.lastUse = 0, c.now
		}
		asleep := func() bool { return c.machine == cloud.Stopped && c.wanted == hivev1.PowerHibernating }
		if !c.settle(t, c.limit+c.setBack+2*time.Minute, asleep) {
			c.fail(t, seed, "it does not sleep")
		}
		// A user connects, and it wakes, once for all who connect. Only a pause after scans may delay that.
		c.settle(t, longestWakePause+c.setBack+time.Minute, func() bool { return c.held })
		first, second := c.connect(false), c.connect(false)
		if !first || !second {
			c.fail(t, seed, "the address is not held")
		}
		if !c.settle(t, time.Minute, func() bool { return c.isUp() && c.requests == 2 }) {
			c.fail(t, seed, "it does not wake")
		}
		// A watch keeps it awake for as long as it is open, for some a day.
		c.open, c.requests = 1, c.requests+1
		span := 10 * c.limit
		if i%100 == 0 {
			span = 24 * time.Hour
		}
		if c.settle(t, span, func() bool { return !c.isUp() }) {
			c.fail(t, seed, "it sleeps with an open watch")
		}
		if t.Failed() {
			c.fail(t, seed, "a rule is broken")
		}
	}
}

// A program that connects every ten seconds and never makes a request keeps a cluster awake for a small part of the time.
func TestScansKeepNoClusterAwake(t *testing.T) {
	seed := rand.Uint64()
	c := newUsedCluster(seed)
	var awake time.Duration
	const days = 4
	for start := c.now; c.now.Sub(start) < days*24*time.Hour; {
		c.connect(true)
		before, up := c.now, c.machine != cloud.Stopped
		c.settle(t, 10*time.Second, func() bool { return false })
		if up {
			awake += c.now.Sub(before)
		}
	}
	if limit := c.limit + days*24*2*time.Minute + 20*time.Minute; awake > limit {
		c.fail(t, seed, "it was awake for %s of %d days", awake, days)
	}
	if c.inactivity.UnusedWakes < freeWakes {
		c.fail(t, seed, "it counts %d wakes", c.inactivity.UnusedWakes)
	}
	// A user who wakes it by hand and uses it ends that.
	c.wanted = hivev1.PowerRunning
	c.settle(t, time.Minute, func() bool { return c.isUp() && c.inactivity == InactivityRecord{} })
	c.connect(false)
	if !c.settle(t, c.limit+time.Minute, func() bool { return c.machine == cloud.Stopped && c.held }) {
		c.fail(t, seed, "connections do not wake it after it was used: %q", c.inactivity)
	}
}

func inactive(a *Activity) with {
	return func(s *Snapshot) {
		ready("m")(s)
		s.Spoke.Activity = a
	}
}

func TestWhatIsSaidOfInactivity(t *testing.T) {
	common := []with{claimed(time.Hour), came("Running", time.Hour), machines("m:Running"), limits(Limits{Inactivity: 30 * time.Minute})}
	local := func(s *Snapshot) { s.Platform, s.HoldsAddresses = "local", true }
	asleep := func(text string) with {
		return func(s *Snapshot) {
			s.DesiredState, s.Inactivity, s.Limits.Inactivity = hivev1.PowerHibernating, ParseInactivityRecord(text), 0
			machines("m:Stopped")(s)
			came("Hibernating", 10*time.Second)(s)
		}
	}
	for name, tc := range map[string]struct {
		with []with
		says string
	}{
		"a platform that reports nothing":    {[]with{inactive(nil)}, "It does not hibernate for inactivity: the platform sim does not report requests."},
		"an API server that reports nothing": {[]with{local, inactive(nil)}, "It does not hibernate for inactivity: its API server does not report requests."},
		"an API server that does not answer in time": {
			[]with{local, inactive(nil), func(s *Snapshot) { s.Spoke.ActivityFailure = "no answer within 10s" }},
			"It does not hibernate for inactivity: hotspare could not ask its API server whether anybody uses it: no answer within 10s.",
		},
		"one that is not asked":    {[]with{inactive(nil), limits(Limits{})}, "The cluster is running."},
		"a sleep":                  {[]with{local, asleep("Hibernating")}, "The cluster is hibernating. Nobody used it. A connection to its API wakes it."},
		"a sleep by hand":          {[]with{local, asleep("")}, "The cluster is hibernating."},
		"a sleep after two scans":  {[]with{local, asleep("Hibernating 2")}, "A connection to its API wakes it."},
		"a sleep after many scans": {[]with{local, asleep("Hibernating 5")}, "no request followed the last 5 that did. To wake it, set spec.powerState to Running."},
	} {
		t.Run(name, func(t *testing.T) {
			s := seen(append(append([]with{}, common...), tc.with...)...)
			if d := Decide(s, now); !strings.HasSuffix(d.Hibernating.Message, tc.says) {
				t.Errorf("it says %q", d.Hibernating.Message)
			}
		})
	}
}

// An answer that is missing once must not keep a cluster awake for minutes.
func TestAnAPIServerThatWasAskedInVainIsAskedAgainSoon(t *testing.T) {
	s := seen(claimed(time.Hour), came("Running", time.Hour), machines("m:Running"), limits(Limits{Inactivity: 10 * time.Second}), inactive(nil))
	if next := Decide(s, now).Next; next < time.Minute {
		t.Errorf("one that does not report requests is asked again in %s", next)
	}
	s.Spoke.ActivityFailure = "no answer within 10s"
	if next := Decide(s, now).Next; next > 30*time.Second {
		t.Errorf("one that did not answer is asked again in %s", next)
	}
}

func TestTheRecordOfInactivityIsReadAsItIsWritten(t *testing.T) {
	for _, r := range []InactivityRecord{{}, {State: InactiveHibernating}, {State: InactiveWoken, UnusedWakes: 7}} {
		if got := ParseInactivityRecord(r.String()); got != r {
			t.Errorf("%q is read as %+v", r, got)
		}
	}
	for text, want := range map[string]InactivityRecord{
		"nonsense 3": {}, "Woken x": {State: InactiveWoken}, "Woken -3": {State: InactiveWoken}, "Hibernating 99999": {State: InactiveHibernating, UnusedWakes: maxUnusedWakes},
	} {
		if got := ParseInactivityRecord(text); got != want {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}
