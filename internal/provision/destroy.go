package provision

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// decideDeletion decides about a deleted cluster.
func decideDeletion(s Snapshot) Plan {
	var p Plan
	c := s.Cluster
	left := s.leftoverInfraIDs()
	switch {
	case !c.HasFinalizer:
	case c.Protected:
		p.setCondition(hivev1.ClusterDeprovisionLaunchError, corev1.ConditionTrue, ReasonProtected,
			fmt.Sprintf("Annotation %s is true, so the cluster is not destroyed: remove the annotation to have it destroyed.", hivev1.AnnotationProtectedDelete))
	case awaitsBundle(s):
		p.setCondition(hivev1.ClusterProvisioned, corev1.ConditionFalse, hivev1.ReasonAwaitingBundle,
			fmt.Sprintf("Annotation %s of its claim requests a bundle of diagnostics: the cluster is destroyed when the bundle is stored, or %s after its deletion.",
				hivev1.AnnotationDiagnoseAtRelease, c.BundleDue.Sub(c.DeletedAt)))
		p.Next = c.BundleDue.Sub(s.Now)
	case c.Preserved, c.Foreign:
		p.Last = []Step{{Do: RemoveFinalizer}}
	case s.Deprovision.Completed, len(left) == 0:
		p.setCondition(hivev1.ClusterProvisioned, corev1.ConditionFalse, hivev1.ReasonDeprovisioned, "All resources of the cluster are deleted.")
		p.Last = []Step{{Do: RemoveFinalizer}}
	default:
		destroyCluster(&p, s, left)
	}
	return p
}

// awaitsBundle reports whether the destruction waits for a bundle of diagnostics. It does not once it has begun, or if
// another installer destroys the cluster. The limit counts from the deletion of the cluster, so that nothing extends it.
func awaitsBundle(s Snapshot) bool {
	return !s.Cluster.Foreign && s.Cluster.BundleDue.After(s.Now) && !s.Deprovision.Exists
}

// destroyCluster destroys what is left of a deleted cluster, then removes its finalizer.
func destroyCluster(p *Plan, s Snapshot, left []string) {
	p.setCondition(hivev1.ClusterProvisioned, corev1.ConditionFalse, hivev1.ReasonDeprovisioning,
		fmt.Sprintf("Destroying %s.", strings.Join(left, ", ")))
	if !s.Deprovision.Exists {
		if s.Cluster.BundleRefused {
			p.addSteps(Step{Do: ReportNoBundle})
		}
		p.addSteps(Step{Do: CreateDeprovision, InfraID: left[0]})
	}
	if !destroyInfraIDs(p, s, left, s.Cluster.DeletedAt) {
		return
	}
	p.addSteps(Step{Do: CompleteDeprovision})
	p.setCondition(hivev1.ClusterProvisioned, corev1.ConditionFalse, hivev1.ReasonDeprovisioned, "All resources of the cluster are deleted.")
	p.Last = []Step{{Do: RemoveFinalizer}}
}

// destroyInfraIDs destroys the resources that ids mark, and reports whether all of them are
// destroyed. since is when it was first tried.
func destroyInfraIDs(p *Plan, s Snapshot, ids []string, since time.Time) bool {
	if !s.Cluster.Executor {
		p.setCondition(hivev1.ClusterDeprovisionLaunchError, corev1.ConditionTrue, hivev1.ReasonNoExecutor,
			s.Needs.noDestroyerMessage(ids))
		return false
	}
	if wait := s.destroyBackoffLeft(since); wait > 0 {
		p.Next = wait
		return false
	}
	asked := true
	for _, id := range ids {
		if _, ok := s.Destroy[id]; !ok {
			p.addSteps(Step{Do: Destroy, InfraID: id})
			asked = false
		}
	}
	return asked && evaluateDestroyAnswers(p, s, ids, since)
}

// noDestroyerMessage says why nothing can destroy what ids mark.
func (n Needs) noDestroyerMessage(ids []string) string {
	recorded := strings.Join(ids, ", ") + " is recorded, and "
	if n.Platform == "" {
		return recorded + "spec.platform names no platform, so hotspare cannot destroy it: set spec.platform to its platform, " +
			"such as {local: {}}, or set spec.preserveOnDelete to delete the ClusterDeployment without destroying it."
	}
	return recorded + fmt.Sprintf("this hub has no installer for platform %s to destroy it: "+
		"set one up, or set spec.preserveOnDelete to delete the ClusterDeployment without destroying it.", n.Platform)
}

// destroyBackoffLeft returns the remaining backoff after destroying failed. Without a backoff,
// every event would trigger another attempt at once, including those of the controller's own
// writes.
func (s Snapshot) destroyBackoffLeft(since time.Time) time.Duration {
	failed := s.Cluster.DestroyFailedAt
	if failed.IsZero() {
		return 0
	}
	return max(0, failed.Add(destroyBackoff(failed.Sub(since))).Sub(s.Now))
}

// evaluateDestroyAnswers evaluates the executors' answers to destroying. It reports the first
// failure in the order of the infraIDs.
func evaluateDestroyAnswers(p *Plan, s Snapshot, ids []string, since time.Time) bool {
	gone, message := true, "The cluster is being destroyed, or is destroyed."
	for _, id := range ids {
		a := s.Destroy[id]
		switch a.Outcome {
		case Succeeded:
			continue
		case Failed, Refused:
			reportDestroyFailing(p, s, fmt.Sprintf("Destroying %s fails: %s", id, a.Message))
			p.Next = destroyBackoff(s.Now.Sub(since))
			return false
		case Waiting:
			p.Next = a.After
			message = fmt.Sprintf("Destroying %s is waiting: %s", id, a.Message)
		default:
			p.Next = pollInterval
		}
		gone = false
	}
	p.setCondition(hivev1.ClusterDeprovisionLaunchError, corev1.ConditionFalse, hivev1.ReasonDeprovisioning, message)
	return gone
}

func reportDestroyFailing(p *Plan, s Snapshot, message string) {
	p.setCondition(hivev1.ClusterDeprovisionLaunchError, corev1.ConditionTrue, ReasonDestroyFailed, message)
	if s.Cluster.Deleting {
		p.setCondition(hivev1.ClusterProvisioned, corev1.ConditionFalse, hivev1.ReasonDeprovisionFailed, message)
		p.addSteps(Step{Do: ReportDestroyFailure, Message: message})
	}
}
