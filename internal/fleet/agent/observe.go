package agent

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/internal/fleet/agent/plan"
)

// watchedKinds are the kinds on the data plane that trigger a pass of the agent.
var watchedKinds = []schema.GroupVersionKind{plan.Namespace, plan.ManagedKafka, plan.Deployment, plan.ManagedKafkaAgent}

// listObjects lists the objects on the data plane.
func (a *Agent) listObjects(ctx context.Context) (plan.World, error) {
	world := plan.World{}
	for _, kind := range watchedKinds {
		list := newObjectList(kind)
		var mine []client.ListOption
		if kind != plan.ManagedKafkaAgent { // the cache contains only labeled objects, but other clients do not filter
			mine = append(mine, client.MatchingLabels{plan.LabelManagedBy: plan.ManagedBy})
		}
		if err := a.Plane.List(ctx, list, mine...); err != nil {
			return nil, fmt.Errorf("listing %s: %w", kind.Kind, err)
		}
		for i := range list.Items {
			world.Add(&list.Items[i])
		}
	}
	return world, nil
}

func newObjectList(kind schema.GroupVersionKind) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	kind.Kind += "List"
	list.SetGroupVersionKind(kind)
	return list
}

func newObject(kind schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u
}

// probeDataPlane sends a small request to the data plane's API: a cache does not notice that the
// API no longer answers.
func (a *Agent) probeDataPlane(ctx context.Context) error {
	err := a.Live.List(ctx, newObjectList(plan.Namespace), client.Limit(1), client.MatchingLabels{plan.LabelManagedBy: plan.ManagedBy})
	if err != nil {
		return fmt.Errorf("probing the data plane's API: %w", err)
	}
	return nil
}

// ownsNamespace asks the API whether the namespace exists and belongs to the agent.
func (a *Agent) ownsNamespace(ctx context.Context, name string) (bool, error) {
	u := newObject(plan.Namespace)
	err := a.Live.Get(ctx, types.NamespacedName{Name: name}, u)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading namespace %s: %w", name, redactError(err))
	}
	return u.GetLabels()[plan.LabelManagedBy] == plan.ManagedBy, nil
}
