package scaling

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// reviewRemovals reviews the data planes that are marked for removal and not yet released: a data
// plane is restored if it is no longer empty, or if the rest of the region is no longer enough. It
// counts the data planes that stay in any case before it reviews the others.
func (d *draft) reviewRemovals() {
	var empty []*plane
	for _, p := range d.all {
		if !p.Managed || p.stage != stageRemoving {
			continue
		}
		if reason, words := d.keepReason(p); reason != "" {
			d.restorePlane(p, reason, words)
			continue
		}
		empty = append(empty, p)
	}
	for _, p := range empty {
		if p.Gone {
			d.releasePlane(p, ClusterGone, clusterGoneMessage)
			continue
		}
		if reason, words := d.checkNeed(p); reason == Needed || reason == Undecided {
			d.restorePlane(p, reason, words)
			continue
		}
		if !p.Confirmed && !p.Discard {
			d.addPlaneReport(p, Decision{Action: Keep, Reason: AwaitingReport, Message: "removal is waiting until its agent has reported once more what is on it"})
			continue
		}
		d.releasePlane(p, NotNeeded, "it is still empty and not needed")
	}
}

const clusterGoneMessage = "its cluster no longer exists, and no instance is on it"

func (d *draft) releasePlane(p *plane, reason Reason, words string) {
	d.addStep(Step{Verb: Release, DataPlane: p.Name, Reason: reason, Message: words})
	d.addPlaneReport(p, Decision{Action: Release, Reason: reason, Message: words})
}

// keepReason returns why a data plane is not removed, regardless of the rest of the region.
func (d *draft) keepReason(p *plane) (Reason, string) {
	if reason, words := p.unlistedReason(); reason != "" && p.instanceCount == 0 {
		return reason, words
	}
	switch {
	case p.instanceCount > 0:
		words := formatCount(p.instanceCount, "instance") + " on it"
		if p.Gone {
			words = "its cluster no longer exists, and " + words + ": delete the instances, and create others"
		}
		return NotEmpty, words
	case p.retryPending && !p.Gone:
		return Needed, "an instance that names it was refused, and is tried again"
	case p.Protected:
		return Protected, "spec.protected is true"
	case d.Region.Down.Mode == Off:
		return SwitchedOff, "spec.scaleDown.mode is Off"
	case p.stage == stageRemoving && d.Region.Down.Mode == DryRun:
		return SwitchedOff, "spec.scaleDown.mode is DryRun"
	default:
		return "", ""
	}
}

// unlistedReason returns why p may have contents in addition to the known instances. Removing p
// would destroy them.
func (p *plane) unlistedReason() (Reason, string) {
	const giveUp = "; to discard these contents, set spec.discardUnlisted of the DataPlane to true"
	switch {
	case p.Discard || p.Gone:
		return "", ""
	case len(p.Unlisted) > 0:
		return Unlisted, fmt.Sprintf("%s on it without a ServiceInstance, %s: delete them on the data plane"+giveUp,
			formatCount(len(p.Unlisted), "instance"), listFirst(p.Unlisted))
	case p.Silent:
		return ContentsUnknown, "its agent does not report, so it is unknown what is on it: make the agent report again" + giveUp
	case p.Unknown != "":
		return ContentsUnknown, p.Unknown + ", so it is unknown what is on it" + giveUp
	}
	for i := range p.slots {
		if used := p.Rooms[i].Used; used > p.slots[i].used {
			return Unlisted, fmt.Sprintf("its agent reports %s of %s as used, and the known instances use %d"+giveUp,
				formatCount(used, "unit"), p.Rooms[i].Type, p.slots[i].used)
		}
	}
	return "", ""
}

// listFirst joins the first five names of a list, sorted.
func listFirst(names []string) string {
	const most = 5
	names = slices.Sorted(slices.Values(names))
	if len(names) > most {
		return strings.Join(names[:most], ", ") + " and others"
	}
	return strings.Join(names, ", ")
}

func (d *draft) restorePlane(p *plane, reason Reason, words string) {
	d.addStep(Step{Verb: Restore, DataPlane: p.Name, Reason: reason, Message: words})
	d.addPlaneReport(p, Decision{Action: Restore, Reason: reason, Message: words})
	p.stage = stageReady
	if !p.Gone {
		d.removingCount--
	}
	for i := range p.slots {
		if a := p.slots[i].totals; a != nil {
			a.addRestoredSlot(&p.slots[i])
		}
	}
}

