package clusterpool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/install/config"
	"hotspare.io/hotspare/internal/inventory"
	"hotspare.io/hotspare/internal/pool/facts"
)

// maxLabelLength is what fits in a label, which a cluster's name is.
const maxLabelLength = 63

// maxNameLength is how long names of a pool's clusters may be.
func maxNameLength(p *hivev1.ClusterPool) int {
	if facts.IsFake(p) || p.Spec.Platform.Local != nil {
		return maxLabelLength
	}
	return config.MaxCloudName
}

// generateNames chooses names for n new clusters.
func (s *observation) generateNames(n int, suffix func() string) []string {
	var out []string
	for len(out) < n {
		name := clusterName(s.pool.Name, suffix(), maxNameLength(s.pool))
		if s.clusters[name] == nil && !slices.Contains(s.pool.Status.Pending, name) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// clusterName is <pool>-<suffix>; a long pool name is cut and a hash of it put in between.
func clusterName(poolName, suffix string, most int) string {
	if len(poolName)+1+len(suffix) <= most {
		return poolName + "-" + suffix
	}
	sum := sha256.Sum256([]byte(poolName))
	tail := "-" + hex.EncodeToString(sum[:])[:6] + "-" + suffix
	return poolName[:most-len(tail)] + tail
}

// clusterBuilder is what every new cluster of a pass is built from.
type clusterBuilder struct {
	pool    *hivev1.ClusterPool
	version string
	// sources is the version of the Secrets and the customization, or an older one.
	sources  string
	template []byte
	secrets  []*corev1.Secret // copied under their own names
	// poolCustomization is the customization of all clusters of the pool, of which only the patches
	// of manifests count; nil without.
	poolCustomization *hivev1.ClusterDeploymentCustomization
}

// newClusterBuilder reads the Secrets that a pool refers to. One that is missing counts
// only for clusters that are not fake: those have been stopped before.
func (r *Reconciler) newClusterBuilder(ctx context.Context, s *observation) (clusterBuilder, error) {
	m := clusterBuilder{pool: s.pool, version: s.snapshot.Settings.Version, sources: s.sources}
	read := func(ref *corev1.LocalObjectReference) (*corev1.Secret, error) {
		if ref == nil || ref.Name == "" {
			return nil, nil
		}
		var secret corev1.Secret
		err := r.Live.Get(ctx, types.NamespacedName{Namespace: s.pool.Namespace, Name: ref.Name}, &secret)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading Secret %s: %w", ref.Name, err)
		}
		return &secret, nil
	}
	var err error
	if m.template, _, err = r.getInstallConfigTemplate(ctx, s.pool); err != nil {
		return m, err
	}
	if m.poolCustomization, err = r.getPoolCustomization(ctx, s.pool); err != nil {
		return m, err
	}
	set := s.pool.Spec.Platform.Settings()
	for _, ref := range []*corev1.LocalObjectReference{s.pool.Spec.PullSecretRef, set.CredentialsSecretRef, set.CertificatesSecretRef} {
		secret, err := read(ref)
		if err != nil {
			return m, err
		}
		if secret != nil && secret.Name != "" {
			m.secrets = append(m.secrets, secret)
		}
	}
	return m, nil
}

// getPoolCustomization reads the customization that is for all clusters of a pool; nil without. One
// that is missing is told of before, and keeps all but fake clusters from being made.
func (r *Reconciler) getPoolCustomization(ctx context.Context, p *hivev1.ClusterPool) (*hivev1.ClusterDeploymentCustomization, error) {
	ref := p.Spec.CustomizationRef
	if ref == nil || ref.Name == "" || facts.IsFake(p) {
		return nil, nil
	}
	var c hivev1.ClusterDeploymentCustomization
	if err := r.Client.Get(ctx, types.NamespacedName{Namespace: p.Namespace, Name: ref.Name}, &c); err != nil {
		return nil, fmt.Errorf("reading customization %s: %w", ref.Name, err)
	}
	if c.Unreadable != "" {
		return nil, fmt.Errorf("reading customization %s: %s", ref.Name, c.Unreadable)
	}
	return &c, nil
}

// getInstallConfigTemplate reads the pool's install-config template: nil where it has none, or it does
// not exist, which found tells.
func (r *Reconciler) getInstallConfigTemplate(ctx context.Context, p *hivev1.ClusterPool) (template []byte, found bool, err error) {
	ref := p.Spec.InstallConfigSecretTemplateRef
	if ref == nil || ref.Name == "" {
		return nil, true, nil
	}
	var secret corev1.Secret
	if err := r.Live.Get(ctx, types.NamespacedName{Namespace: p.Namespace, Name: ref.Name}, &secret); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, false, nil
		}
		return nil, false, fmt.Errorf("reading Secret %s: %w", ref.Name, err)
	}
	return secret.Data[hivev1.SecretKeyInstallConfig], true, nil
}

