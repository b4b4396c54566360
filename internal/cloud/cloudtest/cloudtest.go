// Package cloudtest is the conformance suite of cloud.Power.
//
// A platform's test makes its actuator together with a cloud to play in, a
// simulator or the real thing, and calls Run. The suite looks at the cloud only
// through cloud.Power, and repeats its calls as the power controller does, so it
// does not matter how many calls a platform needs.
package cloudtest

import (
	"context"
	"slices"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/cloud"
)

// Patience is how long the suite waits for what must happen, with a Cloud that
// has no clock to step.
const Patience = 2 * time.Minute

// steps is how often a stepped clock is stepped until patience is over.
const steps = 1000

// A Cloud is one platform with no machines of the suite in it. Each test gets
// one of its own.
type Cloud struct {
	Power cloud.Power
	// Against tells readers of docs/platforms what the suite runs against: a literal.
	Against string
	// Create makes a cluster of one control plane and some workers, all stopped,
	// marked with infraID as the platform's installer does.
	Create func(t *testing.T, infraID string, workers int) cloud.Ref
	// Vanish removes a machine, by its name in Observe, behind Power's back.
	Vanish func(t *testing.T, ref cloud.Ref, name string)
	// Break makes a stopped machine unable to start: Power must see it Failed.
	// Nil if machines of this platform never fail to start, or do not tell.
	Break func(t *testing.T, ref cloud.Ref, name string)
	// Step lets time pass in a simulator with a clock of its own. Nil if time
	// passes by itself.
	Step func()

	Faults
}

// Faults are what a platform's simulator can be made to do. One that is nil skips
// the tests that need it, and the suite says so.
type Faults struct {
	// Many gives a cluster n more workers, stopped: more than one page of the
	// platform's list holds.
	Many func(t *testing.T, ref cloud.Ref, n int)
	// Throttle refuses the next n calls of the platform's API for being too many.
	Throttle func(t *testing.T, n int)
	// Expire makes the credentials expire, for good.
	Expire func(t *testing.T)
	// Refuse makes every call that would start or stop this machine fail. What it is
	// called with may be in the error.
	Refuse func(t *testing.T, ref cloud.Ref, name string)
	// Odd puts a machine into a state that no version of the platform's API tells of.
	Odd func(t *testing.T, ref cloud.Ref, name string)
	// Hang makes every call of the platform's API hang until its context ends. What it
	// returns has something whenever a call hangs; sending to it must not block.
	Hang func(t *testing.T) <-chan struct{}
	// Planted are the secret parts of the credentials: no error and no reason may
	// contain one. None if the platform needs no credentials.
	Planted []string
}

// cases are the suite, each with the field of Cloud that it needs, if it is one that
// may be nil.
var cases = []struct {
	name, needs string
	test        func(*suite)
}{
	{"where nothing is, nothing is seen and nothing fails", "", nothingThere},
	{"machines of other clusters are left alone", "", foreign},
	{"a stopped cluster starts, all of it", "", starts},
	{"a running cluster stops, all of it", "", stops},
	{"starting twice is starting once", "", startsTwice},
	{"stopping twice is stopping once", "", stopsTwice},
	{"a machine that has vanished does not hold up the others", "", vanished},
	{"a machine that cannot start is named, and the others start", "Break", broken},
	{"a broken machine can be stopped", "Break", brokenStops},
	{"a cancelled call fails", "", cancelled},
	{"the control plane starts before the workers", "", startOrder},
	{"the workers stop before the control plane", "", stopOrder},
	{"a cluster that is starting can be stopped", "", turnsBack},
	{"a cluster that is stopping can be started", "", turnsOn},
	{"hundreds of machines are seen, started and stopped", "Many", hundreds},
	{"a call that is one too many is made later", "Throttle", throttled},
	{"expired credentials are for a person to replace", "Expire", expired},
	{"a machine that is refused to start stops no other", "Refuse", refusedStart},
	{"a machine that is refused to stop stops no other", "Refuse", refusedStop},
	{"a state that nobody knows is told as it is", "Odd", odd},
	{"a call ends with its context, in the middle too", "Hang", hung},
}

// lacks says what a platform cannot do; empty if it has the field that a case needs.
func (c Cloud) lacks(needs string) string {
	optional := map[string]struct {
		there bool
		what  string
	}{
		"":         {true, ""},
		"Break":    {c.Break != nil, "have a machine that does not start, and tell of it"},
		"Many":     {c.Many != nil, "hold hundreds of machines"},
		"Throttle": {c.Throttle != nil, "refuse calls for being too many"},
		"Expire":   {c.Expire != nil, "let credentials expire"},
		"Refuse":   {c.Refuse != nil, "refuse one machine"},
		"Odd":      {c.Odd != nil, "put a machine into a state that is not in its API"},
		"Hang":     {c.Hang != nil, "let a call hang"},
	}
	if optional[needs].there {
		return ""
	}
	return optional[needs].what
}

