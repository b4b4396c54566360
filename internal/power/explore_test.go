package power

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/fault"
)

// place is a cluster with all that decides about it, so small that every place
// there is can be visited. Times are distinguished only as the decider does.
type place struct {
	life  life
	fake  bool
	able  bool // the platform and the version can hibernate
	plain bool // no OpenShift: no cluster operators
	wants hivev1.PowerState
	// freeze is set if the cluster should sleep at depth freeze, which its platform has.
	freeze bool
	// vms are the states of two machines, sorted; empty when there are none. They may be freezing or frozen.
	vms [2]cloud.State
	// rung is how far the cluster has come up, once its machines run: see ladder.
	rung    int
	trouble trouble
	record  stage
}

// States of machines on their way to depth freeze, and at it.
const (
	freezing cloud.State = "Freezing"
	frozen   cloud.State = "Frozen"
)

type life int

const (
	installs life = iota
	lives
	rests // is paused
	goes
)

type trouble int

const (
	none     trouble = iota
	blind            // the platform cannot be asked
	busy             // the platform asks to wait
	refusing         // the platform starts and stops nothing
	picky            // the platform refuses depth freeze
)

// stage contains the parts of a record that the decider distinguishes.
type stage struct {
	target hivev1.PowerState // empty: there is no record
	// fromInstall: it began with the install. late: longer ago than the limit. refused: the platform has refused depth
	// freeze.
	fromInstall, late, finished, refused bool
}

// Times of all records: the limit lies between the two.
const (
	recent = 10 * time.Minute
	limit  = time.Hour
	long   = 2 * time.Hour
)

// ladder is how a cluster comes up once its machines run: what its API says on
// each rung. A cluster without operators stays on the rung on which its controller
// manager has acted.
var ladder = []func(*Spoke){
	func(s *Spoke) { *s = Spoke{Queried: true, UnreachableReason: "connection refused"} },
	func(s *Spoke) { // one node is not ready, the other was before it slept
		s.Nodes[0].Ready, s.Nodes[1].Renewed = false, now.Add(-99*time.Hour)
	},
	func(s *Spoke) { s.Nodes[0].ReadySince = now.Add(-time.Second) }, // the controller manager has not acted
	func(s *Spoke) { s.Nodes[0].ReadySince = now.Add(-time.Second) },
	func(*Spoke) {},
	func(s *Spoke) { s.Operators[0].Settled = true },
}

// active is the rung from which on the controller manager acts.
const active = 3

func (p place) look() Snapshot {
	s := Snapshot{
		Seed: "uid", DesiredState: p.wants, Installed: p.life != installs, Paused: p.life == rests, Deleted: p.life == goes,
		Fake: p.fake, Actuator: true, Platform: "aws", InfraID: "demo-x7k2p", Limits: Limits{ToRunning: limit, ToHibernating: limit},
	}
	if !p.able {
		s.Version = "4.4.7"
	}
	s.Record, s.InstalledAt = p.record.stored()
	s.Depths, s.WantedDepth = []cloud.DepthSupport{{Depth: cloud.DepthFreeze}}, cloud.DepthStop
	if p.freeze {
		s.WantedDepth = cloud.DepthFreeze
	}
	for i, state := range p.vms {
		if state != "" {
			m := cloud.Machine{Name: []string{"master-0", "worker-0"}[i], State: state, Reason: "shelved"}
			switch state {
			case freezing:
				m.State = cloud.Stopping
			case frozen:
				m.State, m.Depth = cloud.Stopped, cloud.DepthFreeze
			}
			s.Machines = append(s.Machines, m)
		}
	}
	switch p.trouble {
	case blind:
		s.Machines, s.MachinesFailure = nil, NewFailure(errors.New("no credentials"))
	case busy:
		s.Machines, s.MachinesFailure = nil, NewFailure(fault.NewWait(0, "too many requests"))
	}
	if s.NeedsSpoke() {
		s.Spoke = Spoke{Queried: true, Reachable: true, OpenShift: !p.plain, Operators: []Operator{{Name: "dns"}}}
		for _, name := range []string{"master-0", "worker-0"} {
			s.Spoke.Nodes = append(s.Spoke.Nodes, Node{Name: name, Ready: true, Renewed: now, ReadySince: now.Add(-recent)})
		}
		ladder[p.rung](&s.Spoke)
		if p.rung >= active && s.Record != nil {
			s.Spoke.ResumeProbe = ResumeProbe{Mark: record{PowerTransition: *s.Record}.probeMark(), Done: true}
		}
	}
	return s
}

// stored is the record, and the time of the install.
func (s stage) stored() (*hivev1.PowerTransition, time.Time) {
	if s.target == "" {
		return nil, now
	}
	began, finish := now.Add(-recent), now.Add(-recent/2)
	if s.late {
		began, finish = now.Add(-long), now.Add(-recent)
	}
	r := &hivev1.PowerTransition{Target: s.target, StartedAt: apiTime(began)}
	if s.finished {
		at := apiTime(finish)
		r.FinishedAt = &at
	}
	if s.refused {
		r.RefusedDepths = []hivev1.RefusedDepth{{Depth: "freeze", Reason: "machine master-0 cannot sleep at depth freeze: it has local disks"}}
	}
	if s.fromInstall {
		return r, began
	}
	return r, installed
}

