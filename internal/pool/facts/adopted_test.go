package facts

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

func TestAdoptedClusters(t *testing.T) {
	preserved := func(cd *hivev1.ClusterDeployment) {
		at := metav1.NewTime(noon)
		cd.Spec.PreserveOnDelete, cd.Status.InstalledTimestamp = true, &at
	}
	for name, c := range map[string]struct {
		change func(*hivev1.ClusterDeployment)
		want   bool
	}{
		"one that existed before":                      {func(*hivev1.ClusterDeployment) {}, true},
		"not one that hotspare installed":              {func(cd *hivev1.ClusterDeployment) { cd.Spec.Provisioning = &hivev1.Provisioning{} }, false},
		"not one of another installer":                 {func(cd *hivev1.ClusterDeployment) { cd.Spec.ClusterInstallRef = &hivev1.ClusterInstallReference{} }, false},
		"not one that its user allows to be destroyed": {func(cd *hivev1.ClusterDeployment) { cd.Spec.PreserveOnDelete = false }, false},
		"not one that is not said to be installed yet": {func(cd *hivev1.ClusterDeployment) { cd.Spec.Installed = false }, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := ReadMember(running(preserved, c.change), noon)
			if m.Adopted != c.want {
				t.Errorf("adopted: %t, want %t", m.Adopted, c.want)
			}
			if m.Adopted && m.InstallTook != 0 {
				t.Errorf("its install took %s: nobody knows how long it took", m.InstallTook)
			}
		})
	}
}
