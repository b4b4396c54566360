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

// A Kind is the kind of an object that a pool refers to.
type Kind string

// The kinds. An ImageSet is cluster-scoped, a ClusterClass of Cluster API is in the namespace that
// the pool names, the others are in the pool's namespace.
const (
	ImageSet      Kind = "ClusterImageSet"
	Secret        Kind = "Secret"
	ConfigMap     Kind = "ConfigMap"
	ClusterClass  Kind = "ClusterClass"
	Customization Kind = "ClusterDeploymentCustomization"
)

// A Dependency is one object that a pool refers to, and without which it creates no clusters.
type Dependency struct {
	Kind Kind
	Name string
	// Namespace is set for a ClusterClass only.
	Namespace string
	// Role is what the pool needs the object for, as text.
	Role string
	// field is the pool's field that refers to the object; key is the key that a Secret must have,
	// "" if any Secret is valid.
	field, key string
	// check validates the value of key; nil if any value is valid.
	check func(value []byte) error
}

// ListDependencies returns the objects that a pool refers to.
func ListDependencies(p *hivev1.ClusterPool) []Dependency {
	out := []Dependency{{Kind: ImageSet, Role: "cluster image set", field: "spec.imageSetRef", Name: p.Spec.ImageSetRef.Name}}
	secret := func(n Dependency, ref *corev1.LocalObjectReference) {
		if ref != nil && ref.Name != "" {
			n.Kind, n.Name = Secret, ref.Name
			out = append(out, n)
		}
	}
	secret(Dependency{Role: "pull secret", field: "spec.pullSecretRef", key: hivev1.SecretKeyPullSecret}, p.Spec.PullSecretRef)
	secret(Dependency{
		Role: "install config template secret", field: "spec.installConfigSecretTemplateRef", key: hivev1.SecretKeyInstallConfig,
		check: func(template []byte) error { _, err := RenderInstallConfig(template, p, p.Name); return err },
	}, p.Spec.InstallConfigSecretTemplateRef)
	for _, set := range p.Spec.Platform.AllSettings() {
		secret(Dependency{Role: "credentials secret", field: set.Field + ".credentialsSecretRef"}, set.CredentialsSecretRef)
		secret(Dependency{Role: "certificates secret", field: set.Field + ".certificatesSecretRef"}, set.CertificatesSecretRef)
	}
	if capi := p.Spec.Platform.CAPI; capi != nil && capi.TemplateRef != nil {
		out = append(out, Dependency{Kind: ConfigMap, Role: "template", field: "spec.platform.capi.templateRef", Name: capi.TemplateRef.Name})
	}
	// Without a namespace, the class is in that of each cluster, which is new: the installer reports it.
	if capi := p.Spec.Platform.CAPI; capi != nil && capi.ClassRef != nil && capi.ClassRef.Namespace != "" && !IsFake(p) {
		out = append(out, Dependency{
			Kind: ClusterClass, Role: "cluster class", field: "spec.platform.capi.classRef", Name: capi.ClassRef.Name, Namespace: capi.ClassRef.Namespace,
		})
	}
	if ref := p.Spec.CustomizationRef; ref != nil {
		out = append(out, Dependency{Kind: Customization, Role: "customization", field: "spec.customizationRef", Name: ref.Name})
	}
	return out
}

// RenderInstallConfig renders the install-config of a pool's cluster. Its errors do not quote the
// template.
func RenderInstallConfig(template []byte, p *hivev1.ClusterPool, cluster string) ([]byte, error) {
	return config.Render(template, config.Params{
		ClusterName: cluster, BaseDomain: p.Spec.BaseDomain, Platform: p.Spec.Platform,
	})
}

// NewClusterSpec returns the spec of a pool's new cluster with that name.
func NewClusterSpec(p *hivev1.ClusterPool, cluster string) hivev1.ClusterDeploymentSpec {
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
		PowerstateTransitionToRunningTimeout:     ResumeTimeout(&hivev1.ClusterPool{Spec: *spec}),
		PowerstateTransitionToHibernatingTimeout: spec.PowerstateTransitionToHibernatingTimeout,
	}
}

