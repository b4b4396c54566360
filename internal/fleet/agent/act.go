package agent

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/internal/fleet/agent/plan"
)

// fieldOwner is the field manager of the agent's writes.
const fieldOwner = client.FieldOwner("hotspare-agent")

// applySteps applies the steps, and returns the first error of each instance, by instance ID.
func (a *Agent) applySteps(ctx context.Context, steps []plan.Step) map[string]error {
	refused := map[string]error{}
	for _, s := range steps {
		if refused[s.ID] != nil {
			continue
		}
		switch err := a.applyStep(ctx, s); {
		case err == nil:
			logr.FromContextOrDiscard(ctx).Info("done", "step", s.String())
		case apierrors.IsConflict(err): // another client wrote first; the watch of its write starts the next pass
		default:
			refused[s.ID] = fmt.Errorf("%s: %w", s, redactError(err))
		}
	}
	return refused
}

func (a *Agent) applyStep(ctx context.Context, s plan.Step) error {
	switch s.Verb {
	case plan.Create:
		return a.createObject(ctx, s)
	case plan.Apply:
		return a.Plane.Apply(ctx, client.ApplyConfigurationFromUnstructured(s.Object.DeepCopy()), fieldOwner, client.ForceOwnership)
	case plan.UpdateStatus:
		return a.patchObjectStatus(ctx, s)
	case plan.Remove:
		return a.deleteObject(ctx, s)
	}
	return fmt.Errorf("unknown verb %q", s.Verb)
}

// namespaceTakenError is returned for a namespace that exists and does not belong to the agent.
type namespaceTakenError struct{ name string }

func (e *namespaceTakenError) Error() string {
	return fmt.Sprintf("namespace %s exists and has no label %s=%s, so the agent did not create it: delete it, or move the instance to another data plane",
		e.name, plan.LabelManagedBy, plan.ManagedBy)
}

func (a *Agent) createObject(ctx context.Context, s plan.Step) error {
	err := a.Plane.Create(ctx, s.Object.DeepCopy(), fieldOwner)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	mine, err := a.ownsNamespace(ctx, s.Object.GetName())
	if err == nil && !mine {
		err = &namespaceTakenError{s.Object.GetName()}
	}
	return err
}

// patchObjectStatus writes the decided status, unless the object has changed since it was read.
func (a *Agent) patchObjectStatus(ctx context.Context, s plan.Step) error {
	raw, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": s.Object.GetResourceVersion()},
		"status":   s.Object.Object["status"],
	})
	if err != nil {
		return err
	}
	return client.IgnoreNotFound(a.Plane.Status().Patch(ctx, s.Object.DeepCopy(), client.RawPatch(types.MergePatchType, raw), fieldOwner))
}

// deleteObject deletes the observed object. Deleting a namespace deletes its contents, so
// deleteObject first asks the API for a live ManagedKafka in it.
func (a *Agent) deleteObject(ctx context.Context, s plan.Step) error {
	if s.Object.GetKind() == plan.Namespace.Kind {
		list := newObjectList(plan.ManagedKafka)
		if err := a.Live.List(ctx, list, client.InNamespace(s.Object.GetName())); err != nil {
			return fmt.Errorf("listing its ManagedKafkas: %w", err)
		}
		for i := range list.Items {
			if plan.IsLive(&list.Items[i]) {
				return fmt.Errorf("it contains ManagedKafka %s, which is not marked as deleted", list.Items[i].GetName())
			}
		}
	}
	uid := s.Object.GetUID()
	return client.IgnoreNotFound(a.Plane.Delete(ctx, s.Object.DeepCopy(), client.Preconditions{UID: &uid}))
}
