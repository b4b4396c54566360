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

// report writes the report if it has news, or if the last is old enough, and returns
// when there will be another. A new process says at once that it is there.
func (a *Agent) report(ctx context.Context, to *v1alpha1.DataPlaneAgent, r v1alpha1.DataPlaneReport) (reconcile.Result, error) {
	every := interval(to.Spec)
	now := a.Clock.Now()
	r.DataPlaneUID, r.ObservedGeneration, r.AgentVersion = to.Spec.DataPlaneUID, to.Generation, a.Version
	if wait := due(to.Status.Report, &r, every, now); wait > 0 && a.heard {
		return a.again(wait), nil
	}
	r.At = metav1.NewTime(now)
	before := to.DeepCopy()
	to.Status.Report, to.Status.ObservedGeneration = &r, to.Generation
	_, err := patch.Status(ctx, a.Hub, before, to)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return reconcile.Result{RequeueAfter: soon}, nil // it has changed, or gone: that comes with the watch
	case err != nil:
		if a.unsent.IsZero() {
			a.unsent = now
		}
		return reconcile.Result{}, fmt.Errorf("reporting to DataPlaneAgent %s: %w", a.Key, scrub(err))
	}
	a.heard = true
	if !a.unsent.IsZero() {
		logr.FromContextOrDiscard(ctx).Info("reports arrive again", "missedSince", a.unsent.UTC().Format(time.RFC3339))
		a.unsent = time.Time{}
	}
	return a.again(every), nil
}

// again is the next heartbeat, or the next try of what was refused if that is sooner.
func (a *Agent) again(wait time.Duration) reconcile.Result {
	if retry := a.backoff(); retry > 0 {
		wait = min(wait, retry)
	}
	return reconcile.Result{RequeueAfter: wait}
}

func interval(s v1alpha1.DataPlaneAgentSpec) time.Duration {
	if d, err := s.ReportEvery.Parse(); err == nil && d > 0 {
		return d
	}
	return reportEvery
}

// due is how long the report can wait; 0 if it has news, or the last is old enough. A
// last one from the future is of a clock that was wrong.
func due(last, r *v1alpha1.DataPlaneReport, every time.Duration, now time.Time) time.Duration {
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