// InstallConfigName returns the name of the Secret with the install-config of a pool's cluster.
func InstallConfigName(cluster string) string { return cluster + "-install-config" }

// NotServedMessage says that the hub does not serve the kind of the object.
func (d Dependency) NotServedMessage() string {
	return fmt.Sprintf("%s: the hub does not serve %s of cluster.x-k8s.io/v1beta2: install Cluster API 1.11 or later and its providers on the hub, or upgrade it", d.Role, d.Kind)
}

// NotFoundMessage says that the object does not exist, and what to do.
func (d Dependency) NotFoundMessage() string {
	if d.Namespace != "" {
		return fmt.Sprintf("%s: %s %q does not exist in namespace %q: create it, or change %s", d.Role, d.Kind, d.Name, d.Namespace, d.field)
	}
	return fmt.Sprintf("%s: %s %q does not exist: create it, or change %s", d.Role, d.Kind, d.Name, d.field)
}

// InvalidMessage describes what is wrong with the Secret that was found; "" if nothing is.
func (d Dependency) InvalidMessage(found *corev1.Secret) string {
	if d.key != "" && len(found.Data[d.key]) == 0 {
		return fmt.Sprintf("%s: Secret %q has no key %q: add it, or change %s", d.Role, d.Name, d.key, d.field)
	}
	if d.check == nil {
		return ""
	}
	if err := d.check(found.Data[d.key]); err != nil {
		return fmt.Sprintf("%s: Secret %q, key %q: %v: correct it, or change %s", d.Role, d.Name, d.key, err, d.field)
	}
	return ""
}

// UnreadableMessage says that the object cannot be read because of why; "" if why is.
func (d Dependency) UnreadableMessage(why string) string {
	if why == "" {
		return ""
	}
	return fmt.Sprintf("%s: %s %q cannot be read: %s: correct it, or change %s", d.Role, d.Kind, d.Name, why, d.field)
}

// InvalidFields describes the fields of a pool with which no cluster can be created here, one text
// each. installers are the platforms that clusters can be created on, empty if unknown.
func InvalidFields(p *hivev1.ClusterPool, installers []string) []string {
	messages := append([]string{missingInstallerMessage(p, installers), invalidNameMessage(p)}, invalidFieldMessages(p)...)
	return slices.DeleteFunc(messages, func(message string) bool { return message == "" })
}

// SourceVersion returns an identifier for the versions of the objects that a pool's clusters are
// made from: for each dependency, in order, the UID and the version of the object. It reveals
// nothing of the objects' content. It is "" if there are none.
func SourceVersion(versions []string) string {
	if len(versions) == 0 {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join(versions, "\n")))
	return hex.EncodeToString(sum[:8])
}

// missingInstallerMessage says that clusters of the pool's platform cannot be created; "" if they
// can, or if the pool is fake.
func missingInstallerMessage(p *hivev1.ClusterPool, installers []string) string {
	platform := p.Spec.Platform.Name()
	if IsFake(p) || len(installers) == 0 || slices.Contains(installers, platform) {
		return ""
	}
	return fmt.Sprintf("platform: no installer for spec.platform.%s is set up here, only for %s: use such a platform, or the annotation %s in spec.annotations",
		platform, strings.Join(installers, ", "), hivev1.AnnotationFake)
}

// invalidNameMessage says that clusters cannot be named after the pool; "" if they can. A name that
// is only too long is cut.
func invalidNameMessage(p *hivev1.ClusterPool) string {
	platform := p.Spec.Platform.Name()
	if IsFake(p) || !config.RequiresLeadingLetter(platform) || p.Name != "" && p.Name[0] >= 'a' && p.Name[0] <= 'z' {
		return ""
	}
	return fmt.Sprintf("metadata.name: names of clusters begin with the pool's name, %q, and on spec.platform.%s they must begin with a letter: "+
		"create the pool again with such a name", p.Name, platform)
}

// joinMessages joins messages as Hive does: one as it is, several in brackets.
func joinMessages(problems []string) string {
	if len(problems) == 1 {
		return problems[0]
	}
	return "[" + strings.Join(problems, ", ") + "]"
}
