package clusterpool_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/install/config"
)

// recorded are the customizations whose patches of manifests a cluster is made with, and
// their globs.
func (s *shelf) recorded(cluster string) string {
	s.t.Helper()
	var cd hivev1.ClusterDeployment
	cd.Namespace, cd.Name = cluster, cluster
	s.get(&cd)
	var secret corev1.Secret
	secret.Namespace, secret.Name = cluster, cd.Spec.Provisioning.InstallConfigSecretRef.Name
	s.get(&secret)
	list, err := config.DecodeManifestPatches(secret.Data[hivev1.SecretKeyManifestPatches])
	if err != nil {
		s.t.Fatal(err)
	}
	var out []string
	for _, m := range list {
		out = append(out, m.Customization+" "+m.Patches[0].ManifestSelector.Glob)
	}
	return strings.Join(out, ", ")
}

func selecting(c *hivev1.ClusterDeploymentCustomization, glob string) *hivev1.ClusterDeploymentCustomization {
	c.Spec.InstallerManifestPatches = []hivev1.InstallerManifestPatch{{
		ManifestSelector: hivev1.ManifestSelector{Glob: glob}, Patches: []hivev1.PatchEntity{{Op: "remove", Path: "/spec"}},
	}}
	return c
}

// A cluster is made with the patches of that time: those of its pool first.
func TestAClusterIsMadeWithThePatchesOfItsManifests(t *testing.T) {
	all := selecting(named("all", "never"), "manifests/all.yaml")
	a := selecting(named("a", "one"), "openshift/a.yaml")
	p := listing(1, "a")
	p.Spec.CustomizationRef = &corev1.LocalObjectReference{Name: "all"}
	s := newShelf(t, p, all, a)
	s.keep("p", 2)
	s.want("clusters", s.clusters(), "p-00001 of a as one.example.com")
	s.want("recorded", s.recorded("p-00001"), "all manifests/all.yaml, a openshift/a.yaml")
	s.want("who has all", s.holder(all), "")

	s.get(all)
	if err := s.Update(t.Context(), selecting(all, "manifests/other.yaml")); err != nil {
		t.Fatal(err)
	}
	s.keep("p", 2)
	s.want("clusters", s.clusters(), "p-00001 of a as one.example.com")
	s.want("recorded", s.recorded("p-00001"), "all manifests/all.yaml, a openshift/a.yaml")
}

func TestAPoolWithoutAnInventoryHasPatchesForAllItsClusters(t *testing.T) {
	p := newPool(1, 0)
	p.Spec.CustomizationRef = &corev1.LocalObjectReference{Name: "all"}
	s := newShelf(t, p, selecting(named("all", "never"), "manifests/all.yaml"))
	s.keep("p", 2)
	s.want("clusters", s.clusters(), "p-00001 of none as p-00001.example.com")
	s.want("recorded", s.recorded("p-00001"), "all manifests/all.yaml")
}

func TestACustomizationWhosePatchesOfManifestsAreNotWellFormed(t *testing.T) {
	s := newShelf(t, listing(1, "a"), selecting(named("a", "one"), "a.yaml"))
	s.keep("p", 2)
	s.want("clusters", s.clusters(), "")
	p := newPool(0, 0)
	s.get(p)
	if e := p.Status.Inventory["a"]; e.Status != "BrokenByConfiguration" || !strings.Contains(e.Message, `installerManifestPatches[0].manifestSelector.glob: "a.yaml" selects no manifests`) {
		t.Errorf("its entry is %+v", e)
	}
}
