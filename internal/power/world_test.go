package power

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
)

// world is a cluster, its platform and its user, as a small program.
type world struct {
	*rand.Rand
	now    time.Time
	wanted hivev1.PowerState
	limits Limits
	vms    []*vm
	record *hivev1.PowerTransition

	depth cloud.Depth

	// What misbehaves at present. The platform refuses the depths in picky.
	apiDown, blind, refusing, lazy bool
	picky                          map[cloud.Depth]bool
	// refused are the depths whose refusal is recorded in this transition.
	refused map[cloud.Depth]bool
	probe   ResumeProbe
	history []string
}

// vm is a machine that takes its time.
type vm struct {
	name     string
	state    cloud.State
	depth    cloud.Depth // at which it sleeps, or is about to
	until    time.Time   // when Starting or Stopping ends
	lastSeen time.Time   // its node's last sign of life
}

func newWorld(seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 0)), now: now, wanted: hivev1.PowerRunning, picky: map[cloud.Depth]bool{}, refused: map[cloud.Depth]bool{}}
	for i := range 1 + w.IntN(3) {
		w.vms = append(w.vms, &vm{name: fmt.Sprint("m", i), state: cloud.Running})
	}
	return w
}

// disturb does one thing that may happen to a cluster.
func (w *world) disturb() {
	m := w.vms[w.IntN(len(w.vms))]
	switch w.IntN(14) {
	case 11, 12:
		w.depth = cloud.Depths()[w.IntN(3)]
	case 13:
		d := cloud.Depths()[w.IntN(2)]
		w.picky[d] = !w.picky[d]
	case 10:
		w.lazy = !w.lazy
	case 0, 1:
		w.wanted = hivev1.PowerRunning
	case 2, 3:
		w.wanted = hivev1.PowerHibernating
	case 4:
		m.state = []cloud.State{cloud.Running, cloud.Stopped, cloud.Failed, cloud.Unknown}[w.IntN(4)]
		m.depth = cloud.Depths()[w.IntN(3)]
	case 5:
		w.apiDown = !w.apiDown
	case 6:
		w.blind = !w.blind
	case 7:
		w.refusing = !w.refusing
	case 8:
		w.now = w.now.Add(time.Duration(w.IntN(600)-60) * time.Second) // clocks step, backwards too
	case 9:
		w.limits = Limits{
			ToRunning: time.Duration(w.IntN(3)) * time.Minute, ToHibernating: time.Duration(w.IntN(3)) * time.Minute,
			HibernateAfter: time.Duration(w.IntN(3)) * 10 * time.Second,
		}
	}
}

// calm ends all that misbehaves.
func (w *world) calm() {
	w.apiDown, w.blind, w.refusing, w.lazy = false, false, false, false
	for _, m := range w.vms {
		if m.state == cloud.Unknown {
			m.state = cloud.Stopped
		}
	}
}

// run lets time pass for the machines and their nodes.
func (w *world) run(span time.Duration) {
	w.now = w.now.Add(span)
	if !w.lazy && w.probe.Mark != "" && w.all(cloud.Running) {
		w.probe.Done = true
	}
	for _, m := range w.vms {
		switch {
		case m.state == cloud.Starting && !w.now.Before(m.until):
			m.state = cloud.Running
		case m.state == cloud.Stopping && !w.now.Before(m.until):
			m.state = cloud.Stopped
		}
		if m.state == cloud.Running {
			m.lastSeen = w.now
		}
	}
}

