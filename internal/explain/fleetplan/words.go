package fleetplan

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/explain/humanize"
	"hotspare.io/hotspare/internal/fleet/scaling"
)

// DescribeAction returns the action of a decision, with "would" for a dry run.
func DescribeAction(d scaling.Decision) string {
	if d.DryRun {
		return "would " + string(d.Action)
	}
	return string(d.Action)
}

// Verdict says whether a data plane is created for the type.
func (t Type) Verdict() string {
	switch d := t.Decision; {
	case d.Action != scaling.Create:
		return "no data plane is created"
	case d.DryRun:
		return "a data plane would be created, but spec.scaleUp.mode is DryRun"
	default:
		return "a data plane is created"
	}
}

// Has says what the region has of the type.
func (t Type) Has() string {
	if t.DataPlanes == 0 {
		return "no data plane" + t.describePending()
	}
	words := humanize.FormatCount(t.DataPlanes, "data plane")
	switch {
	case t.InFlight == t.DataPlanes:
		words += " in flight"
	case t.InFlight > 0:
		words += fmt.Sprintf(", %d of them in flight", t.InFlight)
	}
	return fmt.Sprintf("%s; %d of %s used, %d free", words, t.UsedUnits, humanize.FormatCount(t.MaxUnits, "unit"), t.FreeUnits) + t.describePending()
}

func (t Type) describePending() string {
	if t.PendingUnits == 0 {
		return ""
	}
	return fmt.Sprintf("; %s requested without a place", humanize.FormatPlural(t.PendingUnits, "unit is", "units are"))
}

// Wants says what the region should have of the type; empty while that is unknown.
func (t Type) Wants() string {
	if t.Decision.Reason == scaling.Undecided {
		return ""
	}
	parts := []string{fmt.Sprintf("more than %s free", humanize.FormatCount(t.SlackUnits, "unit"))}
	if t.BiggestUnits > 0 { // the user may not be allowed to read the InstanceType
		parts[0] += ", and room for the biggest size, " + humanize.FormatCount(t.BiggestUnits, "unit")
	}
	if t.Limit != nil {
		parts = append(parts, fmt.Sprintf("at most %s used", humanize.FormatCount(*t.Limit, "unit")))
	}
	if t.MinDataPlanes > 0 {
		parts = append(parts, fmt.Sprintf("at least %s", humanize.FormatCount(t.MinDataPlanes, "data plane")))
	}
	if t.MaxDataPlanes != nil {
		parts = append(parts, fmt.Sprintf("at most %s", humanize.FormatCount(*t.MaxDataPlanes, "data plane")))
	}
	return strings.Join(parts, "; ")
}

// IsInFlight reports whether the data plane is on its way, and counts with its expected units.
func (p Plane) IsInFlight() bool {
	return p.Ownership != v1alpha1.Registered && isInFlightPhase(p.Phase)
}

// Values of AgentState.
const (
	AgentLive   = "yes"
	AgentSilent = "silent"
)

// AgentState returns whether the data plane's agent reports; empty before its first report.
func (p Plane) AgentState() string {
	switch {
	case p.Live == nil:
		return ""
	case *p.Live:
		return AgentLive
	default:
		return AgentSilent
	}
}

// DescribeUnits returns used and maximum units as "4/6", with the names of the types when there are
// several. It is empty for a data plane that never had units.
func (p Plane) DescribeUnits() string {
	words, some := "", p.Phase == string(v1alpha1.PhaseReady)
	for n, r := range p.Rooms {
		some = some || r.MaxUnits > 0 || r.UsedUnits > 0
		if n > 0 {
			words += ", "
		}
		if len(p.Rooms) > 1 {
			words += r.Type + " "
		}
		words += fmt.Sprintf("%d/%d", r.UsedUnits, r.MaxUnits)
	}
	if !some {
		return ""
	}
	return words
}

// RemovalDecision returns the decision about removing the data plane, with its reason; both may be
// empty.
func (p Plane) RemovalDecision() (verb, reason string) {
	switch {
	case p.Decision != nil:
		return DescribeAction(*p.Decision), string(p.Decision.Reason)
	case p.Ownership == v1alpha1.Registered:
		return "", string(v1alpha1.Registered)
	default:
		return "", ""
	}
}

// DescribeOutcome says what happens to the data plane, and why, at a time.
func (p Plane) DescribeOutcome(now time.Time) string {
	words := p.Message
	if p.Decision != nil && words != p.Decision.Message {
		words = p.Decision.Message + ". " + words
	}
	if p.GivenUp != nil {
		words += "; it is marked as failed " + formatTimeUntil(*p.GivenUp, now)
	}
	return words
}

// formatTimeUntil returns "in 5m", or "now".
func formatTimeUntil(at, now time.Time) string {
	if !at.After(now) {
		return "now"
	}
	return "in " + duration.HumanDuration(at.Sub(now))
}

// WaitingInstances returns the instances that have no data plane yet, and get none in this plan.
func (r Region) WaitingInstances() []Instance {
	var out []Instance
	for _, i := range r.Instances {
		if i.DataPlane == "" {
			out = append(out, i)
		}
	}
	return out
}
