package machinepool

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/machinepool"
)

// told are the steps that users are told of; the others go with them.
var told = map[machinepool.Verb]string{
	machinepool.CreateSet:    "MachineSetCreated",
	machinepool.DeleteSet:    "MachineSetDeleted",
	machinepool.AddWorker:    "WorkerAdded",
	machinepool.RemoveWorker: "WorkerRemoved",
}

// act carries out the steps of a decision. One that fails does not stop the others;
// only more of what there is no room for is not tried.
func (r *Reconciler) act(ctx context.Context, mp *hivev1.MachinePool, t *task) error {
	var errs []error
	full := false
	for _, s := range t.Steps {
		if full && s.Verb == machinepool.AddWorker {
			continue
		}
		err := t.do(ctx, mp.Spec.Name, s)
		switch {
		case err == nil:
			if reason := told[s.Verb]; reason != "" {
				r.Events.Eventf(mp, nil, corev1.EventTypeNormal, reason, "Sync", "%s", s.String())
			}
			continue
		case fault.Of(err) == fault.Capacity, fault.Of(err) == fault.Wait:
			full = true
		case apierrors.IsAlreadyExists(err):
			err = fault.New(fault.Conflict, err) // somebody was faster: look again
		}
		errs = append(errs, &refusal{s, err})
	}
	return errors.Join(errs...)
}

func (t *task) do(ctx context.Context, pool string, s machinepool.Step) error {
	if t.local != nil {
		return t.actLocally(ctx, s)
	}
	return t.actRemotely(ctx, pool, s)
}
