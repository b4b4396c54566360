package serviceinstance

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/scaling"
)

// snapshot is what the plan for an instance depends on, in addition to the instance.
type snapshot struct {
	now time.Time
	// hasRegion is set when there is a FleetRegion with its provider and region.
	hasRegion bool
	// planes are the data planes that its status may name, the most likely first. If there are
	// none, the data plane is gone: the API server has confirmed it.
	planes []plane
	// traces are other data planes that may have objects of an earlier placement, as
	// NAMESPACE/NAME. They are only read when the instance is being deleted.
	traces []string
}

// plane is a data plane, and its agent's report about the instance.
type plane struct {
	namespace, name string
	// inRegionNamespace is set when it is in the namespace of the FleetRegion that takes
	// precedence.
	inRegionNamespace bool
	planeState
	// traced is set when its agent knows the instance at all.
	traced bool
	// apiSilent is set when the agent runs and the API of its data plane does not answer.
	apiSilent bool
	// report is the agent's last report about this placement of the instance; nil if there is none.
	report *v1alpha1.InstanceReport
	// refusal is what to record if it refuses the instance.
	refusal v1alpha1.Refusal
}

// planeState is the state of a data plane that matters to all its instances. It is comparable.
type planeState struct {
	// released is set when its cluster is being released, which cannot be undone.
	released bool
	// clusterGone is set when its cluster is gone; clusterDeleting is set when its cluster is being
	// deleted.
	clusterGone, clusterDeleting bool
	// agentSilent is set when its agent does not report.
	agentSilent bool
	// unreadable says why it cannot be decoded; "" when it can.
	unreadable string
}

// Values of plan.finalizer.
const (
	addFinalizer    = "holding the instance"
	removeFinalizer = "letting the instance go"
)

// plan is what to write to an instance.
type plan struct {
	// finalizer is addFinalizer, removeFinalizer or empty. Unless it is empty, the status is not
	// written.
	finalizer string
	status    v1alpha1.ServiceInstanceStatus
}

// refusalDuration is the minimum time before a data plane that has refused an instance is asked
// again.
const refusalDuration = 10 * time.Minute

// maxRefusals is the number of refusals that the API keeps.
const maxRefusals = 32

// decide returns the plan for an instance. It never chooses a data plane, and only withdraws one
// that has refused the instance and on which the instance has never been used.
func decide(i *v1alpha1.ServiceInstance, s snapshot) plan {
	d := &draft{i: i, snapshot: s, plan: plan{status: *i.Status.DeepCopy()}}
	held := slices.Contains(i.Finalizers, v1alpha1.FinalizerServiceInstance)
	switch {
	case i.DeletionTimestamp != nil && !held:
		return d.plan
	case i.DeletionTimestamp != nil:
		d.decideDeletion()
	case !held:
		d.finalizer = addFinalizer
		return d.plan
	case i.Status.DataPlaneName == "":
		d.decideUnplaced()
	default:
		d.decidePlaced()
	}
	d.pruneRefusals()
	return d.plan
}

// draft is a plan under construction.
type draft struct {
	i *v1alpha1.ServiceInstance
	snapshot
	plan
}

// decideDeletion removes the finalizer of an instance of which nothing is left, and otherwise
// reports what the deletion waits for.
//
// A booking that is not in the instance's status yet does not block the deletion: a data plane only
// creates instances whose status names it. The booking can no longer be written to the status
// either, because the deletion has changed the resource version. The booking ends when the instance
// is deleted.
func (d *draft) decideDeletion() {
	reason, words := d.deletionBlocker()
	if words == "" {
		d.finalizer = removeFinalizer
		return
	}
	d.status.Phase = v1alpha1.InstanceDeleting
	d.setReady(metav1.ConditionFalse, reason, words)
}

