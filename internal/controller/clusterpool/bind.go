package clusterpool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/kstatus"
	"hotspare.io/hotspare/internal/patch"
	"hotspare.io/hotspare/internal/pool"
	"hotspare.io/hotspare/internal/pool/facts"
)

// bindCluster binds a cluster to a claim in two writes: first to the cluster, a race that only one
// claim can win, then to the claim.
func (t *execution) bindCluster(ctx context.Context, st pool.Step) error {
	cd, claim := t.seen.clusters[st.Cluster].DeepCopy(), t.seen.claims[st.Claim].DeepCopy()
	if cd.Spec.ClusterPoolRef.ClaimName == "" {
		now := metav1.NewTime(t.Clock.Now())
		cd.Spec.ClusterPoolRef.ClaimName = claim.Name
		cd.Spec.ClusterPoolRef.ClaimedTimestamp = &now
		cd.Spec.PowerState = hivev1.PowerRunning
		if t.pool.Annotations[hivev1.AnnotationSleepLadder] != "" {
			delete(cd.Annotations, hivev1.AnnotationSleepDepth) // a rung of spares, and no wish of who claims
		}
		syncTemplate(t.pool, cd)
		if err := t.patchCluster(ctx, cd); err != nil {
			return fmt.Errorf("binding cluster %s to claim %s: %w", cd.Name, claim.Name, err)
		}
	} else if err := t.renewReservation(ctx, cd); err != nil {
		return err
	}
	before := t.seen.claims[st.Claim]
	claim.Spec.Namespace = cd.Name
	controllerutil.AddFinalizer(claim, hivev1.FinalizerClaim)
	wrote, err := patch.Object(ctx, t.Client, before, claim)
	if apierrors.IsNotFound(err) {
		t.seen.cache.unaware.store(cd.Name, cd.UID)
	}
	if err != nil {
		err = errors.Join(err, t.reportRefusal(ctx, before, cd, err))
		return fmt.Errorf("writing into claim %s that it has cluster %s: %w", claim.Name, cd.Name, err)
	}
	if wrote {
		t.claims.RecordWrite(claim, t.Clock.Now())
		t.recordEvent(claim, cd, "Assigned", "Bind", "has cluster %s", cd.Name)
		t.Metrics.RecordAssignment(claim, t.Clock.Now())
	}
	return nil
}

// longReservation is the age from which a reservation is renewed: its claim could not get the cluster meanwhile.
const longReservation = time.Minute

// renewReservation confirms that a cluster that is reserved for a claim still exists. The times of a claim count from when it
// gets the cluster: if the hub has refused that for long, they start anew.
func (t *execution) renewReservation(ctx context.Context, cd *hivev1.ClusterDeployment) error {
	if err := t.confirmAssigned(ctx, cd); err != nil {
		return err
	}
	now, at := t.Clock.Now(), cd.Spec.ClusterPoolRef.ClaimedTimestamp
	if at == nil || now.Sub(at.Time) < longReservation {
		return nil
	}
	cd.Spec.ClusterPoolRef.ClaimedTimestamp = &metav1.Time{Time: now}
	if err := t.patchCluster(ctx, cd); err != nil {
		return fmt.Errorf("renewing the reservation of cluster %s: %w", cd.Name, err)
	}
	return nil
}

// reportRefusal records in the claim's condition Pending that the hub refused to let hotspare
// assign cluster cd, if that is what the error cause says. The hub's administrator must fix
// admission policies and missing rights; without this message, the claim's owner would read that
// the pool is empty. The claim controller keeps the condition while the cluster is reserved for the
// claim.
func (t *execution) reportRefusal(ctx context.Context, claim *hivev1.ClusterClaim, cd *hivev1.ClusterDeployment, cause error) error {
	why, refused := refusalMessage(cause)
	if !refused {
		return nil
	}
	before := claim.DeepCopy()
	condition.Set(&claim.Status.Conditions, hivev1.ClaimPending, corev1.ConditionTrue, hivev1.ReasonAssignmentRefused,
		fmt.Sprintf("Cluster %s is reserved for this claim, but the hub does not let hotspare assign it: %s. "+
			"The hub's administrator can run hotspare as a user or ServiceAccount called hotspare-manager that has ClusterRole hotspare-manager", cd.Name, why),
		t.Clock.Now())
	kstatus.ReportClusterClaim(claim, kstatus.Progress{}, t.Clock.Now())
	if _, err := patch.Status(ctx, t.Client, before, claim); err != nil {
		return fmt.Errorf("reporting the refusal to claim %s: %w", claim.Name, err)
	}
	return nil
}

// findRefusal returns the message of the first of the joined errors for which refusalMessage has one; "" if none has.
func findRefusal(err error) string {
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		message, _ := refusalMessage(err)
		return message
	}
	for _, e := range joined.Unwrap() {
		if message := findRefusal(e); message != "" {
			return message
		}
	}
	return ""
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

// reservedAnnotationPrefix is the prefix of the annotations that record how a cluster was made, or
// control how hotspare treats it: edits of the pool do not change them.
const reservedAnnotationPrefix = "hive.openshift.io/"

// syncTemplate updates an unclaimed cluster to the pool's current spec, as far as an existing
// cluster can still follow, so that edits that make no cluster stale take effect (Hive B22). It is
// for a cluster that is written anyway, and so costs no request. It leaves out values that the API
// server would refuse: they must not keep the cluster from its claim.
func syncTemplate(p *hivev1.ClusterPool, cd *hivev1.ClusterDeployment) {
	spec := p.Spec.DeepCopy()
	for k, v := range spec.Labels {
		if len(validation.IsQualifiedName(k)) == 0 && len(validation.IsValidLabelValue(v)) == 0 {
			metav1.SetMetaDataLabel(&cd.ObjectMeta, k, v)
		}
	}
	cd.Labels = clusterBuilder{pool: p}.withPoolLabels(cd.Labels)
	for k, v := range spec.Annotations {
		if !strings.HasPrefix(k, reservedAnnotationPrefix) && len(validation.IsQualifiedName(strings.ToLower(k))) == 0 {
			metav1.SetMetaDataAnnotation(&cd.ObjectMeta, k, v)
		}
	}
	setValidDuration(&cd.Spec.HibernateAfter, spec.HibernateAfter)
	setValidDuration(&cd.Spec.PowerstateTransitionToRunningTimeout, facts.ResumeTimeout(&hivev1.ClusterPool{Spec: *spec}))
	setValidDuration(&cd.Spec.PowerstateTransitionToHibernatingTimeout, spec.PowerstateTransitionToHibernatingTimeout)
}

// setValidDuration sets *to to from if from can be parsed.
func setValidDuration(to **hivev1.Duration, from *hivev1.Duration) {
	if from != nil {
		if _, err := from.Parse(); err != nil {
			return
		}
	}
	*to = from
}
