package clusterclaim

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/claim"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/patch"
)

// applyPlan executes the steps of the plan, and then writes the claim's status, unless a step ends
// the claim.
func (r *Reconciler) applyPlan(ctx context.Context, s *observation, p claim.Plan) error {
	for _, st := range p.Steps {
		if err := r.applyStep(ctx, s, st); err != nil {
			return fmt.Errorf("step %q: %w", st, err)
		}
		ctrl.LoggerFrom(ctx).V(1).Info("done", "step", st.String())
		if st.EndsClaim() {
			return nil
		}
	}
	return r.patchStatus(ctx, s, p)
}

func (r *Reconciler) applyStep(ctx context.Context, s *observation, st claim.Step) error {
	switch st.Verb {
	case claim.RemoveFinalizer:
		return r.releaseClaim(ctx, s.claim)
	case claim.DeleteClaim:
		return r.deleteClaim(ctx, s.claim, st.Reason)
	default:
		return r.deleteCluster(ctx, s.cluster)
	}
}

func (r *Reconciler) deleteCluster(ctx context.Context, cd *hivev1.ClusterDeployment) error {
	if err := r.Client.Delete(ctx, cd, client.Preconditions{UID: &cd.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting cluster %s: %w", cd.Name, err)
	}
	return nil
}

// releaseClaim removes the finalizer of a deleted claim, if the API server confirms that its
// cluster is deleted or not its own: the cache of clusters may be behind that of claims. If the
// finalizer were removed too early, a new claim of the same name could get a cluster that has been
// used.
func (r *Reconciler) releaseClaim(ctx context.Context, c *hivev1.ClusterClaim) error {
	before := c.DeepCopy()
	if !controllerutil.RemoveFinalizer(c, hivev1.FinalizerClaim) {
		return nil
	}
	if err := r.confirmClusterGone(ctx, c); err != nil {
		return err
	}
	_, err := patch.Object(ctx, r.Client, before, c)
	return err
}

// confirmClusterGone returns a Conflict while the claim's cluster still exists and is its own.
func (r *Reconciler) confirmClusterGone(ctx context.Context, c *hivev1.ClusterClaim) error {
	name := c.Spec.Namespace
	if name == "" { // Hive adds its finalizer to waiting claims too
		return nil
	}
	var cd hivev1.ClusterDeployment
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: name, Name: name}, &cd)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("looking for cluster %s of claim %s: %w", name, c.Name, err)
	}
	if ref := cd.Spec.ClusterPoolRef; err == nil && ref != nil && ref.ClaimName == c.Name {
		return fault.New(fault.Conflict, fmt.Errorf("cluster %s of claim %s still exists", name, c.Name))
	}
	return nil
}

// deleteClaim deletes a claim that has not changed since it was read: its lifetime may have been
// extended, or its heartbeat renewed.
func (r *Reconciler) deleteClaim(ctx context.Context, c *hivev1.ClusterClaim, why claim.Reason) error {
	err := r.Client.Delete(ctx, c, client.Preconditions{UID: &c.UID, ResourceVersion: &c.ResourceVersion})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("deleting claim %s: %w", c.Name, err)
	case why == claim.HeartbeatMissing:
		r.Events.Eventf(c, nil, corev1.EventTypeWarning, "HeartbeatMissing", "Delete",
			"released: its heartbeat, annotation %s, was missing for %s", hivev1.AnnotationHeartbeat, c.Annotations[hivev1.AnnotationHeartbeatTimeout])
	default:
		r.Events.Eventf(c, nil, corev1.EventTypeNormal, "Expired", "Delete", "its lifetime has elapsed")
	}
	return nil
}
