package facts

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/scaling"
)

// Contents is the result of comparing what an agent reports on its data plane with the instances
// that the hub knows.
type Contents struct {
	// Unlisted are the reported instances that the hub does not know to be there, sorted by UID.
	Unlisted []v1alpha1.UnlistedInstance
	// Unknown says, in a sentence, why the agent's report does not show what is on the data plane;
	// empty when it does.
	Unknown string
	// Excess says, in a sentence, that the agent reports more used units than the known instances
	// take; empty when it does not.
	Excess string
	// AnsweredAt is the time of the inquiry that the report answers; nil if it answers none.
	AnsweredAt *metav1.Time
}

// maxUnlisted is the number of unlisted instances that the API accepts; maxUIDLength and
// maxNameLength are the lengths that it accepts.
const (
	maxUnlisted   = 1000
	maxUIDLength  = 63
	maxNameLength = 253
)

// CompareContents compares the last report of the agent of dp with the ServiceInstances on dp (on)
// and those that are being moved off it (moved). a may be nil.
func CompareContents(dp *v1alpha1.DataPlane, a *v1alpha1.DataPlaneAgent, on, moved []*v1alpha1.ServiceInstance) Contents {
	if a == nil || a.Unreadable != "" || a.Spec.DataPlaneUID != string(dp.UID) || a.Status.Report == nil || a.Status.Report.DataPlaneUID != string(dp.UID) {
		return Contents{Unknown: "The agent has not reported what is on the data plane."}
	}
	r := a.Status.Report
	c := Contents{Unlisted: listUnlisted(dp, r, on, moved)}
	judged, _ := ValidateReport(dp, r)
	faulty := !judged.Valid
	switch {
	case !r.Ready && slices.Contains([]string{v1alpha1.ReasonPlaneSilent, v1alpha1.ReasonSpecUnreadable}, r.Reason):
		c.Unknown = "The agent cannot read the data plane, and repeats an earlier report."
	case faulty:
		c.Unknown = "The agent's last report was rejected: see condition " + v1alpha1.DataPlaneReportValid + "."
	case a.Spec.InquiryAt != nil && r.ObservedGeneration >= a.Generation:
		c.AnsweredAt = a.Spec.InquiryAt
	}
	if !faulty {
		c.Excess = describeExcess(r, slices.Concat(on, moved))
	}
	return c
}

// listUnlisted returns the reported instances that the hub does not know. It skips instances that
// are being deleted: the hub no longer needs to know about them.
func listUnlisted(dp *v1alpha1.DataPlane, r *v1alpha1.DataPlaneReport, on, moved []*v1alpha1.ServiceInstance) []v1alpha1.UnlistedInstance {
	known := map[string]bool{}
	for _, i := range slices.Concat(on, moved) {
		known[string(i.UID)] = true
	}
	for _, b := range dp.Status.Bookings {
		known[b.UID] = true
	}
	var out []v1alpha1.UnlistedInstance
	for _, i := range r.Instances {
		leaving := i.Phase == v1alpha1.AgentDeleting || i.Phase == v1alpha1.AgentDeleted
		uid := truncateText(i.UID, maxUIDLength)
		if i.Reserved || leaving || known[i.UID] || len(out) == maxUnlisted {
			continue
		}
		if uid == "" {
			uid = "unnamed"
		}
		known[i.UID], known[uid] = true, true
		out = append(out, v1alpha1.UnlistedInstance{UID: uid, Name: truncateText(i.Name, maxNameLength)})
	}
	slices.SortFunc(out, func(a, b v1alpha1.UnlistedInstance) int { return strings.Compare(a.UID, b.UID) })
	return out
}

