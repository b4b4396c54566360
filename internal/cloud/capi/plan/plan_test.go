package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hotspare.io/hotspare/internal/cloud"
)

// machines reads "cp:aws:Running md:gce:Stopped": names, providers and states. A name that begins
// with cp is a control plane machine. "!" after a state: not provisioned, "-": deleting, "?": its
// pause is not confirmed.
func machines(text string) func(*Snapshot) {
	return func(s *Snapshot) {
		for _, one := range strings.Fields(text) {
			parts := strings.Split(one, ":")
			state := strings.TrimRight(parts[2], "!-?")
			s.Machines = append(s.Machines, Machine{
				Machine:     cloud.Machine{Name: parts[0], ControlPlane: strings.HasPrefix(parts[0], "cp"), State: cloud.State(state), Node: parts[0], Reason: "why"},
				Provider:    parts[1],
				Provisioned: !strings.HasSuffix(parts[2], "!"), Deleting: strings.HasSuffix(parts[2], "-"), Paused: !strings.HasSuffix(parts[2], "?"),
			})
		}
	}
}

func paused(s *Snapshot) {
	s.Paused, s.PausedByHotspare, s.PauseConfirmed, s.Marked = true, true, true, true
}
func foreign(s *Snapshot)     { s.Paused, s.PauseConfirmed = true, true }
func marked(s *Snapshot)      { s.Marked = true }
func unconfirmed(s *Snapshot) { s.PauseConfirmed = false }
func deleting(s *Snapshot)    { s.Deleting = true }
func checks(done bool) func(*Snapshot) {
	return func(s *Snapshot) { s.HealthChecks = []HealthCheck{{Name: "mhc", Paused: done}} }
}
func ready(names ...string) func(*Snapshot) { return func(s *Snapshot) { s.ReadyNodes = names } }

type edits []func(*Snapshot)

func TestDecide(t *testing.T) {
	for name, c := range map[string]struct {
		goal Goal
		in   edits
		want string
	}{
		"the Cluster is paused before a machine stops": {Stopped, edits{machines("cp:aws:Running md:aws:Running")}, "pause the Cluster"},
		"no machine stops before Cluster API confirms the pause": {
			Stopped,
			edits{machines("cp:aws:Running md:aws:Running"), paused, unconfirmed},
			"wait: Cluster API has not confirmed the pause of Cluster c yet: if it does not, check that its controllers run and that its version is 1.11 or later",
		},
		"nor before it confirms that of each Machine": {
			Stopped,
			edits{machines("cp:aws:Running md:aws:Running?"), paused},
			"wait: Cluster API has not confirmed the pause of Machine md yet: if it does not, check that its controllers run and that its version is 1.11 or later",
		},
		"nor before it confirms that of a MachineHealthCheck": {
			Stopped,
			edits{machines("cp:aws:Running md:aws:Running"), paused, checks(false)},
			"wait: Cluster API has not confirmed the pause of MachineHealthCheck mhc yet: if it does not, check that its controllers run and that its version is 1.11 or later",
		},
		"workers stop first":                      {Stopped, edits{machines("cp:aws:Running md:aws:Running"), paused, checks(true)}, "stop md at aws"},
		"workers of two providers stop together":  {Stopped, edits{machines("cp:aws:Running m1:gce:Running m2:aws:Running"), paused}, "stop m2 at aws; stop m1 at gce"},
		"the control plane waits for all workers": {Stopped, edits{machines("cp:aws:Running m1:gce:Running m2:aws:Stopped"), paused}, "stop m1 at gce"},
		"then the control plane stops":            {Stopped, edits{machines("cp:aws:Running m1:gce:Stopped m2:aws:Stopping"), paused}, "stop cp at aws"},
		"a stopped Cluster needs nothing":         {Stopped, edits{machines("cp:aws:Stopped md:aws:Stopped"), paused}, "nothing"},
		"a pause that was removed comes back":     {Stopped, edits{machines("cp:aws:Stopped md:aws:Running"), marked}, "pause the Cluster"},
		"another user's pause keeps machines on": {
			Stopped,
			edits{machines("cp:aws:Running"), foreign},
			"denied: Cluster c is paused by another user, so hotspare leaves its machines alone: " +
				"whoever paused it can set its spec.paused to false; or set spec.powerState of the ClusterDeployment to Running",
		},
		"a machine that is being created is waited for": {
			Stopped,
			edits{machines("cp:aws:Running md::Starting!")},
			"wait: Cluster API is creating or deleting md: a Cluster is paused when all its machines have a provider ID and none is being deleted",
		},
		"so is one that is being deleted": {
			Stopped,
			edits{machines("cp:aws:Running md:aws:Running-")},
			"wait: Cluster API is creating or deleting md: a Cluster is paused when all its machines have a provider ID and none is being deleted",
		},
		"a machine that nobody can stop is named, and nothing is paused": {Stopped, edits{machines("cp:aws:Running md::Unknown")}, "denied: hotspare cannot stop md: why"},
		"a Cluster that is being deleted is left alone": {
			Stopped,
			edits{machines("cp:aws:Running"), deleting},
			"denied: Cluster c is being deleted: delete its ClusterDeployment, too, or its machines stay as they are until they are deleted",
		},

		"the control plane starts first":                {Started, edits{machines("cp:aws:Stopped md:aws:Stopped"), paused}, "start cp at aws"},
		"workers wait for most of the control plane":    {Started, edits{machines("cp0:aws:Running cp1:aws:Starting cp2:aws:Starting md:gce:Stopped"), paused}, "nothing"},
		"then they start at all providers":              {Started, edits{machines("cp:aws:Running m1:gce:Stopped m2:aws:Stopped"), paused}, "start m2 at aws; start m1 at gce"},
		"another user's pause does not prevent a start": {Started, edits{machines("cp:aws:Stopped"), foreign}, "start cp at aws"},
		"a start does not unpause":                      {Started, edits{machines("cp:aws:Running"), paused}, "nothing"},
		"the Cluster stays paused until all machines run": {
			Resumed,
			edits{machines("cp:aws:Running md:aws:Starting"), paused, ready("cp", "md")},
			"wait: Cluster c stays paused until all its machines run: md",
		},
		"and until the node of each machine is ready": {
			Resumed,
			edits{machines("cp:aws:Running md:aws:Running"), paused, ready("cp")},
			"wait: Cluster c stays paused until the nodes of all its machines are ready: md",
		},
		"then it is unpaused":                        {Resumed, edits{machines("cp:aws:Running md:aws:Running"), paused, ready("cp", "md")}, "unpause the Cluster"},
		"another user's pause stays":                 {Resumed, edits{machines("cp:aws:Running"), foreign, ready("cp")}, "nothing"},
		"a Cluster that is not paused needs nothing": {Resumed, edits{machines("cp:aws:Stopped")}, "nothing"},
		"the record of a removed pause goes last":    {Resumed, edits{machines("cp:aws:Running"), marked, ready("cp")}, "unpause the Cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			s := Snapshot{Goal: c.goal, Name: "c"}
			for _, edit := range c.in {
				edit(&s)
			}
			got := Decide(s).String()
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			slices.Reverse(s.Machines)
			if again := Decide(s).String(); again != got {
				t.Errorf("the order of the machines matters: %q", again)
			}
		})
	}
}