// buildObjects makes the objects of one cluster: its namespace and Secrets, and the
// ClusterDeployment, which comes last.
//
// With a customization, which must be held for it, they are as that says.
func (m clusterBuilder) buildObjects(name string, c *hivev1.ClusterDeploymentCustomization) ([]client.Object, *hivev1.ClusterDeployment, error) {
	cd := m.newClusterDeployment(name)
	made, err := m.renderInstallConfig(cd, c)
	if err != nil {
		return nil, nil, fmt.Errorf("rendering the install-config of cluster %s: %w", name, err)
	}
	data := map[string][]byte{hivev1.SecretKeyInstallConfig: made.config}
	if made.patches != nil {
		data[hivev1.SecretKeyManifestPatches] = made.patches
	}
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: m.withPoolLabels(map[string]string{
			hivev1.LabelNamespacePoolName: m.pool.Name,
		})}},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: cd.Spec.Provisioning.InstallConfigSecretRef.Name},
			Data:       data,
		},
	}
	for _, s := range m.secrets {
		objects = append(objects, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: s.Name},
			Type:       s.Type, Data: s.Data,
		})
	}
	return objects, cd, nil
}

// rendered is what an installer is given: the install-config and, encoded, the patches
// for its manifests, as they are now: what is edited later is for later clusters.
type rendered struct{ config, patches []byte }

func (m clusterBuilder) renderInstallConfig(cd *hivev1.ClusterDeployment, c *hivev1.ClusterDeploymentCustomization) (rendered, error) {
	patches, err := config.EncodeManifestPatches(config.ListManifestPatches(m.poolCustomization, c))
	if err != nil {
		return rendered{}, err
	}
	if c == nil {
		raw, err := facts.RenderInstallConfig(m.template, m.pool, cd.Name)
		return rendered{raw, patches}, err
	}
	version, err := inventory.CustomizationVersion(c.Spec)
	if err != nil {
		return rendered{}, err
	}
	raw, spec, err := facts.RenderCustomizedCluster(m.template, m.pool, cd.Name, c)
	if err != nil {
		return rendered{}, fmt.Errorf("customization %s: %w", c.Name, err)
	}
	cd.Spec = spec
	cd.Spec.ClusterPoolRef.CustomizationRef = &corev1.LocalObjectReference{Name: c.Name}
	cd.Annotations[hivev1.AnnotationCustomizationVersion] = version
	cd.Finalizers = append(cd.Finalizers, hivev1.FinalizerLease)
	// What is called after its content is never that of an earlier attempt, with another
	// customization or before this one was edited: Secrets that exist are left as they are.
	sum := sha256.Sum256(slices.Concat(raw, patches))
	cd.Spec.Provisioning.InstallConfigSecretRef.Name += "-" + hex.EncodeToString(sum[:])[:8]
	return rendered{raw, patches}, nil
}

// withPoolLabels are those given, and the two that the pool's clusters are found by: these
// are not the user's to set.
func (m clusterBuilder) withPoolLabels(with map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, with)
	out[hivev1.LabelPoolName], out[hivev1.LabelPoolNamespace] = m.pool.Name, m.pool.Namespace
	return out
}

func (m clusterBuilder) newClusterDeployment(name string) *hivev1.ClusterDeployment {
	annotations := map[string]string{}
	maps.Copy(annotations, m.pool.Spec.Annotations)
	annotations[hivev1.AnnotationPoolVersion] = m.version
	if m.sources != "" {
		annotations[hivev1.AnnotationSourceVersion] = m.sources
	}
	return &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: name, Name: name,
			Labels:      m.withPoolLabels(m.pool.Spec.Labels),
			Annotations: annotations,
		},
		Spec: facts.NewClusterSpec(m.pool, name),
	}
}
