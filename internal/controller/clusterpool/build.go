package clusterpool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/pool/facts"
)

// maxName is what fits in a label, which a cluster's name is.
const maxName = 63

// names chooses names for n new clusters.
func (s *seen) names(n int, suffix func() string) []string {
	var out []string
	for len(out) < n {
		name := clusterName(s.pool.Name, suffix())
		if s.clusters[name] == nil && !slices.Contains(s.pool.Status.Pending, name) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// clusterName is <pool>-<suffix>; a long pool name is cut and a hash of it put in between.
func clusterName(poolName, suffix string) string {
	if len(poolName)+1+len(suffix) <= maxName {
		return poolName + "-" + suffix
	}
	sum := sha256.Sum256([]byte(poolName))
	tail := "-" + hex.EncodeToString(sum[:])[:6] + "-" + suffix
	return poolName[:maxName-len(tail)] + tail
}

// material is what every new cluster of a pass is built from.
type material struct {
	pool     *hivev1.ClusterPool
	version  string
	template []byte
	secrets  []*corev1.Secret // copied under their own names
}

// material reads the Secrets that a pool refers to. One that is missing counts
// only for clusters that are not fake: those have been stopped before.
func (r *Reconciler) material(ctx context.Context, s *seen) (material, error) {
	m := material{pool: s.pool, version: s.snapshot.Settings.Version}
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
	template, err := read(s.pool.Spec.InstallConfigSecretTemplateRef)
	if err != nil {
		return m, err
	}
	if template != nil {
		m.template = template.Data[hivev1.SecretKeyInstallConfig]
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

// build makes the objects of one cluster: its namespace and Secrets, and the
// ClusterDeployment, which comes last.
func (m material) build(name string) ([]client.Object, *hivev1.ClusterDeployment, error) {
	raw, err := facts.Render(m.template, m.pool, name)
	if err != nil {
		return nil, nil, fmt.Errorf("rendering the install-config of cluster %s: %w", name, err)
	}
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: m.labels(map[string]string{
			hivev1.LabelNamespacePoolName: m.pool.Name,
		})}},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: installConfigName(name)},
			Data:       map[string][]byte{hivev1.SecretKeyInstallConfig: raw},
		},
	}
	for _, s := range m.secrets {
		objects = append(objects, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: s.Name},
			Type:       s.Type, Data: s.Data,
		})
	}
	return objects, m.cluster(name), nil
}

func installConfigName(cluster string) string { return cluster + "-install-config" }

// labels are those given, and the two that the pool's clusters are found by: these
// are not the user's to set.
func (m material) labels(with map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, with)
	out[hivev1.LabelPoolName], out[hivev1.LabelPoolNamespace] = m.pool.Name, m.pool.Namespace
	return out
}

func (m material) cluster(name string) *hivev1.ClusterDeployment {
	spec := m.pool.Spec.DeepCopy()
	annotations := map[string]string{}
	maps.Copy(annotations, spec.Annotations)
	annotations[hivev1.AnnotationPoolVersion] = m.version
	labels := map[string]string{}
	maps.Copy(labels, spec.Labels)
	return &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: name, Name: name,
			Labels:      m.labels(labels),
			Annotations: annotations,
		},
		Spec: hivev1.ClusterDeploymentSpec{
			ClusterName:    name,
			BaseDomain:     spec.BaseDomain,
			Platform:       spec.Platform,
			PullSecretRef:  spec.PullSecretRef,
			ClusterPoolRef: &hivev1.ClusterPoolReference{Namespace: m.pool.Namespace, PoolName: m.pool.Name},
			Provisioning: &hivev1.Provisioning{
				InstallConfigSecretRef: &corev1.LocalObjectReference{Name: installConfigName(name)},
				ImageSetRef:            &spec.ImageSetRef,
				InstallerEnv:           spec.InstallerEnv,
			},
			HibernateAfter:                           spec.HibernateAfter,
			InstallAttemptsLimit:                     spec.InstallAttemptsLimit,
			PowerstateTransitionToRunningTimeout:     facts.ResumeTimeout(m.pool),
			PowerstateTransitionToHibernatingTimeout: spec.PowerstateTransitionToHibernatingTimeout,
		},
	}
}
