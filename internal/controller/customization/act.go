package customization

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/inventory/lease"
	"hotspare.io/hotspare/internal/kstatus"
	"hotspare.io/hotspare/internal/patch"
)

// applyPlan executes the steps in order. After a step that failed it only removes finalizers from
// clusters, which does not depend on the other steps.
func (r *Reconciler) applyPlan(ctx context.Context, key types.NamespacedName, s *observation, plan []step) error {
	var errs []error
	for _, st := range plan {
		if len(errs) > 0 && st.verb != removeClusterFinalizer {
			continue
		}
		if err := r.applyStep(ctx, key, s, st); err != nil {
			errs = append(errs, fmt.Errorf("step %q: %w", st, err))
			continue
		}
		ctrl.LoggerFrom(ctx).V(1).Info("done", "step", st.String())
	}
	return errors.Join(errs...)
}

func (r *Reconciler) applyStep(ctx context.Context, key types.NamespacedName, s *observation, st step) error {
	switch st.verb {
	case addFinalizer, removeFinalizer:
		return r.setFinalizer(ctx, s, st.verb == addFinalizer)
	case acquireLease:
		return r.acquireLease(ctx, key, s, st.cluster)
	case releaseLease:
		return r.releaseLease(ctx, key, s, st.reason)
	case reportFree:
		return r.patchStatus(ctx, s, lease.Release)
	case removeClusterFinalizer:
		return r.removeClusterFinalizer(ctx, key, s, st.cluster)
	case reportStatus:
		return r.patchStatus(ctx, s, func(*hivev1.ClusterDeploymentCustomization, time.Time) {})
	default:
		return r.reportHolder(ctx, s, st.reason)
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
func (r *Reconciler) acquireLease(ctx context.Context, key types.NamespacedName, s *observation, c cluster) error {
	var cd hivev1.ClusterDeployment
	if err := r.Live.Get(ctx, c.key, &cd); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("looking for cluster %s: %w", c.key, err)
	}
	if now := readCluster(&cd); now.uid != c.uid || now.isDestroyed() || now.customization != key || now.unreadable {
		return fault.New(fault.Conflict, fmt.Errorf("cluster %s is gone, or has changed since it was seen", c.key))
	}
	err := r.patchStatus(ctx, s, func(cdc *hivev1.ClusterDeploymentCustomization, now time.Time) {
		lease.Acquire(cdc, c.key, c.pool, now, cdc.Status.LastAppliedConfiguration)
	})
	if err == nil {
		r.Events.Eventf(s.customization, &cd, corev1.EventTypeNormal, "Leased", "Lease", "to cluster %s, which was made with it", c.key)
	}
	return err
}

// releaseLease releases the lease, if the API server confirms that it has ended: it may belong to a
// cluster that the cache does not show yet, or to a new cluster with an old name. The lease is read
// before all that: a process that acquires it in the meantime wins.
func (r *Reconciler) releaseLease(ctx context.Context, key types.NamespacedName, s *observation, why string) error {
	if s.leased {
		now, err := r.observeLive(ctx, s.snapshot)
		if err != nil {
			return err
		}
		switch why = leaseEndReason(key, now); {
		case why == "" && (now.holderRecorded || now.poolUnreadable):
			return fault.NewWait(recheck, "pool %s means to make cluster %s, or may", s.pool, s.holder)
		case why == "":
			return fault.New(fault.Conflict, fmt.Errorf("cluster %s is not seen as it is", s.holder))
		}
	}
	err := r.patchStatus(ctx, s, lease.Release)
	if err == nil {
		r.Events.Eventf(s.customization, nil, corev1.EventTypeNormal, "Released", "Release", "nobody uses it any longer: %s", why)
	}
	return err
}

// reportHolder reports that a cluster uses the customization, and the state of its install.
func (r *Reconciler) reportHolder(ctx context.Context, s *observation, reason string) error {
	return r.patchStatus(ctx, s, func(c *hivev1.ClusterDeploymentCustomization, now time.Time) {
		if s.available != availableFalse {
			lease.SetInUse(c, now)
		}
		if message, ok := applySucceededMessages[reason]; ok && reason != s.applyReason {
			lease.SetApplySucceeded(c, reason, message, now)
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
func (r *Reconciler) removeClusterFinalizer(ctx context.Context, key types.NamespacedName, s *observation, c cluster) error {
	var cdc hivev1.ClusterDeploymentCustomization
	if _, err := getCustomization(ctx, r.Live, key, &cdc); err != nil {
		return err
	}
	if holder, leased := lease.Holder(&cdc); leased && holder == c.key && cdc.Unreadable == "" {
		return fault.New(fault.Conflict, fmt.Errorf("cluster %s still has the lease of customization %s", c.key, key))
	}
	cd := s.clusters[c.key].DeepCopy()
	before := cd.DeepCopy()
	controllerutil.RemoveFinalizer(cd, hivev1.FinalizerLease)
	_, err := patch.Object(ctx, r.Client, before, cd)
	return client.IgnoreNotFound(err)
}
