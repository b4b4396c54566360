// Package kubeversion returns the version of Kubernetes that this program contains.
package kubeversion

import (
	"runtime/debug"
	"strings"

	"k8s.io/component-base/version"
)

const module = "k8s.io/kubernetes"

// Get returns the version of Kubernetes in this program, as in v1.36.3. It reads the build
// information, so that the version is correct without linker flags: Helm and other clients cannot
// parse the version that component-base returns without them.
func Get() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == module {
				return moduleVersion(dep)
			}
		}
	}
	return "v" + version.DefaultKubeBinaryVersion + ".0"
}

func moduleVersion(dep *debug.Module) string {
	if dep.Replace != nil && strings.HasPrefix(dep.Replace.Version, "v") {
		return dep.Replace.Version
	}
	return dep.Version
}
