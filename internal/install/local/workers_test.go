package local

import (
	"crypto/tls"
	"crypto/x509"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	machines "hotspare.io/hotspare/internal/cloud/local"
	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/embedded/pki"
)

// A worker that is added later has everything that a worker of the installer has, and a certificate
// that the cluster accepts immediately.
func TestEquip(t *testing.T) {
	store, err := machines.Open(filepath.Join(t.TempDir(), "machines"), []string{"none"})
	if err != nil {
		t.Fatal(err)
	}
	leader := machine.Config{Name: "c-x-master-0", InfraID: "c-x", Role: machine.ControlPlane, ClusterName: "c"}
	if leader, err = store.CreateMachine(leader); err != nil {
		t.Fatal(err)
	}
	keys := machine.PKIPath(store.MachineDir("c-x", leader.Name))
	if err := pki.EnsureCluster(keys, "c-x", time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := pki.WriteBootstrapToken(keys, "s3cret"); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c := leader
	c.Name, c.Role, c.CertificateDuration = "c-x-p-0", machine.Worker, metav1.Duration{Duration: time.Hour}
	if err := (Workers{Store: store}).writeJoinFiles(c, leader, dir); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", machine.BootstrapPath(dir))
	if err != nil || config.BearerToken != "s3cret" || config.Host != apiServerURL(leader) {
		t.Errorf("%+v, %v", config, err)
	}
	path := filepath.Join(machine.PKIPath(dir), "kubelet-client.pem") // where a node looks
	pair, err := tls.LoadX509KeyPair(path, path)
	if err != nil {
		t.Fatal(err)
	}
	leaf := pair.Leaf
	if s := leaf.Subject; s.CommonName != "system:node:c-x-p-0" || len(s.Organization) != 1 || s.Organization[0] != "system:nodes" {
		t.Errorf("it is for %s", s)
	}
	if left := time.Until(leaf.NotAfter); left > time.Hour || left < 50*time.Minute {
		t.Errorf("it is good for %s", left)
	}
	ca, err := pki.LoadCA(keys, pki.ClusterCA)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.CertPEM())
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Error(err)
	}
}