// Run runs the suite. factory makes a new Cloud for each test; what it starts it
// ends with t.Cleanup.
func Run(t *testing.T, factory func(t *testing.T) Cloud) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := &suite{T: t, Cloud: factory(t)}
			if what := s.lacks(c.needs); what != "" {
				t.Skipf("this platform, or its simulator, cannot %s", what)
			}
			c.test(s)
		})
	}
}

type suite struct {
	*testing.T
	Cloud
}

func nothingThere(s *suite) {
	ref := s.Create(s.T, "here-12345", 1)
	ref.InfraID = "nowhere-12345"
	if got := s.observe(ref); len(got) != 0 {
		s.Errorf("saw %v", got)
	}
	s.start(ref)
	s.stop(ref)
}

func foreign(s *suite) {
	ours, theirs := s.Create(s.T, "ours-12345", 1), s.Create(s.T, "ours-12345x", 1)
	s.reach(ours, cloud.Running, s.start)
	if got := s.observe(theirs); !got.All(cloud.Stopped) {
		s.Errorf("of the other cluster: %v", got)
	}
	s.reach(theirs, cloud.Running, s.start)
	s.reach(ours, cloud.Stopped, s.stop)
	if got := s.observe(theirs); !got.All(cloud.Running) {
		s.Errorf("of the other cluster: %v", got)
	}
}

func starts(s *suite) {
	ref := s.Create(s.T, "c-12345", 3)
	got := s.reach(ref, cloud.Running, s.start)
	if n := len(slices.DeleteFunc(slices.Clone(got), worker)); len(got) != 4 || n != 1 {
		s.Errorf("%d machines, %d of the control plane: %v", len(got), n, got)
	}
}

func stops(s *suite) {
	ref := s.running(3)
	s.reach(ref, cloud.Stopped, s.stop)
}

func startsTwice(s *suite) {
	ref := s.running(1)
	s.start(ref)
	s.step()
	if got := s.observe(ref); !got.All(cloud.Running) {
		s.Errorf("after another start: %v", got)
	}
}

func stopsTwice(s *suite) {
	ref := s.running(1)
	s.reach(ref, cloud.Stopped, s.stop)
	s.stop(ref)
	s.step()
	if got := s.observe(ref); !got.All(cloud.Stopped) {
		s.Errorf("after another stop: %v", got)
	}
}

func vanished(s *suite) {
	ref := s.Create(s.T, "c-12345", 2)
	lost := s.worker(ref)
	s.Vanish(s.T, ref, lost)
	got := s.reach(ref, cloud.Running, s.start)
	if len(got) != 2 || named(got, lost) {
		s.Errorf("with %s gone: %v", lost, got)
	}
}

func broken(s *suite) {
	ref, bad := s.breakWorker()
	s.until(ref, "all but one run and that one has failed", s.tryStart, func(ms cloud.Machines) bool {
		return slices.Equal(ms.Lagging(cloud.Running), []string{bad}) && reasoned(ms, bad)
	})
}

func brokenStops(s *suite) {
	ref, bad := s.breakWorker()
	s.until(ref, "the machine has failed", s.tryStart, func(ms cloud.Machines) bool { return reasoned(ms, bad) })
	s.until(ref, "nothing runs", s.stop, func(ms cloud.Machines) bool {
		lagging := ms.Lagging(cloud.Stopped)
		return len(lagging) == 0 || slices.Equal(lagging, []string{bad}) && reasoned(ms, bad)
	})
}

func cancelled(s *suite) {
	ref := s.Create(s.T, "c-12345", 1)
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	if ms, err := s.Power.Observe(ctx, ref); err == nil {
		s.Errorf("observed %v", ms)
	}
	if s.Power.Start(ctx, ref) == nil {
		s.Error("started")
	}
	if s.Power.Stop(ctx, ref) == nil {
		s.Error("stopped")
	}
	if got := s.observe(ref); !got.All(cloud.Stopped) {
		s.Errorf("after cancelled calls: %v", got)
	}
}

func startOrder(s *suite) {
	ref := s.Create(s.T, "c-12345", 2)
	s.until(ref, "all run", s.start, func(ms cloud.Machines) bool {
		if off(ms, controlPlane) && awake(ms, worker) {
			s.Fatalf("workers are up before the control plane: %v", ms)
		}
		return ms.All(cloud.Running)
	})
}

func stopOrder(s *suite) {
	ref := s.running(2)
	s.until(ref, "all are stopped", s.stop, func(ms cloud.Machines) bool {
		if off(ms, controlPlane) && awake(ms, worker) {
			s.Fatalf("the control plane is off before the workers: %v", ms)
		}
		return ms.All(cloud.Stopped)
	})
}
