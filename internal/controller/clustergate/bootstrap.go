package clustergate

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/bootstrap"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/gate/expression"
	"hotspare.io/hotspare/internal/kstatus"
	"hotspare.io/hotspare/internal/metrics"
	"hotspare.io/hotspare/internal/patch"
)

// BootstrapSpecReconciler reports whether the specs of ClusterBootstraps are valid. It does nothing else.
type BootstrapSpecReconciler struct {
	Client  client.Client
	Clock   clock.PassiveClock
	Events  events.EventRecorder
	Metrics *metrics.Metrics
}

// Reconcile does one pass over the bootstrap.
func (r *BootstrapSpecReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var b v1alpha1.ClusterBootstrap
	if err := r.Client.Get(ctx, req.NamespacedName, &b); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if b.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	before := b.DeepCopy()
	reason, message := validateSpec(&b)
	status := metav1.ConditionTrue
	if reason != v1alpha1.ReasonUnderstood {
		status = metav1.ConditionFalse
	}
	meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{
		Type: v1alpha1.BootstrapValid, Status: status, Reason: reason, Message: message, ObservedGeneration: b.Generation,
		LastTransitionTime: metav1.NewTime(r.Clock.Now().Truncate(time.Second)),
	})
	b.Status.ObservedGeneration = b.Generation
	kstatus.ReportClusterBootstrap(&b, r.Clock.Now())
	wrote, err := patch.Status(ctx, r.Client, before, &b)
	if err != nil {
		return fault.Requeue(0, fmt.Errorf("reporting on %s: %w", req.NamespacedName, err))
	}
	if was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.BootstrapValid); wrote && status == metav1.ConditionFalse && (was == nil || was.Message != message) {
		r.Events.Eventf(&b, nil, corev1.EventTypeWarning, reason, "Validate", "%s", message)
	}
	return ctrl.Result{}, nil
}

// validateSpec returns the reason and message of condition Valid: of the first field that cannot be used, or
// ReasonUnderstood.
func validateSpec(b *v1alpha1.ClusterBootstrap) (reason, message string) {
	if b.Unreadable != "" {
		return hivev1.ReasonUnreadable, "The stored object cannot be read: " + b.Unreadable
	}
	for i, g := range b.Spec.Gates {
		if g.Object == nil {
			continue
		}
		if _, err := expression.CompileCached(g.Object.Expression); err != nil {
			return v1alpha1.ReasonInvalidExpression, fmt.Sprintf("spec.gates[%d].object.expression of gate %s is not valid: %s", i, g.Name, err)
		}
	}
	if err := bootstrap.CheckSteps(b.Spec.Steps); err != nil {
		return v1alpha1.ReasonInvalidManifest, err.Error()
	}
	type duration struct {
		field string
		value hivev1.Duration
	}
	durations := []duration{{"gateTimeout", b.Spec.GateTimeout}, {"checkInterval", b.Spec.CheckInterval}}
	for i, s := range b.Spec.Steps {
		durations = append(durations, duration{fmt.Sprintf("steps[%d].timeout", i), s.Timeout})
	}
	for _, d := range durations {
		if _, err := d.value.Parse(); err != nil {
			return v1alpha1.ReasonInvalidDuration, fmt.Sprintf("spec.%s is not valid: %s", d.field, err)
		}
	}
	return v1alpha1.ReasonUnderstood, "The specification is valid"
}

// SetupWithManager starts the controller with mgr.
func (r *BootstrapSpecReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("clusterbootstrap").
		For(&v1alpha1.ClusterBootstrap{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(r.Metrics.WrapReconciler("clusterbootstrap", r))
}
