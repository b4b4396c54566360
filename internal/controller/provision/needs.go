package provision

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/install/config"
	"hotspare.io/hotspare/internal/provision"
)

// observeNeeds reads what an install depends on, where there may be something
// to install.
func (p *pass) observeNeeds(ctx context.Context) error {
	p.needs = provision.Needs{
		Platform:  p.cluster.Spec.Platform.Name(),
		Platforms: slices.Sorted(maps.Keys(p.Executors)),
	}
	if !p.installing() {
		return nil
	}
	p.request = install.Request{
		Cluster: client.ObjectKeyFromObject(p.cluster),
		Env:     env(p.cluster),
	}
	if err := p.observeRelease(ctx); err != nil {
		return err
	}
	return p.observeConfig(ctx)
}

// installing reports whether an executor may have to be asked to install:
// there is no installed cluster, or none that was reported.
func (p *pass) installing() bool {
	cd := p.cluster
	switch {
	case deleting(cd), cd.Spec.ClusterInstallRef != nil, annotated(cd, hivev1.AnnotationReconcilePause):
		return false
	case !cd.Spec.Installed:
		return true
	}
	return slices.ContainsFunc(p.attempts, func(cp *hivev1.ClusterProvision) bool {
		return cp.Spec.Stage != hivev1.StageComplete && cp.Spec.Stage != hivev1.StageFailed
	})
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
	p.request.ReleaseImage, p.request.Version = image, config.Version(image)
	return nil
}

// observeConfig reads the Secrets and puts the install-config together: as
// written, names too, with the cluster's pull secret; or a default.
func (p *pass) observeConfig(ctx context.Context) error {
	template, err := p.readKey(ctx, &p.needs.InstallConfig, installConfigName(p.cluster), hivev1.SecretKeyInstallConfig)
	if err != nil {
		return err
	}
	pullSecret, err := p.readKey(ctx, &p.needs.PullSecret, pullSecretName(p.cluster), hivev1.SecretKeyPullSecret)
	if err != nil {
		return err
	}
	if p.needs.InstallConfig.Name != "" && !p.needs.InstallConfig.Found {
		return nil
	}
	p.request.Config, err = render(p.cluster, template, string(pullSecret))
	if err == nil {
		err = config.Validate(p.request.Config)
	}
	if fault.Of(err) == fault.Denied {
		p.needs.Invalid = err.Error()
		return nil
	}
	return err
}

func render(cd *hivev1.ClusterDeployment, template []byte, pullSecret string) ([]byte, error) {
	if installConfigName(cd) != "" {
		return config.WithPullSecret(template, pullSecret)
	}
	return config.Render(nil, config.Params{
		ClusterName: cd.Spec.ClusterName,
		BaseDomain:  cd.Spec.BaseDomain,
		Platform:    cd.Spec.Platform,
		PullSecret:  pullSecret,
	})
}

// readKey reads one key of a Secret that may not be named, may not exist, and
// may not have the key; found tells.
func (p *pass) readKey(ctx context.Context, found *provision.Source, name, key string) ([]byte, error) {
	found.Name = name
	if name == "" {
		return nil, nil
	}
	var secret corev1.Secret
	err := p.Live.Get(ctx, types.NamespacedName{Namespace: p.cluster.Namespace, Name: name}, &secret)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	value, ok := secret.Data[key]
	found.Found = ok
	return value, nil
}

func releaseImage(cd *hivev1.ClusterDeployment) string {
	if p := cd.Spec.Provisioning; p != nil {
		return p.ReleaseImage
	}
	return ""
}

// env is the installer's environment. Values that refer to other objects are
// left out: an executor runs in places where these cannot be read.
func env(cd *hivev1.ClusterDeployment) map[string]string {
	if cd.Spec.Provisioning == nil {
		return nil
	}
	out := map[string]string{}
	for _, v := range cd.Spec.Provisioning.InstallerEnv {
		if v.ValueFrom == nil {
			out[v.Name] = v.Value
		}
	}
	return out
}
