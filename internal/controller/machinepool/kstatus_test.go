package machinepool_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/kstatus/kstatustest"
)

// TestHowToolsThatWaitJudgeAMachinePool has the controller report.
func TestHowToolsThatWaitJudgeAMachinePool(t *testing.T) {
	generation := func(mp *hivev1.MachinePool) { mp.Generation, mp.Status.ObservedGeneration = 1, -1 }
	for name, tc := range map[string]struct {
		objects []client.Object
		want    string
	}{
		"one without a cluster":                {[]client.Object{pool(2, generation)}, "Failed ClusterDeploymentNotFound"},
		"one whose cluster is being installed": {[]client.Object{pool(2, generation), cluster(local, func(cd *hivev1.ClusterDeployment) { cd.Spec.Installed = false })}, "InProgress ClusterNotInstalled"},
		"one whose cluster hibernates":         {[]client.Object{pool(2, generation), cluster(local, func(cd *hivev1.ClusterDeployment) { cd.Spec.PowerState = hivev1.PowerHibernating })}, "InProgress ClusterHibernating"},
		"one that a person paused": {[]client.Object{pool(2, generation), cluster(local, func(cd *hivev1.ClusterDeployment) {
			cd.Annotations = map[string]string{hivev1.AnnotationReconcilePause: "true"}
		})}, "Failed Paused"},
		"one whose machines are being made":      {[]client.Object{pool(2, generation), cluster(local)}, "InProgress Syncing"},
		"one with the name of the control plane": {[]client.Object{pool(2, generation, func(mp *hivev1.MachinePool) { mp.Spec.Name = "master" }), cluster(local)}, "Failed UnsupportedName"},
	} {
		t.Run(name, func(t *testing.T) {
			mp, _, err := newRig(t, tc.objects...).pass()
			if err != nil {
				t.Fatal(err)
			}
			kstatustest.ExpectStatus(t, mp, tc.want)
		})
	}
	t.Run("one that has its machines", func(t *testing.T) {
		g := newRig(t, cluster(local), pool(2, generation))
		g.workers.list = []install.Worker{{Name: "c-x-worker-0"}}
		kstatustest.ExpectStatus(t, g.settle(), "Current")
	})
}
