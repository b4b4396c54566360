package fleetplan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/explain/humanize"
	"hotspare.io/hotspare/internal/explain/remedy"
	"hotspare.io/hotspare/internal/fleet/scaling"
)

// typeRemedy returns what a person can do about a type that lacks something; nil when it does not,
// or when it is on the way.
func (e Evaluation) typeRemedy(t scaling.TypeReport, formatCommand remedy.CommandFormatter) *remedy.Remedy {
	r := e.Region
	edit := formatCommand(r.Namespace, "kubectl edit fleetregion %s", r.Name)
	if size, wrong := e.wrongReserve(t.Name); wrong {
		return remedy.New(fmt.Sprintf("No instance is reserved: type %s has no size %q. Correct its reserved.size.", t.Name, size), edit)
	}
	switch d := t.Decision; {
	case d.DryRun:
		return remedy.New("To create it, set spec.scaleUp.mode to Auto.", edit)
	case d.Reason == scaling.SwitchedOff && (t.PendingUnits > 0 || !t.BiggestFits):
		return remedy.New("No data plane is created while spec.scaleUp.mode is Off: set it to Auto, or create one by hand.", edit)
	case d.Reason == scaling.AtMaximum:
		return remedy.New(fmt.Sprintf("Raise maxDataPlanes of %s, or delete instances.", t.Name), edit)
	case d.Reason == scaling.Blocked && e.missingPool(t.Name) != "":
		pool := e.missingPool(t.Name)
		return remedy.New(fmt.Sprintf("Create ClusterPool %s, or use another in spec.clusterSource.", pool), formatCommand(r.Namespace, "pool create %s --size 2", pool))
	case d.Reason == scaling.Blocked:
		return remedy.New("Check the pools of spec.clusterSource, and the node pools of the type.", edit)
	case d.Reason == scaling.NoUnits:
		return remedy.New("Find out why the newest data plane has no units.", formatCommand(r.Namespace, "kubectl describe dataplanes"))
	case d.Reason == scaling.BackingOff && len(e.listFailedPlanes(t.Name)) > 0:
		return remedy.New("Wait, or retry now by deleting the failed data planes.",
			formatCommand(r.Namespace, "kubectl delete dataplane %s", strings.Join(e.listFailedPlanes(t.Name), " ")))
	case d.Reason == scaling.BiggestFitsNowhere:
		return remedy.New("Raise maxNodes of its node pool, or remove the size.", formatCommand("", "kubectl edit instancetype %s", t.Name))
	case d.Reason == scaling.Undecided:
		return remedy.New("Create or correct the InstanceType, or remove the type from spec.instanceTypes.", edit)
	}
	return nil
}

// wrongReserve returns the size of the instances that a type reserves, and whether the type has no
// such size.
func (e Evaluation) wrongReserve(name string) (size string, wrong bool) {
	kind := e.findType(name)
	return kind.Reserved.Size, kind.Reserved.Count > 0 && kind.Reserved.Units == 0 && kind.Unknown == ""
}

// missingPool returns the name of a pool that the region claims clusters of a type from and that
// does not exist; "" if all exist.
func (e Evaluation) missingPool(kind string) string {
	if e.Region.Spec.ClusterSource.Claim == nil || e.PoolsAssumed {
		return ""
	}
	for _, p := range e.Region.Spec.ClusterSource.Claim.Pools {
		if p.MultiZone == e.findType(kind).MultiZone && e.Pools[p.PoolRef.Name] == nil {
			return p.PoolRef.Name
		}
	}
	return ""
}

// listFailedPlanes returns the names of the data planes of a type that failed.
func (e Evaluation) listFailedPlanes(kind string) []string {
	var out []string
	for _, p := range e.Facts.Planes {
		takes := slices.ContainsFunc(p.Rooms, func(r scaling.Room) bool { return r.Type == kind })
		if p.Managed && p.Phase == scaling.Failed && takes && !p.Deleting {
			out = append(out, p.Name)
		}
	}
	slices.Sort(out)
	return out
}

// planeRemedy returns what a person can do about a data plane with a problem. A failed data plane
// is covered by its type's remedy.
func (e Evaluation) planeRemedy(p scaling.Plane, v Plane, formatCommand remedy.CommandFormatter) *remedy.Remedy {
	namespace := e.Region.Namespace
	switch {
	case p.Unreadable != "":
		return remedy.New("Correct the field.", formatCommand(namespace, "kubectl edit dataplane %s", p.Name))
	case v.Gone && v.Instances > 0:
		return remedy.New("Its cluster is deleted or is being deleted: delete the instances on it, and create others.",
			"kubectl get serviceinstances -A -o wide | grep "+p.Name)
	case v.Gone && !p.Managed:
		return remedy.New("Its cluster cannot be reached any more: restore its kubeconfig, or delete the DataPlane.", formatCommand(namespace, "kubectl describe dataplane %s", p.Name))
	case v.Gone:
		return remedy.NewWait("Its cluster no longer exists, and no instance is on it: the data plane is being removed.")
	case len(p.Unlisted) > 0 && p.Managed && !p.Discard:
		return remedy.New("Instances without a ServiceInstance are on it: delete them on the data plane, or set spec.discardUnlisted to discard them.",
			formatCommand(namespace, "kubectl describe dataplane %s", p.Name))
	case p.Silent && p.Phase == scaling.Ready && !p.Deleting:
		return remedy.New("Its free units are not used until its agent reports again: check the agent.", formatCommand(namespace, "kubectl describe dataplane %s", p.Name))
	case v.Decision != nil && v.Decision.DryRun:
		return remedy.New("To remove it, set spec.scaleDown.mode of the region to Auto.", formatCommand(namespace, "kubectl edit fleetregion %s", e.Region.Name))
	}
	return nil
}

