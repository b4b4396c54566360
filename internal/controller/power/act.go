package power

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/ownership"
	"hotspare.io/hotspare/internal/patch"
	"hotspare.io/hotspare/internal/power"
)

// act tells the machines. What comes back is the decision, or, if the platform
// refused, what that makes of it.
func (r *Reconciler) act(ctx context.Context, cd *hivev1.ClusterDeployment, d power.Decision) power.Decision {
	if f := power.FailureOf(r.tell(ctx, cd, d.Act)); f != nil {
		return d.Refused(*f, r.Clock.Now())
	}
	return d
}

func (r *Reconciler) tell(ctx context.Context, cd *hivev1.ClusterDeployment, act power.Action) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if act != power.Start && act != power.Stop {
		return nil
	}
	ref, actuator := refOf(cd), r.Actuators.For(cd.Spec.Platform)
	if err := ownership.Confirm(ctx, r.Client, cd, ref.InfraID); err != nil {
		return err
	}
	if act == power.Start {
		return actuator.Start(ctx, ref)
	}
	return actuator.Stop(ctx, ref)
}

// hibernate asks for hibernation in the specification, as a user would. The
// watch brings the pass that acts on it.
func (r *Reconciler) hibernate(ctx context.Context, cd *hivev1.ClusterDeployment) error {
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
