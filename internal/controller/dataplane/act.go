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
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/fleet/dataplane"
	"hotspare.io/hotspare/internal/patch"
)

// refusedError is the error of a step that failed for a reason that a person must fix.
type refusedError struct{ reason, message string }

func (r *refusedError) Error() string { return r.message }

// removesDataPlane reports whether the plan deletes the DataPlane or removes its finalizer. There
// is then no status to write.
func removesDataPlane(p dataplane.Plan) bool {
	for _, s := range p.Steps {
		if s.Verb == dataplane.RemoveFinalizer || s.Verb == dataplane.DeletePlane {
			return true
		}
	}
	return false
}

// applySteps executes the steps in order, and stops at the first one that fails.
func (r *Reconciler) applySteps(ctx context.Context, s *dataplane.Snapshot, p dataplane.Plan) error {
	t := &execution{Reconciler: r, snapshot: s}
	for _, step := range p.Steps {
		err := t.applyStep(ctx, step)
		if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
			return &refusedError{v1alpha1.ReasonRefused, fmt.Sprintf("The API server refuses to %s: %s", step, err)}
		}
		if err != nil {
			return fmt.Errorf("step %q of data plane %s: %w", step, client.ObjectKeyFromObject(s.Plane), err)
		}
		ctrl.LoggerFrom(ctx).V(1).Info("done", "step", step.String())
	}
	return nil
}

// execution is the execution of one plan.
type execution struct {
	*Reconciler
	snapshot *dataplane.Snapshot
	// kubeconfig is the agent's kubeconfig for the hub, set once its rights have been granted.
	kubeconfig []byte
}

// stepFuncs are the functions that execute the verbs.
var stepFuncs = map[dataplane.Verb]func(*execution, context.Context, dataplane.Step) error{
	dataplane.AddFinalizer:     (*execution).patchPlane,
	dataplane.RecordClusterRef: (*execution).patchPlane,
	dataplane.RemoveFinalizer:  (*execution).patchPlane,
	dataplane.CreateClaim:      func(t *execution, ctx context.Context, s dataplane.Step) error { return t.createObject(ctx, s.Claim) },
	dataplane.CreateCluster:    func(t *execution, ctx context.Context, s dataplane.Step) error { return t.createObject(ctx, s.Cluster) },
	dataplane.ProtectCluster:   (*execution).patchCluster, dataplane.UnprotectCluster: (*execution).patchCluster,
	dataplane.CreateAgent: func(t *execution, ctx context.Context, s dataplane.Step) error { return t.createObject(ctx, s.Agent) },
	dataplane.UpdateAgent: (*execution).patchAgent,
	dataplane.CreateMachinePool: func(t *execution, ctx context.Context, s dataplane.Step) error {
		return t.createMachinePool(ctx, s.Nodes)
	},
	dataplane.UpdateMachinePool: func(t *execution, ctx context.Context, s dataplane.Step) error {
		return t.patchMachinePool(ctx, s.Nodes)
	},
	dataplane.GrantRights:   func(t *execution, ctx context.Context, _ dataplane.Step) error { return t.grantHubAccess(ctx) },
	dataplane.RevokeRights:  func(t *execution, ctx context.Context, _ dataplane.Step) error { return t.revokeHubAccess(ctx) },
	dataplane.InstallAgent:  func(t *execution, ctx context.Context, _ dataplane.Step) error { return t.installAgent(ctx) },
	dataplane.RemoveAgent:   func(t *execution, ctx context.Context, _ dataplane.Step) error { return t.removeAgent(ctx) },
	dataplane.DeleteAgent:   func(t *execution, ctx context.Context, s dataplane.Step) error { return t.deleteObject(ctx, s.Agent) },
	dataplane.DeleteClaim:   func(t *execution, ctx context.Context, s dataplane.Step) error { return t.deleteObject(ctx, s.Claim) },
	dataplane.DeleteCluster: func(t *execution, ctx context.Context, s dataplane.Step) error { return t.deleteObject(ctx, s.Cluster) },
	dataplane.DeletePlane:   func(t *execution, ctx context.Context, _ dataplane.Step) error { return t.deletePlane(ctx) },
}

