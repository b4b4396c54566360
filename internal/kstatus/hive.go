package kstatus

import (
	"encoding/json"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/inventory"
	"hotspare.io/hotspare/internal/provision"
)

// ReportClusterPool sets the two conditions in st, which becomes the status of pool. Call it
// after the pool's other conditions are set.
func ReportClusterPool(pool *hivev1.ClusterPool, st *hivev1.ClusterPoolStatus, now time.Time) {
	clusterPoolProgress(st.Conditions).unlessDeleted(pool.DeletionTimestamp).setConditions(&st.Conditions, now)
}

func clusterPoolProgress(list []hivev1.Condition) Progress {
	progressing := condition.Find(list, hivev1.PoolProgressing)
	if progressing == nil {
		return settled
	}
	if progressing.Status == corev1.ConditionTrue {
		return newReconciling(progressing.Reason, progressing.Message)
	}
	missing := findWithStatus(list, hivev1.PoolMissingDependencies, corev1.ConditionTrue)
	inventory := findWithStatus(list, hivev1.PoolInventoryValid, corev1.ConditionFalse)
	switch {
	case progressing.Reason == hivev1.ReasonUnreadable:
		return newStalled(progressing.Reason, progressing.Message)
	case progressing.Reason == hivev1.ReasonBlocked:
		return newStalled(blockedReason(list, progressing.Reason), progressing.Message)
	case missing != nil:
		return newStalled(missing.Reason, missing.Message+": correct that, or change the pool's spec")
	case inventory != nil:
		return newStalled(inventory.Reason, inventory.Message)
	default:
		return settled
	}
}

// blockedReason returns the reason of the condition that describes most precisely why a pool is
// blocked, causes first, or otherwise if there is no such condition.
func blockedReason(list []hivev1.Condition, otherwise string) string {
	if missing := findWithStatus(list, hivev1.PoolMissingDependencies, corev1.ConditionTrue); missing != nil {
		return missing.Reason
	}
	if full := findWithStatus(list, hivev1.PoolCapacityAvailable, corev1.ConditionFalse); full != nil {
		return full.Reason
	}
	return otherwise
}

// findWithStatus returns the condition of a type if it has a status, otherwise nil.
func findWithStatus(list []hivev1.Condition, typ string, status corev1.ConditionStatus) *hivev1.Condition {
	if c := condition.Find(list, typ); c != nil && c.Status == status {
		return c
	}
	return nil
}

// ReportClusterClaim sets the two conditions of a claim, and the observed generation of its
// status. Call it after the claim's other conditions are set. fault is for what these have no
// reason for: the claim has its cluster, but something in the claim is invalid.
func ReportClusterClaim(claim *hivev1.ClusterClaim, fault Progress, now time.Time) {
	claim.Status.ObservedGeneration = claim.Generation
	p := clusterClaimProgress(claim)
	if p == settled {
		p = fault
	}
	p.unlessDeleted(claim.DeletionTimestamp).setConditions(&claim.Status.Conditions, now)
}

func clusterClaimProgress(claim *hivev1.ClusterClaim) Progress {
	pending := condition.Find(claim.Status.Conditions, hivev1.ClaimPending)
	running := condition.Find(claim.Status.Conditions, hivev1.ClaimClusterRunning)
	switch {
	case pending == nil:
		return settled
	case pending.Reason == hivev1.ReasonNoClusters:
		return newReconciling(pending.Reason, "The claim waits for a cluster of ClusterPool "+claim.Spec.ClusterPoolName+
			": the pool's status.plan says what it does, and its condition Stalled, if it has one, what a person must do")
	case pending.Reason == hivev1.ReasonLimitReached, pending.Reason == hivev1.ReasonSetIncomplete:
		return newReconciling(pending.Reason, pending.Message)
	case pending.Status == corev1.ConditionTrue:
		return newStalled(pending.Reason, pending.Message)
	}
	return claimedClusterProgress(running)
}

// claimedClusterProgress returns the progress of a claim that has a cluster. A cluster that
// hibernates does so on purpose: users of the claim can resume it.
func claimedClusterProgress(running *hivev1.Condition) Progress {
	if running == nil || running.Status == corev1.ConditionTrue {
		return settled
	}
	switch running.Reason {
	case hivev1.ReasonHibernating:
		return settled
	case hivev1.ReasonResuming, hivev1.ReasonStopping:
		return newReconciling(running.Reason, running.Message)
	case hivev1.ReasonClusterDeleting, hivev1.ReasonClusterDeleted:
		return newStalled(running.Reason, running.Message+": delete this claim, and claim again")
	default:
		return newStalled(running.Reason, running.Message)
	}
}

