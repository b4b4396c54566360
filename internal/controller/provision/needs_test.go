package provision

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/yaml"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/install"
)

// onGoogleCloud has no install-config of its own, and Secrets that tell the rest of it.
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
