package fleetforecast

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
func (v Type) Verdict() string {
	switch d := v.Decision; {
	case d.Action != scaling.Create:
		return "no data plane is created"
	case d.DryRun:
		return "a data plane would be created, but spec.scaleUp.mode is DryRun"
	default:
		return "a data plane is created"
	}
}

// Has says what the region has of the type.
func (v Type) Has() string {
	if v.DataPlanes == 0 {
		return "no data plane" + v.describePending()
	}
	words := humanize.FormatCount(v.DataPlanes, "data plane")
	switch {
	case v.InFlight == v.DataPlanes:
		words += " in flight"
	case v.InFlight > 0:
		words += fmt.Sprintf(", %d of them in flight", v.InFlight)
	}
	return fmt.Sprintf("%s; %d of %s used, %d free", words, v.UsedUnits, humanize.FormatCount(v.MaxUnits, "unit"), v.FreeUnits) + v.describePending()
}

func (v Type) describePending() string {
	if v.PendingUnits == 0 {
		return ""
	}
	return fmt.Sprintf("; %s requested without a place", humanize.FormatPlural(v.PendingUnits, "unit is", "units are"))
}

// Wants says what the region should have of the type; empty while that is unknown.
func (v Type) Wants() string {
	if v.Decision.Reason == scaling.Undecided {
		return ""
	}
	parts := []string{fmt.Sprintf("more than %s free", humanize.FormatCount(v.SlackUnits, "unit"))}
	if v.BiggestUnits > 0 { // the user may not be allowed to read the InstanceType
		parts[0] += ", and room for the biggest size, " + humanize.FormatCount(v.BiggestUnits, "unit")
	}
	if v.Limit != nil {
		parts = append(parts, fmt.Sprintf("at most %s used", humanize.FormatCount(*v.Limit, "unit")))
	}
	if v.MinDataPlanes > 0 {
		parts = append(parts, fmt.Sprintf("at least %s", humanize.FormatCount(v.MinDataPlanes, "data plane")))
	}
	if v.MaxDataPlanes != nil {
		parts = append(parts, fmt.Sprintf("at most %s", humanize.FormatCount(*v.MaxDataPlanes, "data plane")))
	}
	return strings.Join(parts, "; ")
}

// IsInFlight reports whether the data plane is on its way, and counts with its expected units.
func (v Plane) IsInFlight() bool {
	return v.Ownership != v1alpha1.Registered && isInFlightPhase(v.Phase)
}

// Values of AgentState.
const (
	AgentLive   = "yes"
	AgentSilent = "silent"
)

// AgentState returns whether the data plane's agent reports; empty before its first report.
func (v Plane) AgentState() string {
	switch {
	case v.Live == nil:
		return ""
	case *v.Live:
		return AgentLive
	default:
		return AgentSilent
	}
}

// DescribeUnits returns used and maximum units as "4/6", with the names of the types when there are
// several. It is empty for a data plane that never had units.
func (v Plane) DescribeUnits() string {
	words, some := "", v.Phase == string(v1alpha1.PhaseReady)
	for n, r := range v.Rooms {
		some = some || r.MaxUnits > 0 || r.UsedUnits > 0
		if n > 0 {
			words += ", "
		}
		if len(v.Rooms) > 1 {
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
func (v Plane) RemovalDecision() (verb, reason string) {
	switch {
	case v.Decision != nil:
		return DescribeAction(*v.Decision), string(v.Decision.Reason)
	case v.Ownership == v1alpha1.Registered:
		return "", string(v1alpha1.Registered)
	default:
		return "", ""
	}
}

// DescribeOutcome says what happens to the data plane, and why, at a time.
func (v Plane) DescribeOutcome(now time.Time) string {
	words := v.Message
	if v.Decision != nil && words != v.Decision.Message {
		words = v.Decision.Message + ". " + words
	}
	if v.GivenUp != nil {
		words += "; it is marked as failed " + formatTimeUntil(*v.GivenUp, now)
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
func (v Region) WaitingInstances() []Instance {
	var out []Instance
	for _, i := range v.Instances {
		if i.DataPlane == "" {
			out = append(out, i)
		}
	}
	return out
}
