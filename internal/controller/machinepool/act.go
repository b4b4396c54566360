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

// stepEventReasons are the steps that get an event; the others only accompany them.
var stepEventReasons = map[machinepool.Verb]string{
	machinepool.CreateSet:    "MachineSetCreated",
	machinepool.DeleteSet:    "MachineSetDeleted",
	machinepool.AddWorker:    "WorkerAdded",
	machinepool.RemoveWorker: "WorkerRemoved",
}

// applySteps carries out the steps of a plan. One failure does not stop the others, but once
// there is no capacity, no more workers are added.
func (r *Reconciler) applySteps(ctx context.Context, mp *hivev1.MachinePool, t *task) error {
	var errs []error
	full := false
	for _, s := range t.Steps {
		if full && s.Verb == machinepool.AddWorker {
			continue
		}
		err := t.applyStep(ctx, mp.Spec.Name, s)
		switch {
		case err == nil:
			if reason := stepEventReasons[s.Verb]; reason != "" {
				r.Events.Eventf(mp, nil, corev1.EventTypeNormal, reason, "Sync", "%s", s.String())
			}
			continue
		case fault.KindOf(err) == fault.Capacity, fault.KindOf(err) == fault.Wait:
			full = true
		case apierrors.IsAlreadyExists(err):
			err = fault.New(fault.Conflict, err) // another client was faster: retry
		}
		errs = append(errs, &stepError{s, err})
	}
	return errors.Join(errs...)
}

func (t *task) applyStep(ctx context.Context, pool string, s machinepool.Step) error {
	if t.local != nil {
		return t.applyWorkerStep(ctx, s)
	}
	return t.applyMachineSetStep(ctx, pool, s)
}
