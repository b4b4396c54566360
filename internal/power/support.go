package power

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
)

// Version is the version that a cluster reports.
type Version struct {
	// OpenShift reports whether the version comes from an OpenShift ClusterVersion. Otherwise it
	// comes from the API server, and only Desired is set.
	OpenShift bool
	// Desired is the version that the cluster has or upgrades to. Image is its release image.
	Desired, Image string
	// History lists the latest upgrades, newest first.
	History []Upgrade
}

// Upgrade is one entry of a ClusterVersion's history.
type Upgrade struct {
	State, Version, Image string
	Started               time.Time
	// Completed is zero while the upgrade is in progress.
	Completed time.Time
}

// OpenShift 4 clusters before 4.4.8 do not survive being stopped (enhancement: hibernating
// clusters). hotspare installs no OpenShift version below 4, so a version below 4 is that of a
// plain Kubernetes.
var (
	firstOpenShift    = version.MustParseSemantic("4.0.0-0")
	firstHibernatable = version.MustParseSemantic("4.4.8")
)

// NeedsVersion reports whether to ask the cluster for its version: if it has come up, or if an
// upgrade may make it able to hibernate. A resume does not wait for the version.
func (s Snapshot) NeedsVersion() bool {
	return s.ManagesMachines() && (s.HasComeUp() || !s.canHibernate())
}

// reportedVersion returns the version that the cluster reported in this pass. An API that has
// just started may not serve OpenShift's ClusterVersion yet. In that case the Kubernetes version
// is not used as the cluster's version.
func (s Snapshot) reportedVersion() Version {
	v := s.Spoke.Version
	if !v.OpenShift && (isOpenShift(s.InstallVersion) || isOpenShift(s.Version)) {
		return Version{}
	}
	return v
}

func (s Snapshot) canHibernate() bool { return s.hibernationObstacle() == "" }

// hibernationObstacle returns why the cluster cannot hibernate; "" if it can. It is derived on
// every pass, so an upgrade or a new actuator removes the obstacle.
//
// The version that the cluster reports can remove the obstacle of an old installed version, but
// cannot create one: the cluster's administrator can make it report any version, and could
// otherwise keep it awake despite hibernateAfter.
func (s Snapshot) hibernationObstacle() string {
	if s.Platform == "" && !s.Actuator {
		return "spec.platform names no platform, so hotspare cannot start or stop the machines: restore the platform that the cluster was created with."
	}
	if s.PlatformObstacle != "" {
		return s.PlatformObstacle
	}
	if !s.Actuator {
		return fmt.Sprintf("The platform %q cannot start and stop machines.", s.Platform)
	}
	known := s.currentVersion()
	if parseVersion(s.InstallVersion) != nil && !isTooOld(s.InstallVersion) || !isTooOld(known) {
		return ""
	}
	return fmt.Sprintf("OpenShift %s does not survive hibernation: version %s or later is required.", parseVersion(known), firstHibernatable)
}

// currentVersion returns the best known version of the cluster.
func (s Snapshot) currentVersion() string {
	for _, v := range []string{s.reportedVersion().Desired, s.Version} {
		if parseVersion(v) != nil {
			return v
		}
	}
	return s.InstallVersion
}

// isTooOld reports whether v is an OpenShift version that cannot hibernate.
func isTooOld(v string) bool { return isOpenShift(v) && parseVersion(v).LessThan(firstHibernatable) }

// isOpenShift reports whether v is an OpenShift version.
func isOpenShift(v string) bool {
	parsed := parseVersion(v)
	return parsed != nil && !parsed.LessThan(firstOpenShift)
}

// parseVersion returns nil if v is not a semantic version.
func parseVersion(v string) *version.Version {
	parsed, err := version.ParseSemantic(v)
	if err != nil {
		return nil
	}
	return parsed
}
