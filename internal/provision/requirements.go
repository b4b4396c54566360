package provision

import (
	"fmt"
	"strings"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// Needs are the observed prerequisites of an install.
type Needs struct {
	// Platform is the cluster's platform. Platforms are those that can be installed here, sorted.
	Platform  string
	Platforms []string
	// Release reports whether spec.provisioning.releaseImage is set; then no image set is needed.
	Release       bool
	ImageSet      Source
	InstallConfig Source
	PullSecret    Source
	// GlobalPullSecret is the hub's own pull secret, as namespace/name, which its administrator
	// named.
	GlobalPullSecret Source
	// Invalid says what is wrong with the install-config; empty if nothing is.
	Invalid string
	// Patches says in a sentence what is wrong with the patches of the manifests; empty if
	// nothing is.
	Patches string
}

// Source is an object that the cluster's specification refers to.
type Source struct {
	// Name is the object's name; empty if there is no reference.
	Name string
	// Found reports whether it exists and has its key.
	Found bool
}

func (s Source) isMissing() bool { return s.Name != "" && !s.Found }

// firstUnmetNeed returns the first prerequisite that is not met, as a reason and a sentence.
func (s Snapshot) firstUnmetNeed() (reason, message string, found bool) {
	n := s.Needs
	switch {
	case !s.Cluster.Executor:
		return hivev1.ReasonNoExecutor, n.noExecutorMessage(), true
	case s.Cluster.Fake:
		return "", "", false
	case !n.Release && n.ImageSet.Name == "":
		return hivev1.ReasonImageSetNotFound, "spec.provisioning.imageSetRef is empty: name a ClusterImageSet there, or set releaseImage.", true
	case !n.Release && n.ImageSet.isMissing():
		return hivev1.ReasonImageSetNotFound, fmt.Sprintf("ClusterImageSet %q, named by spec.provisioning.imageSetRef, does not exist: create it.", n.ImageSet.Name), true
	case n.InstallConfig.isMissing():
		return hivev1.ReasonSecretNotFound, missingSecretMessage(n.InstallConfig, "spec.provisioning.installConfigSecretRef", hivev1.SecretKeyInstallConfig), true
	case n.PullSecret.isMissing():
		return hivev1.ReasonSecretNotFound, missingSecretMessage(n.PullSecret, "spec.pullSecretRef", hivev1.SecretKeyPullSecret), true
	case n.GlobalPullSecret.isMissing():
		return hivev1.ReasonSecretNotFound, fmt.Sprintf("The hub's global pull secret, Secret %q, does not exist or has no key %s: "+
			"ask the hub's administrator to create it, or to start hotspare without --global-pull-secret.", n.GlobalPullSecret.Name, hivev1.SecretKeyPullSecret), true
	case n.Invalid != "":
		return hivev1.ReasonInstallConfigValidationFailed, n.invalidConfigMessage(), true
	case n.Patches != "":
		return hivev1.ReasonInstallConfigValidationFailed, n.Patches, true
	}
	return "", "", false
}

func missingSecretMessage(s Source, field, key string) string {
	return fmt.Sprintf("Secret %q, named by %s, does not exist or has no key %s: create it in the cluster's namespace.", s.Name, field, key)
}

func (n Needs) noExecutorMessage() string {
	if n.Platform == "" {
		return "spec.platform names no platform: delete the ClusterDeployment and create it again with one."
	}
	return fmt.Sprintf("spec.platform is %s, and this hub has no installer for it, only for: %s. "+
		"Use such a platform, give hotspare up an installer (--installer), or set the annotation %s for a cluster without a platform.",
		n.Platform, strings.Join(n.Platforms, ", "), hivev1.AnnotationFake)
}

// invalidConfigMessage says what is wrong with the install-config, after the name of its Secret
// if there is one.
func (n Needs) invalidConfigMessage() string {
	if n.InstallConfig.Name == "" {
		return fmt.Sprintf("The install-config generated for the platform is not valid: %s. Write one and name it in spec.provisioning.installConfigSecretRef.", n.Invalid)
	}
	return fmt.Sprintf("Secret %q, key %s: %s.", n.InstallConfig.Name, hivev1.SecretKeyInstallConfig, n.Invalid)
}
