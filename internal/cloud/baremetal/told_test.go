package baremetal

import (
	"math/rand/v2"
	"testing"
	"time"
)

// now is any time.
var now = time.Date(2026, 11, 22, 1, 0, 0, 0, time.UTC)

func ago(o order, d time.Duration) told { return told{o, now.Add(-d)} }

func TestState(t *testing.T) {
	for name, c := range map[string]struct {
		told  told
		power power
		want  string
	}{
		"on is running":  {told{}, on, "Running"},
		"off is stopped": {told{}, off, "Stopped"},
		"off right after it was started is starting":    {ago(turnOn, settling-1), off, "Starting"},
		"off long after it was started is stopped":      {ago(turnOn, settling), off, "Stopped"},
		"on right after it was started is running":      {ago(turnOn, 1), on, "Running"},
		"on right after it was powered off is stopping": {ago(powerOff, settling-1), on, "Stopping"},
		"on long after it was powered off is running":   {ago(powerOff, settling), on, "Running"},
		"on while its guest shuts down is stopping":     {ago(shutDown, grace-1), on, "Stopping"},
		"on after a shutdown that failed is running":    {ago(shutDown, grace), on, "Running"},
		"between two states, towards on":                {told{}, goingOn, "Starting"},
		"between two states, towards off":               {told{}, goingOff, "Stopping"},
		"paused is no good":                             {told{}, paused, "Failed"},
		"what nobody knows is unknown":                  {ago(turnOn, 1), odd, "Unknown"},
	} {
		if got := c.told.state(c.power, now); string(got) != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func TestStarting(t *testing.T) {
	for name, c := range map[string]struct {
		told  told
		power power
		want  order
	}{
		"what is off is started":                      {told{}, off, turnOn},
		"what is paused is resumed":                   {told{}, paused, turnOn},
		"a start is not repeated right after it":      {ago(turnOn, settling-1), off, nothing},
		"a start that came to nothing is repeated":    {ago(turnOn, settling), off, turnOn},
		"what runs is left alone":                     {told{}, on, nothing},
		"a shutdown under way is waited for":          {ago(shutDown, 1), on, nothing},
		"what is between two states is left alone":    {told{}, goingOff, nothing},
		"what is off after it was powered off starts": {ago(powerOff, 1), off, turnOn},
		"what nobody knows is left alone":             {told{}, odd, nothing},
	} {
		if got := c.told.starting(c.power, now); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func TestStopping(t *testing.T) {
	for name, c := range map[string]struct {
		told     told
		power    power
		patience time.Duration
		want     order
	}{
		"a guest is asked first":                             {told{}, on, grace, shutDown},
		"a guest has its grace":                              {ago(shutDown, grace-1), on, grace, nothing},
		"a guest that does not listen is powered off":        {ago(shutDown, grace), on, grace, powerOff},
		"late, a guest is asked all the same":                {told{}, on, again, shutDown},
		"late, a guest has less grace":                       {ago(shutDown, again), on, again, powerOff},
		"late, a guest has some grace":                       {ago(shutDown, again-1), on, again, nothing},
		"it is powered off once":                             {ago(powerOff, settling-1), on, grace, nothing},
		"it is powered off again if that came to nothing":    {ago(powerOff, settling), on, grace, powerOff},
		"what was started just now is asked":                 {ago(turnOn, 1), on, grace, shutDown},
		"what is off is left alone":                          {told{}, off, grace, nothing},
		"what was started and shows no sign is left alone":   {ago(turnOn, 1), off, grace, nothing},
		"between two states, it is waited for":               {told{}, goingOn, grace, wait},
		"between two states, it is waited for still":         {ago(wait, grace-1), goingOff, grace, nothing},
		"stuck between two states, it is powered off":        {ago(wait, grace), goingOff, grace, powerOff},
		"a shutdown that got stuck half-way is cut short":    {ago(shutDown, grace), goingOff, grace, powerOff},
		"after the wait its guest is asked, not powered off": {ago(wait, grace), on, grace, shutDown},
		"what is paused hears nothing":                       {told{}, paused, grace, powerOff},
		"what nobody knows is left alone":                    {told{}, odd, grace, nothing},
	} {
		if got := c.told.stopping(c.power, now, c.patience); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func TestMemory(t *testing.T) {
	for name, c := range map[string]struct {
		told  told
		power power
		want  order
	}{
		"an order under way is kept":                          {ago(shutDown, 1), on, shutDown},
		"a shutdown is over when it is off":                   {ago(shutDown, 1), off, nothing},
		"a start is over when it is on":                       {ago(turnOn, 1), on, nothing},
		"a start is not over when it is off":                  {ago(turnOn, 1), off, turnOn},
		"what was told long ago says nothing of a later stop": {ago(shutDown, forgotten+1), on, nothing},
	} {
		m := memory{told: map[string]told{"a": c.told}}
		if got := m.of("a", c.power, now).order; got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
	m := memory{told: map[string]told{"old": ago(turnOn, forgotten+1)}}
	if m.note("new", turnOn, now); len(m.told) != 1 {
		t.Errorf("memory grows: %v", m.told)
	}
}

// Whatever happens, and however often the process ends, nobody is powered off that was
// not asked before, and who does not listen is powered off in the end.
func TestEveryGuestIsAskedAndNoneIsWaitedForForEver(t *testing.T) {
	for seed := range uint64(300) {
		dice := rand.New(rand.NewPCG(seed, 0))
		m, clock, asked := memory{told: map[string]told{}}, now, false
		restarts := time.Duration(3+dice.IntN(10)) * time.Minute
		ended := now
		for {
			if clock.Sub(ended) > restarts {
				m, ended = memory{told: map[string]told{}}, clock
			}
			patience := patienceAt(clock.Sub(now))
			o := m.of("a", on, clock).stopping(on, clock, patience)
			if o == powerOff {
				break
			}
			if o != nothing {
				m.note("a", o, clock)
			}
			asked = asked || o == shutDown
			if clock = clock.Add(time.Duration(1+dice.IntN(30)) * time.Second); clock.Sub(now) > 2*late {
				t.Fatalf("seed %d: it is on after %s, with restarts every %s", seed, clock.Sub(now), restarts)
			}
		}
		if age := clock.Sub(now); !asked || age < again || restarts > grace+time.Minute && age < grace {
			t.Fatalf("seed %d: powered off after %s, asked: %v", seed, age, asked)
		}
	}
}
