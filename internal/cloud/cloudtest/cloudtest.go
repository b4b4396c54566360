// Package cloudtest is the conformance suite of cloud.Actuator.
//
// A platform's test creates its actuator together with a cloud (a simulator or a real one) and
// calls Run. The suite observes the cloud only through cloud.Actuator, and repeats its calls as the
// power controller does, so it does not matter how many calls a platform needs.
package cloudtest

import (
	"context"
	"slices"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/cloud"
)

// WaitTimeout is how long the suite waits for an expected state, with a Cloud that has no clock to
// step.
const WaitTimeout = 2 * time.Minute

// maxSteps is the number of clock steps after which the suite stops waiting.
const maxSteps = 1000

// A Cloud is one platform without any machines of the suite. Each test gets its own.
type Cloud struct {
	Actuator cloud.Actuator
	// Against is what the suite runs against, for readers of docs/platforms. It must be a literal.
	Against string
	// Create creates a cluster with one control plane machine and some workers, all stopped and
	// marked with infraID as the platform's installer does.
	Create func(t *testing.T, infraID string, workers int) cloud.Ref
	// Vanish removes a machine, by its name in Observe, without using Power.
	Vanish func(t *testing.T, ref cloud.Ref, name string)
	// Break makes a stopped machine unable to start: Power must report it as Failed. Nil if
	// machines of this platform never fail to start, or do not report it.
	Break func(t *testing.T, ref cloud.Ref, name string)
	// Step advances the clock of a simulator that has its own. Nil if the platform uses real time.
	Step func()
	// Depths are the depths other than cloud.DepthStop at which the machines of Create can sleep, from the
	// shallowest to the deepest. Nil if there are none.
	Depths []cloud.Depth
	// GuestsAreUp reports whether the guests of all machines of a cluster are up, according to the
	// simulator (see Guest). Nil if the simulator has no guests or no clock.
	GuestsAreUp func(ref cloud.Ref) bool

	Faults
}

// Faults are the faults that a platform's simulator can inject. The suite skips the tests that need
// a nil one, and says so.
type Faults struct {
	// Many adds n stopped workers to a cluster: more than fit on one page of the platform's list.
	Many func(t *testing.T, ref cloud.Ref, n int)
	// Throttle rejects the next n calls of the platform's API because of too many requests.
	Throttle func(t *testing.T, n int)
	// Expire permanently expires the credentials.
	Expire func(t *testing.T)
	// Refuse makes every call fail that would start or stop this machine. The error may contain the
	// arguments of the call.
	Refuse func(t *testing.T, ref cloud.Ref, name string)
	// RefuseDepth makes every call fail permanently that would put a machine of the cluster to sleep at
	// this depth, which is the first of Depths; other calls work.
	RefuseDepth func(t *testing.T, ref cloud.Ref, depth cloud.Depth)
	// Odd puts a machine into a state that no version of the platform's API documents.
	Odd func(t *testing.T, ref cloud.Ref, name string)
	// Hang makes every call of the platform's API hang until its context ends. The returned channel
	// receives a value whenever a call hangs; sending to it must not block.
	Hang func(t *testing.T) <-chan struct{}
	// Planted contains the secret parts of the credentials: no error and no reason may contain one.
	// Empty if the platform needs no credentials.
	Planted []string
}

