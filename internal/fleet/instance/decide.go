// Package instance decides what to write to a ServiceInstance: its finalizer, and the status that
// follows from its data plane's report. It is pure.
//
// Package scaling decides which data plane an instance is placed on.
package instance

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

// refusalDuration is the minimum time before a data plane that has refused an instance is asked
// again.
const refusalDuration = 10 * time.Minute

// maxRefusals is the number of refusals that the API keeps.
const maxRefusals = 32

// Decide returns the plan for an instance. It never chooses a data plane, and only withdraws one
// that has refused the instance and on which the instance has never been used.
func Decide(s Snapshot) Plan {
	i := s.Instance
	d := &draft{Snapshot: s, Plan: Plan{Status: *i.Status.DeepCopy()}}
	hasFinalizer := slices.Contains(i.Finalizers, v1alpha1.FinalizerServiceInstance)
	switch {
	case i.DeletionTimestamp != nil && !hasFinalizer:
		return d.Plan
	case i.DeletionTimestamp != nil:
		d.decideDeletion()
	case !hasFinalizer:
		d.Finalizer = AddFinalizer
		return d.Plan
	case i.Status.DataPlaneName == "":
		d.decideUnplaced()
	default:
		d.decidePlaced()
	}
	d.pruneRefusals()
	return d.Plan
}

// draft is a plan under construction.
type draft struct {
	Snapshot
	Plan
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
		d.Finalizer = RemoveFinalizer
		return
	}
	d.Status.Phase = v1alpha1.InstanceDeleting
	d.setReady(metav1.ConditionFalse, reason, words)
}

// deletionBlocker returns what the deletion of an instance waits for; "" if it waits for nothing.
func (d *draft) deletionBlocker() (reason, words string) {
	for _, p := range d.Planes {
		name := "data plane " + p.Name
		switch {
		case p.Released, p.ClusterGone && p.Unreadable == "", p.Report != nil && p.Report.Phase == v1alpha1.AgentDeleted && p.Unreadable == "":
		case p.Unreadable != "":
			return hivev1.ReasonUnreadable, fmt.Sprintf("The instance is kept until %s can be read: %s.", name, p.Unreadable)
		case p.AgentSilent:
			return v1alpha1.ReasonAgentSilent, fmt.Sprintf("The instance is kept until it is deleted from %s, whose agent does not report: check the agent's pod. "+
				"If the cluster is lost, delete the DataPlane.", name)
		case p.APISilent:
			return v1alpha1.ReasonPlaneSilent, fmt.Sprintf("The instance is kept until it is deleted from %s, whose API does not respond.", name)
		case !p.InRegionNamespace:
			return v1alpha1.ReasonNoRegion, fmt.Sprintf("The instance is kept until it is deleted from %s in namespace %s, where no FleetRegion of %s is in effect any more.",
				name, p.Namespace, d.describePlace())
		default:
			return v1alpha1.ReasonInstanceDeleting, fmt.Sprintf("%s is deleting the instance.", capitalizeFirst(name))
		}
	}
	if len(d.Traces) > 0 {
		return v1alpha1.ReasonInstanceDeleting, fmt.Sprintf("The instance is kept until data plane %s, which had it before, reports that nothing of it is left. "+
			"See that DataPlane's conditions.", strings.Join(d.Traces, " and "))
	}
	return "", ""
}

func capitalizeFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func (d *draft) describePlace() string {
	return fmt.Sprintf("provider %s and region %s", d.Instance.Spec.Provider, d.Instance.Spec.Region)
}

// decideUnplaced decides about an instance without a data plane. Package fleetregion reports on it,
// unless there is no region.
func (d *draft) decideUnplaced() {
	if !d.HasRegion {
		d.Status.ObservedGeneration, d.Status.Phase = d.Instance.Generation, v1alpha1.InstancePending
		d.setCondition(v1alpha1.InstancePlaced, metav1.ConditionFalse, v1alpha1.ReasonNoRegion,
			fmt.Sprintf("No FleetRegion has %s: create one, or use a provider and region that have one.", d.describePlace()))
	}
	// Write the condition only if there was another one: a new instance is being placed at this
	// moment, and another resource version would delay that.
	if meta.FindStatusCondition(d.Status.Conditions, v1alpha1.InstanceIsReady) != nil {
		d.setReady(metav1.ConditionFalse, v1alpha1.ReasonNotPlaced, "The instance has no data plane: see condition Placed.")
	}
}