// instanceRemedy returns what a person can do about an instance that waits.
func (e Evaluation) instanceRemedy(o *v1alpha1.ServiceInstance, i scaling.Instance, d scaling.Decision, formatCommand remedy.CommandFormatter) *remedy.Remedy {
	r := e.Region
	edit := formatCommand(r.Namespace, "kubectl edit fleetregion %s", r.Name)
	again := formatCommand(o.Namespace, "kubectl delete serviceinstance %s", o.Name)
	switch d.Reason {
	case scaling.NoCapacity:
		return e.roomRemedy(i, again, formatCommand)
	case scaling.LimitReached:
		return remedy.New(fmt.Sprintf("Raise the limit of %s, or delete instances.", i.Type), edit)
	case scaling.TooBig:
		return remedy.New("Delete the instance, and create one of a smaller size; or raise maxNodes of the type's node pool.", again)
	case scaling.UnknownSize:
		return remedy.New("Delete the instance, and create one of another size.", again)
	case scaling.Refused:
		return e.refusedRemedy(i, again)
	case scaling.NotOffered:
		return remedy.New(fmt.Sprintf("Add %s to spec.instanceTypes of the region, or use another type.", i.Type), edit)
	case scaling.UnknownType:
		return remedy.New(fmt.Sprintf("Create InstanceType %s, or delete the instance and create another.", i.Type), again)
	case scaling.PinNotThere, scaling.PinUnsuitable:
		return remedy.New(fmt.Sprintf("Check data plane %s, or delete the instance and create it again without spec.dataPlaneName.", i.Pin), again)
	case scaling.PlaneIsLeaving:
		return remedy.NewWait("The instance is placed in the next pass.")
	case scaling.Unreadable:
		return remedy.New("Correct the field.", formatCommand(o.Namespace, "kubectl edit serviceinstance %s", o.Name))
	default:
		return nil
	}
}

// roomRemedy returns the remedy for an instance for which there is no room; usually a data plane is
// being created.
func (e Evaluation) roomRemedy(i scaling.Instance, again string, formatCommand remedy.CommandFormatter) *remedy.Remedy {
	if i.Pin != "" {
		return remedy.New(fmt.Sprintf("Wait until %s has room, or delete the instance and create it again without spec.dataPlaneName.", i.Pin), again)
	}
	n := slices.IndexFunc(e.Plan.Types, func(t scaling.TypeReport) bool { return t.Name == i.Type })
	if n < 0 {
		return nil
	}
	switch t := e.Plan.Types[n]; {
	case t.Decision.Action == scaling.Create && !t.Decision.DryRun:
		return remedy.NewWait("A data plane is being created.")
	case t.InFlight > 0:
		return remedy.NewWait(fmt.Sprintf("%s in flight: %s.", humanize.FormatPlural(t.InFlight, "data plane is", "data planes are"),
			humanize.JoinFirstWords(e.listInFlightPlanes(i.Type))))
	default:
		if do := e.typeRemedy(t, formatCommand); do != nil {
			return do
		}
		return remedy.NewWait(fmt.Sprintf("No data plane is created for it: %s.", t.Decision.Message))
	}
}

// listInFlightPlanes returns the names of the data planes of a type that are on their way.
func (e Evaluation) listInFlightPlanes(kind string) []string {
	var out []string
	for _, p := range e.Facts.Planes {
		takes := slices.ContainsFunc(p.Rooms, func(r scaling.Room) bool { return r.Type == kind })
		if p.Managed && takes && !p.Deleting && !p.Released && isInFlightPhase(cmp.Or(string(p.Phase), string(v1alpha1.PhaseAccepted))) {
			out = append(out, p.Name)
		}
	}
	slices.Sort(out)
	return out
}

// refusedRemedy returns the remedy for an instance that data planes have refused.
func (e Evaluation) refusedRemedy(i scaling.Instance, again string) *remedy.Remedy {
	if i.NewPlaneWouldRefuse() {
		return remedy.New("Correct its spec.parameters, or delete the instance and create another.", again)
	}
	n := slices.IndexFunc(e.Plan.Types, func(t scaling.TypeReport) bool { return t.Name == i.Type })
	if n >= 0 && i.Pin == "" {
		switch t := e.Plan.Types[n]; {
		case t.Decision.Action == scaling.Create && !t.Decision.DryRun:
			return remedy.NewWait("A data plane is being created.")
		case t.InFlight > 0:
			return remedy.NewWait(fmt.Sprintf("%s in flight: %s.", humanize.FormatPlural(t.InFlight, "data plane is", "data planes are"),
				humanize.JoinFirstWords(e.listInFlightPlanes(i.Type))))
		}
	}
	return remedy.NewWait(e.describeRetry(i) + ".")
}

// describeRetry says when the data planes that refused an instance are asked again.
func (e Evaluation) describeRetry(i scaling.Instance) string {
	var planes []string
	for _, r := range i.Refusals {
		planes = append(planes, r.Plane)
	}
	if len(planes) == 0 {
		return "The instance is placed in the next pass"
	}
	slices.Sort(planes)
	return "Ten minutes after their refusal, these data planes are asked again when they report more room or other versions: " + humanize.JoinFirstWords(planes)
}
