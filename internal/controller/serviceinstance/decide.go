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
	"hotspare.io/hotspare/internal/capacity"
)

// snapshot is what an instance depends on besides itself.
type snapshot struct {
	now time.Time
	// hasRegion is whether there is a FleetRegion of its provider and region.
	hasRegion bool
	// planes are those that may be the data plane that its status names, the likeliest
	// first. Without any the data plane is gone: the API server was asked.
	planes []plane
	// traces are other data planes that may have something of an earlier placement, as
	// NAMESPACE/NAME. They are known only when the instance is to be let go.
	traces []string
}

// plane is a data plane, and what its agent says of the instance.
type plane struct {
	namespace, name string
	// inRegionNamespace is whether it is in the namespace of the FleetRegion that counts.
	inRegionNamespace bool
	planeState
	// traced is whether its agent knows of the instance at all.
	traced bool
	// apiSilent is whether the agent lives and its data plane does not answer it.
	apiSilent bool
	// report is what the agent said last of this placement of the instance; nil without.
	report *v1alpha1.InstanceReport
	// refusal is what is to be remembered if it refuses the instance.
	refusal v1alpha1.Refusal
}

// planeState is what matters of a data plane to all its instances. It is comparable.
type planeState struct {
	// released is whether its cluster is given back: there is no way back from that.
	released bool
	// clusterGone is whether its cluster is gone, and going whether that was deleted.
	clusterGone, clusterDeleting bool
	// agentSilent is whether its agent is not heard of.
	agentSilent bool
	// unreadable is why it cannot be read; "" when it can.
	unreadable string
}

// Changes of our finalizer.
const (
	addFinalizer    = "holding the instance"
	removeFinalizer = "letting the instance go"
)

// plan is what becomes of an instance.
type plan struct {
	// finalizer is hold, drop or nothing. With one of them the status is not written.
	finalizer string
	status    v1alpha1.ServiceInstanceStatus
}

// refusalDuration is how long a data plane that would not have an instance is not asked again
// at least.
const refusalDuration = 10 * time.Minute

// maxRefusals is how many the API keeps.
const maxRefusals = 32

// decide says what becomes of an instance. Its place it never chooses, and takes it away
// only from one that its data plane would not have and that has never been used there.
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

// draft is a decision that is being made.
type draft struct {
	i *v1alpha1.ServiceInstance
	snapshot
	plan
}

// decideDeletion lets an instance go of which nothing is left, and tells of any other what it
// waits for.
//
// A place that is booked for it, and that it has not been told of, does not hold it: a
// data plane makes only what has been told. And it is told no more, since its version is
// another from the moment of its deletion. The booking ends when the instance is gone.
func (d *draft) decideDeletion() {
	reason, words := d.deletionBlocker()
	if words == "" {
		d.finalizer = removeFinalizer
		return
	}
	d.status.Phase = v1alpha1.InstanceDeleting
	d.setReady(metav1.ConditionFalse, reason, words)
}

// deletionBlocker says what an instance that is being deleted waits for; "" when for nothing.
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

// decideUnplaced is about an instance without a data plane. Package fleetregion tells of it, unless
// there is no region that could.
func (d *draft) decideUnplaced() {
	if !d.hasRegion {
		d.status.ObservedGeneration, d.status.Phase = d.i.Generation, v1alpha1.InstancePending
		d.setCondition(v1alpha1.InstancePlaced, metav1.ConditionFalse, v1alpha1.ReasonNoRegion,
			fmt.Sprintf("No FleetRegion has %s: make one, or order where there is one.", d.describePlace()))
	}
	// It says so only if it said something else: whoever is new is being placed at this
	// very moment, and that would have to wait for another version of it.
	if meta.FindStatusCondition(d.status.Conditions, v1alpha1.InstanceIsReady) != nil {
		d.setReady(metav1.ConditionFalse, v1alpha1.ReasonNotPlaced, "It has no data plane: condition Placed says why.")
	}
}

// decidePlaced is about an instance that has a data plane.
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

// setPlaneGone is an instance that has lost its data plane. It is not placed anew: what it held
// is not on any other, and whoever used it has to know.
func (d *draft) setPlaneGone(what string) {
	d.status.Phase = v1alpha1.InstanceFailed
	d.setReady(metav1.ConditionFalse, v1alpha1.ReasonDataPlaneGone,
		what+", and with it what was there of this instance. Delete the instance and order another; or, if the cluster is still there, make the DataPlane again.")
}

// setUnknown keeps what was known last.
func (d *draft) setUnknown(reason, words string) {
	d.status.Phase = cmp.Or(d.status.Phase, v1alpha1.InstanceProvisioning)
	d.setReady(metav1.ConditionUnknown, reason, words)
}

// applyReport makes an instance's status of what its data plane says of it.
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

// hasBeenUsed is whether the instance has ever been there for its users, on this data plane. It
// may hold something then.
func (d *draft) hasBeenUsed() bool {
	return d.i.Status.Phase == v1alpha1.InstanceReady || d.i.Status.Versions != v1alpha1.InstanceVersions{} || len(d.i.Status.Routes) > 0
}

// copyReport copies what a data plane tells of an instance.
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

// recordRefusal has an instance placed elsewhere that its data plane would not have. Who
// refuses, and that it is free again, is one write: neither is lost without the other.
func (d *draft) recordRefusal(p plane) {
	words := cmp.Or(truncateText(p.report.Message, maxMessage), truncateText(p.report.Reason, maxReason), "it does not say why.")
	st := &d.status
	r := p.refusal
	r.DataPlaneName, r.Until, r.Message = p.name, metav1.NewTime(d.now.Add(refusalDuration)), words
	for _, before := range st.Refusals {
		if before.DataPlaneName == p.name && before.Versions == r.Versions && before.Generation == r.Generation {
			r.RemainingUnits = max(r.RemainingUnits, before.RemainingUnits) // or it would be asked without end
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
	d.setCondition(v1alpha1.InstancePlaced, metav1.ConditionFalse, string(capacity.Refused), fmt.Sprintf("Data plane %s would not have it: %s", p.name, words))
	d.setReady(metav1.ConditionFalse, v1alpha1.ReasonNotPlaced, "It has no data plane: condition Placed says why.")
}

// pruneRefusals drops the refusals of an instance that can be used, and those of another
// specification.
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

// What an agent says is not checked by the schema: a report that is wrong must be seen. In
// an instance's status it would be, so it is made to fit.
const (
	maxReason  = 128
	maxMessage = 1024
	maxRoutes  = 64
)

var reasonPattern = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

// validReasonOr is a reason as conditions may have it, or another instead.
func validReasonOr(reason, otherwise string) string {
	if len(reason) > maxReason || !reasonPattern.MatchString(reason) {
		return otherwise
	}
	return reason
}

// truncateText keeps the first bytes of a text, in whole characters.
func truncateText(text string, most int) string {
	if len(text) <= most {
		return strings.ToValidUTF8(text, "")
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
