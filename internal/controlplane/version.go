package controlplane

import (
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/component-base/compatibility"

	"hotspare.io/hotspare/internal/controlplane/kubeversion"
)

// releaseVersion is an effective version that tells clients which release this is, even
// if the linker was not told. What they would get otherwise, v0.0.0-master with a
// placeholder for the commit, is no version to kubectl and Helm.
type releaseVersion struct {
	compatibility.EffectiveVersion
}

// Info is what /version says.
func (r releaseVersion) Info() *apimachineryversion.Info {
	info := r.EffectiveVersion.Info()
	if info == nil {
		return nil
	}
	info.GitVersion = kubeversion.Get()
	info.GitCommit = "" // not ours, and not known
	return info
}
