package dataplane

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/dataplane"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/patch"
)

// refusal is a step that did not succeed for a cause that a person has to know.
type refusal struct{ reason, message string }

func (r *refusal) Error() string { return r.message }

// released reports whether the plan lets the DataPlane go. There is nothing to report on then.
func released(p dataplane.Plan) bool {
	for _, s := range p.Steps {
		if s.Verb == dataplane.Release || s.Verb == dataplane.DeletePlane {
			return true
		}
	}
	return false
}

// act does the steps in their order, and none after one that failed.
func (r *Reconciler) act(ctx context.Context, s *dataplane.Seen, p dataplane.Plan) error {
	t := &task{Reconciler: r, seen: s}
	for _, step := range p.Steps {
		err := t.do(ctx, step)
		if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
			return &refusal{v1alpha1.ReasonRefused, fmt.Sprintf("To %s: %s", step, err)}
		}
		if err != nil {
			return fmt.Errorf("step %q of data plane %s: %w", step, client.ObjectKeyFromObject(s.Plane), err)
		}
		ctrl.LoggerFrom(ctx).V(1).Info("done", "step", step.String())
	}
	return nil
}

// task is one plan that is carried out.
type task struct {
	*Reconciler
	seen *dataplane.Seen
	// kubeconfig is how the agent reaches the hub, once its rights have been granted.
	kubeconfig []byte
}

// deeds are what the verbs mean.
var deeds = map[dataplane.Verb]func(*task, context.Context, dataplane.Step) error{
	dataplane.Hold:           (*task).edit,
	dataplane.Name:           (*task).edit,
	dataplane.Release:        (*task).edit,
	dataplane.CreateClaim:    func(t *task, ctx context.Context, s dataplane.Step) error { return t.create(ctx, s.Claim) },
	dataplane.CreateCluster:  func(t *task, ctx context.Context, s dataplane.Step) error { return t.create(ctx, s.Cluster) },
	dataplane.ProtectCluster: (*task).editCluster, dataplane.UnprotectCluster: (*task).editCluster,
	dataplane.CreateAgent:   func(t *task, ctx context.Context, s dataplane.Step) error { return t.create(ctx, s.Agent) },
	dataplane.TellAgent:     (*task).tell,
	dataplane.CreateNodes:   func(t *task, ctx context.Context, s dataplane.Step) error { return t.createNodes(ctx, s.Nodes) },
	dataplane.ChangeNodes:   func(t *task, ctx context.Context, s dataplane.Step) error { return t.changeNodes(ctx, s.Nodes) },
	dataplane.GrantRights:   func(t *task, ctx context.Context, _ dataplane.Step) error { return t.grant(ctx) },
	dataplane.RevokeRights:  func(t *task, ctx context.Context, _ dataplane.Step) error { return t.revoke(ctx) },
	dataplane.InstallAgent:  func(t *task, ctx context.Context, _ dataplane.Step) error { return t.install(ctx) },
	dataplane.RemoveAgent:   func(t *task, ctx context.Context, _ dataplane.Step) error { return t.remove(ctx) },
	dataplane.DeleteAgent:   func(t *task, ctx context.Context, s dataplane.Step) error { return t.delete(ctx, s.Agent) },
	dataplane.DeleteClaim:   func(t *task, ctx context.Context, s dataplane.Step) error { return t.delete(ctx, s.Claim) },
	dataplane.DeleteCluster: func(t *task, ctx context.Context, s dataplane.Step) error { return t.delete(ctx, s.Cluster) },
	dataplane.DeletePlane:   func(t *task, ctx context.Context, _ dataplane.Step) error { return t.deletePlane(ctx) },
}

func (t *task) do(ctx context.Context, step dataplane.Step) error {
	deed := deeds[step.Verb]
	if deed == nil {
		return fmt.Errorf("there is no step %q", step.Verb)
	}
	return deed(t, ctx, step)
}

func (t *task) editCluster(ctx context.Context, step dataplane.Step) error {
	_, err := patch.Object(ctx, t.Client, t.seen.Cluster, step.Cluster)
	return client.IgnoreNotFound(err)
}

func (t *task) tell(ctx context.Context, step dataplane.Step) error {
	_, err := patch.Object(ctx, t.Client, t.seen.Agent, step.Agent)
	return err
}

// deletePlane deletes the DataPlane, and tells its region.
func (t *task) deletePlane(ctx context.Context) error {
	dp := t.seen.Plane
	if err := t.delete(ctx, dp); err != nil {
		return err
	}
	if region := t.seen.Region; region != nil {
		t.Events.Eventf(region, dp, corev1.EventTypeNormal, "DataPlaneReleased", "Release", "data plane %s is gone, and its cluster with it", dp.Name)
	}
	return nil
}

// edit writes the DataPlane itself, on the version that was seen.
func (t *task) edit(ctx context.Context, step dataplane.Step) error {
	dp := t.seen.Plane
	before := dp.DeepCopy()
	switch step.Verb {
	case dataplane.Hold:
		controllerutil.AddFinalizer(dp, v1alpha1.FinalizerDataPlane)
	case dataplane.Release:
		controllerutil.RemoveFinalizer(dp, v1alpha1.FinalizerDataPlane)
	default:
		dp.Spec.ClusterRef = step.Ref
	}
	_, err := patch.Object(ctx, t.Client, before, dp)
	if step.Verb == dataplane.Release {
		return client.IgnoreNotFound(err)
	}
	return err
}

// create makes an object. What is there by now is looked at in the next pass.
func (t *task) create(ctx context.Context, o client.Object) error {
	err := t.Client.Create(ctx, o)
	if apierrors.IsAlreadyExists(err) {
		return fault.New(fault.Conflict, err)
	}
	return err
}

// delete deletes the object that was seen, and no other of its name.
func (t *task) delete(ctx context.Context, o client.Object) error {
	uid := o.GetUID()
	return client.IgnoreNotFound(t.Client.Delete(ctx, o, client.Preconditions{UID: &uid}))
}

func (t *task) createNodes(ctx context.Context, mp *hivev1.MachinePool) error {
	err := t.Client.Create(ctx, mp)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	var have hivev1.MachinePool
	if found, err := get(ctx, t.Live, client.ObjectKeyFromObject(mp), &have); err != nil || !found {
		return fault.New(fault.Conflict, fmt.Errorf("looking for MachinePool %s: %w", mp.Name, err))
	}
	if have.Spec.Name == mp.Spec.Name && have.Spec.ClusterDeploymentRef == mp.Spec.ClusterDeploymentRef {
		return fault.New(fault.Conflict, err)
	}
	return &refusal{v1alpha1.ReasonNameTaken, fmt.Sprintf("MachinePool %s in namespace %s is another pool than %s of cluster %s: delete it.",
		mp.Name, mp.Namespace, mp.Spec.Name, mp.Spec.ClusterDeploymentRef.Name)}
}

func (t *task) changeNodes(ctx context.Context, mp *hivev1.MachinePool) error {
	for _, have := range t.seen.Nodes {
		if have.UID == mp.UID && have.Name == mp.Name {
			_, err := patch.Object(ctx, t.Client, have, mp)
			return err
		}
	}
	return nil
}
