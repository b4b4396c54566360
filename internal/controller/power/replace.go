package power

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/power"
)

// replaceSpotMachines has the decision's spot machines made anew. One that cannot be does not stop
// the others; what stood in the way is told.
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

// machineRef names the Machine in an event, as requestRef does a request.
func machineRef(m power.SpotMachine) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "machine.openshift.io/v1beta1", Kind: "Machine", Name: m.Name, UID: m.UID}
}
