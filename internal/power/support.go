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
	firstOpenShift    = version.MustParseSemantic("4.0.0-0")
	firstHibernatable = version.MustParseSemantic("4.4.8")
)

// NeedsVersion reports whether to ask the cluster for its version: in a cluster that
// has come up, and in one that an upgrade may make able to hibernate. A resume is not
// held up by it.
func (s Snapshot) NeedsVersion() bool {
	return s.ManagesMachines() && (s.HasComeUp() || !s.canHibernate())
}

// reportedVersion is what the cluster reports of its version in this pass. An API that
// has just started may not serve an OpenShift's ClusterVersion yet: then the version
// of Kubernetes is not taken for the cluster's.
func (s Snapshot) reportedVersion() Version {
	v := s.Spoke.Version
	if !v.OpenShift && (isOpenShift(s.InstallVersion) || isOpenShift(s.Version)) {
		return Version{}
	}
	return v
}

func (s Snapshot) canHibernate() bool { return s.hibernationObstacle() == "" }

// hibernationObstacle says why the cluster cannot hibernate; "" when it can. It is derived
// on every pass, so an upgrade, or a new actuator, lifts it.
//
// What the cluster reports can lift the obstacle that its installed version is, and
// cannot raise one: who administers the cluster can have it report any version, and
// would keep it awake against hibernateAfter.
func (s Snapshot) hibernationObstacle() string {
	if s.Platform == "" && !s.Actuator {
		return "spec.platform names no platform, so nothing can start and stop machines: write back the one that the cluster was made with."
	}
	if !s.Actuator {
		return fmt.Sprintf("The platform %q cannot start and stop machines.", s.Platform)
	}
	known := s.currentVersion()
	if parseVersion(s.InstallVersion) != nil && !isTooOld(s.InstallVersion) || !isTooOld(known) {
		return ""
	}
	return fmt.Sprintf("OpenShift %s does not survive hibernation: it takes %s or later.", parseVersion(known), firstHibernatable)
}

// currentVersion is the cluster's version as it is known best.
func (s Snapshot) currentVersion() string {
	for _, v := range []string{s.reportedVersion().Desired, s.Version} {
		if parseVersion(v) != nil {
			return v
		}
	}
	return s.InstallVersion
}

// isTooOld reports whether v is a version of OpenShift that cannot hibernate.
func isTooOld(v string) bool { return isOpenShift(v) && parseVersion(v).LessThan(firstHibernatable) }

// isOpenShift reports whether v is a version of OpenShift.
func isOpenShift(v string) bool {
	parsed := parseVersion(v)
	return parsed != nil && !parsed.LessThan(firstOpenShift)
}

// parseVersion returns nil for what is no semantic version.
func parseVersion(v string) *version.Version {
	parsed, err := version.ParseSemantic(v)
	if err != nil {
		return nil
	}
	return parsed
}