func (t *execution) applyStep(ctx context.Context, step dataplane.Step) error {
	deed := stepFuncs[step.Verb]
	if deed == nil {
		return fmt.Errorf("unknown step %q", step.Verb)
	}
	return deed(t, ctx, step)
}

func (t *execution) patchCluster(ctx context.Context, step dataplane.Step) error {
	_, err := patch.Object(ctx, t.Client, t.snapshot.Cluster, step.Cluster)
	return client.IgnoreNotFound(err)
}

func (t *execution) patchAgent(ctx context.Context, step dataplane.Step) error {
	_, err := patch.Object(ctx, t.Client, t.snapshot.Agent, step.Agent)
	return err
}

// deletePlane deletes the DataPlane, and records an event on its region.
func (t *execution) deletePlane(ctx context.Context) error {
	dp := t.snapshot.Plane
	if err := t.deleteObject(ctx, dp); err != nil {
		return err
	}
	if region := t.snapshot.Region; region != nil {
		t.Events.Eventf(region, dp, corev1.EventTypeNormal, "DataPlaneReleased", "Release", "data plane %s is deleted, and its cluster is released", dp.Name)
	}
	return nil
}

// patchPlane writes the DataPlane itself, at the observed resource version.
func (t *execution) patchPlane(ctx context.Context, step dataplane.Step) error {
	dp := t.snapshot.Plane
	before := dp.DeepCopy()
	switch step.Verb {
	case dataplane.AddFinalizer:
		controllerutil.AddFinalizer(dp, v1alpha1.FinalizerDataPlane)
	case dataplane.RemoveFinalizer:
		controllerutil.RemoveFinalizer(dp, v1alpha1.FinalizerDataPlane)
	default:
		dp.Spec.ClusterRef = step.Ref
	}
	_, err := patch.Object(ctx, t.Client, before, dp)
	if step.Verb == dataplane.RemoveFinalizer {
		return client.IgnoreNotFound(err)
	}
	return err
}

// createObject creates an object. If it exists already, the next pass checks it.
func (t *execution) createObject(ctx context.Context, o client.Object) error {
	err := t.Client.Create(ctx, o)
	if apierrors.IsAlreadyExists(err) {
		return fault.New(fault.Conflict, err)
	}
	return err
}

// deleteObject deletes the observed object, and no other object of its name.
func (t *execution) deleteObject(ctx context.Context, o client.Object) error {
	uid := o.GetUID()
	return client.IgnoreNotFound(t.Client.Delete(ctx, o, client.Preconditions{UID: &uid}))
}

func (t *execution) createMachinePool(ctx context.Context, mp *hivev1.MachinePool) error {
	err := t.Client.Create(ctx, mp)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	var have hivev1.MachinePool
	if found, err := getObject(ctx, t.Live, client.ObjectKeyFromObject(mp), &have); err != nil || !found {
		return fault.New(fault.Conflict, fmt.Errorf("looking for MachinePool %s: %w", mp.Name, err))
	}
	if have.Spec.Name == mp.Spec.Name && have.Spec.ClusterDeploymentRef == mp.Spec.ClusterDeploymentRef {
		return fault.New(fault.Conflict, err)
	}
	return &refusedError{v1alpha1.ReasonNameTaken, fmt.Sprintf("MachinePool %s in namespace %s is not pool %s of cluster %s: delete it.",
		mp.Name, mp.Namespace, mp.Spec.Name, mp.Spec.ClusterDeploymentRef.Name)}
}

func (t *execution) patchMachinePool(ctx context.Context, mp *hivev1.MachinePool) error {
	for _, have := range t.snapshot.Nodes {
		if have.UID == mp.UID && have.Name == mp.Name {
			_, err := patch.Object(ctx, t.Client, have, mp)
			return err
		}
	}
	return nil
}