func truncateText(text string, most int) string {
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// describeExcess returns a sentence if the report counts more used units than the instances in on
// take; "" otherwise.
func describeExcess(r *v1alpha1.DataPlaneReport, on []*v1alpha1.ServiceInstance) string {
	known := map[string]int32{}
	for _, i := range on {
		known[i.Spec.Type] += i.Status.Units
	}
	var words []string
	for name, c := range r.Capacity {
		if used := c.MaxUnits - c.RemainingUnits; used > known[name] {
			words = append(words, fmt.Sprintf("%d units of %s, of which known instances use %d", used, name, known[name]))
		}
	}
	if len(words) == 0 {
		return ""
	}
	slices.Sort(words)
	return "The agent reports these units as used: " + strings.Join(words, "; ") + "."
}

// InstancesListedCondition returns the condition InstancesListed of a data plane.
func InstancesListedCondition(dp *v1alpha1.DataPlane, c Contents) metav1.Condition {
	const giveUp = " To discard these contents, set spec.discardUnlisted to true: they are destroyed with the cluster when the data plane is removed."
	out := metav1.Condition{Type: v1alpha1.DataPlaneInstancesListed, ObservedGeneration: dp.Generation}
	switch {
	case len(c.Unlisted) > 0:
		out.Status, out.Reason = metav1.ConditionFalse, v1alpha1.ReasonUnlistedInstances
		out.Message = fmt.Sprintf("The agent reports %d instances without a ServiceInstance: %s. The cluster is kept for them. "+
			"To delete one, delete its ManagedKafka on the data plane.", len(c.Unlisted), joinFirstNames(c.Unlisted)) + giveUp
	case c.Unknown != "":
		out.Status, out.Reason, out.Message = metav1.ConditionUnknown, v1alpha1.ReasonContentsUnknown, c.Unknown+" The cluster is kept until the agent reports that."+giveUp
	case c.Excess != "":
		out.Status, out.Reason, out.Message = metav1.ConditionFalse, v1alpha1.ReasonUnlistedInstances, c.Excess+" The cluster is kept."+giveUp
	default:
		out.Status, out.Reason, out.Message = metav1.ConditionTrue, v1alpha1.ReasonInstancesListed, "Every instance that the agent reports has a ServiceInstance."
	}
	return out
}

// joinFirstNames joins the first five instances of a list.
func joinFirstNames(all []v1alpha1.UnlistedInstance) string {
	const few = 5
	var out []string
	for _, u := range all[:min(few, len(all))] {
		word := u.UID
		if u.Name != "" {
			word = fmt.Sprintf("%s (%s)", u.Name, u.UID)
		}
		out = append(out, word)
	}
	if len(all) > few {
		out = append(out, "and others")
	}
	return strings.Join(out, ", ")
}

// OccupiedReason returns why the cluster of a data plane must not be released: its agent reports
// unknown instances or units, or has not answered an inquiry of the given time or later. It returns
// "" when the data plane is known to be empty, or when spec.discardUnlisted gives up its contents.
func OccupiedReason(dp *v1alpha1.DataPlane, c Contents, live bool, inquiry time.Time) string {
	cond := InstancesListedCondition(dp, c)
	switch {
	case dp.Spec.DiscardUnlisted:
		return ""
	case len(c.Unlisted) > 0, c.Unknown != "", c.Excess != "":
		return cond.Message
	case !live:
		return "The agent does not report, so it is unknown what is on the data plane: make the agent report again. " +
			"To discard these contents, set spec.discardUnlisted to true."
	case c.AnsweredAt == nil || c.AnsweredAt.Time.Before(inquiry):
		return "The agent is being asked once more what is on the data plane."
	}
	return ""
}

// uncountedReasons are the reasons of instances that a data plane refuses and does not count as
// used.
var uncountedReasons = []string{v1alpha1.ReasonNoRoom, v1alpha1.ReasonNoPool}

// CountKnownUnits returns the number of units of a type that a report counts as used by the
// instances in on.
func CountKnownUnits(r *v1alpha1.DataPlaneReport, instanceType string, on []*v1alpha1.ServiceInstance) int32 {
	counted := map[string]bool{}
	for _, i := range r.Instances {
		counted[i.UID] = !i.Reserved && i.Phase != v1alpha1.AgentDeleted && !slices.Contains(uncountedReasons, i.Reason)
	}
	var sum int32
	for _, i := range on {
		if i.Spec.Type == instanceType && counted[string(i.UID)] {
			sum += i.Status.Units
		}
	}
	return sum
}

// BuildRefusal returns the record of a data plane that refuses i. It has what the data plane
// offered at that time, from which a later pass decides whether to ask it again.
func BuildRefusal(plane string, r *v1alpha1.DataPlaneReport, i *v1alpha1.ServiceInstance) v1alpha1.Refusal {
	out := v1alpha1.Refusal{
		DataPlaneName: plane, Generation: i.Generation, Vacant: true,
		RemainingUnits: r.Capacity[i.Spec.Type].RemainingUnits, Versions: scaling.JoinReadyVersions(toScalingVersions(r.Versions)),
	}
	for _, e := range r.Instances {
		switch {
		case e.Reserved:
		case e.UID != string(i.UID):
			out.Vacant = out.Vacant && e.Phase == v1alpha1.AgentDeleted
		case !slices.Contains(uncountedReasons, e.Reason):
			out.RemainingUnits += i.Status.Units // its units count as used while it is refused
		case e.Reason == v1alpha1.ReasonNoPool:
			out.Vacant = false // another data plane may have nodes for it
		}
	}
	return out
}
