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
		return d.AfterRefusal(*f, r.Clock.Now())
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

// requestHibernation sets spec.powerState to Hibernating, as a user would. The watch triggers the
// pass that acts on it.
func (r *Reconciler) requestHibernation(ctx context.Context, cd *hivev1.ClusterDeployment) error {
	before := cd.DeepCopy()
	cd.Spec.PowerState = hivev1.PowerHibernating
	wrote, err := patch.Object(ctx, r.Client, before, cd)
	if err != nil {
		return fmt.Errorf("hibernating %s: %w", client.ObjectKeyFromObject(cd), err)
	}
	if wrote {
		r.Events.Eventf(cd, nil, corev1.EventTypeNormal, "HibernateAfter", "SetPower", "spec.hibernateAfter has passed: set spec.powerState to Hibernating")
	}
	return nil
}
