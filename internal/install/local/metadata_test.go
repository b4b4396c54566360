package local

import (
	"regexp"
	"strings"
	"testing"

	"hotspare.io/hotspare/internal/install"
)

func TestNewInfraID(t *testing.T) {
	for name, want := range map[string]string{
		"c":                          `^c-[a-z0-9]{5}$`,
		"exactly-twenty-one-ch":      `^exactly-twenty-one-ch-[a-z0-9]{5}$`,
		"a-dash-at-the-very-cut-end": `^a-dash-at-the-very-cu-[a-z0-9]{5}$`,
		"twenty-characters-xx-y":     `^twenty-characters-xx-[a-z0-9]{5}$`,
		strings.Repeat("x", 63):      `^x{21}-[a-z0-9]{5}$`,
	} {
		if got := newInfraID(name); !regexp.MustCompile(want).MatchString(got) || len(got) > maxInfraID {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	if one, other := newInfraID("c"), newInfraID("c"); one == other {
		t.Error("twice the same")
	}
}

func TestOpenShiftVersion(t *testing.T) {
	for name, c := range map[string]struct{ image, version, want string }{
		"the image set says it":      {"", "4.18.20", "4.18.20"},
		"a candidate":                {"", "4.19.0-rc.1", "4.19.0-rc.1"},
		"the tag says it":            {"quay.io/openshift-release-dev/ocp-release:4.8.2-x86_64", "", "4.8.2"},
		"a candidate's tag":          {"quay.io/openshift-release-dev/ocp-release:4.19.0-ec.3-multi", "", "4.19.0-ec.3"},
		"Kubernetes":                 {"registry.k8s.io/kube-apiserver:v1.36.3", "v1.36.3", ""},
		"a digest says nothing":      {"quay.io/x/release@sha256:4444", "", ""},
		"a port is not a tag":        {"localhost:5000/release", "", ""},
		"nothing is said":            {"", "", ""},
		"a v in front does not hurt": {"", "v4.18.1", "4.18.1"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := openShiftVersion(install.Request{ClusterTarget: install.ClusterTarget{ReleaseImage: c.image}, Version: c.version}); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestNewPassword(t *testing.T) {
	got, err := newPassword()
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^[a-zA-Z2-9]{5}(-[a-zA-Z2-9]{5}){3}$`).MatchString(got) {
		t.Errorf("got %s", got)
	}
	if again, _ := newPassword(); again == got {
		t.Error("twice the same")
	}
}
