package provision

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
)

func TestTheStatusNamesTheImagesOfTheInstaller(t *testing.T) {
	w := newWorld(t, request()...)
	w.lab.polls = 1
	w.drive("installed", w.installed)
	s := w.cluster().Status
	wantEqual(t, "q/installer q/cli", *s.InstallerImage+" "+*s.CLIImage)

	// The image set may be deleted before its clusters.
	if err := w.live.Delete(t.Context(), imageSet()); err != nil {
		t.Fatal(err)
	}
	w.delete()
	w.drive("gone", w.gone)
	at := w.lab.places[0]
	wantEqual(t, "ns/c1 uid-1 aws pull", at.Cluster.String()+" "+string(at.UID)+" "+at.Platform.Name()+" "+at.PullSecret)
}

func TestADestructionThatKnowsNoInstallerLooksUpTheRelease(t *testing.T) {
	w := newWorld(t, request()...)
	w.drive("installed", w.installed)
	w.delete()
	w.drive("gone", w.gone)
	wantEqual(t, "quay.io/ocp-release:4.18.20-x86_64", w.lab.places[0].ReleaseImage)
}

func TestADestructionThatWaitsSaysForWhat(t *testing.T) {
	w := made(t)
	w.lab.destroyErr = fault.NewWait(10, "pod x has not ended yet")
	w.mustPass()
	wantEqual(t, "False/Deprovisioning: Destroying c1-0-1 is waiting: pod x has not ended yet", w.says(hivev1.ClusterDeprovisionLaunchError))
}

func TestTheStateOfAnInstallWakesItsCluster(t *testing.T) {
	w := newWorld(t, request()...)
	w.catchUp()
	for _, typ := range []string{hivev1.SecretTypeInstall, hivev1.SecretTypeDestroy} {
		s := secret("c1-install-0-x", "phase", "Prepared").(*corev1.Secret)
		s.Labels = map[string]string{hivev1.LabelClusterDeployment: "c1", hivev1.LabelSecretType: typ}
		woken := w.reconciler().awaitingSecret(t.Context(), s)
		if len(woken) != 1 || woken[0].NamespacedName != key {
			t.Errorf("%s wakes %v", typ, woken)
		}
	}
}
