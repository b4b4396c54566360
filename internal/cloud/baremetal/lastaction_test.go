package baremetal

import (
	"math/rand/v2"
	"testing"
	"time"
)

// now is an arbitrary time.
var now = time.Date(2026, 11, 22, 1, 0, 0, 0, time.UTC)

func ago(o powerAction, d time.Duration) lastAction { return lastAction{o, now.Add(-d)} }

func TestState(t *testing.T) {
	for name, c := range map[string]struct {
		told  lastAction
		power power
		want  string
	}{
		"on is running":  {lastAction{}, poweredOn, "Running"},
		"off is stopped": {lastAction{}, poweredOff, "Stopped"},
		"off right after it was started is starting":    {ago(turnOn, settleDelay-1), poweredOff, "Starting"},
		"off long after it was started is stopped":      {ago(turnOn, settleDelay), poweredOff, "Stopped"},
		"on right after it was started is running":      {ago(turnOn, 1), poweredOn, "Running"},
		"on right after it was powered off is stopping": {ago(powerOff, settleDelay-1), poweredOn, "Stopping"},
		"on long after it was powered off is running":   {ago(powerOff, settleDelay), poweredOn, "Running"},
		"on while its guest shuts down is stopping":     {ago(shutDown, shutdownGrace-1), poweredOn, "Stopping"},
		"on after a shutdown that failed is running":    {ago(shutDown, shutdownGrace), poweredOn, "Running"},
		"between two states, towards on":                {lastAction{}, poweringOn, "Starting"},
		"between two states, towards off":               {lastAction{}, poweringOff, "Stopping"},
		"paused is no good":                             {lastAction{}, paused, "Failed"},
		"what nobody knows is unknown":                  {ago(turnOn, 1), unknownPower, "Unknown"},
	} {
		if got := c.told.machineState(c.power, now); string(got) != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func TestStarting(t *testing.T) {
	for name, c := range map[string]struct {
		told  lastAction
		power power
		want  powerAction
	}{
		"what is off is started":                      {lastAction{}, poweredOff, turnOn},
		"what is paused is resumed":                   {lastAction{}, paused, turnOn},
		"a start is not repeated right after it":      {ago(turnOn, settleDelay-1), poweredOff, noAction},
		"a start that came to nothing is repeated":    {ago(turnOn, settleDelay), poweredOff, turnOn},
		"what runs is left alone":                     {lastAction{}, poweredOn, noAction},
		"a shutdown under way is waited for":          {ago(shutDown, 1), poweredOn, noAction},
		"what is between two states is left alone":    {lastAction{}, poweringOff, noAction},
		"what is off after it was powered off starts": {ago(powerOff, 1), poweredOff, turnOn},
		"what nobody knows is left alone":             {lastAction{}, unknownPower, noAction},
	} {
		if got := c.told.nextStartAction(c.power, now); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func TestStopping(t *testing.T) {
	for name, c := range map[string]struct {
		told     lastAction
		power    power
		patience time.Duration
		want     powerAction
	}{
		"a guest is asked first":                             {lastAction{}, poweredOn, shutdownGrace, shutDown},
		"a guest has its grace":                              {ago(shutDown, shutdownGrace-1), poweredOn, shutdownGrace, noAction},
		"a guest that does not listen is powered off":        {ago(shutDown, shutdownGrace), poweredOn, shutdownGrace, powerOff},
		"late, a guest is asked all the same":                {lastAction{}, poweredOn, lateGrace, shutDown},
		"late, a guest has less grace":                       {ago(shutDown, lateGrace), poweredOn, lateGrace, powerOff},
		"late, a guest has some grace":                       {ago(shutDown, lateGrace-1), poweredOn, lateGrace, noAction},
		"it is powered off once":                             {ago(powerOff, settleDelay-1), poweredOn, shutdownGrace, noAction},
		"it is powered off again if that came to nothing":    {ago(powerOff, settleDelay), poweredOn, shutdownGrace, powerOff},
		"what was started just now is asked":                 {ago(turnOn, 1), poweredOn, shutdownGrace, shutDown},
		"what is off is left alone":                          {lastAction{}, poweredOff, shutdownGrace, noAction},
		"what was started and shows no sign is left alone":   {ago(turnOn, 1), poweredOff, shutdownGrace, noAction},
		"between two states, it is waited for":               {lastAction{}, poweringOn, shutdownGrace, waitAction},
		"between two states, it is waited for still":         {ago(waitAction, shutdownGrace-1), poweringOff, shutdownGrace, noAction},
		"stuck between two states, it is powered off":        {ago(waitAction, shutdownGrace), poweringOff, shutdownGrace, powerOff},
		"a shutdown that got stuck half-way is cut short":    {ago(shutDown, shutdownGrace), poweringOff, shutdownGrace, powerOff},
		"after the wait its guest is asked, not powered off": {ago(waitAction, shutdownGrace), poweredOn, shutdownGrace, shutDown},
		"what is paused hears nothing":                       {lastAction{}, paused, shutdownGrace, powerOff},
		"what nobody knows is left alone":                    {lastAction{}, unknownPower, shutdownGrace, noAction},
	} {
		if got := c.told.nextStopAction(c.power, now, c.patience); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func TestMemory(t *testing.T) {
	for name, c := range map[string]struct {
		told  lastAction
		power power
		want  powerAction
	}{
		"an order under way is kept":                          {ago(shutDown, 1), poweredOn, shutDown},
		"a shutdown is over when it is off":                   {ago(shutDown, 1), poweredOff, noAction},
		"a start is over when it is on":                       {ago(turnOn, 1), poweredOn, noAction},
		"a start is not over when it is off":                  {ago(turnOn, 1), poweredOff, turnOn},
		"what was told long ago says nothing of a later stop": {ago(shutDown, actionTTL+1), poweredOn, noAction},
	} {
		m := actionStore{lastActions: map[string]lastAction{"a": c.told}}
		if got := m.getLastAction("a", c.power, now).action; got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
	m := actionStore{lastActions: map[string]lastAction{"old": ago(turnOn, actionTTL+1)}}
	if m.recordLastAction("new", turnOn, now); len(m.lastActions) != 1 {
		t.Errorf("memory grows: %v", m.lastActions)
	}
}

// Whatever happens, and however often the process restarts, no host is powered off that was not
// asked to shut down before, and a host that does not react is eventually powered off.
func TestEveryGuestIsAskedAndNoneIsWaitedForForEver(t *testing.T) {
	for seed := range uint64(300) {
		dice := rand.New(rand.NewPCG(seed, 0))
		m, clock, asked := actionStore{lastActions: map[string]lastAction{}}, now, false
		restarts := time.Duration(3+dice.IntN(10)) * time.Minute
		ended := now
		for {
			if clock.Sub(ended) > restarts {
				m, ended = actionStore{lastActions: map[string]lastAction{}}, clock
			}
			patience := shutdownGraceAt(clock.Sub(now))
			o := m.getLastAction("a", poweredOn, clock).nextStopAction(poweredOn, clock, patience)
			if o == powerOff {
				break
			}
			if o != noAction {
				m.recordLastAction("a", o, clock)
			}
			asked = asked || o == shutDown
			if clock = clock.Add(time.Duration(1+dice.IntN(30)) * time.Second); clock.Sub(now) > 2*lateHibernation {
				t.Fatalf("seed %d: it is on after %s, with restarts every %s", seed, clock.Sub(now), restarts)
			}
		}
		if age := clock.Sub(now); !asked || age < lateGrace || restarts > shutdownGrace+time.Minute && age < shutdownGrace {
			t.Fatalf("seed %d: powered off after %s, asked: %v", seed, age, asked)
		}
	}
}
