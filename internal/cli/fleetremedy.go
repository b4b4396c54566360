package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/capacity"
)

// remedy is what a person can do about something, with the command for it if there is one.
type remedy struct {
	Text    string `json:"text"`
	Command string `json:"command,omitempty"`
	// Wait is set when nothing has to be done; the text says what will happen.
	Wait bool `json:"wait,omitempty"`
}

func hint(text, command string) *remedy { return &remedy{Text: text, Command: command} }
func patient(text string) *remedy       { return &remedy{Text: text, Wait: true} }

// advice is a command to type about something in a namespace.
type advice func(namespace, command string, args ...any) string

// nextIn is a command to type about things of a namespace, whatever this one works in.
func (a *app) nextIn(namespace, command string, args ...any) string {
	there := *a
	there.flags.namespace = namespace
	return there.next(command, args...)
}

// typeRemedy is what can be done about a type that lacks something; nil when it does not,
// or when it is on the way.
func (e evaluation) typeRemedy(t capacity.TypeReport, next advice) *remedy {
	r := e.Region
	edit := next(r.Namespace, "kubectl edit fleetregion %s", r.Name)
	switch d := t.Decision; {
	case d.DryRun:
		return hint("To have it made, set spec.scaleUp.mode to Auto.", edit)
	case d.Reason == capacity.SwitchedOff && (t.PendingUnits > 0 || !t.BiggestFits):
		return hint("No data plane is made while spec.scaleUp.mode is Off: set it to Auto, or make one by hand.", edit)
	case d.Reason == capacity.AtMaximum:
		return hint(fmt.Sprintf("Raise maxDataPlanes of %s, or delete instances.", t.Name), edit)
	case d.Reason == capacity.Blocked && e.missing(t.Name) != "":
		pool := e.missing(t.Name)
		return hint(fmt.Sprintf("Make ClusterPool %s, or name another in spec.clusterSource.", pool), next(r.Namespace, "pool create %s --size 2", pool))
	case d.Reason == capacity.Blocked:
		return hint("See to its clusters: the pools of spec.clusterSource, and the node pools of the type.", edit)
	case d.Reason == capacity.NoUnits:
		return hint("See why the newest data plane has no units.", next(r.Namespace, "kubectl describe dataplanes"))
	case d.Reason == capacity.BackingOff:
		if failed := e.failed(t.Name); len(failed) > 0 {
			return hint("Wait, or try again at once by deleting those that failed.", next(r.Namespace, "kubectl delete dataplane %s", strings.Join(failed, " ")))
		}
	case d.Reason == capacity.BiggestFitsNowhere:
		return hint("Raise maxNodes of its node pool, or take the size away.", next("", "kubectl edit instancetype %s", t.Name))
	case d.Reason == capacity.Undecided:
		return hint("Make the InstanceType, or mend it, or take the type from spec.instanceTypes.", edit)
	}
	return nil
}

// missing is a pool that is to be claimed from for a type, and is not there; "" if all are.
func (e evaluation) missing(kind string) string {
	if e.Region.Spec.ClusterSource.Claim == nil {
		return ""
	}
	for _, p := range e.Region.Spec.ClusterSource.Claim.Pools {
		if p.MultiZone == e.kindOf(kind).MultiZone && e.Pools[p.PoolRef.Name] == nil {
			return p.PoolRef.Name
		}
	}
	return ""
}

// failed are the data planes of a type that failed.
func (e evaluation) failed(kind string) []string {
	var out []string
	for _, p := range e.snapshot.Planes {
		takes := slices.ContainsFunc(p.Rooms, func(r capacity.Room) bool { return r.Type == kind })
		if p.Managed && p.Phase == capacity.Failed && takes && !p.Deleting {
			out = append(out, p.Name)
		}
	}
	slices.Sort(out)
	return out
}

// planeRemedy is what can be done about a data plane that is not as it should be. One
// that failed is its type's business.
func (e evaluation) planeRemedy(p capacity.Plane, v planeView, next advice) *remedy {
	namespace := e.Region.Namespace
	switch {
	case p.Unreadable != "":
		return hint("Correct the field.", next(namespace, "kubectl edit dataplane %s", p.Name))
	case p.Silent && p.Phase == capacity.Ready && !p.Deleting:
		return hint("Its free units count as none until its agent is heard of: see what has become of it.", next(namespace, "kubectl describe dataplane %s", p.Name))
	case v.Decision != nil && v.Decision.DryRun:
		return hint("To have it removed, set spec.scaleDown.mode of the region to Auto.", next(namespace, "kubectl edit fleetregion %s", e.Region.Name))
	}
	return nil
}

