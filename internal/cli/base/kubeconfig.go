package base

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/explain/clusterstate"
)

// ReadKubeconfig reads the administrator kubeconfig of a cluster.
func (h *Hub) ReadKubeconfig(ctx context.Context, cd *hivev1.ClusterDeployment) ([]byte, error) {
	if cd.Spec.ClusterMetadata == nil || !cd.Spec.Installed {
		return nil, fmt.Errorf("cluster %s has no kubeconfig yet: its state is %s", cd.Name, ValueOrNone(clusterstate.OfCluster(cd)))
	}
	name := cd.Spec.ClusterMetadata.AdminKubeconfigSecretRef.Name
	var s corev1.Secret
	if err := h.Get(ctx, client.ObjectKey{Namespace: cd.Namespace, Name: name}, &s); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of cluster %s: %w", cd.Name, err)
	}
	raw := hivev1.KubeconfigOf(s.Data)
	if len(raw) == 0 {
		return nil, fmt.Errorf("the Secret %s/%s has no key %s", cd.Namespace, name, hivev1.SecretKeyKubeconfig)
	}
	return raw, nil
}
