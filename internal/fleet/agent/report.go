package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/patch"
)

// patchReport writes the report if it has changed, or if the last one is old enough, and returns
// when the next one is due. A new process reports immediately.
func (a *Agent) patchReport(ctx context.Context, to *v1alpha1.DataPlaneAgent, r v1alpha1.DataPlaneReport) (reconcile.Result, error) {
	every := reportInterval(to.Spec)
	now := a.Clock.Now()
	r.DataPlaneUID, r.ObservedGeneration, r.AgentVersion = to.Spec.DataPlaneUID, to.Generation, a.Version
	if wait := timeUntilDue(to.Status.Report, &r, every, now); wait > 0 && a.hasReported {
		return a.requeueAfter(wait), nil
	}
	r.At = metav1.NewTime(now)
	before := to.DeepCopy()
	to.Status.Report, to.Status.ObservedGeneration = &r, to.Generation
	_, err := patch.Status(ctx, a.Hub, before, to)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return reconcile.Result{RequeueAfter: conflictRetry}, nil // it was changed or deleted: the watch starts the next pass
	case err != nil:
		if a.unsentSince.IsZero() {
			a.unsentSince = now
		}
		return reconcile.Result{}, fmt.Errorf("reporting to DataPlaneAgent %s: %w", a.Key, redactError(err))
	}
	a.hasReported = true
	if !a.unsentSince.IsZero() {
		logr.FromContextOrDiscard(ctx).Info("reporting to the hub again", "missedSince", a.unsentSince.UTC().Format(time.RFC3339))
		a.unsentSince = time.Time{}
	}
	return a.requeueAfter(every), nil
}

// requeueAfter returns the delay until the next heartbeat, or until the next retry of a refused
// step if that is sooner.
func (a *Agent) requeueAfter(wait time.Duration) reconcile.Result {
	if retry := a.retryBackoff(); retry > 0 {
		wait = min(wait, retry)
	}
	return reconcile.Result{RequeueAfter: wait}
}

func reportInterval(s v1alpha1.DataPlaneAgentSpec) time.Duration {
	if d, err := s.ReportEvery.Parse(); err == nil && d > 0 {
		return d
	}
	return reportEvery
}

// timeUntilDue returns how long the report can wait; 0 if it has changed, or if the last one is old
// enough. A last report from the future was written with a wrong clock.
func timeUntilDue(last, r *v1alpha1.DataPlaneReport, every time.Duration, now time.Time) time.Duration {
	if last == nil {
		return 0
	}
	r.At = last.At
	if !equality.Semantic.DeepEqual(last, r) {
		return 0
	}
	age := now.Sub(last.At.Time)
	if age < 0 {
		return 0
	}
	return max(every-age, 0)
}