// instanceRemedy is what can be done about an instance that waits.
func (e evaluation) instanceRemedy(o *v1alpha1.ServiceInstance, i capacity.Instance, d capacity.Decision, next advice) *remedy {
	r := e.Region
	edit := next(r.Namespace, "kubectl edit fleetregion %s", r.Name)
	again := next(o.Namespace, "kubectl delete serviceinstance %s", o.Name)
	switch d.Reason {
	case capacity.NoCapacity:
		return e.roomRemedy(i, again, next)
	case capacity.LimitReached:
		return hint(fmt.Sprintf("Raise the limit of %s, or delete instances.", i.Type), edit)
	case capacity.TooBig:
		return hint("Delete it, and order a smaller size; or raise maxNodes of the type's node pool.", again)
	case capacity.UnknownSize:
		return hint("Delete it, and order another size.", again)
	case capacity.Refused:
		return patient(e.askedAgain(i) + ".")
	case capacity.NotOffered:
		return hint(fmt.Sprintf("Add %s to spec.instanceTypes of the region, or order another type.", i.Type), edit)
	case capacity.UnknownType:
		return hint(fmt.Sprintf("Make InstanceType %s, or delete the instance and order another.", i.Type), again)
	case capacity.PinNotThere, capacity.PinUnsuitable:
		return hint(fmt.Sprintf("See to data plane %s, or delete the instance and order it anew without spec.dataPlaneName.", i.Pin), again)
	case capacity.PlaneIsLeaving:
		return patient("It is placed with the next look.")
	case capacity.Unreadable:
		return hint("Correct the field.", next(o.Namespace, "kubectl edit serviceinstance %s", o.Name))
	default:
		return nil
	}
}

// roomRemedy is about an instance for which there is no room: most often some is made.
func (e evaluation) roomRemedy(i capacity.Instance, again string, next advice) *remedy {
	if i.Pin != "" {
		return hint(fmt.Sprintf("Wait until there is room on %s, or delete it and order it anew without spec.dataPlaneName.", i.Pin), again)
	}
	n := slices.IndexFunc(e.plan.Types, func(t capacity.TypeReport) bool { return t.Name == i.Type })
	if n < 0 {
		return nil
	}
	switch t := e.plan.Types[n]; {
	case t.Decision.Action == capacity.Create && !t.Decision.DryRun:
		return patient("A data plane is being made.")
	case t.InFlight > 0:
		return patient(fmt.Sprintf("%s on the way: %s.", plural(t.InFlight, "data plane is", "data planes are"), few(e.coming(i.Type))))
	default:
		if do := e.typeRemedy(t, next); do != nil {
			return do
		}
		return patient(fmt.Sprintf("No data plane is made for it: %s.", t.Decision.Message))
	}
}

// coming are the data planes of a type that are on their way.
func (e evaluation) coming(kind string) []string {
	var out []string
	for _, p := range e.snapshot.Planes {
		takes := slices.ContainsFunc(p.Rooms, func(r capacity.Room) bool { return r.Type == kind })
		if p.Managed && takes && !p.Deleting && !p.Released && comes(cmp.Or(string(p.Phase), string(v1alpha1.PhaseAccepted))) {
			out = append(out, p.Name)
		}
	}
	slices.Sort(out)
	return out
}

// askedAgain says when a data plane that refused an instance is asked again.
func (e evaluation) askedAgain(i capacity.Instance) string {
	var at time.Time
	plane := ""
	for _, r := range i.Refusals {
		if r.Until.After(e.snapshot.Now) && (plane == "" || r.Until.Before(at)) {
			plane, at = r.Plane, r.Until
		}
	}
	if plane == "" {
		return "It is placed with the next look"
	}
	return fmt.Sprintf("%s is asked again at %s", plane, at.UTC().Format(time.RFC3339))
}
