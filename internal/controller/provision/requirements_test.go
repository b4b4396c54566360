package provision

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/yaml"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/install/config"
)

// onGoogleCloud has no install-config of its own, and Secrets that contain the rest of it.
func onGoogleCloud(cd *hivev1.ClusterDeployment) {
	cd.Spec.Platform = hivev1.Platform{GCP: &runtime.RawExtension{Raw: []byte(`{"region":"us-east1","credentialsSecretRef":{"name":"creds"}}`)}}
	cd.Spec.Provisioning.InstallConfigSecretRef = nil
	cd.Spec.Provisioning.SSHPrivateKeySecretRef = &corev1.LocalObjectReference{Name: "ssh"}
}

func TestSecretsTellTheRestOfTheInstallConfig(t *testing.T) {
	w := newWorld(t, request(onGoogleCloud)...)
	pass := func() {
		t.Helper()
		w.catchUp()
		r := w.reconciler()
		r.Executors = install.Registry{"gcp": w.lab}
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
	}
	pass()
	wantEqual(t, "False/InstallConfigValidationFailed: The install-config generated for the platform is not valid: "+
		"platform.gcp.projectID: is missing: set it in the install-config Secret, or set project_id in key osServiceAccount.json "+
		"of the Secret that spec.platform.gcp.credentialsSecretRef names. Write one and name it in spec.provisioning.installConfigSecretRef.",
		w.says(hivev1.ClusterRequirementsMet))

	creds := secret("creds", "osServiceAccount.json", `{"type":"service_account","project_id":"lab-1","private_key":"hunter2"}`)
	ssh := secret("ssh", "ssh-publickey", "ssh-ed25519 AAAAC3Nz me")
	for _, s := range []*corev1.Secret{creds.(*corev1.Secret), ssh.(*corev1.Secret)} {
		if err := w.live.Create(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		wantEqual(t, []ctrl.Request{{NamespacedName: key}}, w.reconciler().awaitingSecret(t.Context(), s))
	}
	pass()
	if len(w.lab.requests) == 0 {
		t.Fatalf("the installer was not asked: %s", w.says(hivev1.ClusterRequirementsMet))
	}
	var got struct {
		Platform struct{ GCP map[string]any }
		SSHKey   string
	}
	if err := yaml.Unmarshal(w.lab.requests[0].Config, &got); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, map[string]any{"projectID": "lab-1", "region": "us-east1"}, got.Platform.GCP)
	wantEqual(t, "ssh-ed25519 AAAAC3Nz me", got.SSHKey)
}

func TestAFakeClusterMissesNothing(t *testing.T) {
	w := newWorld(t, request(onGoogleCloud, fakeCluster)...)
	w.drive("installed", w.installed)
}

// manifestPatches are those of one customization that select what the installer of c1 makes.
func manifestPatches(glob string) []hivev1.InstallerManifestPatch {
	return []hivev1.InstallerManifestPatch{{
		ManifestSelector: hivev1.ManifestSelector{Glob: glob}, Patches: []hivev1.PatchEntity{{Op: "remove", Path: "/spec"}},
	}}
}

func TestPatchesOfManifestsReachTheInstaller(t *testing.T) {
	recorded := func(glob string) string {
		raw, err := config.EncodeManifestPatches([]config.ManifestPatches{{Customization: "pools", Patches: manifestPatches(glob)}})
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	own := &hivev1.ClusterDeploymentCustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "own"}}
	own.Spec.InstallerManifestPatches = manifestPatches("openshift/b.yaml")
	broken := own.DeepCopy()
	broken.Spec.InstallerManifestPatches[0].ManifestSelector.Glob = "b.yaml"
	for name, c := range map[string]struct {
		recorded string
		own      *hivev1.ClusterDeploymentCustomization
		names    string
		want     string // the customizations in their order, or what is said
	}{
		"none":                         {"", nil, "", ""},
		"those that its pool recorded": {recorded("openshift/a.yaml"), nil, "", "pools"},
		"those that it names":          {"", own, "own", "own"},
		"both":                         {recorded("openshift/a.yaml"), own, "own", "pools own"},
		"none that it does not name":   {"", own, "", ""},
		"those that are not there": {
			"", nil, "own", `False/InstallConfigValidationFailed: ClusterDeploymentCustomization "own", named by spec.provisioning.customizationRef, does not exist: ` +
				"create it in the cluster's namespace, or remove the field.",
		},
		"those that are not well formed": {
			"", broken, "own", "False/InstallConfigValidationFailed: Customization own: installerManifestPatches[0].manifestSelector.glob: " +
				`"b.yaml" selects no manifests: start with their folder, as in openshift/99_*.yaml.`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects := request(func(cd *hivev1.ClusterDeployment) {
				if c.names != "" {
					cd.Spec.Provisioning.CustomizationRef = &corev1.LocalObjectReference{Name: c.names}
				}
			})
			if c.recorded != "" {
				objects[3].(*corev1.Secret).Data[hivev1.SecretKeyManifestPatches] = []byte(c.recorded)
			}
			if c.own != nil {
				objects = append(objects, c.own.DeepCopy())
			}
			w := newWorld(t, objects...)
			w.mustPass()
			if strings.HasPrefix(c.want, "False") {
				wantEqual(t, c.want, w.says(hivev1.ClusterRequirementsMet))
				wantEqual(t, 0, w.lab.prepared)
				wantEqual(t, []ctrl.Request{{NamespacedName: key}}, w.reconciler().awaitingCustomization(t.Context(), own))
				return
			}
			list, err := config.DecodeManifestPatches(w.lab.requests[0].ManifestPatches)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, m := range list {
				names = append(names, m.Customization)
			}
			wantEqual(t, c.want, strings.Join(names, " "))
		})
	}
}
