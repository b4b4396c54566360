package fleetplan

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/explain/remedy"
)

// Failure is an instance that has a data plane and is not created there as ordered.
type Failure struct {
	// Name includes the namespace.
	Name      string         `json:"name"`
	Type      string         `json:"type"`
	Size      string         `json:"size"`
	DataPlane string         `json:"dataPlane"`
	Phase     string         `json:"phase"`
	Reason    string         `json:"reason"`
	Message   string         `json:"message"`
	ToDo      *remedy.Remedy `json:"toDo,omitempty"`
}

// listFailures returns the region's instances that failed on their data planes, and those of which
// a data plane refuses an object, sorted by name. It reads their status as their controller has
// written it.
func (e Evaluation) listFailures(planes []Plane, formatCommand remedy.CommandFormatter) []Failure {
	gone := map[string]bool{}
	for _, p := range planes {
		gone[p.Name] = p.Gone
	}
	out := []Failure{}
	for _, i := range e.Instances {
		ready := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.InstanceIsReady)
		switch {
		case i.Spec.Provider != e.Region.Spec.Provider || i.Spec.Region != e.Region.Spec.Region || i.DeletionTimestamp != nil:
			continue
		case i.Status.DataPlaneName == "" || ready == nil:
			continue
		case i.Status.Phase != v1alpha1.InstanceFailed && ready.Reason != v1alpha1.ReasonNotApplied:
			continue
		}
		f := Failure{
			Name: types.NamespacedName{Namespace: i.Namespace, Name: i.Name}.String(), Type: i.Spec.Type, Size: i.Spec.Size,
			DataPlane: i.Status.DataPlaneName, Phase: string(i.Status.Phase), Reason: ready.Reason, Message: strings.TrimSuffix(ready.Message, "."),
		}
		if !gone[f.DataPlane] { // if the cluster is gone, the data plane's remedy says what to do
			f.ToDo = failureRemedy(i, ready.Reason, formatCommand)
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b Failure) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func failureRemedy(i *v1alpha1.ServiceInstance, reason string, formatCommand remedy.CommandFormatter) *remedy.Remedy {
	edit := formatCommand(i.Namespace, "kubectl edit serviceinstance %s", i.Name)
	again := formatCommand(i.Namespace, "kubectl delete serviceinstance %s", i.Name)
	switch {
	case reason == v1alpha1.ReasonNotApplied && i.Status.Phase != v1alpha1.InstanceFailed:
		return remedy.New("Its data plane refuses an object of the instance, and its agent retries: correct the field that condition Ready names.",
			formatCommand(i.Namespace, "kubectl describe serviceinstance %s", i.Name))
	case reason == v1alpha1.ReasonNotApplied, reason == v1alpha1.ReasonInvalidParameters:
		return remedy.New("Correct its spec.parameters, or delete the instance.", edit)
	case reason == v1alpha1.ReasonNamespaceTaken:
		return remedy.New("Delete the namespace that the instance needs on its data plane, or delete the instance and create another.", again)
	case reason == v1alpha1.ReasonDataPlaneGone, reason == v1alpha1.ReasonRejected, reason == v1alpha1.ReasonTakenAway:
		return remedy.New("Delete the instance, and create another.", again)
	}
	return remedy.New("Correct the problem that its data plane reports, or delete the instance and create another.", edit)
}
