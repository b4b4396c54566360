package power

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
)

// Version is what a cluster reports of its version.
type Version struct {
	// OpenShift is whether an OpenShift ClusterVersion reports it. Otherwise the API
	// server does, and there is no more than Desired.
	OpenShift bool
	// Desired is the version that the cluster has or upgrades to, and Image its release image.
	Desired, Image string
	// History are the latest upgrades, the newest first.
	History []Upgrade
}

// Upgrade is one entry of a ClusterVersion's history.
type Upgrade struct {
	State, Version, Image string
	Started               time.Time
	// Completed is zero while the upgrade goes on.
	Completed time.Time
}

// Clusters of OpenShift 4 before 4.4.8 do not survive being stopped (enhancement: hibernating clusters).
// Versions below 4 are no OpenShift's that anything here installs, but those of
// a plain Kubernetes.
var (
	firstOpenShift  = version.MustParseSemantic("4.0.0-0")
	firstHibernates = version.MustParseSemantic("4.4.8")
)

// AsksVersion reports whether to ask the cluster for its version: in a cluster that
// has come up, and in one that an upgrade may make able to hibernate. A resume is not
// held up by it.
func (s Seen) AsksVersion() bool { return s.Acting() && (s.Arrived() || !s.supported()) }

// reported is what the cluster reports of its version in this pass. An API that
// has just started may not serve an OpenShift's ClusterVersion yet: then the version
// of Kubernetes is not taken for the cluster's.
func (s Seen) reported() Version {
	v := s.Spoke.Version
	if !v.OpenShift && (openShift(s.InstallVersion) || openShift(s.Version)) {
		return Version{}
	}
	return v
}

func (s Seen) supported() bool { return s.obstacle() == "" }

// obstacle says why the cluster cannot hibernate; "" when it can. It is derived
// on every pass, so an upgrade, or a new actuator, lifts it.
//
// What the cluster reports can lift the obstacle that its installed version is, and
// cannot raise one: who administers the cluster can have it report any version, and
// would keep it awake against hibernateAfter.
func (s Seen) obstacle() string {
	if s.Platform == "" && !s.Actuator {
		return "spec.platform names no platform, so nothing can start and stop machines: write back the one that the cluster was made with."
	}
	if !s.Actuator {
		return fmt.Sprintf("The platform %q cannot start and stop machines.", s.Platform)
	}
	known := s.current()
	if parse(s.InstallVersion) != nil && !tooOld(s.InstallVersion) || !tooOld(known) {
		return ""
	}
	return fmt.Sprintf("OpenShift %s does not survive hibernation: it takes %s or later.", parse(known), firstHibernates)
}

// current is the cluster's version as it is known best.
func (s Seen) current() string {
	for _, v := range []string{s.reported().Desired, s.Version} {
		if parse(v) != nil {
			return v
		}
	}
	return s.InstallVersion
}

// tooOld reports whether v is a version of OpenShift that cannot hibernate.
func tooOld(v string) bool { return openShift(v) && parse(v).LessThan(firstHibernates) }

// openShift reports whether v is a version of OpenShift.
func openShift(v string) bool {
	parsed := parse(v)
	return parsed != nil && !parsed.LessThan(firstOpenShift)
}

// parse returns nil for what is no semantic version.
func parse(v string) *version.Version {
	parsed, err := version.ParseSemantic(v)
	if err != nil {
		return nil
	}
	return parsed
}