func stageOf(r *hivev1.PowerTransition, installedAt time.Time) stage {
	if r == nil {
		return stage{}
	}
	return stage{
		target: r.Target, fromInstall: r.StartedAt.Time.Equal(installedAt),
		late: now.Sub(r.StartedAt.Time) > limit, finished: r.FinishedAt != nil,
		refused: len(r.RefusedDepths) > 0,
	}
}

// pass decides about p, and has the decision obeyed.
func (p place) pass() (place, Plan) {
	s := p.look()
	d := Decide(s, now)
	switch {
	case d.Action != Start && d.Action != Stop:
	case p.trouble == refusing:
		d = d.AfterFailedRequest(*NewFailure(errors.New("the quota is used up")), now)
	case d.Action == Stop && p.trouble == picky && slices.Contains(s.selectDepths(), cloud.DepthFreeze):
		after, ok := d.AfterRefusedDepths([]*cloud.DepthRefusedError{{Depth: cloud.DepthFreeze, Machine: "master-0", Reason: "it has local disks"}})
		if !ok {
			panic("a refused depth is asked for again")
		}
		d = after
	case d.Action == Start && (slices.Contains(p.vms[:], cloud.Stopping) || slices.Contains(p.vms[:], freezing)):
		d = d.AfterFailedRequest(*NewFailure(fault.NewWait(time.Second, "it is stopping")), now)
	default:
		p = p.tell(d.Action, s)
	}
	p.record = stageOf(d.Record, s.InstalledAt)
	return p.settled(), d
}

// selectDepths returns the depth at which a platform puts a running machine to sleep, if it must put one to sleep.
func (s Snapshot) selectDepths() []cloud.Depth {
	if !s.hasMachineIn(cloud.Running, cloud.Starting, cloud.Failed) {
		return nil
	}
	return []cloud.Depth{s.selectDepth()}
}

func (s Snapshot) selectDepth() cloud.Depth {
	return cloud.Ref{Depth: s.TargetDepth(), RefusedDepths: s.RefusedDepths()}.SelectDepth(func(cloud.Depth) bool { return true })
}

func (p place) tell(act Action, s Snapshot) place {
	for i, state := range p.vms {
		switch {
		case act == Start && (state == cloud.Stopped || state == frozen || state == cloud.Failed):
			p.vms[i] = cloud.Starting
		case act == Stop && state == frozen:
			if s.TargetDepth() != cloud.DepthFreeze {
				p.vms[i] = cloud.Stopping
			}
		case act == Stop && state != cloud.Stopped && state != cloud.Stopping && state != freezing && state != cloud.Unknown:
			p.vms[i] = cloud.Stopping
			if s.selectDepth() == cloud.DepthFreeze {
				p.vms[i] = freezing
			}
		}
	}
	return p
}

// settled has the machines in order, and takes the cluster down when one is.
func (p place) settled() place {
	slices.Sort(p.vms[:])
	if p.vms != [2]cloud.State{cloud.Running, cloud.Running} {
		p.rung = 0
	}
	return p
}

// told is the reported state: the word and both conditions, without messages.
type told struct {
	word               string
	hibernating, ready condition.Value
}

func toldBy(s State) told {
	t := told{s.PowerState, s.Hibernating, s.Ready}
	t.hibernating.Message, t.ready.Message = "", ""
	return t
}

// spot is a place after a pass, with what the pass reported and did.
type spot struct {
	place
	told told
	did  Action
}

// step leads from one spot to another.
type step struct {
	to    int
	event event
}

// atlas is every spot that can be reached, with every step from it. The first
// sound ones are reached without any failure.
type atlas struct {
	spots  []spot
	sound  int
	steps  [][]step
	states []State // what was told first, with its messages, in the order of discovery
	index  map[spot]int
	known  map[told]bool
}

// roots are where clusters come from: installed here, or by others and stopped since.
var roots = []place{
	{able: true, vms: [2]cloud.State{cloud.Stopped, cloud.Stopped}},
	{able: true, vms: [2]cloud.State{cloud.Running, cloud.Running}},
	{able: true, vms: [2]cloud.State{cloud.Running, cloud.Running}, plain: true},
	{vms: [2]cloud.State{cloud.Running, cloud.Running}},
	{able: true, fake: true},
}

// explore visits every place, once for all tests.
var explore = sync.OnceValue(func() *atlas {
	a := &atlas{index: map[spot]int{}, known: map[told]bool{}}
	for _, p := range roots {
		p.wants = hivev1.PowerRunning
		a.arrive(p)
		a.spread(len(a.spots)-1, sound)
	}
	a.sound = len(a.spots)
	a.steps = a.spread(0, anything)
	return a
})