func (w *world) look() Snapshot {
	s := Snapshot{Seed: "uid", DesiredState: w.wanted, Installed: true, Actuator: true, InstalledAt: installed, Record: w.record, Limits: w.limits, WantedDepth: w.depth}
	s.Depths = []cloud.DepthSupport{{Depth: cloud.DepthFreeze}, {Depth: cloud.DepthSuspend}}
	for _, m := range w.vms {
		seen := cloud.Machine{Name: m.name, State: m.state}
		if m.state == cloud.Stopped {
			seen.Depth = m.depth
		}
		s.Machines = append(s.Machines, seen)
	}
	w.Shuffle(len(s.Machines), func(i, j int) { s.Machines[i], s.Machines[j] = s.Machines[j], s.Machines[i] })
	if w.blind {
		s.Machines, s.MachinesFailure = nil, NewFailure(errors.New("cloud down"))
	}
	if !s.NeedsSpoke() {
		return s
	}
	s.Spoke = Spoke{Queried: true, Reachable: !w.apiDown && w.all(cloud.Running), UnreachableReason: "connection refused"}
	if s.NeedsResumeProbe() {
		s.Spoke.ResumeProbe = w.probe
	}
	for _, m := range w.vms {
		s.Spoke.Nodes = append(s.Spoke.Nodes, Node{Name: m.name, Ready: true, Renewed: m.lastSeen})
	}
	return s
}

func (w *world) all(state cloud.State) bool {
	for _, m := range w.vms {
		if m.state != state {
			return false
		}
	}
	return true
}

// obey does as decided, unless the platform refuses.
func (w *world) obey(t *testing.T, s Snapshot, d Plan) Plan {
	t.Helper()
	if d.DeleteProbe {
		w.probe = ResumeProbe{}
	}
	if d.CreateProbe != "" {
		w.probe = ResumeProbe{Mark: d.CreateProbe}
		d = d.AfterProbeCreated()
	}
	if d.Action == Hibernate {
		w.wanted = hivev1.PowerHibernating
	}
	if d.Action != Start && d.Action != Stop {
		return d
	}
	if w.refusing {
		return d.AfterFailedRequest(*NewFailure(errors.New("no")), w.now)
	}
	ref := cloud.Ref{Depth: s.TargetDepth(), RefusedDepths: s.RefusedDepths()}
	var early error
	var refused []*cloud.DepthRefusedError
	for _, m := range w.vms {
		until := w.now.Add(time.Duration(w.IntN(40)) * time.Second)
		if d.Action == Start {
			early = errors.Join(early, m.start(until))
			continue
		}
		if depth := m.sleep(ref, until, w.picky); depth != "" {
			refused = append(refused, &cloud.DepthRefusedError{Depth: depth, Machine: m.name, Reason: "it has local disks"})
			if w.refused[depth] {
				t.Errorf("depth %s is asked for again: %+v", depth, s.Record)
			}
		}
	}
	if len(refused) > 0 {
		after, ok := d.AfterRefusedDepths(refused)
		if !ok {
			t.Errorf("refusals are not recorded: %+v", s.Record)
		}
		d = after
	}
	if early != nil {
		return d.AfterFailedRequest(*NewFailure(early), w.now)
	}
	return d
}

// start starts the machine, by the time until. One that is stopping cannot be started.
func (v *vm) start(until time.Time) error {
	switch v.state {
	case cloud.Stopping:
		return fault.NewWait(time.Second, "%s is stopping", v.name)
	case cloud.Stopped, cloud.Failed:
		v.state, v.until = cloud.Starting, until
	}
	return nil
}

// sleep puts the machine to sleep, or deeper, by the time until. It returns the depth that the platform refuses, if it
// does.
func (v *vm) sleep(ref cloud.Ref, until time.Time, picky map[cloud.Depth]bool) cloud.Depth {
	isAbove := cloud.Machine{State: v.state, Depth: v.depth}.IsAsleepAbove(ref.Depth)
	if v.state == cloud.Stopping || v.state == cloud.Unknown || v.state == cloud.Stopped && !isAbove {
		return ""
	}
	depth := ref.SelectDepth(func(cloud.Depth) bool { return true })
	if picky[depth] {
		return depth
	}
	v.state, v.until, v.depth = cloud.Stopping, until, depth
	return ""
}