// deletionBlocker returns what the deletion of an instance waits for; "" if it waits for nothing.
func (d *draft) deletionBlocker() (reason, words string) {
	for _, p := range d.planes {
		name := "data plane " + p.name
		switch {
		case p.released, p.clusterGone && p.unreadable == "", p.report != nil && p.report.Phase == v1alpha1.AgentDeleted && p.unreadable == "":
		case p.unreadable != "":
			return hivev1.ReasonUnreadable, fmt.Sprintf("It is kept until %s can be read: %s.", name, p.unreadable)
		case p.agentSilent:
			return v1alpha1.ReasonAgentSilent, fmt.Sprintf("It is kept until %s has taken it away, and the agent there is not heard of: look at its pod. "+
				"If the cluster is lost, delete the DataPlane.", name)
		case p.apiSilent:
			return v1alpha1.ReasonPlaneSilent, fmt.Sprintf("It is kept until %s has taken it away, and the API there does not answer.", name)
		case !p.inRegionNamespace:
			return v1alpha1.ReasonNoRegion, fmt.Sprintf("It is kept until %s in namespace %s has taken it away, and no FleetRegion of %s counts there any more.",
				name, p.namespace, d.describePlace())
		default:
			return v1alpha1.ReasonInstanceDeleting, fmt.Sprintf("%s takes it away.", capitalizeFirst(name))
		}
	}
	if len(d.traces) > 0 {
		return v1alpha1.ReasonInstanceDeleting, fmt.Sprintf("It is kept until data plane %s, which had it before, says that nothing of it is left there. "+
			"See that DataPlane's conditions.", strings.Join(d.traces, " and "))
	}
	return "", ""
}

func capitalizeFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func (d *draft) describePlace() string {
	return fmt.Sprintf("provider %s and region %s", d.i.Spec.Provider, d.i.Spec.Region)
}

// decideUnplaced decides about an instance without a data plane. Package fleetregion reports on it,
// unless there is no region.
func (d *draft) decideUnplaced() {
	if !d.hasRegion {
		d.status.ObservedGeneration, d.status.Phase = d.i.Generation, v1alpha1.InstancePending
		d.setCondition(v1alpha1.InstancePlaced, metav1.ConditionFalse, v1alpha1.ReasonNoRegion,
			fmt.Sprintf("No FleetRegion has %s: make one, or order where there is one.", d.describePlace()))
	}
	// Write the condition only if there was another one: a new instance is being placed at this
	// moment, and another resource version would delay that.
	if meta.FindStatusCondition(d.status.Conditions, v1alpha1.InstanceIsReady) != nil {
		d.setReady(metav1.ConditionFalse, v1alpha1.ReasonNotPlaced, "It has no data plane: condition Placed says why.")
	}
}

// decidePlaced decides about an instance that has a data plane.
func (d *draft) decidePlaced() {
	d.status.ObservedGeneration = d.i.Generation
	if len(d.planes) == 0 {
		d.setPlaneGone(fmt.Sprintf("Data plane %s does not exist any more", d.i.Status.DataPlaneName))
		return
	}
	p := d.planes[0]
	switch {
	case p.unreadable != "":
		d.setUnknown(hivev1.ReasonUnreadable, fmt.Sprintf("What its data plane %s says cannot be read: %s.", p.name, p.unreadable))
	case p.released:
		d.setPlaneGone(fmt.Sprintf("The cluster of data plane %s was given back", p.name))
	case p.clusterGone:
		d.setPlaneGone(fmt.Sprintf("The cluster of data plane %s is gone", p.name))
	case p.clusterDeleting:
		d.setUnknown(v1alpha1.ReasonClusterDeleting, fmt.Sprintf(
			"The cluster of data plane %s was deleted, and this instance goes with it: delete the instance and order another.", p.name))
	case !p.inRegionNamespace:
		d.setUnknown(v1alpha1.ReasonNoRegion, fmt.Sprintf("It is on data plane %s in namespace %s, and no FleetRegion of %s counts there any more: make it again, "+
			"or delete a younger one elsewhere that took its place.", p.name, p.namespace, d.describePlace()))
	default:
		d.applyReport(p)
	}
}

