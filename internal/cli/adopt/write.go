package adopt

import (
	"context"
	"fmt"
	"io"
	"maps"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/explain/humanize"
)

// finish writes the objects and reports the result, or prints the manifests.
func (a commands) finish(ctx context.Context, h *base.Hub, c *candidate, dryRun bool) error {
	if err := a.confirmAccepted(ctx, h, c); err != nil {
		return err
	}
	for _, n := range c.notes {
		fmt.Fprintf(a.Stderr, "note: %s\n", n)
	}
	if dryRun {
		if c.pool != nil {
			labelPoolNamespace(c.Namespace, c.pool)
			fmt.Fprintln(a.Stderr, "note: the order of the writes matters for a spare of a pool, so do not apply these manifests: run the command without --dry-run")
		}
		return a.PrintManifests(c.listObjects())
	}
	if err := a.writeObjects(ctx, h, c); err != nil {
		return err
	}
	clusters, err := a.listManaged(ctx, h, &candidate{adoption: c.adoption})
	if err != nil {
		return err
	}
	if other, how := findOtherManager(clusters, c.Cluster, c.access.Server); other != nil {
		return base.WithRemedy(fmt.Errorf("ClusterDeployment %s was created for the same cluster at the same time: it has %s", describeKey(other), how),
			"agree which one stays, and delete the other: deleting keeps the cluster")
	}
	return a.PrintObject(c.Cluster, func(w io.Writer) error { return a.describeAdoption(w, h, c) })
}

// writeObjects writes the objects so that the command can be repeated after it ended at any point. The
// ClusterDeployment comes last: hotspare acts on nothing before.
func (a commands) writeObjects(ctx context.Context, h *base.Hub, c *candidate) error {
	if c.pool != nil {
		if err := ensureNamespace(ctx, h, c.Namespace, c.pool); err != nil {
			return err
		}
	}
	for _, s := range c.Secrets {
		if err := ensureSecret(ctx, h, s); err != nil {
			return err
		}
	}
	if c.pool != nil {
		before := c.Namespace.DeepCopy()
		labelPoolNamespace(c.Namespace, c.pool)
		if err := h.Patch(ctx, c.Namespace, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("labeling namespace %s: %w", c.Namespace.Name, err)
		}
	}
	err := h.Create(ctx, c.Cluster)
	if apierrors.IsAlreadyExists(err) {
		want := c.Cluster.DeepCopy()
		if err := h.Get(ctx, client.ObjectKeyFromObject(want), c.Cluster); err != nil {
			return fmt.Errorf("reading ClusterDeployment %s: %w", describeKey(want), err)
		}
		err = confirmSameCluster(c.Cluster, want)
	}
	if err != nil {
		return fmt.Errorf("creating ClusterDeployment %s: %w", describeKey(c.Cluster), err)
	}
	for _, s := range c.Secrets {
		if err := ownSecret(ctx, h, s, c.Cluster); err != nil {
			return err
		}
	}
	return nil
}

// ensureNamespace creates the namespace of a spare, or continues with one that an interrupted command
// created for the same pool.
func ensureNamespace(ctx context.Context, h *base.Hub, ns *corev1.Namespace, p *hivev1.ClusterPool) error {
	err := h.Create(ctx, ns)
	if !apierrors.IsAlreadyExists(err) {
		if err != nil {
			return fmt.Errorf("creating namespace %s: %w", ns.Name, err)
		}
		return nil
	}
	if err := h.Get(ctx, client.ObjectKeyFromObject(ns), ns); err != nil {
		return fmt.Errorf("reading namespace %s: %w", ns.Name, err)
	}
	switch {
	case ns.Annotations[annotationAdopting] != client.ObjectKeyFromObject(p).String():
		return fmt.Errorf("namespace %s exists and would be deleted with the cluster: choose another name for the cluster", ns.Name)
	case ns.DeletionTimestamp != nil:
		return fmt.Errorf("namespace %s is being deleted: try again when it is deleted", ns.Name)
	}
	return nil
}

