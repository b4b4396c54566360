package clusterpool

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/install/config"
	"hotspare.io/hotspare/internal/inventory"
	"hotspare.io/hotspare/internal/pool/facts"
	"hotspare.io/hotspare/internal/provision"
)

// A clusterBuilder has everything that the new clusters of a pass are built from.
type clusterBuilder struct {
	pool    *hivev1.ClusterPool
	version string
	// sources is the version of the Secrets and the customization, or an older one.
	sources string
	// recipe is the value of status.recipeVersion of the pool.
	recipe   string
	template []byte
	secrets  []*corev1.Secret // copied under their own names
	// poolCustomization is the customization of all clusters of the pool, of which only the
	// manifest patches count; nil if there is none.
	poolCustomization *hivev1.ClusterDeploymentCustomization
}

// buildObjects returns the objects of one cluster: its namespace and Secrets, and the
// ClusterDeployment, which comes last.
//
// If c is not nil, the cluster must have the lease of c, and the objects include its patches.
func (b clusterBuilder) buildObjects(name string, c *hivev1.ClusterDeploymentCustomization) ([]client.Object, *hivev1.ClusterDeployment, error) {
	cd := b.newClusterDeployment(name)
	made, err := b.renderInstallConfig(cd, c)
	if err != nil {
		return nil, nil, fmt.Errorf("rendering the install-config of cluster %s: %w", name, err)
	}
	// Package provision would write these first; here they cost no write.
	controllerutil.AddFinalizer(cd, hivev1.FinalizerDeprovision)
	maps.Copy(cd.Labels, provision.ClusterLabels(cd.Spec.Platform, cd.Labels))
	data := map[string][]byte{hivev1.SecretKeyInstallConfig: made.config}
	if made.patches != nil {
		data[hivev1.SecretKeyManifestPatches] = made.patches
	}
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: b.withPoolLabels(map[string]string{
			hivev1.LabelNamespacePoolName: b.pool.Name,
		})}},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: cd.Spec.Provisioning.InstallConfigSecretRef.Name},
			Data:       data,
		},
	}
	for _, s := range b.secrets {
		objects = append(objects, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: s.Name},
			Type:       s.Type, Data: maps.Clone(s.Data), // creating an object overwrites it
		})
	}
	return objects, cd, nil
}

// rendered is the input of an installer: the install-config and the encoded manifest patches. Later
// edits of the patches affect only later clusters.
type rendered struct{ config, patches []byte }

func (b clusterBuilder) renderInstallConfig(cd *hivev1.ClusterDeployment, c *hivev1.ClusterDeploymentCustomization) (rendered, error) {
	patches, err := config.EncodeManifestPatches(config.ListManifestPatches(b.poolCustomization, c))
	if err != nil {
		return rendered{}, err
	}
	if c == nil {
		raw, err := facts.RenderInstallConfig(b.template, b.pool, cd.Name)
		return rendered{raw, patches}, err
	}
	version, err := inventory.CustomizationVersion(c.Spec)
	if err != nil {
		return rendered{}, err
	}
	raw, spec, err := facts.RenderCustomizedCluster(b.template, b.pool, cd.Name, c)
	if err != nil {
		return rendered{}, fmt.Errorf("customization %s: %w", c.Name, err)
	}
	cd.Spec = spec
	cd.Spec.ClusterPoolRef.CustomizationRef = &corev1.LocalObjectReference{Name: c.Name}
	cd.Annotations[hivev1.AnnotationCustomizationVersion] = version
	cd.Finalizers = append(cd.Finalizers, hivev1.FinalizerLease)
	// The name contains a hash of the content, so that it is never the Secret of an earlier attempt
	// with another customization or an older version of this one: existing Secrets are not changed.
	sum := sha256.Sum256(slices.Concat(raw, patches))
	cd.Spec.Provisioning.InstallConfigSecretRef.Name += "-" + hex.EncodeToString(sum[:])[:8]
	return rendered{raw, patches}, nil
}

// withPoolLabels returns the given labels and the two that identify the pool's clusters, which
// users cannot override.
func (b clusterBuilder) withPoolLabels(with map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, with)
	out[hivev1.LabelPoolName], out[hivev1.LabelPoolNamespace] = b.pool.Name, b.pool.Namespace
	return out
}

func (b clusterBuilder) newClusterDeployment(name string) *hivev1.ClusterDeployment {
	annotations := map[string]string{}
	maps.Copy(annotations, b.pool.Spec.Annotations)
	annotations[hivev1.AnnotationPoolVersion] = b.version
	if b.sources != "" {
		annotations[hivev1.AnnotationSourceVersion] = b.sources
	}
	if b.recipe != "" {
		annotations[hivev1.AnnotationRecipeVersion] = b.recipe
	}
	return &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: name, Name: name,
			Labels:      b.withPoolLabels(b.pool.Spec.Labels),
			Annotations: annotations,
		},
		Spec: facts.NewClusterSpec(b.pool, name),
	}
}

// fixedNameSecrets returns the Secrets that a new cluster is created with, without those whose
// names depend on their content.
func (b clusterBuilder) fixedNameSecrets(name string) ([]*corev1.Secret, error) {
	from := b
	if len(b.pool.Spec.Inventory) > 0 {
		from.template = nil // the Secret with the install-config is named after its content
	}
	objects, cd, err := from.buildObjects(name, nil)
	if err != nil {
		return nil, err
	}
	var out []*corev1.Secret
	for _, o := range objects {
		secret, is := o.(*corev1.Secret)
		if is && !(len(b.pool.Spec.Inventory) > 0 && secret.Name == cd.Spec.Provisioning.InstallConfigSecretRef.Name) {
			out = append(out, secret)
		}
	}
	return out, nil
}
