package provision

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/diagnostics/failure"
	"hotspare.io/hotspare/internal/provision"
)

// buildSnapshot returns the state of the pass as facts.
func (p *pass) buildSnapshot() provision.Snapshot {
	s := provision.Snapshot{
		Now:     p.now,
		Cluster: p.clusterFacts(),
		Needs:   p.needs,
		Prepare: p.prepare,
		Install: p.install,
		Destroy: p.destroy,
	}
	for _, cp := range p.attempts {
		s.Attempts = append(s.Attempts, attemptFacts(cp))
	}
	if p.deprovision != nil {
		s.Deprovision = provision.Deprovision{Exists: true, Completed: p.deprovision.Status.Completed}
	}
	return s
}

func (p *pass) clusterFacts() provision.Cluster {
	cd := p.cluster
	facts := provision.Cluster{
		Name:         cd.Name,
		UID:          cd.UID,
		Paused:       hivev1.IsTrue(cd.Annotations, hivev1.AnnotationReconcilePause),
		HasFinalizer: controllerutil.ContainsFinalizer(cd, hivev1.FinalizerDeprovision),
		Foreign:      cd.Spec.ClusterInstallRef != nil,
		Installed:    cd.Spec.Installed,
		Stopped:      condition.IsTrue(cd.Status.Conditions, hivev1.ClusterProvisionStopped),
		InfraID:      recordedInfraID(cd),
		Limit:        attemptLimit(cd),
		Executor:     p.clusterExecutor() != nil,
		Fake:         p.isFake(),
		Deleting:     isDeleting(cd),
		Preserved:    cd.Spec.PreserveOnDelete,
		Protected:    hivev1.IsTrue(cd.Annotations, hivev1.AnnotationProtectedDelete),
	}
	facts.Marked = facts.HasFinalizer && hasClusterLabels(cd)
	if facts.Deleting {
		facts.DeletedAt = cd.DeletionTimestamp.Time
		p.addBundleFacts(&facts)
	}
	c := condition.Find(cd.Status.Conditions, hivev1.ClusterDeprovisionLaunchError)
	if c != nil && c.Status == corev1.ConditionTrue && c.Reason == provision.ReasonDestroyFailed {
		facts.DestroyFailedAt = c.LastTransitionTime.Time
	}
	return facts
}

// addBundleFacts adds whether the destruction of the cluster waits for a bundle of diagnostics.
func (p *pass) addBundleFacts(facts *provision.Cluster) {
	switch f := failure.FindRelease(p.cluster, p.claim); {
	case f == nil:
	case !p.StoresBundles:
		facts.BundleRefused = true
	case !failure.IsSettled(p.cluster, *f):
		facts.BundleDue = f.Since.Add(failure.ReleaseLimit)
	}
}

func hasClusterLabels(cd *hivev1.ClusterDeployment) bool {
	for key, value := range provision.ClusterLabels(cd.Spec.Platform, cd.Labels) {
		if cd.Labels[key] != value {
			return false
		}
	}
	return true
}

// attemptLimit returns the maximum number of attempts; nil: unlimited.
func attemptLimit(cd *hivev1.ClusterDeployment) *int {
	var most *int
	if l := cd.Spec.InstallAttemptsLimit; l != nil {
		n := int(*l)
		most = &n
	}
	if hivev1.IsTrue(cd.Annotations, hivev1.AnnotationTryInstallOnce) && (most == nil || *most > 1) {
		once := 1
		most = &once
	}
	return most
}

func attemptFacts(cp *hivev1.ClusterProvision) provision.Attempt {
	a := provision.Attempt{
		Number:    cp.Spec.Attempt,
		Name:      cp.Name,
		InfraID:   *cp.Spec.InfraID,
		Stage:     cp.Spec.Stage,
		Destroyed: condition.IsTrue(cp.Status.Conditions, provision.DestroyedCondition),
	}
	if a.Stage == hivev1.StageFailed {
		a.FailedAt, a.Reason, a.Message = attemptFailure(cp)
	}
	return a
}

// unknownError is the reason of a failure that has none, as in Hive.
const unknownError = "UnknownError"

// noReasonMessage is the message of such a failure.
const noReasonMessage = "the installer gave no reason"

// attemptFailure returns when and why an attempt failed. An attempt that was marked as failed
// manually may have no condition.
func attemptFailure(cp *hivev1.ClusterProvision) (at time.Time, reason, message string) {
	c := condition.Find(cp.Status.Conditions, hivev1.ProvisionFailed)
	if c == nil {
		return cp.CreationTimestamp.Time, unknownError, noReasonMessage
	}
	return c.LastTransitionTime.Time, cmp.Or(c.Reason, unknownError), c.Message
}
