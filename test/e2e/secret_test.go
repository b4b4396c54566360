package e2e

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

func TestTheDataIsForItsOwnerOnly(t *testing.T) {
	h := shared(t)
	for path, want := range map[string]fs.FileMode{h.dir: 0o700, h.kubeconfig(): 0o600, h.log(): 0o600, filepath.Join(h.dir, "console"): 0o600} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", path, got, want)
		}
	}
}

func TestTheAdministratorsRightsCanBeTakenAway(t *testing.T) {
	h := shared(t)
	config, err := h.config()
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(config.CertData)
	if block == nil {
		t.Fatal("the kubeconfig has no client certificate")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(cert.Subject.Organization, "system:masters") {
		t.Errorf("user %s is in the group system:masters, whose rights no binding gives", cert.Subject.CommonName)
	}
	who := h.kubectl(t, "auth", "whoami", "-o", "jsonpath={.status.userInfo.groups}")
	if strings.Contains(who, "system:masters") {
		t.Errorf("the hub takes the user for one of %s", who)
	}
	says(t, h.kubectl(t, "auth", "can-i", "*", "*", "--all-namespaces"), "yes")
}

// credentials are the secret values of a cluster, by what they are.
func (h *hub) credentials(t *testing.T, cd *hivev1.ClusterDeployment) map[string]string {
	t.Helper()
	kubeconfig, password := h.adminSecrets(t, cd)
	config, err := clientcmd.Load(kubeconfig.Data[hivev1.SecretKeyKubeconfig])
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{"the kubeadmin password": string(password.Data[hivev1.SecretKeyPassword])}
	for user, auth := range config.AuthInfos {
		key := bytes.TrimSpace(auth.ClientKeyData)
		block, _ := pem.Decode(key)
		if block == nil {
			t.Fatalf("user %s of the cluster's kubeconfig has no private key", user)
		}
		out[fmt.Sprintf("%s's private key", user)] = base64.StdEncoding.EncodeToString(block.Bytes)[:40]
		out[fmt.Sprintf("%s's private key, encoded twice", user)] = base64.StdEncoding.EncodeToString(key)[40:80]
	}
	for what, value := range out {
		if len(value) < 8 {
			t.Fatalf("%s is too short to be looked for: %d characters", what, len(value))
		}
	}
	return out
}

// adminSecrets are the two Secrets that a cluster's metadata names.
func (h *hub) adminSecrets(t *testing.T, cd *hivev1.ClusterDeployment) (kubeconfig, password *corev1.Secret) {
	t.Helper()
	md := cd.Spec.ClusterMetadata
	if md == nil || md.AdminPasswordSecretRef == nil {
		t.Fatalf("cluster %s does not name its Secrets: %+v", cd.Name, md)
	}
	read := func(name string) *corev1.Secret {
		return get(t, h, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cd.Namespace, Name: name}})
	}
	return read(md.AdminKubeconfigSecretRef.Name), read(md.AdminPasswordSecretRef.Name)
}
