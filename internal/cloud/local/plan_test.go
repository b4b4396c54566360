package local

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/embedded/machine"
)

// machines parses "cp:on,absent w:off,up": name, switch, phase or exit.
func machines(t *testing.T, text string) []observedMachine {
	t.Helper()
	phases := map[string]processPhase{"absent": phaseAbsent, "starting": phaseStarting, "up": phaseRunning, "stopping": phaseStopping}
	var ms []observedMachine
	for _, field := range strings.Fields(text) {
		name, rest, _ := strings.Cut(field, ":")
		wanted, how, _ := strings.Cut(rest, ",")
		m := observedMachine{dir: name, wanted: wanted == "on", phase: phases[how]}
		m.Name, m.Role = name, machine.Worker
		if strings.HasPrefix(name, "cp") {
			m.Role = machine.ControlPlane
		}
		if how == "failed" {
			m.lastExit = exitResult{cloud.Failed, "broken"}
		}
		if how == "crashed" {
			m.lastExit = exitResult{state: cloud.Stopped}
		}
		ms = append(ms, m)
	}
	return ms
}

func TestDecide(t *testing.T) {
	for name, c := range map[string]struct {
		in      string
		closing bool
		want    string
	}{
		"nothing is wanted, nothing happens":           {in: "cp:off,absent w:off,absent"},
		"the control plane starts first":               {in: "cp:on,absent w:on,absent", want: "start cp"},
		"workers wait while it starts":                 {in: "cp:on,starting w:on,absent"},
		"workers start when it is up":                  {in: "cp:on,up a:on,absent b:on,absent", want: "start a, start b"},
		"workers do not wait for one that failed":      {in: "cp:on,failed w:on,absent", want: "start w"},
		"workers do not wait for one that is off":      {in: "cp:off,absent w:on,absent", want: "start w"},
		"what crashed stays off":                       {in: "cp:on,up w:on,crashed"},
		"what failed is not tried again":               {in: "cp:on,up w:on,failed"},
		"workers stop first":                           {in: "cp:off,up a:off,up b:off,starting", want: "stop a, stop b"},
		"the control plane waits for the last worker":  {in: "cp:off,up w:off,stopping"},
		"then it stops":                                {in: "cp:off,up w:off,absent", want: "stop cp"},
		"one that is started while it stops must wait": {in: "cp:on,stopping w:on,absent"},
		"one machine alone can be stopped":             {in: "cp:on,up w:off,up", want: "stop w"},
		"closing stops what is wanted":                 {in: "cp:on,up w:on,up", closing: true, want: "stop w"},
		"closing starts nothing":                       {in: "cp:on,absent w:on,absent", closing: true},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, s := range decideSteps(machines(t, c.in), c.closing) {
				got = append(got, s.String())
			}
			if diff := cmp.Diff(c.want, strings.Join(got, ", ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestState(t *testing.T) {
	for in, want := range map[string]string{
		"w:off,absent":   "Stopped",
		"w:on,absent":    "Starting",
		"w:on,starting":  "Starting",
		"w:on,up":        "Running",
		"w:off,up":       "Stopping",
		"w:off,starting": "Stopping",
		"w:on,stopping":  "Stopping",
		"w:on,crashed":   "Stopped",
		"w:on,failed":    "Failed (broken)",
	} {
		t.Run(in, func(t *testing.T) {
			state, reason := machines(t, in)[0].cloudState()
			got := string(state)
			if reason != "" {
				got += " (" + reason + ")"
			}
			if got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// TestHistories checks that machines reach their desired state when random changes stop, and that
// no worker ever runs without its control plane.
func TestHistories(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			ms := machines(t, "cp:off,absent w1:off,absent w2:off,absent")
			for range 60 {
				if r.IntN(5) == 0 {
					want(ms, r.IntN(2) == 0)
				}
				advance(t, ms, func() bool { return r.IntN(2) == 0 })
			}
			want(ms, seed%2 == 0)
			for range 20 {
				advance(t, ms, func() bool { return true })
			}
			for _, m := range ms {
				if m.phase != map[bool]processPhase{true: phaseRunning, false: phaseAbsent}[m.wanted] {
					t.Errorf("%s: wanted %t, phase %d", m.Name, m.wanted, m.phase)
				}
			}
		})
	}
}

func want(ms []observedMachine, on bool) {
	for i := range ms {
		ms[i].wanted = on
	}
}

// advance runs one pass, then lets some processes start or end.
func advance(t *testing.T, ms []observedMachine, maybe func() bool) {
	t.Helper()
	for _, s := range decideSteps(ms, false) {
		for i := range ms {
			if ms[i].Name == s.Name {
				ms[i].phase = map[verb]processPhase{verbStart: phaseStarting, verbStop: phaseStopping}[s.verb]
			}
		}
	}
	for i := range ms {
		next := map[processPhase]processPhase{phaseStarting: phaseRunning, phaseStopping: phaseAbsent}
		if to, ok := next[ms[i].phase]; ok && maybe() {
			ms[i].phase = to
		}
	}
	if ms[0].phase == phaseAbsent && (ms[1].phase != phaseAbsent || ms[2].phase != phaseAbsent) {
		t.Fatalf("a worker has a process and the control plane has none: %v", ms)
	}
}
