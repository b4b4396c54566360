package clusterpool

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/clusterapi"
	"hotspare.io/hotspare/internal/pool"
	"hotspare.io/hotspare/internal/pool/facts"
)

// dependenciesTTL is how long the result of a check of a pool's Secrets is used. Secrets are read
// from the API server, since caching every Secret of a hub would use more memory than everything
// else.
const dependenciesTTL = 5 * time.Second

// findDependencies returns descriptions of what the pool needs and lacks, and the version of the
// dependencies that exist.
func (r *Reconciler) findDependencies(ctx context.Context, s *observation) (dependencies, error) {
	p, now := s.pool, r.Clock.Now()
	if p.DeletionTimestamp != nil {
		s.cache.dependencies.Store(nil)
		return dependencies{}, nil
	}
	if known := s.cache.dependencies.Load(); known != nil && known.generation == p.Generation && now.Sub(known.at) < dependenciesTTL {
		return *known, nil
	}
	found := dependencies{at: now, generation: p.Generation, missing: append(facts.InvalidFields(p, r.Installers), r.findObstacles(p)...)}
	var versions []string
	for _, n := range facts.ListDependencies(p) {
		words, version, err := r.checkDependency(ctx, p.Namespace, n)
		if err != nil {
			return dependencies{}, err
		}
		if words != "" {
			found.missing = append(found.missing, words)
		}
		if n.Kind != facts.ImageSet { // each attempt reads it again
			versions = append(versions, version)
		}
		if n.Kind == facts.ClusterClass || n.Kind == facts.ConfigMap {
			found.recipe = version
		}
	}
	found.sources = facts.SourceVersion(versions)
	if r.Recipes != nil && !facts.IsFake(p) {
		image, err := r.readReleaseImage(ctx, p)
		if err != nil {
			return dependencies{}, err
		}
		missing, version := r.Recipes.CheckPool(ctx, p, image)
		found.missing, found.recipe = append(found.missing, missing...), cmp.Or(version, found.recipe)
	}
	s.cache.dependencies.Store(&found)
	return found, nil
}

// findObstacles returns what the pool's platform lacks, one text each.
func (r *Reconciler) findObstacles(p *hivev1.ClusterPool) []string {
	check := r.Obstacles[p.Spec.Platform.Name()]
	if check == nil || facts.IsFake(p) {
		return nil
	}
	if obstacle := check(p.Spec.Platform); obstacle != "" {
		return []string{obstacle}
	}
	return nil
}

// readReleaseImage returns the release image of a pool's image set; "" if there is no image set.
func (r *Reconciler) readReleaseImage(ctx context.Context, p *hivev1.ClusterPool) (string, error) {
	var set hivev1.ClusterImageSet
	err := r.Client.Get(ctx, types.NamespacedName{Name: p.Spec.ImageSetRef.Name}, &set)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading ClusterImageSet %s: %w", p.Spec.ImageSetRef.Name, err)
	}
	return set.Spec.ReleaseImage, nil
}

// checkDependency reads a dependency, and describes what is wrong with it; "" if nothing is.
// version changes when its content does.
func (r *Reconciler) checkDependency(ctx context.Context, namespace string, n facts.Dependency) (words, version string, err error) {
	var secret corev1.Secret
	var template corev1.ConfigMap
	var set hivev1.ClusterImageSet
	var customization hivev1.ClusterDeploymentCustomization
	switch key := (types.NamespacedName{Namespace: namespace, Name: n.Name}); n.Kind {
	case facts.Secret:
		err = r.Live.Get(ctx, key, &secret)
	case facts.ConfigMap:
		err = r.Live.Get(ctx, key, &template)
	case facts.ClusterClass:
		return r.checkClusterClass(ctx, n)
	case facts.ImageSet:
		key.Namespace = ""
		err = r.Client.Get(ctx, key, &set)
	case facts.Customization:
		err = r.Client.Get(ctx, key, &customization)
	}
	switch {
	case apierrors.IsNotFound(err):
		return n.NotFoundMessage(), "", nil
	case err != nil:
		return "", "", fmt.Errorf("reading %s %s: %w", n.Role, n.Name, err)
	case n.Kind == facts.Secret:
		return n.InvalidMessage(&secret), fmt.Sprintf("%s/%s", secret.UID, secret.ResourceVersion), nil
	case n.Kind == facts.ConfigMap:
		return "", templateVersion(&template), nil
	}
	// A customization's status changes too, so the version uses its generation.
	return n.UnreadableMessage(cmp.Or(set.Unreadable, customization.Unreadable)), fmt.Sprintf("%s/%d", customization.UID, customization.Generation), nil
}

// templateVersion identifies the content of a template.
func templateVersion(template *corev1.ConfigMap) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(template.Data)) {
		parts = append(parts, strconv.Quote(key), strconv.Quote(template.Data[key]))
	}
	return facts.SourceVersion(append(parts, string(template.UID)))
}

