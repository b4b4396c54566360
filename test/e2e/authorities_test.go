package e2e

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// The ClusterDeployment and the kubeconfig name no CA: that of the vCenter and that of the
// cluster's API are in Secrets of the flag.
func TestHotspareTrustsAdditionalCertificateAuthorities(t *testing.T) {
	h := own(t, "--additional-certificate-authorities", "hotspare-system/vcenter-ca,hotspare-system/cluster-ca")
	ns := h.namespace(t)
	v := newVCenter(t)
	v.cluster(t, "vs-12345", "master-0")
	api := newSpoke(t, v)
	h.kubectl(t, "create", "namespace", "hotspare-system")
	h.create(t,
		secret("hotspare-system", "vcenter-ca", map[string][]byte{"ca.crt": v.ca()}),
		secret("hotspare-system", "cluster-ca", map[string][]byte{"ca.crt": certificateAuthority(t, api)}),
		secret(ns, "kubeconfig", map[string][]byte{hivev1.SecretKeyKubeconfig: withoutAuthority(t, api)}),
		secret(ns, "vcenter-creds", map[string][]byte{"username": []byte(vcenterUser), "password": []byte(vcenterPassword)}),
	)
	lines := slices.DeleteFunc(strings.Split(adopted(ns, v.Listener.Addr().String()), "\n"), func(line string) bool { return strings.Contains(line, "certificatesSecretRef") })
	if r := h.apply(t, strings.Join(lines, "\n")); r.code != 0 {
		t.Fatal(r.all())
	}
	h.power(t, &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "vs"}}, hivev1.StatusRunning)
}

func certificateAuthority(t *testing.T, api *spoke) []byte {
	t.Helper()
	config, err := clientcmd.Load(api.kubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	return config.Clusters["vs"].CertificateAuthorityData
}

func withoutAuthority(t *testing.T, api *spoke) []byte {
	t.Helper()
	config, err := clientcmd.Load(api.kubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	config.Clusters["vs"].CertificateAuthorityData = nil
	raw, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
