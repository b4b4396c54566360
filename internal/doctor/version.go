package doctor

import (
	"regexp"
	"strconv"
	"strings"
)

// version is the version of a program or of the kernel.
type version struct{ major, minor, patch int }

func (v version) isBefore(other version) bool {
	switch {
	case v.major != other.major:
		return v.major < other.major
	case v.minor != other.minor:
		return v.minor < other.minor
	default:
		return v.patch < other.patch
	}
}

// versionWord matches the first word that begins with a version. The path of a Go module, such as
// github.com/containerd/containerd/v2, is no such word.
var versionWord = regexp.MustCompile(`(?:^|\s)v?((\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?[\w.+~-]*)`)

// parseVersion finds a version in the first line that a program prints with --version, such as
// "containerd github.com/containerd/containerd v1.7.2 0cae528", and returns it also as text, such as
// 1.7.2. It reports whether there is one.
func parseVersion(line string) (v version, text string, found bool) {
	m := versionWord.FindStringSubmatch(line)
	if m == nil {
		return version{}, "", false
	}
	for i, part := range []*int{&v.major, &v.minor, &v.patch} {
		*part, _ = strconv.Atoi(m[i+2]) // up to six digits; a missing patch counts as 0
	}
	return v, strings.TrimRight(m[1], ".-"), true
}
