package dataplane

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	spoke, trouble, err := t.spoke(ctx)
	if err != nil {
		return err
	}
	if trouble != "" {
		return &refusal{v1alpha1.ReasonAgentNotInstalled, fmt.Sprintf("The agent cannot be installed: %s.", trouble)}
	}
	m, err := t.manifests()
	if err != nil {
		return err
	}
	switch whose, err := t.whose(ctx, spoke); {
	case err != nil:
		return notInstalled(m.Apply[0], err)
	case whose == another:
		return &refusal{v1alpha1.ReasonNameTaken, fmt.Sprintf(
			"On its cluster is the agent of another data plane. If that is not wanted, delete Deployment %s in namespace %s there.", install.Name, install.Namespace)}
	}
	for _, o := range m.Absent {
		if err := absent(ctx, spoke, o); err != nil {
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

// absent creates an object that others may have made already.
func absent(ctx context.Context, spoke client.Client, o client.Object) error {
	u, err := plain(o)
	if err != nil {
		return err
	}
	err = spoke.Get(ctx, client.ObjectKeyFromObject(u), u.DeepCopy())
	if !apierrors.IsNotFound(err) {
		return err
	}
	if err := spoke.Create(ctx, u); !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

// Whose agent is on a cluster.
const (
	nobodys = iota
	ours
	another
)

// whose tells whose agent is on the cluster: a cluster may have been given to another
// data plane since, and two must not take turns.
func (t *task) whose(ctx context.Context, spoke client.Client) (int, error) {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("apps/v1")
	u.SetKind("Deployment")
	err := spoke.Get(ctx, client.ObjectKey{Namespace: install.Namespace, Name: install.Name}, u)
	if apierrors.IsNotFound(err) {
		return nobodys, nil
	}
	if err != nil {
		return nobodys, err
	}
	containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	for _, c := range containers {
		container, _ := c.(map[string]any)
		args, _, _ := unstructured.NestedStringSlice(container, "args")
		if slices.Contains(args, "--data-plane-uid="+string(t.seen.Plane.UID)) {
			return ours, nil
		}
	}
	return another, nil
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

// spoke connects to the cluster, or says why it cannot be.
func (t *task) spoke(ctx context.Context) (client.Client, string, error) {
	secret, ok := t.seen.Kubeconfigs()
	if !ok {
		return nil, "there is no kubeconfig of its cluster", nil
	}
	return t.Spokes.Client(ctx, secret)
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

// remove takes the agent off a cluster that stays, its namespace last: with it goes the
// Deployment, by which it is known. The kinds that instances are of stay, since with
// them all instances would go. What another data plane has there stays, too.
func (t *task) remove(ctx context.Context) error {
	spoke, trouble, err := t.spoke(ctx)
	if err != nil {
		return err
	}
	if trouble != "" {
		return t.notRemoved(trouble)
	}
	whose, err := t.whose(ctx, spoke)
	if err != nil {
		return t.notRemoved(remote.Trouble(err))
	}
	if whose == ours {
		if err := t.wipe(ctx, spoke); err != nil {
			return t.notRemoved(remote.Trouble(err))
		}
	}
	dp := t.seen.Plane
	t.memory.note(client.ObjectKeyFromObject(dp), dp.UID, func(d *done) { d.removed = true })
	return nil
}

func (t *task) wipe(ctx context.Context, spoke client.Client) error {
	m, err := install.DataPlane(install.Agent{Operator: agent.StandIn}) // the names are always the same
	if err != nil {
		return err
	}
	for _, o := range slices.Backward(m.Apply) {
		if o.GetObjectKind().GroupVersionKind().Kind == "Deployment" {
			continue
		}
		u, err := plain(o)
		if err != nil {
			return err
		}
		if err := spoke.Delete(ctx, u); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

func (t *task) notRemoved(why string) error {
	remedy := "have the cluster run, or set spec.deletionPolicy to Delete to have it destroyed"
	if ref := t.seen.Plane.Spec.ClusterRef; ref != nil && ref.KubeconfigSecret != nil {
		remedy = fmt.Sprintf("have the cluster answer, or delete Secret %s to leave the agent there", ref.KubeconfigSecret.Name)
	}
	return &refusal{v1alpha1.ReasonAgentNotInstalled, fmt.Sprintf("The agent cannot be taken off its cluster, which stays: %s. To go on, %s.", why, remedy)}
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
