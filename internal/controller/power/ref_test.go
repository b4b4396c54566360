package power

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

// What an actuator counts its patience from must be of this hibernation: that of an
// earlier one would make it lose patience at once.
func TestSinceIsThatOfTheHibernationUnderWay(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 11, 22, 1, 0, 0, 0, time.UTC))
	for name, c := range map[string]struct {
		record *hivev1.PowerTransition
		want   time.Time
	}{
		"none":             {nil, time.Time{}},
		"under way":        {&hivev1.PowerTransition{Target: hivev1.PowerHibernating, StartedAt: at}, at.Time},
		"an earlier one":   {&hivev1.PowerTransition{Target: hivev1.PowerHibernating, StartedAt: at, FinishedAt: &at}, time.Time{}},
		"a resume instead": {&hivev1.PowerTransition{Target: hivev1.PowerRunning, StartedAt: at}, time.Time{}},
	} {
		cd := &hivev1.ClusterDeployment{Status: hivev1.ClusterDeploymentStatus{PowerTransition: c.record}}
		if got := cloudRef(cd).Since; !got.Equal(c.want) {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func TestARefNamesTheInstallConfig(t *testing.T) {
	cd := &hivev1.ClusterDeployment{}
	if got := cloudRef(cd).InstallConfig; got != "" {
		t.Errorf("got %q", got)
	}
	cd.Spec.Provisioning = &hivev1.Provisioning{InstallConfigSecretRef: &corev1.LocalObjectReference{Name: "install"}}
	if got := cloudRef(cd).InstallConfig; got != "install" {
		t.Errorf("got %q", got)
	}
}

// Hive dereferences what an adopted cluster may lack, and all its controllers end.
func TestAClusterThatNamesNoInfraIDIsToldAndItsMachinesAreNotAskedFor(t *testing.T) {
	for name, md := range map[string]*hivev1.ClusterMetadata{"no metadata": nil, "empty metadata": {}} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			h.edit(func(cd *hivev1.ClusterDeployment) {
				cd.Spec.ClusterMetadata = md
				cd.Spec.PowerState = hivev1.PowerHibernating
			})
			for range 3 {
				h.pass()
			}
			if c := condition.Find(h.get().Status.Conditions, hivev1.ClusterHibernating); c == nil || !strings.Contains(c.Message, "spec.clusterMetadata has no infraID") {
				t.Errorf("condition Hibernating says %+v", c)
			}
		})
	}
}
