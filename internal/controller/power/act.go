package power

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/patch"
	"hotspare.io/hotspare/internal/power"
)

// applyPower starts or stops the machines as the plan says. It returns the plan, or, if the
// platform refused, the plan after the refusal.
func (r *Reconciler) applyPower(ctx context.Context, cd *hivev1.ClusterDeployment, s power.Snapshot, d power.Plan) power.Plan {
	err := r.setPowerState(ctx, cd, s, d.Action)
	if refused, others := cloud.SplitRefusedDepths(err); len(refused) > 0 {
		if after, ok := d.AfterRefusedDepths(refused); ok {
			d, err = after, others
		}
	}
	if f := power.NewFailure(err); f != nil {
		return d.AfterFailedRequest(*f, r.Clock.Now())
	}
	return d
}

func (r *Reconciler) setPowerState(ctx context.Context, cd *hivev1.ClusterDeployment, s power.Snapshot, act power.Action) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if act != power.Start && act != power.Stop {
		return nil
	}
	ref, actuator := sleepRef(cd, s), r.Actuators.ActuatorFor(cd.Spec.Platform)
	if err := r.confirmOwner(ctx, cd, ref.InfraID); err != nil {
		return err
	}
	if act == power.Start {
		return actuator.Start(ctx, ref)
	}
	return actuator.Stop(ctx, ref)
}

// completeResume resumes the platform's controllers, if the plan says so. It returns the plan, or, if
// that failed, the plan in which the resume is not complete.
func (r *Reconciler) completeResume(ctx context.Context, cd *hivev1.ClusterDeployment, s power.Snapshot, d power.Plan) power.Plan {
	if !d.CompleteResume {
		return d
	}
	var ready []string
	for _, n := range s.Spoke.Nodes {
		if n.Ready {
			ready = append(ready, n.Name)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	ref := cloudRef(cd)
	err := r.confirmOwner(ctx, cd, ref.InfraID)
	if err == nil {
		err = r.Actuators.ActuatorFor(cd.Spec.Platform).(cloud.ResumeCompleter).CompleteResume(ctx, ref, ready)
	}
	if f := power.NewFailure(err); f != nil {
		return d.AfterIncompleteResume(*f, r.Clock.Now())
	}
	return d
}

// requestPowerState sets spec.powerState as the plan says, as a user would, and records why. The watch triggers the
// pass that acts on it.
func (r *Reconciler) requestPowerState(ctx context.Context, cd *hivev1.ClusterDeployment, s power.Snapshot, d power.Plan) error {
	before := cd.DeepCopy()
	setInactivityRecord(cd, d.Inactivity)
	var reason, note string
	switch d.Action {
	case power.HibernateInactive:
		cd.Spec.PowerState = hivev1.PowerHibernating
		reason, note = "HibernatedForInactivity", "nobody has used it for "+s.Limits.Inactivity.String()
		if d.Inactivity.UnusedWakes > s.Inactivity.UnusedWakes {
			note = "no request has followed the connection that woke it"
		}
	case power.Wake:
		cd.Spec.PowerState = hivev1.PowerRunning
		reason, note = "WokenByConnection", "a client connected to its API"
	default:
		cd.Spec.PowerState = hivev1.PowerHibernating
		reason, note = "HibernateAfter", "spec.hibernateAfter has passed"
	}
	wrote, err := patch.Object(ctx, r.Client, before, cd)
	if err != nil {
		return fmt.Errorf("setting the power state of %s: %w", client.ObjectKeyFromObject(cd), err)
	}
	if wrote {
		r.Events.Eventf(cd, nil, corev1.EventTypeNormal, reason, "SetPower", "%s: set spec.powerState to %s", note, cd.Spec.PowerState)
	}
	return nil
}
