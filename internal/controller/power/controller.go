// Package power keeps the machines of clusters in the state that spec.powerState asks for.
//
// A pass over one ClusterDeployment is observe, power.Decide, act, report. It ends with at most
// one write: the status, or, if a time limit has passed or a client connects, the specification or the
// annotation that records why. Passes are triggered by changes of the cluster's specification, labels and
// annotations and of the PoolPolicy of its pool, by platforms that report changes of their machines, and by the
// timer that the plan sets: nothing notifies the hub of changes in spokes.
package power

import (
	"context"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/metrics"
	"hotspare.io/hotspare/internal/power"
	"hotspare.io/hotspare/internal/remote"
)

// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeployments,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeployments/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get
// +kubebuilder:rbac:groups=hotspare.io,resources=poolpolicies,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Remote accesses a cluster's own API. remote.Connector implements it.
type Remote interface {
	// ObserveSpoke asks the cluster whose admin kubeconfig is in the Secret. A cluster that does
	// not answer is not an error.
	ObserveSpoke(ctx context.Context, secret types.NamespacedName, ask remote.ObserveOptions) (power.Spoke, error)
	// ListCertificateRequests lists the certificate requests for the cluster's nodes. It returns
	// nil if the cluster does not answer.
	ListCertificateRequests(ctx context.Context, secret types.NamespacedName, ask remote.ListRequestsOptions) (*power.CertificateRequests, error)
	// ApproveCertificateRequest approves a request, if it has not changed since it was read.
	// Trouble says in a few stable words why the cluster refused; it is "" if the request has
	// changed.
	ApproveCertificateRequest(ctx context.Context, secret types.NamespacedName, request *certificatesv1.CertificateSigningRequest) (approved bool, trouble string, err error)
	// CreateResumeProbe creates the resume probe, to which the cluster's controller manager must
	// react. Refused says in a few stable words why the cluster does not accept a probe at all.
	CreateResumeProbe(ctx context.Context, secret types.NamespacedName, mark string) (sent bool, refused string, err error)
	// DeleteResumeProbe deletes the resume probe, if it can.
	DeleteResumeProbe(ctx context.Context, secret types.NamespacedName) error
	// DeleteSpotMachine deletes the Machine of a spot machine that no longer exists. Trouble is
	// as in ApproveCertificateRequest.
	DeleteSpotMachine(ctx context.Context, secret types.NamespacedName, m power.SpotMachine) (deleted bool, trouble string, err error)
	// ForgetClient drops the client of a deleted cluster.
	ForgetClient(secret types.NamespacedName)
}

// Reconciler reconciles the power of ClusterDeployments.
type Reconciler struct {
	Client client.Client
	// Actuators has an entry for each platform whose machines can be started and stopped.
	Actuators cloud.Registry
	Remote    Remote
	Clock     clock.PassiveClock
	Events    events.EventRecorder
	// Metrics measures how long clusters take; nil disables it.
	Metrics *metrics.Metrics
	// Workers is the number of clusters reconciled concurrently; 0 means 20. Each worker may wait
	// for a platform or a spoke.
	Workers int

	// claimReports spreads the writes that only report claims.
	claimReports claimReportQueue
}

// Reconcile does one pass over the cluster.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var cd hivev1.ClusterDeployment
	if err := r.Client.Get(ctx, req.NamespacedName, &cd); err != nil {
		if apierrors.IsNotFound(err) {
			r.claimReports.removeCluster(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if hivev1.IsTrue(cd.Annotations, hivev1.AnnotationReconcilePause) || cd.Unreadable != "" {
		return ctrl.Result{}, nil
	}
	seen, err := r.observeCluster(ctx, &cd)
	if err != nil {
		return fault.Requeue(0, fmt.Errorf("observing %s: %w", req.NamespacedName, err))
	}
	d := power.Decide(seen, r.Clock.Now())
	d = r.completeResume(ctx, &cd, seen, d)
	if d, err = r.applyResumeProbe(ctx, &cd, seen, d); err != nil {
		return fault.Requeue(0, fmt.Errorf("creating the resume probe of %s: %w", req.NamespacedName, err))
	}
	ctrl.LoggerFrom(ctx).V(1).Info("decided", "decision", d.String())
	d = r.applyAddress(ctx, &cd, seen, d)
	switch {
	case d.Action.SetsPowerState():
		return fault.Requeue(0, r.requestPowerState(ctx, &cd, seen, d))
	case d.Inactivity != seen.Inactivity:
		return fault.Requeue(0, r.patchInactivityRecord(ctx, &cd, d.Inactivity)) // the watch triggers the next pass
	}
	d = r.applyPower(ctx, &cd, seen, d)
	if d, err = r.approveRequests(ctx, &cd, d); err != nil {
		return fault.Requeue(0, err)
	}
	if d, err = r.replaceSpotMachines(ctx, &cd, d); err != nil {
		return fault.Requeue(0, err)
	}
	next, err := r.patchPowerStatus(ctx, &cd, d)
	return fault.Requeue(next, err)
}

// Backoff after errors of the hub itself; errors of a platform or a spoke are part of the
// snapshot. The maximum is short enough that users do not notice the delay.
const (
	firstBackoff   = 50 * time.Millisecond
	longestBackoff = 5 * time.Minute
)

// SetupWithManager starts the controller with mgr.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	workers := r.Workers
	if workers == 0 {
		workers = 20
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named("power").
		For(&hivev1.ClusterDeployment{}, builder.WithPredicates(userChangePredicate())).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstBackoff, longestBackoff),
		})
	r.watchPolicies(b)
	if err := r.watchPlatforms(ctx, mgr, b); err != nil {
		return err
	}
	return b.Complete(r.Metrics.WrapReconciler("power", r))
}
