package provision

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// Reasons of ClusterDeprovisionLaunchError.
const (
	// ReasonProtected: the cluster has the annotation protected-delete.
	ReasonProtected = "ProtectedDelete"
	// ReasonDestroyFailed: the executor has tried, and some resources are left.
	ReasonDestroyFailed = "DestroyFailed"
)

// DestroyedCondition, on a ClusterProvision, is True when nothing is left of the attempt.
const DestroyedCondition = "ClusterProvisionDestroyed"

// reportInstalled reports that a cluster is installed, by any installer.
func reportInstalled(p *Plan) {
	p.setCondition(hivev1.ClusterProvisioned, corev1.ConditionTrue, hivev1.ReasonProvisioned, "The cluster is installed.")
	p.setCondition(hivev1.ClusterProvisionStopped, corev1.ConditionFalse, hivev1.ReasonProvisionNotStopped, "The cluster is installed.")
	p.setCondition(hivev1.ClusterProvisionFailed, corev1.ConditionFalse, hivev1.ReasonProvisionSuccessful, "The cluster is installed.")
	p.setCondition(hivev1.ClusterAuthenticationFailure, corev1.ConditionFalse, hivev1.ReasonProvisionSuccessful, "The cluster is installed.")
	p.setCondition(hivev1.ClusterInstallLaunchError, corev1.ConditionFalse, hivev1.ReasonProvisionSuccessful, "The cluster is installed.")
	p.setCondition(hivev1.ClusterRequirementsMet, corev1.ConditionTrue, hivev1.ReasonAllRequirementsMet, allNeedsMet)
}

const allNeedsMet = "All requirements of the install are met."

// reportUnderWay reports that an attempt is in progress.
func reportUnderWay(p *Plan, message string) {
	p.setCondition(hivev1.ClusterProvisioned, corev1.ConditionFalse, hivev1.ReasonProvisioning, message)
	p.setCondition(hivev1.ClusterProvisionStopped, corev1.ConditionFalse, hivev1.ReasonProvisionNotStopped, message)
	p.setCondition(hivev1.ClusterProvisionFailed, corev1.ConditionFalse, hivev1.ReasonProvisioning, message)
	p.setCondition(hivev1.ClusterAuthenticationFailure, corev1.ConditionFalse, hivev1.ReasonProvisioning, message)
	p.setCondition(hivev1.ClusterInstallLaunchError, corev1.ConditionFalse, hivev1.ReasonProvisioning, message)
}

// reportFailure reports the result of the attempts so far while none is in progress.
func reportFailure(p *Plan, last *Attempt) {
	if last == nil {
		p.setCondition(hivev1.ClusterProvisioned, corev1.ConditionFalse, hivev1.ReasonInitializing, "No attempt has started: condition RequirementsMet shows what is missing.")
		p.setCondition(hivev1.ClusterInstallLaunchError, corev1.ConditionFalse, hivev1.ReasonInitializing, "No attempt has started.")
		return
	}
	p.setCondition(hivev1.ClusterInstallLaunchError, corev1.ConditionFalse, hivev1.ReasonProvisioning,
		fmt.Sprintf("Attempt %d failed after it had started.", last.Number))
	p.setCondition(hivev1.ClusterProvisioned, corev1.ConditionFalse, hivev1.ReasonProvisioning,
		fmt.Sprintf("Attempt %d failed; another attempt follows.", last.Number))
	p.setCondition(hivev1.ClusterProvisionStopped, corev1.ConditionFalse, hivev1.ReasonProvisionNotStopped,
		fmt.Sprintf("Attempt %d failed; another attempt follows.", last.Number))
	p.setCondition(hivev1.ClusterProvisionFailed, corev1.ConditionTrue, last.Reason, strings.TrimRight(last.Message, ".")+".")
	reportAuthentication(p, last)
}

// reportAuthentication reports whether the platform refused the credentials of the last attempt.
func reportAuthentication(p *Plan, last *Attempt) {
	if last.Reason != hivev1.ReasonInvalidCredentials {
		p.setCondition(hivev1.ClusterAuthenticationFailure, corev1.ConditionFalse, hivev1.ReasonProvisioning,
			fmt.Sprintf("Attempt %d failed for another reason: see condition ProvisionFailed.", last.Number))
		return
	}
	p.setCondition(hivev1.ClusterAuthenticationFailure, corev1.ConditionTrue, hivev1.ReasonPlatformAuthError,
		fmt.Sprintf("The platform refused the credentials of attempt %d: correct the Secret that credentialsSecretRef in spec.platform names; "+
			"condition ProvisionFailed shows the platform's answer.", last.Number))
}

func reportStopped(p *Plan, limit int) {
	message := fmt.Sprintf("The limit of %d install attempts is reached: raise spec.installAttemptsLimit for another attempt, or delete the cluster.", limit)
	p.setCondition(hivev1.ClusterProvisioned, corev1.ConditionFalse, hivev1.ReasonProvisionStopped, message)
	p.setCondition(hivev1.ClusterProvisionStopped, corev1.ConditionTrue, hivev1.ReasonInstallAttemptsUsedUp, message)
}

// reportNeeds reports whether the objects that the install needs exist. Watches on all of them
// trigger a pass when that changes.
func reportNeeds(p *Plan, s Snapshot) bool {
	if reason, message, unmet := s.firstUnmetNeed(); unmet {
		p.setCondition(hivev1.ClusterRequirementsMet, corev1.ConditionFalse, reason, message)
		return false
	}
	p.setCondition(hivev1.ClusterRequirementsMet, corev1.ConditionTrue, hivev1.ReasonAllRequirementsMet, allNeedsMet)
	return true
}
