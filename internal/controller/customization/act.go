package customization

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/inventory/lease"
	"hotspare.io/hotspare/internal/kstatus"
	"hotspare.io/hotspare/internal/patch"
)

// applyPlan executes the steps in order. After a step that failed it only removes finalizers from
// clusters, which does not depend on the other steps.
func (r *Reconciler) applyPlan(ctx context.Context, s *observation, p lease.Plan) error {
	var errs []error
	for _, st := range p.Steps {
		if len(errs) > 0 && st.Verb != lease.RemoveClusterFinalizer {
			continue
		}
		if err := r.applyStep(ctx, s, st); err != nil {
			errs = append(errs, fmt.Errorf("step %q: %w", st, err))
			continue
		}
		ctrl.LoggerFrom(ctx).V(1).Info("done", "step", st.String())
	}
	return errors.Join(errs...)
}

func (r *Reconciler) applyStep(ctx context.Context, s *observation, st lease.Step) error {
	switch st.Verb {
	case lease.AddFinalizer, lease.RemoveFinalizer:
		return r.setFinalizer(ctx, s, st.Verb == lease.AddFinalizer)
	case lease.AcquireLease:
		return r.acquireLease(ctx, s, st.Cluster)
	case lease.ReleaseLease:
		return r.releaseLease(ctx, s, st.Message)
	case lease.ReportFree:
		return r.patchStatus(ctx, s, lease.Release)
	case lease.RemoveClusterFinalizer:
		return r.removeClusterFinalizer(ctx, s, st.Cluster)
	case lease.ReportStatus:
		return r.patchStatus(ctx, s, func(*hivev1.ClusterDeploymentCustomization, time.Time) {})
	default:
		return r.reportHolder(ctx, s, st.ApplySucceeded)
	}
}

// setFinalizer adds hotspare's finalizer to the customization, or removes it.
func (r *Reconciler) setFinalizer(ctx context.Context, s *observation, on bool) error {
	before := s.customization.DeepCopy()
	if on {
		controllerutil.AddFinalizer(s.customization, hivev1.FinalizerLease)
	} else {
		controllerutil.RemoveFinalizer(s.customization, hivev1.FinalizerLease)
	}
	_, err := patch.Object(ctx, r.Client, before, s.customization)
	return client.IgnoreNotFound(err)
}

// acquireLease acquires the lease for a cluster that names the customization, if the API server
// confirms that the cluster exists: otherwise the lease would have to be released again.
func (r *Reconciler) acquireLease(ctx context.Context, s *observation, c lease.Cluster) error {
	var cd hivev1.ClusterDeployment
	if err := r.Live.Get(ctx, c.Key, &cd); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("looking for cluster %s: %w", c.Key, err)
	}
	if now := readCluster(&cd); now.UID != c.UID || now.IsDestroyed() || now.Customization != s.Key || now.Unreadable {
		return fault.New(fault.Conflict, fmt.Errorf("cluster %s was deleted or has changed since it was read", c.Key))
	}
	err := r.patchStatus(ctx, s, func(cdc *hivev1.ClusterDeploymentCustomization, now time.Time) {
		lease.Acquire(cdc, c.Key, c.Pool, now, cdc.Status.LastAppliedConfiguration)
	})
	if err == nil {
		r.Events.Eventf(s.customization, &cd, corev1.EventTypeNormal, "Leased", "Lease", "to cluster %s, which was created with it", c.Key)
	}
	return err
}

// releaseLease releases the lease, if the API server confirms that it has ended: it may belong to a
// cluster that the cache does not show yet, or to a new cluster with an old name. The lease is read
// before all that: a process that acquires it in the meantime wins.
func (r *Reconciler) releaseLease(ctx context.Context, s *observation, message string) error {
	if s.Leased {
		now, err := r.observeLive(ctx, s.Snapshot)
		if err != nil {
			return err
		}
		var reason lease.Reason
		switch reason, message = lease.EndReason(now); {
		case reason == "" && (now.HolderRecorded || now.PoolUnreadable):
			return fault.NewWait(recheck, "pool %s is about to create cluster %s, or may be", s.Pool, s.Holder)
		case reason == "":
			return fault.New(fault.Conflict, fmt.Errorf("the cache of cluster %s is stale", s.Holder))
		}
	}
	err := r.patchStatus(ctx, s, lease.Release)
	if err == nil {
		r.Events.Eventf(s.customization, nil, corev1.EventTypeNormal, "Released", "Release", "no cluster uses it any longer: %s", message)
	}
	return err
}

// reportHolder reports that a cluster uses the customization, and the state of its install.
func (r *Reconciler) reportHolder(ctx context.Context, s *observation, applied condition.Value) error {
	return r.patchStatus(ctx, s, func(c *hivev1.ClusterDeploymentCustomization, now time.Time) {
		if s.Available != metav1.ConditionFalse {
			lease.SetInUse(c, now)
		}
		if applied.Reason != "" {
			lease.SetApplySucceeded(c, applied.Reason, applied.Message, now)
		}
	})
}

func (r *Reconciler) patchStatus(ctx context.Context, s *observation, edit func(*hivev1.ClusterDeploymentCustomization, time.Time)) error {
	before := s.customization.DeepCopy()
	edit(s.customization, r.Clock.Now())
	kstatus.ReportCustomization(s.customization, r.Clock.Now())
	_, err := patch.Status(ctx, r.Client, before, s.customization)
	return err
}

// removeClusterFinalizer removes hotspare's finalizer from a destroyed cluster that has no lease
// any more.
func (r *Reconciler) removeClusterFinalizer(ctx context.Context, s *observation, c lease.Cluster) error {
	var cdc hivev1.ClusterDeploymentCustomization
	if _, err := getCustomization(ctx, r.Live, s.Key, &cdc); err != nil {
		return err
	}
	if holder, leased := lease.Holder(&cdc); leased && holder == c.Key && cdc.Unreadable == "" {
		return fault.New(fault.Conflict, fmt.Errorf("cluster %s still has the lease of customization %s", c.Key, s.Key))
	}
	cd := s.clusters[c.Key].DeepCopy()
	before := cd.DeepCopy()
	controllerutil.RemoveFinalizer(cd, hivev1.FinalizerLease)
	_, err := patch.Object(ctx, r.Client, before, cd)
	return client.IgnoreNotFound(err)
}
