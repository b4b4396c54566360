package config

import (
	"regexp"
	"strings"
)

var (
	releaseVersion = regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)
	architecture   = regexp.MustCompile(`(-multi)?(-(x86_64|amd64|aarch64|arm64|ppc64le|s390x))?$`)
)

// VersionFromImage returns the OpenShift version in the tag of a release image, as in
// quay.io/openshift-release-dev/ocp-release:4.18.20-x86_64. It returns "" if the tag is not a
// version, or there is only a digest.
func VersionFromImage(releaseImage string) string {
	name, _, _ := strings.Cut(releaseImage, "@")
	name = name[strings.LastIndex(name, "/")+1:]
	_, tag, _ := strings.Cut(name, ":")
	version := tag[:architecture.FindStringIndex(tag)[0]]
	if !releaseVersion.MatchString(version) {
		return ""
	}
	return version
}