// decidePlaced decides about an instance that has a data plane.
func (d *draft) decidePlaced() {
	d.Status.ObservedGeneration = d.Instance.Generation
	if len(d.Planes) == 0 {
		d.setPlaneGone(fmt.Sprintf("Data plane %s no longer exists", d.Instance.Status.DataPlaneName))
		return
	}
	p := d.Planes[0]
	switch {
	case p.Unreadable != "":
		d.setUnknown(hivev1.ReasonUnreadable, fmt.Sprintf("The report of its data plane %s cannot be read: %s.", p.Name, p.Unreadable))
	case p.Released:
		d.setPlaneGone(fmt.Sprintf("The cluster of data plane %s was released", p.Name))
	case p.ClusterGone:
		d.setPlaneGone(fmt.Sprintf("The cluster of data plane %s no longer exists", p.Name))
	case p.ClusterDeleting:
		d.setUnknown(v1alpha1.ReasonClusterDeleting, fmt.Sprintf(
			"The cluster of data plane %s was deleted, and this instance is deleted with it: delete the instance and create another.", p.Name))
	case !p.InRegionNamespace:
		d.setUnknown(v1alpha1.ReasonNoRegion, fmt.Sprintf("The instance is on data plane %s in namespace %s, where no FleetRegion of %s is in effect any more: create it again, "+
			"or delete a newer one in another namespace that replaced it.", p.Name, p.Namespace, d.describePlace()))
	default:
		d.applyReport(p)
	}
}

// setPlaneGone reports that an instance has lost its data plane. The instance is not placed again:
// its data is on no other data plane, and its users must know that.
func (d *draft) setPlaneGone(what string) {
	d.Status.Phase = v1alpha1.InstanceFailed
	d.setReady(metav1.ConditionFalse, v1alpha1.ReasonDataPlaneGone,
		what+". The data of this instance on it is no longer available. Delete the instance and create another; or, if the cluster still exists, create the DataPlane again.")
}

// setUnknown keeps the last known phase.
func (d *draft) setUnknown(reason, words string) {
	d.Status.Phase = cmp.Or(d.Status.Phase, v1alpha1.InstanceProvisioning)
	d.setReady(metav1.ConditionUnknown, reason, words)
}

// applyReport sets the instance's status from its data plane's report.
func (d *draft) applyReport(p Plane) {
	r := p.Report
	if r != nil && r.Phase == v1alpha1.AgentRejected && !d.hasBeenUsed() {
		d.recordRefusal(p)
		return
	}
	switch {
	case r == nil && d.hasBeenUsed():
		d.setUnknown(v1alpha1.ReasonNotReported, fmt.Sprintf("Data plane %s no longer reports the instance: see the DataPlaneAgent of that name.", p.Name))
	case r == nil:
		d.Status.Phase = v1alpha1.InstanceProvisioning
		d.setReady(metav1.ConditionFalse, v1alpha1.ReasonInstanceProvisioning, fmt.Sprintf("Data plane %s has not reported the instance yet.", p.Name))
	default:
		d.copyReport(p.Name, r)
	}
	switch {
	case p.AgentSilent:
		d.setUnknown(v1alpha1.ReasonAgentSilent, fmt.Sprintf("The agent of data plane %s does not report; the last reported phase is %s. Check its pod there.", p.Name, d.Status.Phase))
	case p.APISilent:
		d.setUnknown(v1alpha1.ReasonPlaneSilent, fmt.Sprintf("The API of data plane %s does not respond to its agent; the last known phase is %s.", p.Name, d.Status.Phase))
	}
}

// hasBeenUsed reports whether the instance has ever been available to its users on this data plane.
// It may then have data.
func (d *draft) hasBeenUsed() bool {
	return d.Instance.Status.Phase == v1alpha1.InstanceReady || d.Instance.Status.Versions != v1alpha1.InstanceVersions{} || len(d.Instance.Status.Routes) > 0
}

