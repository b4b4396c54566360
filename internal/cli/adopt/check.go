package adopt

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/explain/humanize"
)

// confirmUnmanaged returns an error if the cluster is the hub itself, or if another ClusterDeployment
// manages it. It sets c.known if its own ClusterDeployment exists.
func (a commands) confirmUnmanaged(ctx context.Context, h *base.Hub, c *candidate) error {
	var system corev1.Namespace
	err := h.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &system)
	if err == nil && string(system.UID) == c.id.ID && c.id.ID != "" || serverAddress(h.URL) == serverAddress(c.access.Server) {
		return fmt.Errorf("the cluster at %s is the hub itself, which cannot hibernate its own machines: specify the kubeconfig of another cluster", c.access.Server)
	}
	clusters, err := a.listManaged(ctx, h, c)
	if err != nil {
		return err
	}
	if other, how := findOtherManager(clusters, c.Cluster, c.access.Server); other != nil {
		return base.WithRemedy(fmt.Errorf("ClusterDeployment %s manages this cluster already: it has %s", describeKey(other), how),
			"show it with: "+a.formatCommandFor(h, other, "cluster describe %s"))
	}
	var existing hivev1.ClusterDeployment
	err = h.Get(ctx, client.ObjectKeyFromObject(c.Cluster), &existing)
	switch {
	case apierrors.IsNotFound(err) && !base.IsAPIMissing(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading ClusterDeployment %s: %w", describeKey(c.Cluster), err)
	}
	c.known = true
	return confirmSameCluster(&existing, c.Cluster)
}

// listManaged lists the ClusterDeployments of the hub, or, for a user who may not, those of the
// cluster's namespace.
func (a commands) listManaged(ctx context.Context, h *base.Hub, c *candidate) ([]hivev1.ClusterDeployment, error) {
	var list hivev1.ClusterDeploymentList
	err := h.List(ctx, &list)
	if apierrors.IsForbidden(err) {
		c.addNote("you may not list the ClusterDeployments of all namespaces, so only namespace %s was checked for another one of this cluster", c.Cluster.Namespace)
		err = h.List(ctx, &list, client.InNamespace(c.Cluster.Namespace))
	}
	if err != nil {
		return nil, fmt.Errorf("listing ClusterDeployments: %w", err)
	}
	return list.Items, nil
}

// findMachines finds the machines of the cluster, with the rights of the user. A spare of a pool has no
// Secrets yet, so those in the namespace of the pool are used.
func (a commands) findMachines(ctx context.Context, h *base.Hub, c *candidate) error {
	if a.FindMachines == nil {
		return fmt.Errorf("this program cannot find machines on platform %s: use the program hotspare", c.Cluster.Spec.Platform.Name())
	}
	config, _, err := a.LoadClientConfig()
	if err != nil {
		return err
	}
	cd := c.Cluster.DeepCopy()
	cd.Namespace = h.Namespace
	infraID, platform := cd.Spec.ClusterMetadata.InfraID, cd.Spec.Platform.Name()
	c.machines, err = a.FindMachines(ctx, config, cd)
	switch {
	case err != nil:
		return fmt.Errorf("finding the machines of infraID %s on platform %s: %w", infraID, platform, err)
	case len(c.machines) == 0:
		return base.WithRemedy(fmt.Errorf("there are no machines of infraID %s on platform %s", infraID, platform),
			"correct --infra-id, --region or the credentials, or adopt the cluster without hibernation: --platform none")
	case len(c.machines) != len(c.id.Nodes):
		c.addNote("there are %s and %s: check that the infraID is that of this cluster",
			humanize.FormatCount(len(c.machines), "machine"), humanize.FormatCount(len(c.id.Nodes), "node"))
	}
	return nil
}

// confirmAccepted asks the hub whether it would accept the objects: their schemas, the user's rights and
// the admission policies. It writes nothing.
//
// Nothing can be tried in a namespace that does not exist yet. For a spare of a pool, the ClusterDeployment
// is therefore tried in the namespace of the pool, where the same rules about clusters of pools apply.
func (a commands) confirmAccepted(ctx context.Context, h *base.Hub, c *candidate) error {
	objects := c.listObjects()
	if c.pool != nil {
		ns, cd := c.Namespace.DeepCopy(), c.Cluster.DeepCopy()
		labelPoolNamespace(ns, c.pool)
		cd.Namespace = c.pool.Namespace
		objects = []client.Object{ns, cd}
	}
	for _, o := range objects {
		try := o.DeepCopyObject().(client.Object) //nolint:forcetypeassert // of the same type
		err := h.Create(ctx, try, client.DryRunAll)
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return a.explainMissingNamespace(err, o.GetNamespace())
		}
	}
	return nil
}
