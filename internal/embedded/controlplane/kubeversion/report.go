package kubeversion

import (
	"sync/atomic"
	_ "unsafe" // for go:linkname
)

// reported is the version that the components of Kubernetes in this program report. Linker flags
// would set it; component-base's SetDynamicVersion accepts only changes of a version that the linker
// has set.
//
//go:linkname reported k8s.io/component-base/version.dynamicGitVersion
var reported atomic.Value

// Report makes the components of Kubernetes in this program report Get, without linker flags.
func Report() { reported.Store(Get()) }