// world is a Cluster under controllers that replace each machine that does not run while the Cluster
// is not paused.
type world struct {
	s        Snapshot
	replaced int
}

func (w *world) apply(p Plan) {
	for _, st := range p.Steps {
		switch st.Verb {
		case Pause:
			w.s.Paused, w.s.PausedByHotspare, w.s.Marked = true, true, true
		case Unpause:
			w.s.Paused, w.s.PausedByHotspare, w.s.Marked = false, false, false
		}
		for i := range w.s.Machines {
			m := &w.s.Machines[i]
			switch {
			case !slices.Contains(st.Machines, m.Name):
			case st.Verb == Stop:
				m.State = cloud.Stopping
			case st.Verb == Start:
				m.State = cloud.Starting
			}
		}
	}
}

// pass lets time go by: each transition ends, and each controller acts, or not.
func (w *world) pass(r *rand.Rand) {
	for i := range w.s.Machines {
		m := &w.s.Machines[i]
		switch {
		case r.IntN(2) == 0:
		case m.State == cloud.Stopping:
			m.State = cloud.Stopped
			w.s.ReadyNodes = slices.DeleteFunc(w.s.ReadyNodes, func(n string) bool { return n == m.Node })
		case m.State == cloud.Starting:
			m.State = cloud.Running
		case m.State == cloud.Running && !slices.Contains(w.s.ReadyNodes, m.Node):
			w.s.ReadyNodes = append(w.s.ReadyNodes, m.Node)
		}
	}
	if r.IntN(2) == 0 {
		w.s.PauseConfirmed = w.s.Paused
	}
	for i := range w.s.Machines {
		m := &w.s.Machines[i]
		if r.IntN(2) == 0 {
			m.Paused = w.s.Paused
		}
		if !m.Paused && (m.State != cloud.Running || !slices.Contains(w.s.ReadyNodes, m.Node)) {
			w.replaced++
		}
	}
}

func TestHistoriesReplaceNoMachine(t *testing.T) {
	for range 2000 {
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 1))
		w := &world{s: Snapshot{Name: "c"}}
		for i := range 1 + r.IntN(3) {
			machines(fmt.Sprintf("cp%d:aws:Running?", i))(&w.s)
		}
		for i := range r.IntN(4) {
			machines(fmt.Sprintf("md%d:%s:Running?", i, []string{"aws", "gce"}[r.IntN(2)]))(&w.s)
		}
		for _, m := range w.s.Machines {
			w.s.ReadyNodes = append(w.s.ReadyNodes, m.Node)
		}
		for range 3 {
			w.run(t, r, seed, Stopped, func() bool { return w.s.machines().AllIn(cloud.Stopped) })
			w.run(t, r, seed, Started, func() bool { return w.s.machines().AllIn(cloud.Running) })
			w.run(t, r, seed, Resumed, func() bool { return !w.s.Paused && !w.s.Marked })
		}
		if w.replaced > 0 {
			t.Fatalf("seed %d: %d machines were replaced", seed, w.replaced)
		}
	}
}

// run decides for a goal until it is reached. Between passes a plan may be lost, as in a crash.
func (w *world) run(t *testing.T, r *rand.Rand, seed uint64, goal Goal, reached func() bool) {
	t.Helper()
	for range 1000 {
		w.s.Goal = goal
		if reached() {
			return
		}
		if p := Decide(w.s); r.IntN(4) > 0 {
			w.apply(p)
		}
		w.pass(r)
	}
	t.Fatalf("seed %d: goal %d is not reached: %s", seed, goal, Decide(w.s))
}
