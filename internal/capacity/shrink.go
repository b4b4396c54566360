package capacity

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// review looks once more at what was to be removed and is still whole: it stays if
// somebody has moved in, or if the rest is not enough any more. Those that stay in any
// case are counted before the others are judged.
func (d *draft) review() {
	var empty []*plane
	for _, p := range d.all {
		if !p.Managed || p.stage != doubted {
			continue
		}
		if reason, words := d.hold(p); reason != "" {
			d.restore(p, reason, words)
			continue
		}
		empty = append(empty, p)
	}
	for _, p := range empty {
		if p.Gone {
			d.release(p, ClusterGone, clusterGone)
			continue
		}
		if reason, words := d.need(p); reason == Needed || reason == Undecided {
			d.restore(p, reason, words)
			continue
		}
		if !p.Confirmed && !p.Discard {
			d.tell(p, Decision{Action: Keep, Reason: AwaitingReport, Message: "it is to be removed, and waits until its agent has reported once more what is on it"})
			continue
		}
		d.release(p, NotNeeded, "it is still empty, and not needed")
	}
}

const clusterGone = "its cluster is gone, and no instance is on it"

func (d *draft) release(p *plane, reason Reason, words string) {
	d.step(Step{Verb: Release, DataPlane: p.Name, Reason: reason, Message: words})
	d.tell(p, Decision{Action: Release, Reason: reason, Message: words})
}

// hold is why a data plane is not removed, whatever the rest of the region has.
func (d *draft) hold(p *plane) (Reason, string) {
	if reason, words := p.unaccounted(); reason != "" && p.load == 0 {
		return reason, words
	}
	switch {
	case p.load > 0:
		words := count(p.load, "instance") + " on it"
		if p.Gone {
			words = "its cluster is gone, and " + words + ": delete the instances, and order others"
		}
		return NotEmpty, words
	case p.awaited && !p.Gone:
		return Needed, "an instance that names it was refused, and will ask again"
	case p.Protected:
		return Protected, "spec.protected is true"
	case d.Region.Down.Mode == Off:
		return SwitchedOff, "spec.scaleDown.mode is Off"
	case p.stage == doubted && d.Region.Down.Mode == DryRun:
		return SwitchedOff, "spec.scaleDown.mode is DryRun"
	default:
		return "", ""
	}
}

// unaccounted is what p may hold besides the instances that are known here. To remove it
// would destroy that.
func (p *plane) unaccounted() (Reason, string) {
	const giveUp = "; to give that up, set spec.discardUnlisted of the DataPlane to true"
	switch {
	case p.Discard || p.Gone:
		return "", ""
	case len(p.Unlisted) > 0:
		return Unlisted, fmt.Sprintf("%s on it without a ServiceInstance, %s: delete them on the data plane"+giveUp,
			count(len(p.Unlisted), "instance"), few(p.Unlisted))
	case p.Silent:
		return ContentsUnknown, "its agent is silent, so nobody knows what is on it: have the agent report again" + giveUp
	case p.Unknown != "":
		return ContentsUnknown, p.Unknown + ", so nobody knows what is on it" + giveUp
	}
	for i := range p.seats {
		if used := p.Rooms[i].Used; used > p.seats[i].used {
			return Unlisted, fmt.Sprintf("its agent reports %s of %s as used, and the instances that are known here take %d"+giveUp,
				count(used, "unit"), p.Rooms[i].Type, p.seats[i].used)
		}
	}
	return "", ""
}

// few names the first few of a list, in order.
func few(names []string) string {
	const most = 5
	names = slices.Sorted(slices.Values(names))
	if len(names) > most {
		return strings.Join(names[:most], ", ") + " and others"
	}
	return strings.Join(names, ", ")
}

func (d *draft) restore(p *plane, reason Reason, words string) {
	d.step(Step{Verb: Restore, DataPlane: p.Name, Reason: reason, Message: words})
	d.tell(p, Decision{Action: Restore, Reason: reason, Message: words})
	p.stage = ready
	if !p.Gone {
		d.onTheWayOut--
	}
	for i := range p.seats {
		if a := p.seats[i].of; a != nil {
			a.join(&p.seats[i])
		}
	}
}