// checkClusterClass is checkDependency for a ClusterClass of Cluster API. Cluster API applies a change
// of it to all its Clusters, to hibernating ones when they resume: a user who has claimed such a
// cluster would see its machines replaced. So the change makes spares stale.
func (r *Reconciler) checkClusterClass(ctx context.Context, n facts.Dependency) (words, version string, err error) {
	class := &unstructured.Unstructured{}
	class.SetGroupVersionKind(clusterapi.ClusterClasses.GroupVersion().WithKind("ClusterClass"))
	err = r.Live.Get(ctx, types.NamespacedName{Namespace: n.Namespace, Name: n.Name}, class)
	switch {
	case meta.IsNoMatchError(err):
		return n.NotServedMessage(), "", nil
	case apierrors.IsNotFound(err):
		return n.NotFoundMessage(), "", nil
	case err != nil:
		return "", "", fmt.Errorf("reading %s %s: %w", n.Role, n.Name, err)
	}
	return "", fmt.Sprintf("%s/%d", class.GetUID(), class.GetGeneration()), nil
}

// templateTTL is the TTL of a pool's cached template while a customization does not apply to it:
// Secrets are not watched.
const templateTTL = 30 * time.Second

// loadTemplateCache returns the cached results if the pool and its template are unchanged, and an
// empty cache otherwise. It returns nil for a pool without an inventory, and if the template does
// not exist: the pool reports that, and creates no clusters.
func (r *Reconciler) loadTemplateCache(ctx context.Context, s *observation) (*templateCache, error) {
	p, t := s.pool, s.cache.template
	if len(p.Spec.Inventory) == 0 || p.DeletionTimestamp != nil {
		s.cache.template = nil
		return nil, nil
	}
	if t != nil && t.generation == p.Generation && r.Clock.Since(t.at) < templateTTL {
		return t, nil
	}
	template, found, err := r.getInstallConfigTemplate(ctx, p)
	if err != nil || !found {
		return nil, err
	}
	next := &templateCache{at: r.Clock.Now(), generation: p.Generation, template: template, faults: map[types.NamespacedName]string{}}
	if t != nil && t.generation == next.generation && bytes.Equal(t.template, template) {
		next.faults = t.faults
	}
	s.cache.template = next
	return next, nil
}

// newClusterBuilder reads the Secrets that a pool refers to. A missing Secret matters only to
// clusters that are not fake, and the creation of those has been blocked before.
func (r *Reconciler) newClusterBuilder(ctx context.Context, s *observation) (clusterBuilder, error) {
	m := clusterBuilder{pool: s.pool, version: s.snapshot.Settings.Version, sources: s.sources, recipe: s.recipe}
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
	refs := []*corev1.LocalObjectReference{s.pool.Spec.PullSecretRef}
	for _, set := range s.pool.Spec.Platform.AllSettings() {
		refs = append(refs, set.CredentialsSecretRef, set.CertificatesSecretRef)
	}
	for _, ref := range refs {
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

// getPoolCustomization returns the customization for all clusters of a pool; nil if there is none.
// A missing customization is reported earlier, and blocks the creation of all but fake clusters.
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

// getInstallConfigTemplate returns the pool's install-config template; nil if the pool has none or
// the template does not exist. found is false in the latter case.
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

// observePendingSecrets finds the recorded names of clusters whose creation was interrupted, and
// whose Secrets are not the ones that would be created now: the pool, or a Secret that it refers to,
// was edited in between. A ClusterDeployment created next to them would be installed from the old
// Secrets and count as current. The hotspare namespace controller deletes the remaining objects.
func (r *Reconciler) observePendingSecrets(ctx context.Context, s *observation) error {
	from, err := r.newClusterBuilder(ctx, s)
	if err != nil {
		return err
	}
	for _, name := range s.snapshot.Pending {
		if s.snapshot.Unusable[name] != "" {
			continue
		}
		copies, err := from.fixedNameSecrets(name)
		if err != nil {
			return err
		}
		outdated, err := r.anySecretOutdated(ctx, copies)
		if err != nil {
			return err
		}
		if outdated {
			s.snapshot.Unusable[name] = pool.SecretsOutdated
		}
	}
	return nil
}

// anySecretOutdated reports whether one of the Secrets exists with other data.
func (r *Reconciler) anySecretOutdated(ctx context.Context, copies []*corev1.Secret) (bool, error) {
	for _, want := range copies {
		outdated, err := r.isSecretOutdated(ctx, want)
		if err != nil || outdated {
			return outdated, err
		}
	}
	return false, nil
}

func (r *Reconciler) isSecretOutdated(ctx context.Context, want *corev1.Secret) (bool, error) {
	var have corev1.Secret
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(want), &have)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading Secret %s: %w", client.ObjectKeyFromObject(want), err)
	}
	return !equality.Semantic.DeepEqual(have.Data, want.Data), nil
}