// cases is the suite. Each case names the field of Cloud that it needs, if that field may be nil.
var cases = []struct {
	name, needs string
	test        func(*suite)
}{
	{"a cluster without machines has none, and no call fails", "", acceptsNoMachines},
	{"machines of other clusters are not changed", "", ignoresForeignMachines},
	{"all machines of a stopped cluster start", "", startsAllMachines},
	{"all machines of a running cluster stop", "", stopsAllMachines},
	{"a second start changes nothing", "", startsTwice},
	{"a second stop changes nothing", "", stopsTwice},
	{"a machine that was deleted does not delay the others", "", skipsVanishedMachine},
	{"a machine that cannot start is named, and the others start", "Break", reportsBrokenMachine},
	{"a broken machine can be stopped", "Break", stopsBrokenMachine},
	{"a cancelled call fails", "", failsWhenCancelled},
	{"the control plane starts before the workers", "", startsControlPlaneFirst},
	{"the workers stop before the control plane", "", stopsWorkersFirst},
	{"a cluster that is starting can be stopped", "", stopsWhileStarting},
	{"a cluster that is stopping can be started", "", startsWhileStopping},
	{"hundreds of machines are seen, started and stopped", "Many", handlesHundreds},
	{"a throttled call is retried", "Throttle", retriesThrottledCalls},
	{"expired credentials are reported to a person, and not retried", "Expire", deniesExpiredCredentials},
	{"a machine that the platform does not start does not keep others from starting", "Refuse", startsAllButRefused},
	{"a machine that the platform does not stop does not keep others from stopping", "Refuse", stopsAllButRefused},
	{"an unknown state is reported with its name", "Odd", reportsUnknownState},
	{"a call ends when its context ends, even while it hangs", "Hang", endsHungCalls},
	{"an unsupported depth becomes the next deeper one", "", sleepsAtDeeperDepth},
	{"a cluster sleeps at each depth, and wakes from it", "Depths", sleepsAtEachDepth},
	{"a sleeping machine can move to a deeper depth, and never to a shallower one", "Depths", sleepsDeeper},
	{"a cluster that is falling asleep can be woken", "Depths", wakesWhileFallingAsleep},
	{"a cluster that is waking can be put to sleep", "Depths", sleepsWhileWaking},
	{"the workers sleep before the control plane", "Depths", putsWorkersToSleepFirst},
	{"a machine that was deleted while it slept does not delay the others", "Depths", skipsMachineThatVanishedAsleep},
	{"a refused depth is reported, and the next one is used", "RefuseDepth", reportsRefusedDepth},
	{"guests that kept their memory are up three times faster", "GuestsAreUp", wakesSoonerFromShallowDepth},
}

// missingFeature returns what a platform cannot do; empty if it has the field that a case needs.
func (c Cloud) missingFeature(needs string) string {
	optional := map[string]struct {
		there bool
		what  string
	}{
		"":            {true, ""},
		"Depths":      {c.Depths != nil, "sleep at another depth than stop"},
		"RefuseDepth": {c.RefuseDepth != nil, "refuse a depth of sleep"},
		"GuestsAreUp": {c.GuestsAreUp != nil, "tell when guests are up"},
		"Break":       {c.Break != nil, "have a machine that does not start and is reported"},
		"Many":        {c.Many != nil, "hold hundreds of machines"},
		"Throttle":    {c.Throttle != nil, "refuse calls for being too many"},
		"Expire":      {c.Expire != nil, "let credentials expire"},
		"Refuse":      {c.Refuse != nil, "refuse one machine"},
		"Odd":         {c.Odd != nil, "put a machine into a state that is not in its API"},
		"Hang":        {c.Hang != nil, "let a call hang"},
	}
	if optional[needs].there {
		return ""
	}
	return optional[needs].what
}