// ReportClusterDeployment sets the two conditions of a cluster. Several controllers report on a
// cluster: each calls it after it has set its own conditions.
func ReportClusterDeployment(cd *hivev1.ClusterDeployment, now time.Time) {
	p := installProgress(cd.Status.Conditions)
	if cd.Spec.Installed {
		p = powerProgress(cd.Status.Conditions)
	}
	for _, typ := range []string{hivev1.ClusterBootstrapped, hivev1.ClusterGatesPassed} {
		if c := findWithStatus(cd.Status.Conditions, typ, corev1.ConditionFalse); c != nil && p == settled {
			p = newReconciling(c.Reason, c.Message)
		}
	}
	p.unlessDeleted(cd.DeletionTimestamp).setConditions(&cd.Status.Conditions, now)
}

// installProgress returns the progress of a cluster that is not installed.
func installProgress(list []hivev1.Condition) Progress {
	if c := condition.Find(list, hivev1.ClusterProvisionStopped); c != nil && c.Status == corev1.ConditionTrue {
		return newStalled(c.Reason, c.Message)
	}
	if c := condition.Find(list, hivev1.ClusterRequirementsMet); c != nil && c.Status == corev1.ConditionFalse {
		return newStalled(c.Reason, c.Message)
	}
	if c := condition.Find(list, hivev1.ClusterAuthenticationFailure); c != nil && c.Status == corev1.ConditionTrue {
		return newStalled(c.Reason, c.Message)
	}
	for _, typ := range []string{hivev1.ClusterInstallLaunchError, hivev1.ClusterProvisionFailed} {
		if c := condition.Find(list, typ); c != nil && c.Status == corev1.ConditionTrue {
			return newReconciling(c.Reason, c.Message)
		}
	}
	if condition.IsTrue(list, hivev1.ClusterProvisioned) {
		return unknownPowerProgress
	}
	if c := condition.Find(list, hivev1.ClusterProvisioned); c != nil && c.Reason != hivev1.ReasonInitialized {
		return newReconciling(c.Reason, c.Message)
	}
	return newReconciling(hivev1.ReasonInitialized, "The install has not begun.")
}

// unknownPowerProgress is the progress of a cluster that was just installed.
var unknownPowerProgress = newReconciling(hivev1.ReasonInitialized, "The cluster is installed, and its power state is not known yet.")

// powerProgress returns the progress of an installed cluster. A cluster that hibernates on
// purpose is settled, although kstatus then uses its condition Ready, which must be False for
// Hive's clients.
func powerProgress(list []hivev1.Condition) Progress {
	hibernating := condition.Find(list, hivev1.ClusterHibernating)
	ready := condition.Find(list, hivev1.ClusterReady)
	switch {
	case hibernating == nil || ready == nil || ready.Reason == hivev1.ReasonInitialized:
		return unknownPowerProgress
	case hibernating.Reason == hivev1.ReasonFailedToStart, hibernating.Reason == hivev1.ReasonFailedToStop:
		return newStalled(hibernating.Reason, hibernating.Message)
	case hibernating.Reason == hivev1.ReasonPowerPaused:
		return newStalled(hibernating.Reason, hibernating.Message+" Remove it to have hotspare hibernate and resume the cluster.")
	case hibernating.Status == corev1.ConditionTrue, ready.Status == corev1.ConditionTrue:
		return settled
	case hibernating.Reason == hivev1.ReasonStopping:
		return newReconciling(hibernating.Reason, hibernating.Message)
	default:
		return newReconciling(ready.Reason, ready.Message)
	}
}

// ReportMachinePool sets the two conditions of a MachinePool, and the observed generation of its
// status. Call it after the pool's other conditions are set.
func ReportMachinePool(mp *hivev1.MachinePool, now time.Time) {
	mp.Status.ObservedGeneration = mp.Generation
	machinePoolProgress(mp.Status.Conditions).unlessDeleted(mp.DeletionTimestamp).setConditions(&mp.Status.Conditions, now)
}

func machinePoolProgress(list []hivev1.Condition) Progress {
	synced := condition.Find(list, hivev1.MachinePoolSynced)
	if synced == nil || synced.Status == corev1.ConditionTrue {
		return settled
	}
	for _, typ := range []string{hivev1.MachinePoolUnsupported, hivev1.MachinePoolNotEnough} {
		if c := condition.Find(list, typ); c != nil && c.Status == corev1.ConditionTrue && c.Reason == synced.Reason {
			return newStalled(c.Reason, c.Message)
		}
	}
	switch synced.Reason {
	case hivev1.ReasonSyncFailed, hivev1.ReasonNoRoom, hivev1.ReasonClusterNotFound, hivev1.ReasonPaused:
		return newStalled(synced.Reason, synced.Message)
	default:
		return newReconciling(synced.Reason, synced.Message)
	}
}

// ReportCustomization sets the two conditions of a customization, and the observed generation of
// its status. Call it after its other conditions are set.
func ReportCustomization(c *hivev1.ClusterDeploymentCustomization, now time.Time) {
	c.Status.ObservedGeneration = c.Generation
	customizationProgress(c).unlessDeleted(c.DeletionTimestamp).setMetaConditions(&c.Status.Conditions, c.Generation, now)
}