// ensureSecret creates a Secret, or replaces the data of one that was created for the same cluster. It does
// not change a Secret of anybody else.
func ensureSecret(ctx context.Context, h *base.Hub, want *corev1.Secret) error {
	key := client.ObjectKeyFromObject(want)
	err := h.Create(ctx, want.DeepCopy())
	if !apierrors.IsAlreadyExists(err) {
		if err != nil {
			return fmt.Errorf("creating Secret %s: %w", key, err)
		}
		return nil
	}
	var have corev1.Secret
	if err := h.Get(ctx, key, &have); err != nil {
		return fmt.Errorf("reading Secret %s: %w", key, err)
	}
	if reflect.DeepEqual(have.Data, want.Data) {
		return nil
	}
	for name, value := range want.Labels {
		if have.Labels[name] != value {
			return fmt.Errorf("the Secret %s exists and was not created for this cluster: delete the Secret or choose another name for the cluster", key)
		}
	}
	before := have.DeepCopy()
	have.Data = maps.Clone(want.Data)
	if err := h.Patch(ctx, &have, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("replacing the data of Secret %s: %w", key, err)
	}
	return nil
}

// ownSecret makes the ClusterDeployment the owner of a Secret, so that the Secret is deleted with it. A
// Secret without the labels of the cluster is another user's, and stays as it is.
func ownSecret(ctx context.Context, h *base.Hub, s *corev1.Secret, cd *hivev1.ClusterDeployment) error {
	var have corev1.Secret
	if err := h.Get(ctx, client.ObjectKeyFromObject(s), &have); err != nil {
		return fmt.Errorf("reading Secret %s: %w", describeKey(s), err)
	}
	if have.Labels[hivev1.LabelClusterDeployment] != cd.Name || len(have.OwnerReferences) > 0 && have.OwnerReferences[0].UID == cd.UID {
		return nil
	}
	before := have.DeepCopy()
	have.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(cd, hivev1.GroupVersion.WithKind("ClusterDeployment"))}
	if err := h.Patch(ctx, &have, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("writing the owner of Secret %s: %w", describeKey(s), err)
	}
	return nil
}

// describeAdoption says what was adopted, and what deleting it does.
func (a commands) describeAdoption(w io.Writer, h *base.Hub, c *candidate) error {
	cd, verb := c.Cluster, "adopted"
	if c.known {
		verb = "was adopted before, and its kubeconfig is up to date"
	}
	found := humanize.FormatCount(len(c.id.Nodes), "node")
	if c.machines != nil {
		found += ", " + humanize.FormatCount(len(c.machines), "machine")
	}
	fmt.Fprintf(w, "cluster %s %s: %s at %s\n\n", cd.Name, verb, found, c.access.Server)
	if cd.Spec.PreserveOnDelete {
		fmt.Fprintf(w, "Deleting ClusterDeployment %s keeps the cluster and its machines as they are, because spec.preserveOnDelete\n"+
			"is true. If the cluster hibernates, resume it first.\n", cd.Name)
	} else {
		fmt.Fprintf(w, "Deleting ClusterDeployment %s destroys the cluster, because spec.preserveOnDelete is false.\n", cd.Name)
	}
	if c.pool != nil {
		fmt.Fprintf(w, "The cluster is a spare of pool %s. Its claim gets the kubeconfig, which stays valid after the claim is released:\n"+
			"revoke it then. Releasing the claim deletes the ClusterDeployment, so the cluster leaves the pool.\n", c.pool.Name)
	}
	_, err := fmt.Fprintf(w, "\nShow its state:\n  %s\nStop managing it:\n  %s\n",
		a.formatCommandFor(h, cd, "cluster describe %s"), a.formatCommandFor(h, cd, "kubectl delete clusterdeployment %s"))
	return err
}
