package remote

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/bootstrap"
)

// leftoverKinds are the kinds of what hotspare creates to take steps, in the order in which they are deleted: rights
// first, and Jobs before their pods, so that no pod is replaced.
var leftoverKinds = []struct{ kind, path string }{
	{"ClusterRoleBinding", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"},
	{"Job", "/apis/batch/v1/namespaces/" + bootstrap.JobNamespace + "/jobs"},
	{"Pod", "/api/v1/namespaces/" + bootstrap.JobNamespace + "/pods"},
	{"ServiceAccount", "/api/v1/namespaces/" + bootstrap.JobNamespace + "/serviceaccounts"},
	{"Secret", "/api/v1/namespaces/" + bootstrap.JobNamespace + "/secrets"},
}

// RemoveOtherVersions deletes what steps of versions other than version have left in the cluster whose admin kubeconfig
// is in the Secret: Jobs with their pods, rights and environments, and records of charts. An empty version deletes that
// of all versions. It is Done when nothing of it exists any more. It may be repeated. An error is the hub's own.
func (c *Connector) RemoveOtherVersions(ctx context.Context, secret types.NamespacedName, version string) (bootstrap.Outcome, error) {
	a, trouble, err := c.connectSpoke(ctx, secret)
	if err != nil {
		return bootstrap.Outcome{}, err
	}
	if trouble != "" {
		return bootstrap.Outcome{Message: "the cluster does not answer: " + trouble}, nil
	}
	return a.removeOtherVersions(ctx, version), nil
}

func (sc *spokeClient) removeOtherVersions(ctx context.Context, version string) bootstrap.Outcome {
	var left []string
	for _, k := range leftoverKinds {
		names, err := sc.deleteOtherVersions(ctx, k.path, version)
		if err != nil {
			return bootstrap.Outcome{Message: "what earlier steps have left in the cluster cannot be removed: " + DescribeFailure(err)}
		}
		for _, name := range names {
			left = append(left, k.kind+" "+name)
		}
	}
	if len(left) > 0 {
		return bootstrap.Outcome{Message: "waiting for the deletion of what earlier steps have left in the cluster: " + joinFirst(left)}
	}
	return bootstrap.Outcome{Done: true}
}

// deleteOtherVersions deletes the objects of one kind that are of another version, and returns the names of those that
// it has found: they may exist for some more time.
func (sc *spokeClient) deleteOtherVersions(ctx context.Context, path, version string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list, err := sc.listOtherVersions(ctx, path, version)
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range list.Items {
		o := &list.Items[i]
		names = append(names, o.Name)
		if o.DeletionTimestamp != nil {
			continue
		}
		if err := sc.deleteByUID(ctx, path+"/"+o.Name, o.UID); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// metadataOnly lets an API server return the metadata of objects, without the data of Secrets.
const metadataOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

// listOtherVersions lists the objects of one kind that have the label of another version.
func (sc *spokeClient) listOtherVersions(ctx context.Context, path, version string) (metav1.PartialObjectMetadataList, error) {
	const label = v1alpha1.LabelBootstrapVersion
	selector := label
	if version != "" {
		selector += "," + label + "!=" + version
	}
	var list metav1.PartialObjectMetadataList
	raw, err := sc.core.RESTClient().Get().AbsPath(path).Param("labelSelector", selector).SetHeader("Accept", metadataOnly).DoRaw(ctx)
	if apierrors.IsNotFound(err) {
		return list, nil // the cluster does not serve the kind
	}
	if err != nil {
		return list, fmt.Errorf("listing %s: %w", path, err)
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return list, fmt.Errorf("decoding %s: %w", path, err)
	}
	return list, nil
}

// deleteByUID deletes an object, and what it owns. An object that does not exist, or has another UID, is deleted.
func (sc *spokeClient) deleteByUID(ctx context.Context, path string, uid types.UID) error {
	options := metav1.DeleteOptions{
		Preconditions: metav1.NewUIDPreconditions(string(uid)), PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
	}
	raw, err := json.Marshal(options)
	if err != nil {
		return fmt.Errorf("encoding the deletion of %s: %w", path, err)
	}
	err = sc.core.RESTClient().Delete().AbsPath(path).SetHeader("Content-Type", "application/json").Body(raw).Do(ctx).Error()
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting %s: %w", path, err)
	}
	return nil
}
