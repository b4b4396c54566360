package clusterpool

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/kstatus"
	"hotspare.io/hotspare/internal/patch"
)

// reportRefusal records in the claim's condition Pending that the hub refused to let hotspare
// assign cluster cd, if that is what the error cause says. The hub's administrator must fix
// admission policies and missing rights; without this message, the claim's owner would read that
// the pool is empty. The claim controller keeps the condition while the cluster is reserved for the
// claim.
func (r *Reconciler) reportRefusal(ctx context.Context, claim *hivev1.ClusterClaim, cd *hivev1.ClusterDeployment, cause error) error {
	why, refused := refusalMessage(cause)
	if !refused {
		return nil
	}
	before := claim.DeepCopy()
	condition.Set(&claim.Status.Conditions, hivev1.ClaimPending, corev1.ConditionTrue, hivev1.ReasonAssignmentRefused,
		fmt.Sprintf("Cluster %s is reserved for this claim, but the hub does not let hotspare assign it: %s. "+
			"The hub's administrator can run hotspare as a user or ServiceAccount called hotspare-manager that has ClusterRole hotspare-manager", cd.Name, why),
		r.Clock.Now())
	kstatus.ReportClusterClaim(claim, kstatus.Progress{}, r.Clock.Now())
	if _, err := patch.Status(ctx, r.Client, before, claim); err != nil {
		return fmt.Errorf("reporting the refusal to claim %s: %w", claim.Name, err)
	}
	return nil
}

// refusalMessage returns the API server's message if it refused a write permanently: by an
// admission policy, a webhook or RBAC.
func refusalMessage(err error) (string, bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
		return "", false
	}
	return status.Status().Message, true
}
