package power

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
)

// Clusters of OpenShift 4 before 4.4.8 do not survive being stopped (enhancement: hibernating clusters).
// Versions below 4 are no OpenShift's that anything here installs, but those of
// a plain Kubernetes.
var (
	firstOpenShift  = version.MustParseSemantic("4.0.0-0")
	firstHibernates = version.MustParseSemantic("4.4.8")
)

func (s Seen) supported() bool { return s.obstacle() == "" }

// obstacle says why the cluster cannot hibernate; "" when it can. It is derived
// on every pass, so an upgrade, or a new actuator, lifts it.
func (s Seen) obstacle() string {
	if !s.Actuator {
		return fmt.Sprintf("The platform %q cannot start and stop machines.", s.Platform)
	}
	v, err := version.ParseSemantic(s.Version)
	if err != nil || v.LessThan(firstOpenShift) || !v.LessThan(firstHibernates) {
		return ""
	}
	return fmt.Sprintf("OpenShift %s does not survive hibernation: it takes %s or later.", v, firstHibernates)
}