// setPlaneGone reports that an instance has lost its data plane. The instance is not placed again:
// its data is on no other data plane, and its users must know that.
func (d *draft) setPlaneGone(what string) {
	d.status.Phase = v1alpha1.InstanceFailed
	d.setReady(metav1.ConditionFalse, v1alpha1.ReasonDataPlaneGone,
		what+", and with it what was there of this instance. Delete the instance and order another; or, if the cluster is still there, make the DataPlane again.")
}

// setUnknown keeps the last known phase.
func (d *draft) setUnknown(reason, words string) {
	d.status.Phase = cmp.Or(d.status.Phase, v1alpha1.InstanceProvisioning)
	d.setReady(metav1.ConditionUnknown, reason, words)
}

// applyReport sets the instance's status from its data plane's report.
func (d *draft) applyReport(p plane) {
	r := p.report
	if r != nil && r.Phase == v1alpha1.AgentRejected && !d.hasBeenUsed() {
		d.recordRefusal(p)
		return
	}
	switch {
	case r == nil && d.hasBeenUsed():
		d.setUnknown(v1alpha1.ReasonNotReported, fmt.Sprintf("Data plane %s does not tell of it any more: see the DataPlaneAgent of that name.", p.name))
	case r == nil:
		d.status.Phase = v1alpha1.InstanceProvisioning
		d.setReady(metav1.ConditionFalse, v1alpha1.ReasonInstanceProvisioning, fmt.Sprintf("Data plane %s has not told of it yet.", p.name))
	default:
		d.copyReport(p.name, r)
	}
	switch {
	case p.agentSilent:
		d.setUnknown(v1alpha1.ReasonAgentSilent, fmt.Sprintf("The agent of data plane %s is not heard of: %s is what it said last. Look at its pod there.", p.name, d.status.Phase))
	case p.apiSilent:
		d.setUnknown(v1alpha1.ReasonPlaneSilent, fmt.Sprintf("The API of data plane %s does not answer its agent: %s is what was known last.", p.name, d.status.Phase))
	}
}

// hasBeenUsed reports whether the instance has ever been available to its users on this data plane.
// It may then have data.
func (d *draft) hasBeenUsed() bool {
	return d.i.Status.Phase == v1alpha1.InstanceReady || d.i.Status.Versions != v1alpha1.InstanceVersions{} || len(d.i.Status.Routes) > 0
}

// copyReport copies a data plane's report about an instance.
func (d *draft) copyReport(name string, r *v1alpha1.InstanceReport) {
	if r.Versions != (v1alpha1.InstanceVersions{}) {
		d.status.Versions = r.Versions
	}
	if len(r.Routes) > 0 {
		d.status.Routes = r.Routes[:min(len(r.Routes), maxRoutes)]
	}
	say := func(phase v1alpha1.InstancePhase, status metav1.ConditionStatus, reason, words string) {
		d.status.Phase = phase
		d.setReady(status, validReasonOr(r.Reason, reason), cmp.Or(truncateText(r.Message, maxMessage), words))
	}
	switch r.Phase {
	case v1alpha1.AgentReady:
		say(v1alpha1.InstanceReady, metav1.ConditionTrue, v1alpha1.ReasonInstanceReady, "It can be used.")
	case v1alpha1.AgentProvisioning:
		say(v1alpha1.InstanceProvisioning, metav1.ConditionFalse, v1alpha1.ReasonInstanceProvisioning, "Data plane "+name+" makes it.")
	case v1alpha1.AgentFailed:
		say(v1alpha1.InstanceFailed, metav1.ConditionFalse, v1alpha1.ReasonInstanceFailed, "Data plane "+name+" cannot make it.")
	case v1alpha1.AgentRejected:
		d.status.Phase = v1alpha1.InstanceFailed
		d.setReady(metav1.ConditionFalse, v1alpha1.ReasonRejected, fmt.Sprintf("Data plane %s will not have it any more, and it is not placed elsewhere, since it has been in use: %s",
			name, cmp.Or(truncateText(r.Message, maxMessage), "it does not say why.")))
	case v1alpha1.AgentDeleting, v1alpha1.AgentDeleted:
		d.status.Phase = v1alpha1.InstanceFailed
		d.setReady(metav1.ConditionFalse, v1alpha1.ReasonTakenAway,
			fmt.Sprintf("Data plane %s has taken it away, and here nobody has deleted it: delete it, and order another.", name))
	default:
		d.setUnknown(v1alpha1.ReasonNotReported, fmt.Sprintf("Data plane %s has it, and has not been told to: see the DataPlaneAgent of that name.", name))
	}
}