// pass does one pass; the process may die before its result is stored.
func (w *world) pass(t *testing.T, mayDie bool) Plan {
	t.Helper()
	s := w.look()
	d := Decide(s, w.now)
	w.history = append(w.history, fmt.Sprintf("%s wants %s, sees %s: %s", w.now.Format(time.TimeOnly), w.wanted, s.Machines, d))
	w.check(t, s, d)
	d = w.obey(t, s, d)
	w.check(t, s, d)
	if !mayDie || w.IntN(10) > 0 {
		w.store(d.Record)
	}
	w.run(d.Next)
	return d
}

// store stores the record of a pass. Two transitions may start in the same second.
func (w *world) store(r *hivev1.PowerTransition) {
	if w.record == nil || w.record.Target != r.Target || !w.record.StartedAt.Equal(&r.StartedAt) {
		clear(w.refused)
	}
	w.record = r
	for _, refused := range r.RefusedDepths {
		w.refused[cloud.Depth(refused.Depth)] = true
	}
}

// check holds for every decision, whatever happens.
func (w *world) check(t *testing.T, s Snapshot, d Plan) {
	t.Helper()
	agree(t, d)
	if (d.Action == Start && w.wanted == hivev1.PowerHibernating) || (d.Action == Stop && w.wanted == hivev1.PowerRunning) {
		t.Errorf("told to %s, wanted %s", d.Action, w.wanted)
	}
	if d.Action != NoAction && (s.Record == nil || s.Record.Target != d.Record.Target || !s.Record.StartedAt.Equal(&d.Record.StartedAt)) {
		t.Errorf("acts on a record that is not stored: %s", d)
	}
	if at := d.Record.Deadline; at != nil && at.After(w.now) && w.now.Add(d.Next).After(at.Time) {
		t.Errorf("sleeps past the deadline %s: %s", at.Sub(w.now), d)
	}
	if d.Action == Hibernate && !s.HasComeUp() && w.now.Before(s.resumeEndedAt(s.Record)) {
		t.Errorf("hibernateAfter cuts a resume short: %s", d)
	}
	if d.Next <= 0 || d.Next > 2*hibernatingInterval {
		t.Errorf("looks again in %s: %s", d.Next, d)
	}
	if d.PowerState == hivev1.StatusRunning && s.NeedsResumeProbe() && (!s.Spoke.ResumeProbe.Done || s.Spoke.ResumeProbe.Mark != d.Record.StartedAt.UTC().Format(time.RFC3339)) {
		t.Errorf("called running, and nobody has seen its controller manager act: %+v", s.Spoke.ResumeProbe)
	}
	if d.PowerState == hivev1.StatusRunning && !w.blind && !w.all(cloud.Running) {
		t.Errorf("called running: %s", s.Machines)
	}
}

// arrived reports whether the cluster is as wanted, both actually and as reported.
func (w *world) arrived(d Plan) bool {
	if w.wanted == hivev1.PowerHibernating {
		return w.all(cloud.Stopped) && d.PowerState == hivev1.StatusHibernating && !w.look().hasMachineAbove(w.depth) && d.Record.Depth == w.deepest()
	}
	return w.all(cloud.Running) && d.PowerState == hivev1.StatusRunning
}

// deepest is the depth of the deepest machine.
func (w *world) deepest() string {
	deepest := cloud.DepthFreeze
	for _, m := range w.vms {
		if depth := cmp.Or(m.depth, cloud.DepthStop); depth.IsDeeperThan(deepest) {
			deepest = depth
		}
	}
	return string(deepest)
}

func TestHistories(t *testing.T) {
	first := rand.Uint64()
	for i := range uint64(500) {
		seed := first + i
		w := newWorld(seed)
		for range 60 {
			if w.IntN(3) == 0 {
				w.disturb()
			}
			w.pass(t, true)
		}
		w.calm()
		start := w.now
		d := w.pass(t, false)
		for !w.arrived(d) && w.now.Sub(start) < 30*time.Minute {
			d = w.pass(t, false)
		}
		if !w.arrived(d) {
			t.Errorf("does not converge: %s", d)
		}
		if t.Failed() {
			for _, line := range w.history {
				t.Log(line)
			}
			t.Fatalf("seed %d", seed)
		}
	}
}
