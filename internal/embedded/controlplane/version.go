package controlplane

import (
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/component-base/compatibility"

	"hotspare.io/hotspare/internal/embedded/controlplane/kubeversion"
)

// releaseVersion is an effective version that reports this release to clients, even if the linker
// did not set it. Otherwise, clients would get v0.0.0-master with a placeholder for the commit,
// which kubectl and Helm do not accept as a version.
type releaseVersion struct {
	compatibility.EffectiveVersion
}

// Info returns the answer to /version.
func (r releaseVersion) Info() *apimachineryversion.Info {
	info := r.EffectiveVersion.Info()
	if info == nil {
		return nil
	}
	info.GitVersion = kubeversion.Get()
	info.GitCommit = "" // the commit of Kubernetes is not known
	return info
}