// Run runs the suite. factory creates a new Cloud for each test, and must clean up what it starts
// with t.Cleanup.
func Run(t *testing.T, factory func(t *testing.T) Cloud) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := &suite{T: t, Cloud: factory(t)}
			if what := s.missingFeature(c.needs); what != "" {
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

func acceptsNoMachines(s *suite) {
	ref := s.Create(s.T, "here-12345", 1)
	ref.InfraID = "nowhere-12345"
	if got := s.observeMachines(ref); len(got) != 0 {
		s.Errorf("saw %v", got)
	}
	s.startCluster(ref)
	s.stopCluster(ref)
}

func ignoresForeignMachines(s *suite) {
	ours, theirs := s.Create(s.T, "ours-12345", 1), s.Create(s.T, "ours-12345x", 1)
	s.reachState(ours, cloud.Running, s.startCluster)
	if got := s.observeMachines(theirs); !got.AllIn(cloud.Stopped) {
		s.Errorf("of the other cluster: %v", got)
	}
	s.reachState(theirs, cloud.Running, s.startCluster)
	s.reachState(ours, cloud.Stopped, s.stopCluster)
	if got := s.observeMachines(theirs); !got.AllIn(cloud.Running) {
		s.Errorf("of the other cluster: %v", got)
	}
}

func startsAllMachines(s *suite) {
	ref := s.Create(s.T, "c-12345", 3)
	got := s.reachState(ref, cloud.Running, s.startCluster)
	if n := len(slices.DeleteFunc(slices.Clone(got), isWorker)); len(got) != 4 || n != 1 {
		s.Errorf("%d machines, %d of the control plane: %v", len(got), n, got)
	}
}

func stopsAllMachines(s *suite) {
	ref := s.runningCluster(3)
	s.reachState(ref, cloud.Stopped, s.stopCluster)
}

func startsTwice(s *suite) {
	ref := s.runningCluster(1)
	s.startCluster(ref)
	s.advanceClock()
	if got := s.observeMachines(ref); !got.AllIn(cloud.Running) {
		s.Errorf("after another start: %v", got)
	}
}

func stopsTwice(s *suite) {
	ref := s.runningCluster(1)
	s.reachState(ref, cloud.Stopped, s.stopCluster)
	s.stopCluster(ref)
	s.advanceClock()
	if got := s.observeMachines(ref); !got.AllIn(cloud.Stopped) {
		s.Errorf("after another stop: %v", got)
	}
}

func skipsVanishedMachine(s *suite) {
	ref := s.Create(s.T, "c-12345", 2)
	lost := s.findWorker(ref)
	s.Vanish(s.T, ref, lost)
	got := s.reachState(ref, cloud.Running, s.startCluster)
	if len(got) != 2 || hasMachine(got, lost) {
		s.Errorf("with %s gone: %v", lost, got)
	}
}

func reportsBrokenMachine(s *suite) {
	ref, bad := s.breakWorker()
	s.repeatUntil(ref, "all but one run and that one has failed", s.tryStart, func(ms cloud.Machines) bool {
		return slices.Equal(ms.NamesNotIn(cloud.Running), []string{bad}) && failedWithReason(ms, bad)
	})
}

func stopsBrokenMachine(s *suite) {
	ref, bad := s.breakWorker()
	s.repeatUntil(ref, "the machine has failed", s.tryStart, func(ms cloud.Machines) bool { return failedWithReason(ms, bad) })
	s.repeatUntil(ref, "nothing runs", s.stopCluster, func(ms cloud.Machines) bool {
		lagging := ms.NamesNotIn(cloud.Stopped)
		return len(lagging) == 0 || slices.Equal(lagging, []string{bad}) && failedWithReason(ms, bad)
	})
}

func failsWhenCancelled(s *suite) {
	ref := s.Create(s.T, "c-12345", 1)
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	if ms, err := s.Actuator.Observe(ctx, ref); err == nil {
		s.Errorf("observed %v", ms)
	}
	if s.Actuator.Start(ctx, ref) == nil {
		s.Error("started")
	}
	if s.Actuator.Stop(ctx, ref) == nil {
		s.Error("stopped")
	}
	if got := s.observeMachines(ref); !got.AllIn(cloud.Stopped) {
		s.Errorf("after cancelled calls: %v", got)
	}
}

func startsControlPlaneFirst(s *suite) {
	ref := s.Create(s.T, "c-12345", 2)
	s.repeatUntil(ref, "all run", s.startCluster, func(ms cloud.Machines) bool {
		if anyStopped(ms, isControlPlane) && anyRunning(ms, isWorker) {
			s.Fatalf("workers are up before the control plane: %v", ms)
		}
		return ms.AllIn(cloud.Running)
	})
}

func stopsWorkersFirst(s *suite) {
	ref := s.runningCluster(2)
	s.repeatUntil(ref, "all are stopped", s.stopCluster, func(ms cloud.Machines) bool {
		if anyStopped(ms, isControlPlane) && anyRunning(ms, isWorker) {
			s.Fatalf("the control plane is off before the workers: %v", ms)
		}
		return ms.AllIn(cloud.Stopped)
	})
}