// copyReport copies a data plane's report about an instance.
func (d *draft) copyReport(name string, r *v1alpha1.InstanceReport) {
	if r.Versions != (v1alpha1.InstanceVersions{}) {
		d.Status.Versions = r.Versions
	}
	if len(r.Routes) > 0 {
		d.Status.Routes = r.Routes[:min(len(r.Routes), maxRoutes)]
	}
	setPhase := func(phase v1alpha1.InstancePhase, status metav1.ConditionStatus, reason, words string) {
		d.Status.Phase = phase
		d.setReady(status, validReasonOr(r.Reason, reason), cmp.Or(TruncateText(r.Message, maxMessage), words))
	}
	switch r.Phase {
	case v1alpha1.AgentReady:
		setPhase(v1alpha1.InstanceReady, metav1.ConditionTrue, v1alpha1.ReasonInstanceReady, "The instance is ready for use.")
	case v1alpha1.AgentProvisioning:
		setPhase(v1alpha1.InstanceProvisioning, metav1.ConditionFalse, v1alpha1.ReasonInstanceProvisioning, "Data plane "+name+" is creating the instance.")
	case v1alpha1.AgentFailed:
		setPhase(v1alpha1.InstanceFailed, metav1.ConditionFalse, v1alpha1.ReasonInstanceFailed, "Data plane "+name+" cannot create the instance.")
	case v1alpha1.AgentRejected:
		d.Status.Phase = v1alpha1.InstanceFailed
		d.setReady(metav1.ConditionFalse, v1alpha1.ReasonRejected, fmt.Sprintf("Data plane %s now refuses the instance, which is not placed elsewhere because it has been in use: %s",
			name, cmp.Or(TruncateText(r.Message, maxMessage), "no reason was reported.")))
	case v1alpha1.AgentDeleting, v1alpha1.AgentDeleted:
		d.Status.Phase = v1alpha1.InstanceFailed
		d.setReady(metav1.ConditionFalse, v1alpha1.ReasonTakenAway,
			fmt.Sprintf("Data plane %s has deleted the instance, which was not deleted on the hub: delete it, and create another.", name))
	default:
		d.setUnknown(v1alpha1.ReasonNotReported, fmt.Sprintf("Data plane %s has the instance, although its list does not name it: see the DataPlaneAgent of that name.", name))
	}
}

// recordRefusal withdraws the data plane that has refused the instance, so that it is placed
// elsewhere. One write records the refusal and the withdrawal, so that neither is lost without the
// other.
func (d *draft) recordRefusal(p Plane) {
	words := cmp.Or(TruncateText(p.Report.Message, maxMessage), TruncateText(p.Report.Reason, maxReason), "no reason was reported.")
	st := &d.Status
	r := p.Refusal
	r.DataPlaneName, r.Until, r.Message = p.Name, metav1.NewTime(d.Now.Add(refusalDuration)), words
	for _, before := range st.Refusals {
		if before.DataPlaneName == p.Name && before.Versions == r.Versions && before.Generation == r.Generation {
			r.RemainingUnits = max(r.RemainingUnits, before.RemainingUnits) // otherwise it would be asked again without end
			r.Vacant = r.Vacant || before.Vacant
		}
	}
	st.Refusals = slices.DeleteFunc(st.Refusals, func(r v1alpha1.Refusal) bool { return r.DataPlaneName == p.Name })
	if len(st.Refusals) >= maxRefusals {
		slices.SortStableFunc(st.Refusals, func(a, b v1alpha1.Refusal) int { return b.Until.Compare(a.Until.Time) })
		st.Refusals = st.Refusals[:maxRefusals-1]
	}
	st.Refusals = append(st.Refusals, r)
	st.DataPlaneName, st.Phase = "", v1alpha1.InstancePending
	d.setCondition(v1alpha1.InstancePlaced, metav1.ConditionFalse, string(scaling.Refused), fmt.Sprintf("Data plane %s refused the instance: %s", p.Name, words))
	d.setReady(metav1.ConditionFalse, v1alpha1.ReasonNotPlaced, "The instance has no data plane: see condition Placed.")
}

// pruneRefusals drops the refusals of a Ready instance, and those of another generation of the
// spec.
func (d *draft) pruneRefusals() {
	d.Status.Refusals = slices.DeleteFunc(d.Status.Refusals, func(r v1alpha1.Refusal) bool {
		return d.Status.Phase == v1alpha1.InstanceReady || r.Generation != 0 && r.Generation != d.Instance.Generation
	})
}

func (d *draft) setReady(status metav1.ConditionStatus, reason, words string) {
	d.setCondition(v1alpha1.InstanceIsReady, status, reason, words)
}

func (d *draft) setCondition(kind string, status metav1.ConditionStatus, reason, words string) {
	meta.SetStatusCondition(&d.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: words,
		ObservedGeneration: d.Instance.Generation, LastTransitionTime: metav1.NewTime(d.Now),
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

// TruncateText returns the first bytes of a text, in whole characters.
func TruncateText(text string, most int) string {
	if len(text) <= most {
		return strings.ToValidUTF8(text, "")
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
