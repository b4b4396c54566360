package dataplane

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/agent"
	"hotspare.io/hotspare/internal/agent/install"
	"hotspare.io/hotspare/internal/remote"
)

// fieldOwner is whose the agent's manifests are on a data plane.
const fieldOwner = client.FieldOwner("hotspare")

// install applies the agent's manifests to the cluster. What is there already and right
// is not written.
func (t *task) install(ctx context.Context) error {
	m, err := t.manifests()
	if err != nil {
		return err
	}
	spoke, err := t.spoke(ctx)
	if err != nil {
		return err
	}
	for _, o := range m.Absent {
		u, err := plain(o)
		if err != nil {
			return err
		}
		err = spoke.Get(ctx, client.ObjectKeyFromObject(u), u.DeepCopy())
		if apierrors.IsNotFound(err) {
			err = spoke.Create(ctx, u)
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return notInstalled(o, err)
		}
	}
	for _, o := range m.Apply {
		u, err := plain(o)
		if err != nil {
			return err
		}
		if err := spoke.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), fieldOwner, client.ForceOwnership); err != nil {
			return notInstalled(o, err)
		}
	}
	dp := t.seen.Plane
	t.memory.note(client.ObjectKeyFromObject(dp), dp.UID, func(d *done) { d.installed = t.Clock.Now() })
	return nil
}

// manifests are those of the agent on this cluster.
func (t *task) manifests() (install.Manifests, error) {
	dp := t.seen.Plane
	a := install.Agent{
		Namespace: dp.Namespace, Name: dp.Name, UID: string(dp.UID), HubKubeconfig: t.kubeconfig,
		Image: t.Hub.Image, Operator: agent.Fleetshard,
	}
	if t.seen.Local() {
		a.Image, a.Operator = install.LocalImage, agent.StandIn
	}
	if a.Image == "" {
		return install.Manifests{}, &refusal{v1alpha1.ReasonAgentNotInstalled, "This hub has no image of the agent for clusters that are not local."}
	}
	return install.DataPlane(a)
}

// spoke connects to the cluster.
func (t *task) spoke(ctx context.Context) (client.Client, error) {
	secret, ok := t.seen.Kubeconfigs()
	if !ok {
		return nil, &refusal{v1alpha1.ReasonAgentNotInstalled, "There is no kubeconfig of its cluster."}
	}
	spoke, trouble, err := t.Spokes.Client(ctx, secret)
	if err != nil {
		return nil, err
	}
	if trouble != "" {
		return nil, &refusal{v1alpha1.ReasonAgentNotInstalled, fmt.Sprintf("Its cluster cannot be reached: %s.", trouble)}
	}
	return spoke, nil
}

// notInstalled says which object a cluster did not take, and why. Of the objection to a
// Secret nothing is quoted.
func notInstalled(o client.Object, err error) error {
	kind := o.GetObjectKind().GroupVersionKind().Kind
	words := remote.Trouble(err)
	if kind == "Secret" && (apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)) {
		words = "it is refused"
	}
	return &refusal{v1alpha1.ReasonAgentNotInstalled, fmt.Sprintf("Its cluster does not take %s %s of the agent: %s.", kind, o.GetName(), words)}
}

// remove takes the agent off a cluster that stays. The kinds that instances are of stay:
// with them all instances would go.
func (t *task) remove(ctx context.Context) error {
	m, err := t.manifests()
	if err != nil {
		return err
	}
	spoke, err := t.spoke(ctx)
	if err != nil {
		return err
	}
	for _, o := range slices.Backward(m.Apply) {
		u, err := plain(o)
		if err != nil {
			return err
		}
		if err := spoke.Delete(ctx, u); err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
			return &refusal{v1alpha1.ReasonAgentNotInstalled, fmt.Sprintf("The agent cannot be taken off its cluster, which stays: %s. Delete the Secret with the kubeconfig to leave the agent there.", remote.Trouble(err))}
		}
	}
	dp := t.seen.Plane
	t.memory.note(client.ObjectKeyFromObject(dp), dp.UID, func(d *done) { d.removed = true })
	return nil
}

// plain is an object as it is applied: without what only the cluster says of it.
func plain(o client.Object) (*unstructured.Unstructured, error) {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return u.DeepCopy(), nil
	}
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("reading the agent's manifests: %w", err)
	}
	u := &unstructured.Unstructured{Object: raw}
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(u.Object, "spec", "template", "metadata", "creationTimestamp")
	return u, nil
}
