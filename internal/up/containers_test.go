package up

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

func TestOnlyAPoolThatRequiresContainersNeedsThem(t *testing.T) {
	obstacle := "containerd is missing"
	missing := newContainersRequirement(func() string { return obstacle })
	local := func(c hivev1.LocalContainers, workers *int32) hivev1.Platform {
		return hivev1.Platform{Local: &hivev1.LocalPlatform{Containers: c, Workers: workers}}
	}
	if got := missing(local(hivev1.LocalContainersAlways, nil)); !strings.HasSuffix(got, ": containerd is missing") {
		t.Errorf("a pool that requires containers lacks %q", got)
	}
	for title, p := range map[string]hivev1.Platform{
		"containers where they can run": local(hivev1.LocalContainersAuto, nil),
		"no preference":                 local("", nil),
		"no containers":                 local(hivev1.LocalContainersNever, nil),
		"no workers":                    local(hivev1.LocalContainersAlways, ptr.To[int32](0)),
		"another platform":              {},
	} {
		if got := missing(p); got != "" {
			t.Errorf("%s: it lacks %q", title, got)
		}
	}
	obstacle = ""
	if got := missing(local(hivev1.LocalContainersAlways, nil)); got != "" {
		t.Errorf("when nothing is missing, it lacks %q", got)
	}
}
