package lease

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

// Decide returns the plan for a customization.
func Decide(s Snapshot) Plan {
	var plan []Step
	switch {
	case !s.Exists, s.Unreadable:
	case s.Leased:
		plan = planHeldLease(s)
	default:
		plan = planFreeLease(s)
	}
	if s.Exists && !s.StatusCurrent && !s.Deleting && !slices.ContainsFunc(plan, Step.writesStatus) {
		plan = append(plan, Step{Verb: ReportStatus})
	}
	return Plan{Steps: append(plan, planFinalizerRemovals(s, plan)...)}
}

// planFinalizerRemovals removes the finalizers of destroyed clusters that no longer have the
// customization once the steps of plan are executed.
func planFinalizerRemovals(s Snapshot, plan []Step) []Step {
	released := slices.ContainsFunc(plan, func(step Step) bool { return step.Verb == ReleaseLease })
	var out []Step
	for _, c := range s.Clusters {
		has := s.Leased && !s.Unreadable && s.Holder == c.Key && !released
		if c.IsDestroyed() && c.HasLeaseFinalizer && c.Customization == s.Key && !c.Unreadable && !has {
			out = append(out, Step{Verb: RemoveClusterFinalizer, Cluster: c})
		}
	}
	return out
}

// planHeldLease plans the steps for a customization whose lease a cluster has.
func planHeldLease(s Snapshot) []Step {
	if reason, message := EndReason(s); reason != "" {
		return []Step{{Verb: ReleaseLease, Reason: reason, Message: message}}
	}
	var plan []Step
	if !s.HasFinalizer && !s.Deleting {
		plan = append(plan, Step{Verb: AddFinalizer})
	}
	want := applySucceeded(s)
	if want.Reason == s.ApplyReason {
		want = condition.Value{}
	}
	if s.Available != metav1.ConditionFalse || want != (condition.Value{}) {
		plan = append(plan, Step{Verb: ReportHolder, ApplySucceeded: want})
	}
	return plan
}

// EndReason returns why no cluster needs the lease any longer, with a message; empty while one does,
// or may. While the holder's name is recorded, its pool creates it, even again after it was
// deleted: so the lease of a deleted cluster stays until its pool has seen that the cluster
// existed.
func EndReason(s Snapshot) (Reason, string) {
	c := s.FindCluster(s.Holder)
	switch {
	case c == nil && (s.HolderRecorded || s.PoolUnreadable):
		return "", ""
	case c == nil:
		return ClusterNotFound, fmt.Sprintf("cluster %s does not exist", s.Holder.Name)
	case c.Unreadable:
		return "", ""
	case c.Customization != s.Key:
		return ClusterUsesOther, fmt.Sprintf("cluster %s does not name this customization", c.Key.Name)
	case c.IsDestroyed() && !s.HolderRecorded:
		return ClusterDestroyed, fmt.Sprintf("cluster %s is destroyed", c.Key.Name)
	}
	return "", ""
}

// applySucceeded returns the condition ApplySucceeded that follows from the holder's install; the
// zero value unless the holder exists, is readable and is not being deleted.
func applySucceeded(s Snapshot) condition.Value {
	c := s.FindCluster(s.Holder)
	switch {
	case c == nil, c.Unreadable, c.Deleting:
		return condition.Value{}
	case c.Installed:
		return condition.True(hivev1.ReasonApplySucceeded, MessageInstalled)
	case c.Stopped:
		return condition.False(hivev1.ReasonBrokenByCloud, MessageInstallFailed)
	}
	return condition.False(hivev1.ReasonInstallationPending, MessageInstalling)
}

// planFreeLease acquires a free lease for a cluster that should have it.
func planFreeLease(s Snapshot) []Step {
	var plan []Step
	switch next := nextHolder(s); {
	case next != nil:
		if !s.HasFinalizer && !s.Deleting {
			plan = append(plan, Step{Verb: AddFinalizer})
		}
		return append(plan, Step{Verb: AcquireLease, Cluster: *next})
	case s.Available == metav1.ConditionFalse:
		plan = append(plan, Step{Verb: ReleaseLease, Reason: NoHolder, Message: "it names no cluster"})
	case s.Available == "" && !s.Deleting:
		plan = append(plan, Step{Verb: ReportFree})
	}
	if s.Deleting && s.HasFinalizer && !slices.ContainsFunc(s.Clusters, func(c Cluster) bool { return c.Unreadable }) {
		plan = append(plan, Step{Verb: RemoveFinalizer})
	}
	return plan
}

// nextHolder returns the cluster that should acquire a free lease: the oldest that is not being
// deleted, or else the oldest that is not destroyed yet, since it still uses what the customization
// gave it.
func nextHolder(s Snapshot) *Cluster {
	var may []Cluster
	for _, c := range s.Clusters {
		if c.Customization == s.Key && !c.IsDestroyed() && !c.Unreadable {
			may = append(may, c)
		}
	}
	if len(may) == 0 {
		return nil
	}
	first := slices.MinFunc(may, func(a, b Cluster) int {
		if a.Deleting != b.Deleting {
			if b.Deleting {
				return -1
			}
			return 1
		}
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Key.String(), b.Key.String()))
	})
	return &first
}