// recordRefusal withdraws the data plane that has refused the instance, so that it is placed
// elsewhere. One write records the refusal and the withdrawal, so that neither is lost without the
// other.
func (d *draft) recordRefusal(p plane) {
	words := cmp.Or(truncateText(p.report.Message, maxMessage), truncateText(p.report.Reason, maxReason), "it does not say why.")
	st := &d.status
	r := p.refusal
	r.DataPlaneName, r.Until, r.Message = p.name, metav1.NewTime(d.now.Add(refusalDuration)), words
	for _, before := range st.Refusals {
		if before.DataPlaneName == p.name && before.Versions == r.Versions && before.Generation == r.Generation {
			r.RemainingUnits = max(r.RemainingUnits, before.RemainingUnits) // otherwise it would be asked again without end
			r.Vacant = r.Vacant || before.Vacant
		}
	}
	st.Refusals = slices.DeleteFunc(st.Refusals, func(r v1alpha1.Refusal) bool { return r.DataPlaneName == p.name })
	if len(st.Refusals) >= maxRefusals {
		slices.SortStableFunc(st.Refusals, func(a, b v1alpha1.Refusal) int { return b.Until.Compare(a.Until.Time) })
		st.Refusals = st.Refusals[:maxRefusals-1]
	}
	st.Refusals = append(st.Refusals, r)
	st.DataPlaneName, st.Phase = "", v1alpha1.InstancePending
	d.setCondition(v1alpha1.InstancePlaced, metav1.ConditionFalse, string(scaling.Refused), fmt.Sprintf("Data plane %s would not have it: %s", p.name, words))
	d.setReady(metav1.ConditionFalse, v1alpha1.ReasonNotPlaced, "It has no data plane: condition Placed says why.")
}

// pruneRefusals drops the refusals of a Ready instance, and those of another generation of the
// spec.
func (d *draft) pruneRefusals() {
	d.status.Refusals = slices.DeleteFunc(d.status.Refusals, func(r v1alpha1.Refusal) bool {
		return d.status.Phase == v1alpha1.InstanceReady || r.Generation != 0 && r.Generation != d.i.Generation
	})
}

func (d *draft) setReady(status metav1.ConditionStatus, reason, words string) {
	d.setCondition(v1alpha1.InstanceIsReady, status, reason, words)
}

func (d *draft) setCondition(kind string, status metav1.ConditionStatus, reason, words string) {
	meta.SetStatusCondition(&d.status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: words,
		ObservedGeneration: d.i.Generation, LastTransitionTime: metav1.NewTime(d.now),
	})
}

// The schema does not check an agent's report, so that a wrong report is visible. It does check an
// instance's status, so the values are truncated to fit.
const (
	maxReason  = 128
	maxMessage = 1024
	maxRoutes  = 64
)

var reasonPattern = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

// validReasonOr returns reason if it is valid in a condition, and otherwise if it is not.
func validReasonOr(reason, otherwise string) string {
	if len(reason) > maxReason || !reasonPattern.MatchString(reason) {
		return otherwise
	}
	return reason
}

// truncateText returns the first bytes of a text, in whole characters.
func truncateText(text string, most int) string {
	if len(text) <= most {
		return strings.ToValidUTF8(text, "")
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