// customizationProgress returns the progress of a customization. A failure concerns the patches
// that were tried: after they change, the result is unknown until a pool tries the new ones.
func customizationProgress(c *hivev1.ClusterDeploymentCustomization) Progress {
	if c.Unreadable != "" {
		return newStalled(hivev1.ReasonUnreadable, c.Unreadable+": correct it; until then no pool uses it")
	}
	applied := meta.FindStatusCondition(c.Status.Conditions, hivev1.CustomizationApplySucceeded)
	if applied == nil {
		return settled
	}
	switch {
	case applied.Reason == hivev1.ReasonInstallationPending:
		return newReconciling(applied.Reason, applied.Message)
	case applied.Reason == hivev1.ReasonBrokenBySyntax && applied.ObservedGeneration == c.Generation:
		return newStalled(applied.Reason, applied.Message)
	case applied.Reason == hivev1.ReasonBrokenByCloud && wasLastApplied(c):
		return newStalled(applied.Reason, applied.Message+" The pool's status.inventory shows how many attempts are left.")
	default:
		return settled
	}
}

// wasLastApplied reports whether the last cluster was created with the patches that c has now. It
// returns true if the record of that cluster's patches cannot be read.
func wasLastApplied(c *hivev1.ClusterDeploymentCustomization) bool {
	var was hivev1.ClusterDeploymentCustomizationSpec
	if json.Unmarshal([]byte(c.Status.LastAppliedConfiguration), &was) != nil {
		return true
	}
	before, err := inventory.CustomizationVersion(was)
	now, errNow := inventory.CustomizationVersion(c.Spec)
	return err != nil || errNow != nil || before == now
}

// ReportClusterProvision sets the two conditions of an attempt to install cd, and the observed
// generation of its status. Call it after the conditions of cd are set. It does not change the status
// of an attempt that was complete before the first report: an empty one means the same.
func ReportClusterProvision(cp *hivev1.ClusterProvision, cd *hivev1.ClusterDeployment, now time.Time) {
	if cp.Spec.Stage == hivev1.StageComplete && cp.Status.ObservedGeneration == 0 && len(cp.Status.Conditions) == 0 {
		return
	}
	cp.Status.ObservedGeneration = cp.Generation
	clusterProvisionProgress(cp, cd).unlessDeleted(cp.DeletionTimestamp).setConditions(&cp.Status.Conditions, now)
}

// clusterProvisionProgress returns the progress of an attempt; for an attempt in progress, that
// of its cluster.
func clusterProvisionProgress(cp *hivev1.ClusterProvision, cd *hivev1.ClusterDeployment) Progress {
	switch {
	case cp.Spec.Stage == hivev1.StageComplete:
		return settled
	case cp.Spec.Stage == hivev1.StageFailed:
		return failedAttemptProgress(cp, cd)
	case cd.Spec.Installed, condition.IsTrue(cd.Status.Conditions, hivev1.ClusterProvisioned):
		return newReconciling(hivev1.ReasonProvisioned, "The cluster is installed, and the end of the attempt is not recorded yet.")
	default:
		return installProgress(cd.Status.Conditions)
	}
}

// unknownError is the reason of a failure that has none, as in Hive.
const unknownError = "UnknownError"

// failedAttemptProgress returns the progress of a failed attempt. Its cluster reports what
// happens next.
func failedAttemptProgress(cp *hivev1.ClusterProvision, cd *hivev1.ClusterDeployment) Progress {
	next := ": ClusterDeployment " + cd.Name + " shows whether there is another attempt"
	if c := findWithStatus(cp.Status.Conditions, hivev1.ProvisionFailed, corev1.ConditionTrue); c != nil && c.Reason != "" {
		return newStalled(c.Reason, "The attempt failed: "+strings.TrimRight(c.Message, ". ")+next)
	}
	return newStalled(unknownError, "The attempt failed"+next)
}

// ReportClusterDeprovision sets the two conditions of a ClusterDeprovision, and the observed
// generation of its status. cluster are the conditions of the cluster that is destroyed; call it
// after they are set.
func ReportClusterDeprovision(record *hivev1.ClusterDeprovision, cluster []hivev1.Condition, now time.Time) {
	record.Status.ObservedGeneration = record.Generation
	clusterDeprovisionProgress(record, cluster).unlessDeleted(record.DeletionTimestamp).setConditions(&record.Status.Conditions, now)
}

func clusterDeprovisionProgress(record *hivev1.ClusterDeprovision, cluster []hivev1.Condition) Progress {
	launch := condition.Find(cluster, hivev1.ClusterDeprovisionLaunchError)
	switch {
	case record.Status.Completed:
		return settled
	case launch == nil || launch.Reason == hivev1.ReasonInitialized:
		return newReconciling(hivev1.ReasonDeprovisioning, "The cluster is being destroyed.")
	case launch.Status != corev1.ConditionTrue:
		return newReconciling(launch.Reason, launch.Message)
	case launch.Reason == provision.ReasonDestroyFailed:
		return newReconciling(launch.Reason, launch.Message+": hotspare retries, less often the longer it fails")
	default:
		return newStalled(launch.Reason, launch.Message)
	}
}
