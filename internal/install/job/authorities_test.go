package job_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cabundle/cabundletest"
	"hotspare.io/hotspare/internal/install/job/installertest"
)

// withEndpoints makes the installers of the lab call two servers: the certificate of one is in the
// "image", the certificate of the other is signed by an additional certificate authority.
func (l *lab) withEndpoints() (private *httptest.Server) {
	l.t.Helper()
	private, public := httptest.NewTLSServer(http.NotFoundHandler()), cabundletest.NewServer(l.t, http.NotFoundHandler())
	l.t.Cleanup(private.Close)
	system := filepath.Join(l.t.TempDir(), "ca-certificates.crt")
	must(l.t, os.WriteFile(system, cabundletest.CertificatePEM(public), 0o600))
	cd := l.cd()
	cd.Spec.Provisioning.InstallerEnv = append(cd.Spec.Provisioning.InstallerEnv,
		corev1.EnvVar{Name: "SSL_CERT_FILE", Value: system}, // stands for that of the image
		corev1.EnvVar{Name: installertest.EnvEndpoints, Value: public.URL + " " + private.URL})
	must(l.t, l.hub.Update(l.t.Context(), cd))
	return private
}

func TestInstallersTrustTheCertificateAuthoritiesOfTheHub(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	private := l.withEndpoints()
	var authorities cabundletest.Secret
	authorities.SetContent([]byte("no PEM"))
	l.options.CertificateAuthorities = authorities.NewSource()
	l.restart()
	l.until("it is said that the Secret is malformed", l.tells(hivev1.ClusterRequirementsMet,
		"False/InstallConfigValidationFailed: additional certificate authorities: key ca.crt of Secret hotspare-system/authorities: there is no PEM certificate"))
	var jobs batchv1.JobList
	must(t, l.hub.List(t.Context(), &jobs))
	var states corev1.SecretList
	must(t, l.hub.List(t.Context(), &states, client.MatchingLabels{hivev1.LabelSecretType: hivev1.SecretTypeInstall}))
	if len(jobs.Items) > 0 || len(states.Items) > 0 || len(l.cloud.ListClusters()) > 0 {
		t.Errorf("there are %d Jobs, %d states and clusters %v", len(jobs.Items), len(states.Items), l.cloud.ListClusters())
	}

	authorities.SetContent(cabundletest.CertificatePEM(cabundletest.NewServer(t, http.NotFoundHandler())))
	l.until("the installer refuses the platform", l.tells(hivev1.ClusterProvisioned, "certificate signed by unknown authority"))
	authorities.SetContent(cabundletest.CertificatePEM(private))
	l.until("the cluster is installed", l.installed)

	authorities.SetContent([]byte("no PEM"))
	l.delete(l.cd())
	l.until("it is said that the Secret is malformed", l.tells(hivev1.ClusterDeprovisionLaunchError, "key ca.crt of Secret hotspare-system/authorities: there is no PEM certificate"))
	if n := len(l.cloud.ListClusters()); n != 1 {
		t.Errorf("there are %d clusters", n)
	}
	authorities.SetContent(cabundletest.CertificatePEM(private))
	l.remove()
}

func TestInstallersGetARotatedBundleInANamespaceOfTheirOwn(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	var authorities cabundletest.Secret
	first, second := cabundletest.CertificatePEM(cabundletest.NewServer(t, http.NotFoundHandler())), cabundletest.CertificatePEM(cabundletest.NewServer(t, http.NotFoundHandler()))
	authorities.SetContent(first)
	l.options.CertificateAuthorities = authorities.NewSource()
	l.restart()
	must(t, l.cloud.HangAt("prepare"))
	l.until("it is prepared", func() bool { return l.cloud.IsHungAt("prepare") })
	state := l.stateSecret(hivev1.SecretTypeInstall)
	written := func() *corev1.Secret {
		t.Helper()
		var copied corev1.Secret
		must(t, l.hub.Get(t.Context(), types.NamespacedName{Namespace: key.Namespace, Name: state.GetName() + "-ca-bundle"}, &copied))
		return &copied
	}
	copied := written()
	if !bytes.Equal(copied.Data["ca.crt"], first) || len(copied.Data) != 1 {
		t.Errorf("written is %s", copied.Data)
	}
	if owners := copied.OwnerReferences; len(owners) != 1 || owners[0].Name != state.GetName() {
		t.Errorf("it belongs to %v, and not to the state of the attempt", owners)
	}
	authorities.SetContent(second)
	must(t, l.cloud.ReleaseHang("prepare"))
	l.until("the cluster is installed", l.installed)
	if copied = written(); !bytes.Equal(copied.Data["ca.crt"], second) {
		t.Errorf("the next Job got %s", copied.Data)
	}
	l.remove()
	var left corev1.SecretList
	must(t, l.hub.List(t.Context(), &left))
	for _, s := range left.Items {
		if strings.HasPrefix(s.Name, state.GetName()) {
			t.Errorf("Secret %s is left", s.Name)
		}
	}
}