// checkNeed reports whether the other Ready data planes would be too little capacity without p. It
// ignores types that the region does not have.
func (d *draft) checkNeed(p *plane) (Reason, string) {
	out := NotConfigured
	for i := range p.slots {
		s := &p.slots[i]
		a := s.totals
		if a == nil {
			continue
		}
		if a.Unknown != "" {
			return Undecided, fmt.Sprintf("%s: %s", a.Name, a.Unknown)
		}
		if a.hasUnschedulable {
			return Needed, fmt.Sprintf("instances of %s wait for room", a.Name)
		}
		out = NotNeeded
		rest := a.ready
		if p.stage == stageReady {
			rest = rest.minus(a.totalsOfSlot(s))
		}
		if rest.planes < a.MinPlanes {
			return Needed, fmt.Sprintf("without it, of %s: %s", a.Name, a.describeReason(BelowMinimum, rest))
		}
		// Check the capacity both with the newest sample after p is removed, and with the current
		// newest sample: p may be the only one that shows that the biggest size fits.
		reason, short := a.checkShortage(rest, a.newestSample(p))
		if !short {
			reason, short = a.checkShortage(rest, a.newestSample(nil))
		}
		if short {
			return Needed, fmt.Sprintf("without it, of %s: %s", a.Name, a.describeReason(reason, rest))
		}
	}
	return out, ""
}

// scaleDown removes empty data planes that are not needed, newest first: placement fills the
// oldest. Each decision counts the removals before it.
func (d *draft) scaleDown() {
	for _, p := range slices.Backward(d.all) {
		if !p.Managed || p.stage != stageReady || p.Phase == Deprovisioning {
			continue
		}
		dec := d.decideRemoval(p)
		d.addPlaneReport(p, dec)
		if dec.Action != Remove {
			continue
		}
		for i := range p.slots {
			if a := p.slots[i].totals; a != nil {
				a.removeSlot(&p.slots[i])
			}
		}
		p.stage = stageRemoving
		if !p.Gone {
			d.removingCount++
		}
		if !dec.DryRun {
			d.addStep(Step{Verb: Remove, DataPlane: p.Name, Reason: dec.Reason, Message: dec.Message})
		}
	}
}

// decideRemoval decides whether to remove a Ready data plane.
func (d *draft) decideRemoval(p *plane) Decision {
	keep := func(r Reason, words string) Decision { return Decision{Action: Keep, Reason: r, Message: words} }
	if reason, words := d.keepReason(p); reason != "" {
		return keep(reason, words)
	}
	down := d.Region.Down
	if p.Gone {
		return Decision{Action: Remove, Reason: ClusterGone, Message: clusterGoneMessage, DryRun: down.Mode == DryRun}
	}
	reason, words := d.checkNeed(p)
	if reason == Needed || reason == Undecided {
		return keep(reason, words)
	}
	if at := p.EmptySince.Add(down.EmptyFor); down.EmptyFor > 0 && (p.EmptySince.IsZero() || d.Now.Before(at)) {
		d.requeueAt(at)
		return keep(EmptyRecently, fmt.Sprintf("it has been empty for less than %s", down.EmptyFor))
	}
	if at := d.lastCreated(p).Add(down.Cooldown); down.Cooldown > 0 && d.Now.Before(at) {
		d.requeueAt(at)
		return keep(CoolingDown, fmt.Sprintf("a data plane was created less than %s ago", down.Cooldown))
	}
	if most := down.MaxConcurrent; most != nil && d.removingCount >= *most {
		return keep(Concurrent, fmt.Sprintf("%s being removed, and maxConcurrent is %d", formatPlanesAre(d.removingCount), *most))
	}
	words = "it is empty, and the other data planes have enough room"
	if reason == NotConfigured {
		words = "it is empty, and the region no longer has any of its types"
	}
	return Decision{Action: Remove, Reason: reason, Message: words, DryRun: down.Mode == DryRun}
}

// lastCreated returns the creation time of the newest data plane that has a type in common with p.
func (d *draft) lastCreated(p *plane) time.Time {
	at := p.Created
	for i := range p.slots {
		if a := p.slots[i].totals; a != nil && a.lastCreated.After(at) {
			at = a.lastCreated
		}
	}
	return at
}

func (d *draft) addPlaneReport(p *plane, dec Decision) {
	d.planes = append(d.planes, PlaneReport{Name: p.Name, Instances: p.instanceCount, Decision: dec})
}
