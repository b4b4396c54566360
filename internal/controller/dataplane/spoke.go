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
	"hotspare.io/hotspare/internal/fleet/agent"
	"hotspare.io/hotspare/internal/fleet/agent/install"
	"hotspare.io/hotspare/internal/remote"
)

// fieldOwner is the field manager of the agent's manifests on a data plane.
const fieldOwner = client.FieldOwner("hotspare")

// installAgent applies the agent's manifests to the cluster. Objects that exist as they should be
// are not written.
func (t *execution) installAgent(ctx context.Context) error {
	spoke, problem, err := t.connectToCluster(ctx)
	if err != nil {
		return err
	}
	if problem != "" {
		return &refusedError{v1alpha1.ReasonAgentNotInstalled, fmt.Sprintf("The agent cannot be installed: %s.", problem)}
	}
	m, err := t.agentManifests()
	if err != nil {
		return err
	}
	switch whose, err := t.findInstalledAgent(ctx, spoke); {
	case err != nil:
		return newNotInstalledError(m.Apply[0], err)
	case whose == otherAgent:
		return &refusedError{v1alpha1.ReasonNameTaken, fmt.Sprintf(
			"Its cluster runs the agent of another data plane. If you do not want that agent, delete Deployment %s in namespace %s there.", install.Name, install.Namespace)}
	}
	for _, o := range m.Absent {
		if err := createIfAbsent(ctx, spoke, o); err != nil {
			return newNotInstalledError(o, err)
		}
	}
	for _, o := range m.Apply {
		u, err := toUnstructured(o)
		if err != nil {
			return err
		}
		if err := spoke.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), fieldOwner, client.ForceOwnership); err != nil {
			return newNotInstalledError(o, err)
		}
	}
	dp := t.snapshot.Plane
	t.progress.updateProgress(client.ObjectKeyFromObject(dp), dp.UID, func(d *progress) { d.installed = t.Clock.Now() })
	return nil
}

// createIfAbsent creates an object that others may have created already.
func createIfAbsent(ctx context.Context, spoke client.Client, o client.Object) error {
	u, err := toUnstructured(o)
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

// Results of findInstalledAgent.
const (
	noAgent = iota
	ownAgent
	otherAgent
)

// findInstalledAgent returns whose agent is on the cluster: the cluster may have been given to
// another data plane since then, and two data planes must not overwrite each other's agent.
func (t *execution) findInstalledAgent(ctx context.Context, spoke client.Client) (int, error) {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("apps/v1")
	u.SetKind("Deployment")
	err := spoke.Get(ctx, client.ObjectKey{Namespace: install.Namespace, Name: install.Name}, u)
	if apierrors.IsNotFound(err) {
		return noAgent, nil
	}
	if err != nil {
		return noAgent, err
	}
	containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	for _, c := range containers {
		container, _ := c.(map[string]any)
		args, _, _ := unstructured.NestedStringSlice(container, "args")
		if slices.Contains(args, "--data-plane-uid="+string(t.snapshot.Plane.UID)) {
			return ownAgent, nil
		}
	}
	return otherAgent, nil
}

// agentManifests returns the manifests of the agent for this cluster.
func (t *execution) agentManifests() (install.Manifests, error) {
	dp := t.snapshot.Plane
	a := install.Agent{
		Namespace: dp.Namespace, Name: dp.Name, UID: string(dp.UID), HubKubeconfig: t.kubeconfig,
		Image: t.Hub.Image, Operator: agent.Fleetshard,
	}
	if t.snapshot.IsLocal() {
		a.Image, a.Operator = install.LocalImage, agent.StandIn
	}
	if a.Image == "" {
		return install.Manifests{}, &refusedError{v1alpha1.ReasonAgentNotInstalled, "This hub has no agent image for clusters that are not local."}
	}
	return install.DataPlaneManifests(a)
}

// connectToCluster returns a client for the cluster, or a message that says why there is none.
func (t *execution) connectToCluster(ctx context.Context) (client.Client, string, error) {
	secret, ok := t.snapshot.KubeconfigSecret()
	if !ok {
		return nil, "its cluster has no kubeconfig", nil
	}
	return t.Spokes.Client(ctx, secret)
}

// newNotInstalledError returns an error that names the object that a cluster rejected, and why. It
// does not quote an error about a Secret.
func newNotInstalledError(o client.Object, err error) error {
	kind := o.GetObjectKind().GroupVersionKind().Kind
	words := remote.DescribeFailure(err)
	if kind == "Secret" && (apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)) {
		words = "the object is refused"
	}
	return &refusedError{v1alpha1.ReasonAgentNotInstalled, fmt.Sprintf("Its cluster refuses %s %s of the agent: %s.", kind, o.GetName(), words)}
}

// removeAgent removes the agent from a cluster that is kept. It deletes the namespace last: that
// deletes the Deployment, which identifies the agent. The CRDs of instances stay, because deleting
// them would delete all instances. Objects of another data plane stay, too.
func (t *execution) removeAgent(ctx context.Context) error {
	spoke, problem, err := t.connectToCluster(ctx)
	if err != nil {
		return err
	}
	if problem != "" {
		return t.newNotRemovedError(problem)
	}
	whose, err := t.findInstalledAgent(ctx, spoke)
	if err != nil {
		return t.newNotRemovedError(remote.DescribeFailure(err))
	}
	if whose == ownAgent {
		if err := t.deleteAgentObjects(ctx, spoke); err != nil {
			return t.newNotRemovedError(remote.DescribeFailure(err))
		}
	}
	dp := t.snapshot.Plane
	t.progress.updateProgress(client.ObjectKeyFromObject(dp), dp.UID, func(d *progress) { d.removed = true })
	return nil
}

func (t *execution) deleteAgentObjects(ctx context.Context, spoke client.Client) error {
	m, err := install.DataPlaneManifests(install.Agent{Operator: agent.StandIn}) // the names do not depend on the other fields
	if err != nil {
		return err
	}
	for _, o := range slices.Backward(m.Apply) {
		if o.GetObjectKind().GroupVersionKind().Kind == "Deployment" {
			continue
		}
		u, err := toUnstructured(o)
		if err != nil {
			return err
		}
		if err := spoke.Delete(ctx, u); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

func (t *execution) newNotRemovedError(why string) error {
	remedy := "start the cluster, or set spec.deletionPolicy to Delete to destroy it"
	if ref := t.snapshot.Plane.Spec.ClusterRef; ref != nil && ref.KubeconfigSecret != nil {
		remedy = fmt.Sprintf("make the cluster reachable, or delete Secret %s to leave the agent there", ref.KubeconfigSecret.Name)
	}
	return &refusedError{v1alpha1.ReasonAgentNotInstalled, fmt.Sprintf("The agent cannot be removed from its cluster, which is kept: %s. To continue, %s.", why, remedy)}
}

// toUnstructured converts an object for server-side apply, without the fields that only the cluster
// sets.
func toUnstructured(o client.Object) (*unstructured.Unstructured, error) {
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
