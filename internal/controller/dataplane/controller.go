// Package dataplane manages the lifecycle of DataPlanes: it provides a cluster, nodes and an agent,
// lists for the agent which instances to run, validates the agent's reports, and finally releases
// everything.
//
// A pass over one DataPlane is observe, decide (internal/fleet/dataplane), act, report. Before a pass
// releases anything, it reads it from the API server, not from a cache.
package dataplane

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/fleet/dataplane"
	"hotspare.io/hotspare/internal/kstatus"
	"hotspare.io/hotspare/internal/metrics"
	"hotspare.io/hotspare/internal/patch"
)

// +kubebuilder:rbac:groups=hotspare.io,resources=dataplanes,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=hotspare.io,resources=dataplanes/status,verbs=patch
// +kubebuilder:rbac:groups=hotspare.io,resources=fleetregions;instancetypes;serviceinstances,verbs=get;list;watch
// +kubebuilder:rbac:groups=hotspare.io,resources=dataplaneagents,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=hotspare.io,resources=dataplaneagents/status,verbs=patch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterclaims,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=hive.openshift.io,resources=machinepools,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterpools,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Spokes connects to clusters.
type Spokes interface {
	// Client returns a client for the cluster whose admin kubeconfig is in the Secret, or problem,
	// which says why there is none. err is for errors of the hub itself.
	Client(ctx context.Context, secret types.NamespacedName) (spoke client.Client, problem string, err error)
}

// Hub is the address of the hub for agents, and the image that runs them.
type Hub struct {
	// Server is the hub's address as data planes reach it; CA is the CA of its certificate.
	Server string
	CA     []byte
	// Image is the image of agents on clusters that are not local. If it is empty, no agent is
	// installed on those clusters.
	Image string
}

// Reconciler reconciles DataPlanes.
type Reconciler struct {
	// Client reads from caches that AddIndexes has been called on.
	Client client.Client
	// Live reads from the API server.
	Live   client.Reader
	Spokes Spokes
	Hub    Hub
	Clock  clock.PassiveClock
	// Started is when this process started. Earlier answers of agents do not count: the hub may
	// have been restored from a backup.
	Started time.Time
	Events  events.EventRecorder
	// Metrics records the passes; nil records nothing.
	Metrics *metrics.Metrics

	progress progressCache
}

// refusedRetryInterval is the delay before a step that a person must fix is retried.
const refusedRetryInterval = 15 * time.Second

// Reconcile does one pass over the DataPlane.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := r.observeDataPlane(ctx, req.NamespacedName)
	if err != nil || s == nil {
		return fault.Requeue(0, err)
	}
	next, err := r.applyPlan(ctx, s, dataplane.Decide(*s))
	return fault.Requeue(next, err)
}

// applyPlan executes a plan's steps and writes the resulting status.
func (r *Reconciler) applyPlan(ctx context.Context, s *dataplane.Snapshot, p dataplane.Plan) (time.Duration, error) {
	err := r.applySteps(ctx, s, p)
	var refused *refusedError
	switch {
	case errors.As(err, &refused):
		return refusedRetryInterval, r.patchStatuses(ctx, s, s.RefusedStatus(p, refused.reason, refused.message))
	case err != nil:
		return 0, err
	case removesDataPlane(p):
		r.progress.deleteProgress(client.ObjectKeyFromObject(s.Plane))
		return 0, nil
	}
	if p.HasVerb(dataplane.UpdateAgent) || p.HasVerb(dataplane.DeleteAgent) {
		return p.Next, r.patchPlaneStatus(ctx, s.Plane, p.Status) // the next pass sees the written agent
	}
	return p.Next, r.patchStatuses(ctx, s, p.Status)
}

// patchStatuses writes the status of the DataPlane, then the conditions of its DataPlaneAgent.
func (r *Reconciler) patchStatuses(ctx context.Context, s *dataplane.Snapshot, st v1alpha1.DataPlaneStatus) error {
	if err := r.patchPlaneStatus(ctx, s.Plane, st); err != nil {
		return err
	}
	a := s.Agent
	if a == nil || a.Unreadable != "" || a.Spec.DataPlaneUID != string(s.Plane.UID) {
		return nil
	}
	before := a.DeepCopy()
	kstatus.ReportDataPlaneAgent(a, &st, r.Clock.Now())
	if _, err := patch.Status(ctx, r.Client, before, a); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reporting on DataPlaneAgent %s: %w", client.ObjectKeyFromObject(a), err)
	}
	return nil
}

// patchPlaneStatus writes the status, and records an event for a new phase.
func (r *Reconciler) patchPlaneStatus(ctx context.Context, dp *v1alpha1.DataPlane, st v1alpha1.DataPlaneStatus) error {
	before := dp.DeepCopy()
	dp.Status = st
	kstatus.ReportDataPlane(dp, &dp.Status, r.Clock.Now())
	if _, err := patch.Status(ctx, r.Client, before, dp); err != nil {
		return fmt.Errorf("reporting on data plane %s: %w", client.ObjectKeyFromObject(dp), client.IgnoreNotFound(err))
	}
	if st.Phase == before.Status.Phase {
		return nil
	}
	how := corev1.EventTypeNormal
	if st.Phase == v1alpha1.PhaseFailed {
		how = corev1.EventTypeWarning
	}
	r.Events.Eventf(dp, nil, how, string(st.Phase), "Transition", "%s", readyMessage(st))
	return nil
}

func readyMessage(st v1alpha1.DataPlaneStatus) string {
	for _, c := range st.Conditions {
		if c.Type == v1alpha1.DataPlaneReady {
			return c.Message
		}
	}
	return ""
}
