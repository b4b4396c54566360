package remote

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"hotspare.io/hotspare/internal/power"
)

// OpenShift's machine API labels spot machines automatically, with an empty value. It does not
// drain the node of a deleted Machine that has this annotation: that node no longer runs and
// cannot answer.
const (
	spotSelector           = "machine.openshift.io/interruptible-instance="
	excludeDrainAnnotation = "machine.openshift.io/exclude-node-draining"
)

// maxSpotMachines is the number of spot machines read per cluster.
const maxSpotMachines = 2000

// spotList contains the fields of OpenShift's MachineList that are read for spot machines.
type spotList struct {
	Items []struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     struct {
			ProviderID string `json:"providerID"`
		} `json:"spec"`
		Status struct {
			NodeRef *corev1.ObjectReference `json:"nodeRef"`
			Phase   string                  `json:"phase"`
		} `json:"status"`
	} `json:"items"`
}

// listSpotMachines lists the Machines of spot machines that a MachineSet re-creates after their
// deletion and that are not being deleted already. An API without Machines has none.
func (sc *spokeClient) listSpotMachines(ctx context.Context) ([]power.SpotMachine, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	raw, err := sc.core.RESTClient().Get().AbsPath(machinesPath).Param("labelSelector", spotSelector).Param("limit", fmt.Sprint(maxSpotMachines)).DoRaw(ctx)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing spot machines: %w", err)
	}
	var found spotList
	if err := json.Unmarshal(raw, &found); err != nil {
		return nil, fmt.Errorf("reading spot machines: %w", err)
	}
	var out []power.SpotMachine
	for _, m := range found.Items {
		owner := metav1.GetControllerOf(&m.Metadata)
		if owner == nil || owner.Kind != "MachineSet" || m.Metadata.DeletionTimestamp != nil {
			continue
		}
		out = append(out, power.SpotMachine{
			Name: m.Metadata.Name, UID: m.Metadata.UID, ProviderID: m.Spec.ProviderID, Created: m.Metadata.CreationTimestamp.Time,
			Joined: m.Status.NodeRef != nil, Failed: m.Status.Phase == "Failed",
		})
	}
	return out, nil
}

// DeleteSpotMachine deletes the Machine of a spot machine in the cluster whose admin kubeconfig
// is in the Secret, unless it was deleted already or another Machine has its name. Trouble says
// why the cluster refused; an error is the hub's own.
func (c *Connector) DeleteSpotMachine(ctx context.Context, secret types.NamespacedName, m power.SpotMachine) (deleted bool, trouble string, err error) {
	a, trouble, err := c.connectSpoke(ctx, secret)
	if err != nil || trouble != "" {
		return false, trouble, err
	}
	err = a.deleteMachine(ctx, m)
	switch {
	case err == nil:
		return true, "", nil
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		return false, "", nil // the next pass reads its new version
	case apierrors.IsForbidden(err):
		return false, "the admin kubeconfig may not delete Machines", nil
	}
	return false, describeNoAnswer(err), nil
}

func (sc *spokeClient) deleteMachine(ctx context.Context, m power.SpotMachine) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	mark, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": m.UID, "annotations": map[string]string{excludeDrainAnnotation: "true"},
	}})
	if err != nil {
		return err
	}
	rest := sc.core.RESTClient()
	if err := rest.Patch(types.MergePatchType).AbsPath(machinesPath, m.Name).Body(mark).Do(ctx).Error(); err != nil {
		return err
	}
	return rest.Delete().AbsPath(machinesPath, m.Name).Body(&metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &m.UID}}).Do(ctx).Error()
}
