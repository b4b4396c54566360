package local

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/embedded/machine"
)

// machines parses "cp:on,absent w:off,up x:freeze,frozen": name, switch, phase or exit.
func machines(t *testing.T, text string) []observedMachine {
	t.Helper()
	phases := map[string]processPhase{
		"absent": phaseAbsent, "starting": phaseStarting, "up": phaseRunning, "stopping": phaseStopping,
		"freezing": phaseFreezing, "frozen": phaseFrozen, "thawing": phaseThawing, "unfreezable": phaseRunning, "unfreezable-frozen": phaseFrozen,
	}
	var ms []observedMachine
	for _, field := range strings.Fields(text) {
		name, rest, _ := strings.Cut(field, ":")
		wanted, how, _ := strings.Cut(rest, ",")
		m := observedMachine{dir: name, wanted: wanted == "on", freeze: wanted == "freeze", phase: phases[how]}
		m.Name, m.Role = name, machine.Worker
		if strings.HasPrefix(name, "cp") {
			m.Role = machine.ControlPlane
		}
		if strings.HasPrefix(how, "unfreezable") {
			m.freezeObstacle = "it is too warm"
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
		"a control plane comes to rest with workers":   {in: "cp:freeze,up w:freeze,up", want: "freeze cp, freeze w"},
		"what is frozen stays so":                      {in: "cp:freeze,frozen w:freeze,frozen"},
		"what is being frozen is left to it":           {in: "cp:freeze,freezing w:freeze,freezing"},
		"what starts is stopped instead":               {in: "cp:freeze,up w:freeze,starting", want: "freeze cp, stop w"},
		"what cannot be frozen is stopped instead":     {in: "cp:freeze,unfreezable w:freeze,absent", want: "stop cp"},
		"and not before its workers have ended":        {in: "cp:freeze,unfreezable w:freeze,unfreezable", want: "stop w"},
		"a frozen worker of such a one is stopped":     {in: "cp:freeze,unfreezable w:freeze,unfreezable-frozen", want: "stop w"},
		"what does not run is not frozen":              {in: "cp:freeze,absent w:freeze,absent"},
		"the control plane is thawed first":            {in: "cp:on,frozen w:on,frozen", want: "thaw cp"},
		"workers wait until it is awake":               {in: "cp:on,thawing w:on,frozen"},
		"then they are thawed":                         {in: "cp:on,up w:on,frozen", want: "thaw w"},
		"workers do not wait for one that has failed":  {in: "cp:on,failed w:on,frozen", want: "thaw w"},
		"what is frozen is thawed to be stopped":       {in: "cp:off,frozen w:off,frozen", want: "stop w"},
		"what is being frozen is stopped":              {in: "cp:off,freezing w:off,absent", want: "stop cp"},
		"what is being thawed is stopped when it runs": {in: "cp:off,thawing w:off,absent"},
		"closing stops what is frozen":                 {in: "cp:freeze,frozen w:freeze,frozen", closing: true, want: "stop w"},
		"closing stops what is being thawed":           {in: "cp:on,thawing w:on,absent", closing: true, want: "stop cp"},
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

		"w:freeze,up":          "Stopping",
		"w:freeze,freezing":    "Stopping",
		"w:freeze,frozen":      "Stopped at depth freeze",
		"w:freeze,unfreezable": "Stopping",
		"w:freeze,absent":      "Stopped, for hotspare has ended while it was frozen, which stops it",
		"w:on,freezing":        "Starting",
		"w:on,frozen":          "Starting",
		"w:on,thawing":         "Starting",
		"w:off,frozen":         "Stopping",
		"w:off,thawing":        "Stopping",
	} {
		t.Run(in, func(t *testing.T) {
			m := machines(t, in)[0].toCloudMachine()
			got := string(m.State)
			if m.Reason != "" {
				got += " (" + m.Reason + ")"
			}
			if m.Depth != "" {
				got += " at depth " + string(m.Depth)
			}
			if m.DepthObstacle != "" {
				got += ", for " + m.DepthObstacle
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
	for seed := range uint64(400) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			ms := machines(t, "cp:off,absent w1:off,absent w2:off,absent")
			for range 60 {
				if r.IntN(5) == 0 {
					want(ms, wishes[r.IntN(3)])
				}
				advance(t, ms, true, func() bool { return r.IntN(2) == 0 })
			}
			final := wishes[seed%3]
			want(ms, final)
			for range 30 {
				advance(t, ms, false, func() bool { return true })
			}
			for _, m := range ms {
				state := m.toCloudMachine().State
				if state != map[string]cloud.State{"on": cloud.Running, "off": cloud.Stopped, "freeze": cloud.Stopped}[final] {
					t.Errorf("%s: %s, and the wish is %s", m.Name, state, final)
				}
				if m.phase == phaseFrozen && final != "freeze" {
					t.Errorf("%s is frozen, and the wish is %s", m.Name, final)
				}
			}
		})
	}
}

var wishes = []string{"on", "off", "freeze"}

// want does what StartCluster, StopCluster and FreezeCluster do.
func want(ms []observedMachine, wish string) {
	for i := range ms {
		m := &ms[i]
		switch {
		case wish == "freeze" && m.wanted:
			m.wanted, m.freeze, m.freezeObstacle = false, true, ""
			if m.phase == phaseAbsent || m.phase == phaseStarting || m.phase == phaseStopping {
				m.freezeObstacle = "it was not running"
			}
		case wish != "freeze":
			m.wanted, m.freeze, m.freezeObstacle = wish == "on", false, ""
		}
	}
}

// advance runs one pass, then lets some processes start, end, or be frozen or thawed. If mayFail is set, control planes
// may fail to be frozen.
func advance(t *testing.T, ms []observedMachine, mayFail bool, maybe func() bool) {
	t.Helper()
	for _, s := range decideSteps(ms, false) {
		for i := range ms {
			if ms[i].Name == s.Name {
				ms[i].phase = map[verb]processPhase{
					verbStart: phaseStarting, verbStop: phaseStopping, verbFreeze: phaseFreezing, verbThaw: phaseThawing,
				}[s.verb]
			}
		}
	}
	for i := range ms {
		m := &ms[i]
		next := map[processPhase]processPhase{
			phaseStarting: phaseRunning, phaseStopping: phaseAbsent, phaseThawing: phaseRunning, phaseFreezing: phaseFrozen,
		}
		if m.phase == phaseFreezing && isControlPlane(*m) && !m.freeze {
			next[phaseFreezing] = phaseThawing // see waitForRest
		} else if m.phase == phaseFreezing && isControlPlane(*m) && slices.ContainsFunc(ms, isAwakeWorker) {
			delete(next, phaseFreezing)
		}
		if to, ok := next[m.phase]; ok && maybe() {
			m.phase = to
		} else if m.phase == phaseFreezing && m.freeze && isControlPlane(*m) && mayFail && maybe() {
			m.phase = phaseThawing
			for j := range ms { // see recordUnfreezable
				ms[j].freezeObstacle = "it is too warm"
			}
		}
	}
	cp := ms[0].phase
	for _, w := range ms[1:] {
		if cp == phaseAbsent && w.phase != phaseAbsent {
			t.Fatalf("a worker has a process and the control plane has none: %v", ms)
		}
		if cp == phaseFrozen && (w.phase == phaseRunning || w.phase == phaseStarting) {
			t.Fatalf("a worker runs and the control plane is frozen: %v", ms)
		}
	}
}
