package scaling

import (
	"fmt"
	"time"
)

// scaleUp decides for each type whether to create data planes.
func (d *draft) scaleUp() {
	for _, a := range d.types {
		r := d.reports[a]
		r.PendingUnits = a.pendingUnits
		r.Decision = d.decideScaleUp(a)
		first := r.Decision
		for made := first; made.Action == Create; made = d.decideScaleUp(a) {
			a.addPlannedPlane()
			if !made.DryRun {
				d.addStep(Step{Verb: Create, Type: a.Name, MultiZone: a.MultiZone, Reason: made.Reason, Message: made.Message})
			}
		}
		d.reports[a] = r
	}
}

// decideScaleUp decides whether to create one more data plane of the type.
func (d *draft) decideScaleUp(a *typeTotals) Decision {
	no := func(r Reason, words string) Decision { return Decision{Action: None, Reason: r, Message: words} }
	up, s := d.Region.Up, a.expectedTotals()
	newest := a.newestSample(nil)
	reason, short := a.checkShortage(s, newest)
	words := a.describeReason(reason, s)
	if reason == BelowMinimum {
		words = fmt.Sprintf("minDataPlanes is %d, and the region has %d", a.MinPlanes, s.planes)
	}
	switch {
	case up.Mode == Off:
		return no(SwitchedOff, "spec.scaleUp.mode is Off")
	case a.Unknown != "":
		return no(Undecided, a.Unknown)
	case reason == LimitReached:
		return no(reason, words)
	case len(a.inFlightUnits) >= max(1, up.MaxInFlight):
		return no(InFlight, fmt.Sprintf("%s in flight, and maxInFlight is %d", formatPlanesAre(len(a.inFlightUnits)), max(1, up.MaxInFlight)))
	case !short:
		return no(reason, words)
	case a.MaxPlanes != nil && s.planes >= *a.MaxPlanes:
		return no(AtMaximum, fmt.Sprintf("maxDataPlanes is %d, though %s", *a.MaxPlanes, words))
	case a.Blocked != "":
		return no(Blocked, fmt.Sprintf("%s, though %s", a.Blocked, words))
	case newest != nil && newest.max <= 0:
		return no(NoUnits, fmt.Sprintf("data plane %s is Ready and has no units, so another would not help: %s",
			newest.plane.Name, "see its condition ReportValid, or set its spec.schedulable to false"))
	}
	if at := a.backoffUntil(up); d.Now.Before(at) {
		d.requeueAt(at)
		return no(BackingOff, fmt.Sprintf("%s failed in a row; the next is created at %s, or as soon as the failed ones are deleted",
			formatCount(len(a.failures), "data plane"), at.UTC().Format(time.RFC3339)))
	}
	return Decision{Action: Create, Reason: reason, Message: words, DryRun: up.Mode == DryRun}
}

func formatPlanesAre(planes int) string {
	if planes == 1 {
		return "1 data plane is"
	}
	return fmt.Sprintf("%d data planes are", planes)
}
