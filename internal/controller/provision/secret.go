package provision

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/patch"
)

func kubeconfigSecret(cd *hivev1.ClusterDeployment) *corev1.LocalObjectReference {
	return &corev1.LocalObjectReference{Name: cd.Name + "-admin-kubeconfig"}
}

func passwordSecret(cd *hivev1.ClusterDeployment) *corev1.LocalObjectReference {
	return &corev1.LocalObjectReference{Name: cd.Name + "-admin-password"}
}

func metadataSecret(cd *hivev1.ClusterDeployment) *corev1.LocalObjectReference {
	return &corev1.LocalObjectReference{Name: cd.Name + "-metadata-json"}
}

func (p *pass) newSecret(ref *corev1.LocalObjectReference, holds string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.cluster.Namespace,
			Name:      ref.Name,
			Labels: map[string]string{
				hivev1.LabelClusterDeployment: p.cluster.Name,
				hivev1.LabelSecretType:        holds,
			},
		},
		Data: data,
	}
}

// storeSecret writes a Secret of the cluster, replacing one of that name that an earlier attempt
// or an interrupted pass has left.
func (p *pass) storeSecret(ctx context.Context, want *corev1.Secret) error {
	if err := controllerutil.SetControllerReference(p.cluster, want, p.Client.Scheme()); err != nil {
		return err
	}
	err := p.Client.Create(ctx, want)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	var have corev1.Secret
	if err := p.Live.Get(ctx, client.ObjectKeyFromObject(want), &have); err != nil {
		return fmt.Errorf("reading Secret %s: %w", want.Name, err)
	}
	before := have.DeepCopy()
	have.Data = want.Data
	have.OwnerReferences = want.OwnerReferences
	addLabels(&have, want.Labels)
	_, err = patch.Object(ctx, p.Client, before, &have)
	return err
}
