package provision

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/install/config"
	"hotspare.io/hotspare/internal/provision"
)

// observeNeeds reads the prerequisites of an install, if there may be something to install. A fake cluster has only a
// version.
func (p *pass) observeNeeds(ctx context.Context) error {
	p.needs = provision.Needs{
		Platform:  p.cluster.Spec.Platform.Name(),
		Platforms: slices.Sorted(maps.Keys(p.Executors)),
	}
	p.request = install.Request{ClusterTarget: executorTarget(p.cluster)}
	if !p.mayNeedInstall() {
		return nil
	}
	if err := p.observeRelease(ctx); err != nil || p.isFake() {
		return err
	}
	if err := p.observeConfig(ctx); err != nil {
		return err
	}
	return p.observePatches(ctx)
}

// mayNeedInstall reports whether an executor may have to be asked to install: the cluster is not
// installed, or its install was not reported.
func (p *pass) mayNeedInstall() bool {
	cd := p.cluster
	switch {
	case isDeleting(cd), cd.Spec.ClusterInstallRef != nil, hivev1.IsTrue(cd.Annotations, hivev1.AnnotationReconcilePause):
		return false
	case !cd.Spec.Installed:
		return true
	}
	return slices.ContainsFunc(p.attempts, func(cp *hivev1.ClusterProvision) bool {
		return cp.Spec.Stage != hivev1.StageComplete && cp.Spec.Stage != hivev1.StageFailed
	})
}

// executorTarget returns where an executor runs for a cluster.
func executorTarget(cd *hivev1.ClusterDeployment) install.ClusterTarget {
	at := install.ClusterTarget{
		Deleting:     isDeleting(cd),
		Cluster:      client.ObjectKeyFromObject(cd),
		UID:          cd.UID,
		Platform:     cd.Spec.Platform,
		PullSecret:   pullSecretName(cd),
		ReleaseImage: releaseImage(cd),
	}
	if p := cd.Spec.Provisioning; p != nil {
		at.Provisioning = *p
	}
	if p := cd.Spec.ClusterPoolRef; p != nil && p.PoolName != "" {
		at.PoolNamespace = p.Namespace
	}
	return at
}

// observeReleaseForDestroy reads the release from which a cluster to destroy was installed. Its
// image set may be deleted by now; an executor does without it, or returns an error.
func (p *pass) observeReleaseForDestroy(ctx context.Context) error {
	if p.request.ReleaseImage != "" || imageSetName(p.cluster) == "" {
		return nil
	}
	return p.observeRelease(ctx)
}

func (p *pass) observeRelease(ctx context.Context) error {
	image := releaseImage(p.cluster)
	p.needs.Release = image != ""
	p.needs.ImageSet.Name = imageSetName(p.cluster)
	if name := p.needs.ImageSet.Name; image == "" && name != "" {
		var set hivev1.ClusterImageSet
		err := p.Client.Get(ctx, types.NamespacedName{Name: name}, &set)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err := set.Whole(); err != nil {
			return fmt.Errorf("reading ClusterImageSet %s: %w: correct it", name, err)
		}
		p.needs.ImageSet.Found = err == nil
		image = set.Spec.ReleaseImage
	}
	p.request.ReleaseImage, p.request.Version = image, config.VersionFromImage(image)
	return nil
}

// observeConfig reads the Secrets and builds the install-config: the user's, names included, with
// what the cluster's Secrets add to it; or a default.
func (p *pass) observeConfig(ctx context.Context) error {
	template, err := p.readSecretKey(ctx, &p.needs.InstallConfig, installConfigName(p.cluster), hivev1.SecretKeyInstallConfig)
	if err != nil {
		return err
	}
	params, err := p.readConfigParams(ctx)
	if err != nil {
		return err
	}
	if p.needs.InstallConfig.Name != "" && !p.needs.InstallConfig.Found {
		return nil
	}
	if p.needs.InstallConfig.Name == "" {
		template, err = config.Render(nil, params)
	}
	if err == nil {
		p.request.Config, err = config.FillFromSecrets(template, params)
	}
	if err == nil {
		err = config.ValidateComplete(p.request.Config, p.cluster.Spec.Platform)
	}
	if fault.KindOf(err) == fault.Denied {
		p.needs.Invalid = err.Error()
		return nil
	}
	return err
}