// need judges what the Ready data planes would be without p. A type that the region does
// not have asks for nothing.
func (d *draft) need(p *plane) (Reason, string) {
	out := NotConfigured
	for i := range p.seats {
		s := &p.seats[i]
		a := s.of
		if a == nil {
			continue
		}
		if a.Unknown != "" {
			return Undecided, fmt.Sprintf("%s: %s", a.Name, a.Unknown)
		}
		if a.hungry {
			return Needed, fmt.Sprintf("instances of %s wait for room", a.Name)
		}
		out = NotNeeded
		rest := a.ready
		if p.stage == ready {
			rest = rest.minus(a.holding(s))
		}
		if rest.planes < a.MinPlanes {
			return Needed, fmt.Sprintf("without it, of %s: %s", a.Name, a.words(BelowMinimum, rest))
		}
		// Which size a new data plane would have is judged as it will be once p is gone, and
		// as it is now: p may be the only one that shows that the biggest size fits.
		reason, short := a.shortage(rest, a.newest(p))
		if !short {
			reason, short = a.shortage(rest, a.newest(nil))
		}
		if short {
			return Needed, fmt.Sprintf("without it, of %s: %s", a.Name, a.words(reason, rest))
		}
	}
	return out, ""
}

// shrink removes empty data planes that are not needed, newest first: placement fills
// the oldest. Each sees what the ones before it have left.
func (d *draft) shrink() {
	for _, p := range slices.Backward(d.all) {
		if !p.Managed || p.stage != ready || p.Phase == Deprovisioning {
			continue
		}
		dec := d.removal(p)
		d.tell(p, dec)
		if dec.Action != Remove {
			continue
		}
		for i := range p.seats {
			if a := p.seats[i].of; a != nil {
				a.part(&p.seats[i])
			}
		}
		p.stage = doubted
		if !p.Gone {
			d.onTheWayOut++
		}
		if !dec.DryRun {
			d.step(Step{Verb: Remove, DataPlane: p.Name, Reason: dec.Reason, Message: dec.Message})
		}
	}
}

// removal decides whether a Ready data plane is removed.
func (d *draft) removal(p *plane) Decision {
	keep := func(r Reason, words string) Decision { return Decision{Action: Keep, Reason: r, Message: words} }
	if reason, words := d.hold(p); reason != "" {
		return keep(reason, words)
	}
	down := d.Region.Down
	if p.Gone {
		return Decision{Action: Remove, Reason: ClusterGone, Message: clusterGone, DryRun: down.Mode == DryRun}
	}
	reason, words := d.need(p)
	if reason == Needed || reason == Undecided {
		return keep(reason, words)
	}
	if at := p.EmptySince.Add(down.EmptyFor); down.EmptyFor > 0 && (p.EmptySince.IsZero() || d.Now.Before(at)) {
		d.wake(at)
		return keep(EmptyRecently, fmt.Sprintf("it is empty for less than %s", down.EmptyFor))
	}
	if at := d.lastMade(p).Add(down.Cooldown); down.Cooldown > 0 && d.Now.Before(at) {
		d.wake(at)
		return keep(CoolingDown, fmt.Sprintf("a data plane was made less than %s ago", down.Cooldown))
	}
	if most := down.MaxConcurrent; most != nil && d.onTheWayOut >= *most {
		return keep(Concurrent, fmt.Sprintf("%s on the way out, and there may be %d", isAre(d.onTheWayOut), *most))
	}
	words = "it is empty, and the others are enough"
	if reason == NotConfigured {
		words = "it is empty, and the region has none of its types any more"
	}
	return Decision{Action: Remove, Reason: reason, Message: words, DryRun: down.Mode == DryRun}
}

// lastMade is when the newest data plane was made that has a type in common with p.
func (d *draft) lastMade(p *plane) time.Time {
	at := p.Created
	for i := range p.seats {
		if a := p.seats[i].of; a != nil && a.lastMade.After(at) {
			at = a.lastMade
		}
	}
	return at
}

func (d *draft) tell(p *plane, dec Decision) {
	d.planes = append(d.planes, PlaneReport{Name: p.Name, Instances: p.load, Decision: dec})
}