// spread goes from the spots from first on, and those to which that leads, and
// returns the steps.
func (a *atlas) spread(first int, counts func(event) bool) [][]step {
	var out [][]step
	for i := first; i < len(a.spots); i++ {
		var steps []step
		for _, e := range events {
			if !counts(e) {
				continue
			}
			for _, p := range e.happens(a.spots[i]) {
				steps = append(steps, step{a.arrive(p.settled()), e})
			}
		}
		out = append(out, steps)
	}
	return out
}

func anything(event) bool { return true }
func sound(e event) bool  { return e.kind != failure && e.kind != relief }

// arrive makes a pass over p and returns the number of the spot where that leads.
func (a *atlas) arrive(p place) int {
	p, d := p.pass()
	at := spot{p, toldBy(d.State), d.Action}
	if i, ok := a.index[at]; ok {
		return i
	}
	if !a.known[at.told] {
		a.known[at.told] = true
		a.states = append(a.states, d.State)
	}
	a.index[at] = len(a.spots)
	a.spots = append(a.spots, at)
	return a.index[at]
}

// still reports whether nothing more happens at spot i by itself.
func (a *atlas) still(i int) bool { return a.steps[i][0].to == i }

// leading are the spots from which steps of a kind that counts lead to a goal.
func (a *atlas) leading(goal func(spot) bool, counts func(event) bool) []bool {
	back := make([][]int, len(a.spots))
	var todo []int
	out := make([]bool, len(a.spots))
	for i, at := range a.spots {
		for _, s := range a.steps[i] {
			if counts(s.event) {
				back[s.to] = append(back[s.to], i)
			}
		}
		if goal(at) {
			out[i] = true
			todo = append(todo, i)
		}
	}
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, from := range back[i] {
			if !out[from] {
				out[from] = true
				todo = append(todo, from)
			}
		}
	}
	return out
}

func TestNoStateContradictsItself(t *testing.T) {
	for _, s := range explore().states {
		agree(t, Plan{State: s})
		h, r := s.Hibernating, s.Ready
		want := h.Reason
		switch h.Reason {
		case hivev1.ReasonInitialized:
			want = ""
		case hivev1.ReasonPowerPaused, hivev1.ReasonClusterGoing:
			want = hivev1.StatusUnknown
		case hivev1.ReasonResuming, hivev1.ReasonRunning, hivev1.ReasonUnsupported:
			want = r.Reason
		}
		if s.PowerState != want && (s.PowerState != hivev1.ReasonWaitingToStop || want != hivev1.ReasonStopping) {
			t.Errorf("powerState %q with Hibernating %s and Ready %s", s.PowerState, h.Reason, r.Reason)
		}
		down := slices.Contains([]string{hivev1.ReasonHibernating, hivev1.ReasonStopping, hivev1.ReasonFailedToStop}, h.Reason)
		if down != (r.Reason == hivev1.ReasonStoppingOrHibernating) {
			t.Errorf("Hibernating %s with Ready %s", h.Reason, r.Reason)
		}
		if (h.Status == "Unknown" || r.Status == "Unknown") && h != r {
			t.Errorf("Hibernating %+v with Ready %+v", h, r)
		}
	}
}

func TestEveryStateCanBeLeft(t *testing.T) {
	a := explore()
	for _, word := range []string{hivev1.StatusRunning, hivev1.StatusHibernating} {
		leads := a.leading(func(s spot) bool { return s.told.word == word && s.told.hibernating.Reason == word }, anything)
		for i, at := range a.spots {
			if at.life != goes && !leads[i] {
				t.Fatalf("from here no way leads to %s: %+v", word, at)
			}
		}
	}
}

// Once nothing misbehaves, what is wanted is reached without anybody's help, and
// no limit that has passed stands in the way.
func TestWhatIsWantedIsReachedByItself(t *testing.T) {
	a := explore()
	arrived := func(s spot) bool {
		tooShallow := s.wants == hivev1.PowerHibernating && !s.freeze && slices.Contains(s.vms[:], frozen)
		return s.told.word == string(s.wants) && !tooShallow
	}
	leads := a.leading(arrived, func(e event) bool { return e.kind == course || e.kind == clock && e.cause != ceiling })
	for i, at := range a.spots {
		calm := (at.trouble == none || at.trouble == picky) && at.life == lives && !slices.Contains(at.vms[:], cloud.Unknown) && at.vms[0] != ""
		able := at.able || at.wants == hivev1.PowerRunning && !slices.Contains(at.vms[:], cloud.Stopped) && !slices.Contains(at.vms[:], cloud.Failed) &&
			!slices.Contains(at.vms[:], cloud.Stopping) && !slices.Contains(at.vms[:], frozen) && !slices.Contains(at.vms[:], freezing)
		if calm && able && !leads[i] {
			t.Fatalf("from here what is wanted is never reached: %+v", at)
		}
	}
}
