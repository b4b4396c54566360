package power

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/power"
)

// replaceSpotMachines deletes the Machines of the plan's spot machines, so that they are
// re-created. One failure does not stop the others; the returned plan reports the failures.
func (r *Reconciler) replaceSpotMachines(ctx context.Context, cd *hivev1.ClusterDeployment, d power.Plan) (power.Plan, error) {
	var troubles []string
	for _, m := range d.Replace {
		deleted, trouble, err := r.Remote.DeleteSpotMachine(ctx, kubeconfigSecret(cd), m)
		if err != nil {
			return d, fmt.Errorf("replacing spot machines of %s: %w", client.ObjectKeyFromObject(cd), err)
		}
		if trouble != "" {
			troubles = append(troubles, trouble)
		}
		if deleted {
			r.Events.Eventf(cd, machineRef(m), corev1.EventTypeNormal, "SpotMachineReplaced", "ReplaceMachine",
				"deleted Machine %s: it was a spot machine and ended when the cluster stopped; its MachineSet makes another", m.Name)
		}
	}
	return d.AfterReplaceFailure(troubles), nil
}

// machineRef returns a reference to the Machine for an event, as requestRef does for a request.
func machineRef(m power.SpotMachine) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "machine.openshift.io/v1beta1", Kind: "Machine", Name: m.Name, UID: m.UID}
}
