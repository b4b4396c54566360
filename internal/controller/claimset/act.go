package claimset

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/claimset"
	"hotspare.io/hotspare/internal/patch"
)

// applySteps executes the steps of the plan, in order, until one fails. done is set if the set may no longer exist.
func (r *Reconciler) applySteps(ctx context.Context, s *observation, p claimset.Plan) (done bool, err error) {
	for _, st := range p.Steps {
		if err := r.applyStep(ctx, s, st); err != nil {
			return false, fmt.Errorf("step %q: %w", st, err)
		}
		ctrl.LoggerFrom(ctx).V(1).Info("done", "step", st.String())
		done = done || st.Verb == claimset.RemoveFinalizer || st.Verb == claimset.DeleteSet || st.Verb == claimset.ReleaseSet
	}
	return done, nil
}

func (r *Reconciler) applyStep(ctx context.Context, s *observation, st claimset.Step) error {
	switch st.Verb {
	case claimset.AddFinalizer:
		before := s.set.DeepCopy()
		controllerutil.AddFinalizer(s.set, v1alpha1.FinalizerClaimSet)
		_, err := patch.Object(ctx, r.Client, before, s.set)
		return err
	case claimset.RemoveFinalizer:
		before := s.set.DeepCopy()
		controllerutil.RemoveFinalizer(s.set, v1alpha1.FinalizerClaimSet)
		_, err := patch.Object(ctx, r.Client, before, s.set)
		return client.IgnoreNotFound(err)
	case claimset.CreateClaim:
		return r.createClaim(ctx, s.set, st)
	case claimset.DeleteClaim:
		return r.deleteClaim(ctx, s.set, s.claims[st.Claim], st)
	case claimset.ReleaseSet:
		return r.releaseSet(ctx, s.set, st)
	default:
		return client.IgnoreNotFound(r.deleteUnchanged(ctx, s.set))
	}
}

// deleteUnchanged deletes a set that has not changed since it was read.
func (r *Reconciler) deleteUnchanged(ctx context.Context, set *v1alpha1.ClaimSet) error {
	return r.Client.Delete(ctx, set, client.Preconditions{UID: &set.UID, ResourceVersion: &set.ResourceVersion})
}

// releaseSet deletes a set whose heartbeat is missing, unless it was renewed meanwhile. Its finalizer keeps it until its
// claims are released.
func (r *Reconciler) releaseSet(ctx context.Context, set *v1alpha1.ClaimSet, st claimset.Step) error {
	if err := r.deleteUnchanged(ctx, set); err != nil {
		return client.IgnoreNotFound(err)
	}
	r.Events.Eventf(set, nil, corev1.EventTypeWarning, v1alpha1.ClaimSetHeartbeatMissing, "Delete",
		"released: %s, annotation %s", st.Reason, hivev1.AnnotationHeartbeat)
	return nil
}

// createClaim creates a claim of the set, in the name of the creator of the set: ClaimPolicies count it as the
// creator's. A claim of that name that exists already is observed by the next pass.
func (r *Reconciler) createClaim(ctx context.Context, set *v1alpha1.ClaimSet, st claimset.Step) error {
	c := &hivev1.ClusterClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, Name: st.Claim, OwnerReferences: []metav1.OwnerReference{claimset.NewOwnerReference(set)},
		},
		Spec: hivev1.ClusterClaimSpec{ClusterPoolName: st.Pool, Subjects: set.Spec.Subjects, Lifetime: set.Spec.Lifetime},
	}
	for _, name := range []string{hivev1.AnnotationCreator, hivev1.AnnotationCreatorGroups} {
		if value := set.Annotations[name]; value != "" {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, name, value)
		}
	}
	err := r.Client.Create(ctx, c)
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil
	case err != nil:
		return err
	}
	r.recordEvent(set, "ClaimCreated", "Claim", "created ClusterClaim %s on ClusterPool %s", c.Name, st.Pool)
	return nil
}

// deleteClaim deletes a claim of the set. One that must not have a cluster is deleted only if it has not changed since
// it was read: it may have got one.
func (r *Reconciler) deleteClaim(ctx context.Context, set *v1alpha1.ClaimSet, c *hivev1.ClusterClaim, st claimset.Step) error {
	only := client.Preconditions{UID: &c.UID}
	if st.Waiting {
		only.ResourceVersion = &c.ResourceVersion
	}
	if err := r.Client.Delete(ctx, c, only); client.IgnoreNotFound(err) != nil {
		return err
	}
	r.recordEvent(set, "ClaimReleased", "Release", "deleted ClusterClaim %s: %s", c.Name, st.Reason)
	return nil
}

// refusalOf returns the API server's message if it has permanently refused a write; "" otherwise.
func refusalOf(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
		return ""
	}
	return status.Status().Message
}
