package provision

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// remove leads a deleted cluster to its end.
func remove(s Snapshot) Plan {
	var p Plan
	c := s.Cluster
	left := s.remains()
	switch {
	case !c.Held:
	case c.Protected:
		p.report(hivev1.ClusterDeprovisionLaunchError, corev1.ConditionTrue, ReasonProtected,
			fmt.Sprintf("Annotation %s is true, so the cluster is not destroyed: take it away to let the cluster go.", hivev1.AnnotationProtectedDelete))
	case c.Preserved, c.Foreign:
		p.Last = []Step{{Do: Release}}
	case s.Deprovision.Completed, len(left) == 0:
		p.report(hivev1.ClusterProvisioned, corev1.ConditionFalse, hivev1.ReasonDeprovisioned, "Nothing is left of the cluster.")
		p.Last = []Step{{Do: Release}}
	default:
		destroyAll(&p, s, left)
	}
	return p
}

// destroyAll destroys what is left of a deleted cluster, then lets it go.
func destroyAll(p *Plan, s Snapshot, left []string) {
	p.report(hivev1.ClusterProvisioned, corev1.ConditionFalse, hivev1.ReasonDeprovisioning,
		fmt.Sprintf("Destroying %s.", strings.Join(left, ", ")))
	if !s.Deprovision.Exists {
		p.do(Step{Do: Open, InfraID: left[0]})
	}
	if !demolish(p, s, left, s.Cluster.DeletedAt) {
		return
	}
	p.do(Step{Do: Close})
	p.report(hivev1.ClusterProvisioned, corev1.ConditionFalse, hivev1.ReasonDeprovisioned, "Nothing is left of the cluster.")
	p.Last = []Step{{Do: Release}}
}

// demolish destroys what ids mark, and reports whether all of it is gone.
// since is when it was first tried.
func demolish(p *Plan, s Snapshot, ids []string, since time.Time) bool {
	if !s.Cluster.Executor {
		p.report(hivev1.ClusterDeprovisionLaunchError, corev1.ConditionTrue, hivev1.ReasonNoExecutor,
			s.Needs.noDestroyer(ids))
		return false
	}
	if wait := s.calm(since); wait > 0 {
		p.Next = wait
		return false
	}
	asked := true
	for _, id := range ids {
		if _, ok := s.Destroy[id]; !ok {
			p.do(Step{Do: Destroy, InfraID: id})
			asked = false
		}
	}
	return asked && judge(p, s, ids, since)
}

// noDestroyer says why nothing can destroy what ids mark.
func (n Needs) noDestroyer(ids []string) string {
	recorded := strings.Join(ids, ", ") + " is recorded, and "
	if n.Platform == "" {
		return recorded + "spec.platform names no platform, so that nothing knows how to destroy it: write the platform that it is on, " +
			"such as {local: {}}, or set spec.preserveOnDelete to let the ClusterDeployment go without."
	}
	return recorded + fmt.Sprintf("no installer for platform %s is set up here to destroy it: "+
		"set one up, or set spec.preserveOnDelete to let the ClusterDeployment go without.", n.Platform)
}

// calm is how long destroying is left alone after it failed. Without it every
// event, our own writes among them, would try again at once.
func (s Snapshot) calm(since time.Time) time.Duration {
	failed := s.Cluster.DestroyFailedAt
	if failed.IsZero() {
		return 0
	}
	return max(0, failed.Add(pace(failed.Sub(since))).Sub(s.Now))
}

// judge weighs the answers to destroying: the first failure, in the order of
// the infraIDs, is the one reported.
func judge(p *Plan, s Snapshot, ids []string, since time.Time) bool {
	gone, message := true, "Destroying goes on, or is done."
	for _, id := range ids {
		a := s.Destroy[id]
		switch a.Outcome {
		case Succeeded:
			continue
		case Failed, Refused:
			reportDestroyFailing(p, s, fmt.Sprintf("Destroying %s fails: %s", id, a.Message))
			p.Next = pace(s.Now.Sub(since))
			return false
		case Waiting:
			p.Next = a.After
			message = fmt.Sprintf("Destroying %s waits: %s", id, a.Message)
		default:
			p.Next = poll
		}
		gone = false
	}
	p.report(hivev1.ClusterDeprovisionLaunchError, corev1.ConditionFalse, hivev1.ReasonDeprovisioning, message)
	return gone
}

func reportDestroyFailing(p *Plan, s Snapshot, message string) {
	p.report(hivev1.ClusterDeprovisionLaunchError, corev1.ConditionTrue, ReasonDestroyFailed, message)
	if s.Cluster.Deleting {
		p.report(hivev1.ClusterProvisioned, corev1.ConditionFalse, hivev1.ReasonDeprovisionFailed, message)
		p.do(Step{Do: Lament, Message: message})
	}
}
