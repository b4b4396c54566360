package job_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

func TestACustomizationPatchesTheManifests(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.options.Retry = 24 * time.Hour // a corrected config is tried immediately
	l.restart()
	cd := l.cd()
	cd.Spec.Provisioning.CustomizationRef = &corev1.LocalObjectReference{Name: "mine"}
	must(t, l.hub.Update(t.Context(), cd))
	l.until("it is said that there is none", l.tells(hivev1.ClusterRequirementsMet, `ClusterDeploymentCustomization "mine", named by spec.provisioning.customizationRef, does not exist`))

	c := &hivev1.ClusterDeploymentCustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mine"}}
	c.Spec.InstallerManifestPatches = []hivev1.InstallerManifestPatch{{
		ManifestSelector: hivev1.ManifestSelector{Glob: "openshift/99_machines-*.yaml"},
		Patches:          []hivev1.PatchEntity{{Op: "add", Path: "metadata/labels", Value: &runtime.RawExtension{Raw: []byte(`{"password":"planted-token"}`)}}},
	}}
	must(t, l.hub.Create(t.Context(), c))
	l.until("it is said that nothing is selected", l.tells(hivev1.ClusterRequirementsMet,
		`False/InstallConfigValidationFailed: customization mine: installerManifestPatches[0].manifestSelector.glob: "openshift/99_machines-*.yaml" selects none`))
	if len(l.cloud.ListClusters()) > 0 {
		t.Error("something was made")
	}

	c.Spec.InstallerManifestPatches[0].ManifestSelector.Glob = "openshift/99_*.yaml"
	must(t, l.hub.Update(t.Context(), c))
	l.until("the cluster is installed", l.installed)
	if ignition := l.cloud.ReadIgnition(l.cd().Spec.ClusterMetadata.InfraID); !strings.Contains(ignition, "password: planted-token") {
		t.Errorf("the manifests are not patched:\n%s", ignition)
	}
	l.remove()
}
