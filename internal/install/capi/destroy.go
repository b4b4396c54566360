package capi

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"hotspare.io/hotspare/internal/clusterapi"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
)

// reasonDestroyTimeout is the reason of a destruction that takes longer than DestroyLimit.
const reasonDestroyTimeout = "DestroyTimeout"

// Destroy deletes the Cluster and waits until Cluster API has deleted its machines, then deletes the
// other objects of the attempt. It needs neither the ClusterClass nor the template.
//
// Cluster API deletes nothing of a paused Cluster. Destroy therefore removes the pause of a
// hibernation, after the deletion, so that nothing else happens in between; a pause of another user
// stays, and Destroy reports it.
func (e *Executor) Destroy(ctx context.Context, place install.ClusterTarget, md install.Metadata) (install.Result, error) {
	cluster, err := e.getCluster(ctx, place, md.InfraID)
	if isGone(err) {
		return e.deleteRest(ctx, place, md)
	}
	if err != nil {
		return install.Result{}, err
	}
	if !isOwnedBy(cluster, place) {
		return install.Result{}, notOwnedError(refOf(cluster), place)
	}
	if cluster.GetDeletionTimestamp() == nil {
		if err := e.deleteObject(ctx, refOf(cluster), place.Cluster.Namespace, cluster.GetUID()); err != nil {
			return install.Result{}, err
		}
	}
	if clusterapi.IsPausedByHotspare(cluster) {
		return install.Result{Phase: install.Running}, e.unpauseDeleted(ctx, cluster)
	}
	if clusterapi.IsPaused(cluster) {
		return failedResult(reasonDestroyTimeout, "Cluster %s is deleted, and another user has paused it, so Cluster API does not delete its machines: "+
			"whoever paused it can set its spec.paused to false.", md.InfraID), nil
	}
	if since := cluster.GetDeletionTimestamp(); since != nil && e.Clock.Since(since.Time) > e.DestroyLimit {
		return failedResult(reasonDestroyTimeout, "Cluster %s was deleted more than %s ago and still exists: %s.", md.InfraID, e.DestroyLimit, describeDeleting(cluster)), nil
	}
	return install.Result{Phase: install.Running}, nil
}

func notOwnedError(ref objectRef, place install.ClusterTarget) error {
	return fault.NewDenied("%s in namespace %s was not created by hotspare for this ClusterDeployment, so hotspare does not delete it: "+
		"set spec.preserveOnDelete of ClusterDeployment %s to delete that alone, or set the annotation %s of the object to %s to have it deleted",
		ref, place.Cluster.Namespace, place.Cluster.Name, clusterapi.AnnotationOwner, place.UID)
}

// deleteObject deletes an object that was observed with that UID. An object that is gone is no
// error.
func (e *Executor) deleteObject(ctx context.Context, ref objectRef, namespace string, uid types.UID) error {
	api, err := e.resourceOf(ref, namespace)
	if err != nil {
		return err
	}
	background := metav1.DeletePropagationBackground
	err = api.Delete(ctx, ref.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background})
	if err != nil && !isGone(err) {
		return fmt.Errorf("deleting %s in namespace %s: %w", ref, namespace, err)
	}
	return nil
}

// unpauseDeleted removes the pause with which hotspare hibernated a Cluster that is being deleted.
func (e *Executor) unpauseDeleted(ctx context.Context, cluster *unstructured.Unstructured) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{clusterapi.AnnotationPaused: nil}},
		"spec":     map[string]any{"paused": nil},
	})
	if err != nil {
		return fmt.Errorf("encoding the patch of Cluster %s: %w", cluster.GetName(), err)
	}
	_, err = e.hub.Resource(clusterapi.Clusters).Namespace(cluster.GetNamespace()).Patch(ctx, cluster.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil && !isGone(err) {
		return fmt.Errorf("unpausing Cluster %s, which is being deleted: %w", cluster.GetName(), err)
	}
	return nil
}

// deleteRest deletes the objects of an attempt whose Cluster does not exist, and waits until they
// are gone: templates, for example, which Cluster API does not delete.
func (e *Executor) deleteRest(ctx context.Context, place install.ClusterTarget, md install.Metadata) (install.Result, error) {
	refs, err := listObjects(md)
	if err != nil {
		return install.Result{}, err
	}
	left := false
	for _, ref := range refs {
		api, err := e.resourceOf(ref, place.Cluster.Namespace)
		if err != nil {
			return install.Result{}, err
		}
		o, err := api.Get(ctx, ref.Name, metav1.GetOptions{})
		switch {
		case isGone(err):
			continue
		case clusterapi.IsKindMissing(err):
			return install.Result{}, fault.NewDenied("the hub does not serve %s of %s, so it is unknown whether %s still exists: install the provider of Cluster API on the hub again, "+
				"or set spec.preserveOnDelete of ClusterDeployment %s", ref.Kind, ref.APIVersion, ref, place.Cluster.Name)
		case err != nil:
			return install.Result{}, fmt.Errorf("reading %s: %w", ref, err)
		case !isOwnedBy(o, place):
			continue // another user has created an object of that name
		}
		left = true
		if o.GetDeletionTimestamp() != nil {
			continue
		}
		if err := e.deleteObject(ctx, ref, place.Cluster.Namespace, o.GetUID()); err != nil {
			return install.Result{}, err
		}
	}
	if left {
		return install.Result{Phase: install.Running}, nil
	}
	return install.Result{Phase: install.Succeeded}, nil
}

// describeDeleting says what the deletion of a Cluster waits for.
func describeDeleting(cluster *unstructured.Unstructured) string {
	if c := clusterapi.Condition(cluster, clusterapi.Deleting); c != nil && c.Message != "" {
		return strings.TrimSuffix(toLine(c.Message), ".") + "; see its condition Deleting and the logs of the infrastructure provider"
	}
	return "its condition Deleting has no message: check that the controllers of Cluster API run, and its finalizers " + strings.Join(cluster.GetFinalizers(), ", ")
}
