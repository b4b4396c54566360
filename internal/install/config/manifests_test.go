package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
)

func onManifests(glob string, patches ...hivev1.PatchEntity) ManifestPatches {
	return ManifestPatches{Customization: "a", Patches: []hivev1.InstallerManifestPatch{
		{ManifestSelector: hivev1.ManifestSelector{Glob: glob}, Patches: patches},
	}}
}

func replacing(path, value string) hivev1.PatchEntity {
	return hivev1.PatchEntity{Op: "replace", Path: path, Value: &runtime.RawExtension{Raw: []byte(value)}}
}

func TestGlobsOfManifests(t *testing.T) {
	for glob, want := range map[string]string{
		"openshift/99_openshift-cluster-api_master-machines-*.yaml": "",
		"manifests/cluster-config.yaml":                             "",
		"cluster-api/machines/*.yaml":                               "",
		"":                                                          "selects no manifests: start with their folder",
		"*.yaml":                                                    "selects no manifests: start with their folder",
		"openshift/":                                                "selects no manifests: start with their folder",
		"/etc/passwd":                                               "selects no manifests: start with their folder",
		"../hub/token":                                              "selects no manifests: start with their folder",
		"openshift/../../hub/token":                                 "selects no manifests: start with their folder",
		"openshift/[a":                                              "has a [ without ]",
		"auth/kubeconfig":                                           "selects in auth or tls",
		"*/kube*":                                                   "selects in auth or tls",
		"openshift/../auth/kubeconfig":                              "selects no manifests: start with their folder",
		"openshift/*/../../auth/x":                                  "selects no manifests: start with their folder",
	} {
		err := ValidateManifestPatches(onManifests(glob).Patches)
		if want == "" && err != nil || want != "" && (fault.KindOf(err) != fault.Denied || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %v, want %q", glob, err, want)
		}
	}
}

func TestManifestsArePatched(t *testing.T) {
	const machine = "# a comment\n---\nkind: Machine\nspec: {size: small, number: 1.5}\n"
	for name, c := range map[string]struct {
		manifest string
		patch    hivev1.PatchEntity
		want     string
	}{
		"a value":               {machine, replacing("/spec/size", `"large"`), "kind: Machine\nspec:\n  number: 1.5\n  size: large\n"},
		"JSON":                  {`{"kind":"Machine","spec":{"size":"small"}}`, replacing("/spec/size", `"large"`), "kind: Machine\nspec:\n  size: large\n"},
		"no path":               {machine, replacing("/spec/disk", `"hush-hush"`), `customization a: installerManifestPatches[0]: manifest openshift/m.yaml: patches[0]: replace /spec/disk: no such path: /spec has no key "disk": correct the path, or use add`},
		"two documents":         {machine + "---\nkind: Secret\n", replacing("/kind", `"A"`), "customization a: installerManifestPatches[0]: manifest openshift/m.yaml has 2 documents, and only a manifest with one document can be patched: select other manifests"},
		"none":                  {"# nothing\n", replacing("/kind", `"A"`), "customization a: installerManifestPatches[0]: manifest openshift/m.yaml has 0 documents, and only a manifest with one document can be patched: select other manifests"},
		"no YAML":               {"a: [hush-hush", replacing("/kind", `"A"`), "customization a: installerManifestPatches[0]: manifest openshift/m.yaml cannot be parsed as a YAML mapping: select other manifests"},
		"a key that lies twice": {"a: hush-hush\na: 2\n", replacing("/a", "1"), "customization a: installerManifestPatches[0]: manifest openshift/m.yaml cannot be parsed as a YAML mapping: select other manifests"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := onManifests("openshift/*.yaml", c.patch).PatchManifest(0, "openshift/m.yaml", []byte(c.manifest))
			got := string(out)
			if err != nil {
				got = err.Error()
				if fault.KindOf(err) != fault.Denied {
					t.Errorf("the kind of %v", err)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPatchesOfManifestsAreRecordedAndReadBack(t *testing.T) {
	with := func(name string, patches ...hivev1.PatchEntity) *hivev1.ClusterDeploymentCustomization {
		c := &hivev1.ClusterDeploymentCustomization{}
		c.Name = name
		if len(patches) > 0 {
			c.Spec.InstallerManifestPatches = onManifests("openshift/*", patches...).Patches
		}
		return c
	}
	list := ListManifestPatches(nil, with("a", replacing("/a", "1")), with("b"), with("c", replacing("/c", "null")))
	raw, err := EncodeManifestPatches(list)
	if err != nil || len(list) != 2 {
		t.Fatalf("%d lists, %v", len(list), err)
	}
	if none, err := EncodeManifestPatches(ListManifestPatches(nil, with("b"))); err != nil || none != nil {
		t.Errorf("no patches are %q, %v", none, err)
	}
	// A null counts as no value: see ApplyPatches.
	_, err = DecodeManifestPatches(raw)
	if fault.KindOf(err) != fault.Denied || !strings.Contains(err.Error(), "customization c: installerManifestPatches[0].patches[0]: value: is missing") {
		t.Errorf("got %v", err)
	}
	raw, err = EncodeManifestPatches(list[:1])
	if err != nil {
		t.Fatal(err)
	}
	back, err := DecodeManifestPatches(raw)
	if diff := cmp.Diff(list[:1], back); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if _, err := DecodeManifestPatches([]byte("hush")); fault.KindOf(err) != fault.Denied || strings.Contains(err.Error(), "hush") {
		t.Errorf("got %v", err)
	}
}