// observePatches reads the patches of manifests: those that the pool has recorded with the
// install-config, followed by those of the customization that the cluster names, if any.
func (p *pass) observePatches(ctx context.Context) error {
	recorded, err := p.readSecretKey(ctx, &provision.Source{}, installConfigName(p.cluster), hivev1.SecretKeyManifestPatches)
	if err != nil {
		return err
	}
	list, err := config.DecodeManifestPatches(recorded)
	if err == nil && customizationName(p.cluster) != "" {
		var c *hivev1.ClusterDeploymentCustomization
		if c, err = p.readCustomization(ctx); err == nil {
			list = append(list, config.ListManifestPatches(c)...)
		}
	}
	if err == nil {
		p.request.ManifestPatches, err = config.EncodeManifestPatches(list)
	}
	if err == nil {
		_, err = config.DecodeManifestPatches(p.request.ManifestPatches)
	}
	if fault.KindOf(err) == fault.Denied {
		p.needs.Patches = errorSentence(err)
		return nil
	}
	return err
}

// errorSentence returns the error as a sentence, with a capital letter and a full stop.
func errorSentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// readCustomization returns the customization that the cluster names, from the cluster's
// namespace. The error is fault.Denied if it does not exist or cannot be decoded.
func (p *pass) readCustomization(ctx context.Context) (*hivev1.ClusterDeploymentCustomization, error) {
	name := customizationName(p.cluster)
	var c hivev1.ClusterDeploymentCustomization
	err := p.Client.Get(ctx, types.NamespacedName{Namespace: p.cluster.Namespace, Name: name}, &c)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fault.NewDenied("ClusterDeploymentCustomization %q, named by spec.provisioning.customizationRef, does not exist: "+
			"create it in the cluster's namespace, or remove the field", name)
	case err != nil:
		return nil, fmt.Errorf("reading ClusterDeploymentCustomization %s: %w", name, err)
	case c.Unreadable != "":
		return nil, fault.NewDenied("ClusterDeploymentCustomization %q, named by spec.provisioning.customizationRef, cannot be read: %s: correct it", name, c.Unreadable)
	}
	return &c, nil
}

// readConfigParams returns the parameters of the install-config from the cluster and its Secrets.
// Only the pull secret is required for all clusters; the check of the complete install-config
// reports other missing values.
func (p *pass) readConfigParams(ctx context.Context) (config.Params, error) {
	spec := p.cluster.Spec
	params := config.Params{ClusterName: spec.ClusterName, BaseDomain: spec.BaseDomain, Platform: spec.Platform}
	pullSecret, err := p.readSecretKey(ctx, &p.needs.PullSecret, pullSecretName(p.cluster), hivev1.SecretKeyPullSecret)
	if err != nil {
		return params, err
	}
	global, err := p.readGlobalPullSecret(ctx)
	if err != nil {
		return params, err
	}
	sshKey, err := p.readSecretKey(ctx, &provision.Source{}, sshKeyName(p.cluster), hivev1.SecretKeySSHPublic)
	if err != nil {
		return params, err
	}
	params.PullSecret, params.GlobalPullSecret, params.SSHKey = string(pullSecret), string(global), string(sshKey)
	if config.NeedsCredentials(spec.Platform) {
		params.Credentials, err = p.readSecret(ctx, credentialsName(p.cluster))
	}
	return params, err
}

// readGlobalPullSecret reads the pull secret that the hub's administrator provides for all
// clusters; nil if there is none.
func (p *pass) readGlobalPullSecret(ctx context.Context) ([]byte, error) {
	name := p.GlobalPullSecret
	if name.Name == "" {
		return nil, nil
	}
	var secret corev1.Secret
	if err := p.Live.Get(ctx, name, &secret); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the global pull secret %s: %w", name, err)
	}
	value, found := secret.Data[hivev1.SecretKeyPullSecret]
	p.needs.GlobalPullSecret = provision.Source{Name: name.String(), Found: found}
	return value, nil
}

// readSecretKey reads one key of a Secret. The name may be empty, and the Secret or the key may
// not exist; found records whether they do.
func (p *pass) readSecretKey(ctx context.Context, found *provision.Source, name, key string) ([]byte, error) {
	found.Name = name
	data, err := p.readSecret(ctx, name)
	value, ok := data[key]
	found.Found = ok
	return value, err
}

// readSecret reads a Secret. The name may be empty, and the Secret may not exist.
func (p *pass) readSecret(ctx context.Context, name string) (map[string][]byte, error) {
	if name == "" {
		return nil, nil
	}
	var secret corev1.Secret
	err := p.Live.Get(ctx, types.NamespacedName{Namespace: p.cluster.Namespace, Name: name}, &secret)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return secret.Data, nil
}

func releaseImage(cd *hivev1.ClusterDeployment) string {
	if p := cd.Spec.Provisioning; p != nil {
		return p.ReleaseImage
	}
	return ""
}
