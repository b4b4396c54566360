package power

import (
	"slices"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
)

// event is one thing that happens to a cluster between two passes.
type event struct {
	kind  kind
	cause string
	// happens is what can come of it at a spot; nothing if it cannot happen there.
	happens func(spot) []place
}

type kind int

const (
	course kind = iota // what is to be expected
	asked              // what users do
	clock
	failure
	relief
)

// Causes that are not drawn, or are looked for.
const (
	ceiling = "hibernateAfter passes"
	upgrade = "OpenShift is upgraded to 4.4.8"
	heard   = "its nodes are ready"
	stopped = "its machines have stopped"
)

// events are all that can happen. The first is that nothing does: another pass.
var events = []event{
	{course, "", func(s spot) []place { return []place{s.place} }},

	{course, "the install completes", when(func(p *place) bool { return p.becomes(installs, lives) })},
	{course, "its machines run", machine(cloud.Running, cloud.Starting)},
	{course, stopped, machine(cloud.Stopped, cloud.Stopping)},
	{course, stopped, machine(frozen, freezing)},
	{course, "its API answers", climb(0)},
	{course, heard, climb(1)},
	{course, "its controller manager acts", climb(2)},
	{course, "two minutes pass", climb(3)},
	{course, "its operators settle", climb(4)},

	{asked, "spec.powerState becomes Running", when(func(p *place) bool { return p.wish(hivev1.PowerRunning) })},
	{asked, "spec.powerState becomes Hibernating", when(func(p *place) bool { return p.wish(hivev1.PowerHibernating) })},
	{asked, "the annotation sleep-depth becomes freeze", when(func(p *place) bool { return p.wishDepth(true) })},
	{asked, "the annotation sleep-depth becomes stop", when(func(p *place) bool { return p.wishDepth(false) })},
	{asked, "the cluster is paused", when(func(p *place) bool { return p.becomes(lives, rests) })},
	{asked, "the pause ends", when(func(p *place) bool { return p.becomes(rests, lives) })},
	{asked, "the cluster is deleted", when(func(p *place) bool { return p.becomes(lives, goes) })},
	{asked, upgrade, when(func(p *place) bool {
		old := !p.able
		p.able = true
		return old && p.life == lives
	})},

	{clock, "the time limit passes", when(func(p *place) bool {
		was := p.record
		p.record.late = true
		return was.target != "" && !was.late && !was.finished && !p.fake
	})},
	{clock, ceiling, when(func(p *place) bool { return p.limitReached() && p.wish(hivev1.PowerHibernating) })},

	{failure, "a machine stops unexpectedly", machine(cloud.Stopped, cloud.Running)},
	{failure, "a machine starts unexpectedly", machine(cloud.Running, cloud.Stopped, frozen)},
	{failure, "a frozen machine is stopped", machine(cloud.Stopped, frozen)},
	{failure, "a machine fails", machine(cloud.Failed, cloud.Running, cloud.Starting)},
	{failure, "a machine enters an unknown state", machine(cloud.Unknown, cloud.Running, cloud.Starting, cloud.Stopping, cloud.Stopped, freezing, frozen)},
	{failure, "its machines disappear", when(func(p *place) bool {
		had := p.vms[1] != ""
		p.vms = [2]cloud.State{}
		return had && p.real()
	})},
	{failure, "its API stops answering", fall(0)},
	{failure, "a node fails", fall(1)},
	{failure, "the platform does not answer", when(func(p *place) bool { return p.suffers(none, blind) })},
	{failure, "the platform throttles requests", when(func(p *place) bool { return p.suffers(none, busy) })},
	{failure, "the platform refuses requests", when(func(p *place) bool { return p.suffers(none, refusing) })},
	{failure, "the platform refuses the depth", when(func(p *place) bool { return p.suffers(none, picky) })},

	{relief, "the platform answers again", when(func(p *place) bool { return p.suffers(blind, none) || p.suffers(busy, none) })},
	{relief, "the platform accepts requests again", when(func(p *place) bool { return p.suffers(refusing, none) })},
	{relief, "the platform accepts the depth again", when(func(p *place) bool { return p.suffers(picky, none) })},
	{relief, "a machine is observed running again", machine(cloud.Running, cloud.Unknown)},
	{relief, "a machine is observed stopped again", machine(cloud.Stopped, cloud.Unknown)},
	{relief, "its machines are found again", when(func(p *place) bool {
		gone := p.vms[1] == ""
		p.vms = [2]cloud.State{cloud.Stopped, cloud.Stopped}
		return gone && p.real()
	})},
}

// when makes of a change, which reports whether it can happen, what an event needs.
func when(change func(*place) bool) func(spot) []place {
	return func(s spot) []place {
		if !change(&s.place) {
			return nil
		}
		return []place{s.place}
	}
}

// machine has one machine go from one of the states to another.
func machine(to cloud.State, from ...cloud.State) func(spot) []place {
	return func(s spot) []place {
		var out []place
		for i, state := range s.vms {
			if p := s.place; slices.Contains(from, state) && p.real() {
				p.vms[i] = to
				out = append(out, p)
			}
		}
		return out
	}
}

// climb has the cluster come up by a rung of the ladder, and fall come down to one.
func climb(from int) func(spot) []place {
	return when(func(p *place) bool {
		p.rung++
		return p.rung == from+1 && p.up() && (!p.plain || p.rung <= active)
	})
}

func fall(to int) func(spot) []place {
	return when(func(p *place) bool {
		was := p.rung
		p.rung = to
		return was > to && p.up()
	})
}

func (p place) up() bool {
	return p.real() && p.vms == [2]cloud.State{cloud.Running, cloud.Running}
}

// real reports whether there is anything that could happen to the cluster's machines.
func (p place) real() bool { return !p.fake && p.life == lives }

func (p *place) becomes(from, to life) bool {
	was := p.life
	p.life = to
	return was == from
}

func (p *place) wish(w hivev1.PowerState) bool {
	was := p.wants
	p.wants = w
	return was != w && p.life != goes
}

// wishDepth changes the depth at which a real cluster should sleep.
func (p *place) wishDepth(freeze bool) bool {
	was := p.freeze
	p.freeze = freeze
	return was != freeze && p.real() && p.able
}

func (p *place) suffers(from, to trouble) bool {
	if p.trouble != from || !p.real() {
		return false
	}
	p.trouble = to
	return true
}

// limitReached asks the decider whether hibernateAfter ends this run.
func (p place) limitReached() bool {
	s := p.look()
	s.Limits.HibernateAfter = 1
	return Decide(s, now).Action == Hibernate
}
