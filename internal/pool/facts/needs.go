package facts

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/install/config"
)

// Kind is the kind of something that a pool refers to.
type Kind string

// An ImageSet belongs to no namespace, the others are in the pool's.
const (
	ImageSet      Kind = "ClusterImageSet"
	Secret        Kind = "Secret"
	Customization Kind = "ClusterDeploymentCustomization"
)

// Need is one thing that a pool refers to, and without which it makes no clusters.
type Need struct {
	Kind Kind
	Name string
	// Role is what the pool needs it for, in words.
	Role string
	// field is where the pool refers to it, key what a Secret must have; "" when any will do.
	field, key string
	// check says what is wrong with what stands at the key; nil when anything will do.
	check func(value []byte) error
}

// Needs are the things that a pool refers to.
func Needs(p *hivev1.ClusterPool) []Need {
	out := []Need{{Kind: ImageSet, Role: "cluster image set", field: "spec.imageSetRef", Name: p.Spec.ImageSetRef.Name}}
	secret := func(n Need, ref *corev1.LocalObjectReference) {
		if ref != nil && ref.Name != "" {
			n.Kind, n.Name = Secret, ref.Name
			out = append(out, n)
		}
	}
	secret(Need{Role: "pull secret", field: "spec.pullSecretRef", key: hivev1.SecretKeyPullSecret}, p.Spec.PullSecretRef)
	secret(Need{
		Role: "install config template secret", field: "spec.installConfigSecretTemplateRef", key: hivev1.SecretKeyInstallConfig,
		check: func(template []byte) error { _, err := Render(template, p, p.Name); return err },
	}, p.Spec.InstallConfigSecretTemplateRef)
	set, platform := p.Spec.Platform.Settings(), "spec.platform."+p.Spec.Platform.Name()
	secret(Need{Role: "credentials secret", field: platform + ".credentialsSecretRef"}, set.CredentialsSecretRef)
	secret(Need{Role: "certificates secret", field: platform + ".certificatesSecretRef"}, set.CertificatesSecretRef)
	if ref := p.Spec.CustomizationRef; ref != nil {
		out = append(out, Need{Kind: Customization, Role: "customization", field: "spec.customizationRef", Name: ref.Name})
	}
	return out
}

// Render makes the install-config of a pool's cluster. Its errors quote nothing of the template.
func Render(template []byte, p *hivev1.ClusterPool, cluster string) ([]byte, error) {
	return config.Render(template, config.Params{
		ClusterName: cluster, BaseDomain: p.Spec.BaseDomain, Platform: p.Spec.Platform,
	})
}

// Spec is what a pool's new cluster of that name is to be.
func Spec(p *hivev1.ClusterPool, cluster string) hivev1.ClusterDeploymentSpec {
	spec := p.Spec.DeepCopy()
	return hivev1.ClusterDeploymentSpec{
		ClusterName:    cluster,
		BaseDomain:     spec.BaseDomain,
		Platform:       spec.Platform,
		PullSecretRef:  spec.PullSecretRef,
		ClusterPoolRef: &hivev1.ClusterPoolReference{Namespace: p.Namespace, PoolName: p.Name},
		Provisioning: &hivev1.Provisioning{
			InstallConfigSecretRef: &corev1.LocalObjectReference{Name: InstallConfigName(cluster)},
			ImageSetRef:            &spec.ImageSetRef,
			InstallerEnv:           spec.InstallerEnv,
		},
		HibernateAfter:                           spec.HibernateAfter,
		InstallAttemptsLimit:                     spec.InstallAttemptsLimit,
		PowerstateTransitionToRunningTimeout:     ResumeTimeout(p),
		PowerstateTransitionToHibernatingTimeout: spec.PowerstateTransitionToHibernatingTimeout,
	}
}

// InstallConfigName names the Secret with the install-config of a pool's cluster.
func InstallConfigName(cluster string) string { return cluster + "-install-config" }

// Absent says that it does not exist.
func (n Need) Absent() string {
	return fmt.Sprintf("%s: %s %q does not exist: create it, or change %s", n.Role, n.Kind, n.Name, n.field)
}

// Unfit says what is wrong with the Secret that was found; "" when nothing is.
func (n Need) Unfit(found *corev1.Secret) string {
	if n.key != "" && len(found.Data[n.key]) == 0 {
		return fmt.Sprintf("%s: Secret %q has no key %q: add it, or change %s", n.Role, n.Name, n.key, n.field)
	}
	if n.check == nil {
		return ""
	}
	if err := n.check(found.Data[n.key]); err != nil {
		return fmt.Sprintf("%s: Secret %q, key %q: %v: correct it, or change %s", n.Role, n.Name, n.key, err, n.field)
	}
	return ""
}

// Unread says what of it cannot be read; "" when why is.
func (n Need) Unread(why string) string {
	if why == "" {
		return ""
	}
	return fmt.Sprintf("%s: %s %q cannot be read: %s: correct it, or change %s", n.Role, n.Kind, n.Name, why, n.field)
}

// Missing is what the pool needs and lacks, each in words. installers are the
// platforms that clusters can be made on, none when nobody knows; look finds out
// about one need and answers with its Absent, Unfit or Unread, or "". A pool that is being
// deleted needs nothing.
func Missing(p *hivev1.ClusterPool, installers []string, look func(Need) (string, error)) ([]string, error) {
	if p.DeletionTimestamp != nil {
		return nil, nil
	}
	var out []string
	for _, words := range append([]string{noInstaller(p, installers), unfitName(p)}, unfit(p)...) {
		if words != "" {
			out = append(out, words)
		}
	}
	for _, n := range Needs(p) {
		words, err := look(n)
		if err != nil {
			return nil, err
		}
		if words != "" {
			out = append(out, words)
		}
	}
	return out, nil
}

// SourceVersion identifies the versions of what a pool's clusters are made from: for each of
// its needs, in their order, the UID and the version of the object. It tells nothing of what
// the objects contain. "" when there are none.
func SourceVersion(versions []string) string {
	if len(versions) == 0 {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join(versions, "\n")))
	return hex.EncodeToString(sum[:8])
}

// noInstaller says that clusters of the pool's platform cannot be made; "" when
// they can, or need not be.
func noInstaller(p *hivev1.ClusterPool, installers []string) string {
	platform := p.Spec.Platform.Name()
	if Fake(p) || len(installers) == 0 || slices.Contains(installers, platform) {
		return ""
	}
	return fmt.Sprintf("platform: no installer for spec.platform.%s is set up here, only for %s: use such a platform, or the annotation %s in spec.annotations",
		platform, strings.Join(installers, ", "), hivev1.AnnotationFake)
}

// unfitName says that clusters cannot be named after the pool; "" when they can. A name
// that is only too long is cut.
func unfitName(p *hivev1.ClusterPool) string {
	platform := p.Spec.Platform.Name()
	if Fake(p) || !config.WantsLetter(platform) || p.Name != "" && p.Name[0] >= 'a' && p.Name[0] <= 'z' {
		return ""
	}
	return fmt.Sprintf("metadata.name: names of clusters begin as the pool's, %q, and on spec.platform.%s with a letter: "+
		"make the pool anew with such a name", p.Name, platform)
}

// inWords joins problems as Hive does: one as it is, several in brackets.
func inWords(problems []string) string {
	if len(problems) == 1 {
		return problems[0]
	}
	return "[" + strings.Join(problems, ", ") + "]"
}
