package controlplane

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	cliflag "k8s.io/component-base/cli/flag"

	"hotspare.io/hotspare/internal/embedded/pki"
)

// issuedFiles returns the folder of credentials that a start at now writes.
func issuedFiles(t *testing.T, now time.Time) files {
	t.Helper()
	f := files{run: t.TempDir(), pki: t.TempDir()}
	if err := pki.EnsureCluster(f.pki, "test", now); err != nil {
		t.Fatal(err)
	}
	ca, err := pki.LoadCA(f.pki, pki.ClusterCA)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.issueCredentials(ca, "https://127.0.0.1:6443", now, nil); err != nil {
		t.Fatal(err)
	}
	return f
}

func readCertificate(t *testing.T, f files, name string) *x509.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(f.certificatePath(name), f.privateKeyPath(name))
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

func pool(t *testing.T, path string) *x509.CertPool {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := x509.NewCertPool()
	if !out.AppendCertsFromPEM(raw) {
		t.Fatalf("%s contains no certificate", path)
	}
	return out
}

func TestEachComponentGetsItsOwnCredentials(t *testing.T) {
	now := time.Now()
	f := issuedFiles(t, now)
	for name, want := range map[string]struct {
		user, ca string
		usage    x509.ExtKeyUsage
	}{
		serverFile:        {"kube-apiserver", f.clusterCAPath(), x509.ExtKeyUsageServerAuth},
		kubeletClientFile: {pki.KubeletClientUser, f.clusterCAPath(), x509.ExtKeyUsageClientAuth},
		// The API server trusts headers with user names from holders of a certificate of this CA, so
		// it must not be the cluster's.
		frontProxyFile: {frontProxyUser, f.frontProxyCAPath(), x509.ExtKeyUsageClientAuth},
	} {
		cert := readCertificate(t, f, name)
		if cert.Subject.CommonName != want.user {
			t.Errorf("%s is of user %q, want %q", name, cert.Subject.CommonName, want.user)
		}
		if _, err := cert.Verify(x509.VerifyOptions{Roots: pool(t, want.ca), CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{want.usage}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := cert.Verify(x509.VerifyOptions{Roots: pool(t, want.ca), CurrentTime: now.Add(certificateLifetime + time.Hour)}); err == nil {
			t.Errorf("%s is valid for longer than %s", name, certificateLifetime)
		}
	}
	for _, host := range serverNames {
		if err := readCertificate(t, f, serverFile).VerifyHostname(host); err != nil {
			t.Error(err)
		}
	}
	front := readCertificate(t, f, frontProxyFile)
	if _, err := front.Verify(x509.VerifyOptions{Roots: pool(t, f.clusterCAPath()), CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err == nil {
		t.Error("the CA of the cluster issued the certificate of the front proxy")
	}
}

func TestKubeconfigsOfComponentsNameTheirUser(t *testing.T) {
	f := issuedFiles(t, time.Now())
	for name, user := range map[string]string{controllerManagerFile: controllerManagerUser, schedulerFile: schedulerUser} {
		path := f.kubeconfigPath(name)
		config, err := clientcmd.BuildConfigFromFlags("", path)
		if err != nil {
			t.Fatal(err)
		}
		pair, err := tls.X509KeyPair(config.CertData, config.KeyData)
		if err != nil {
			t.Fatal(err)
		}
		if got := pair.Leaf.Subject.CommonName; got != user || config.Host != "https://127.0.0.1:6443" {
			t.Errorf("%s: user %q at %q", name, got, config.Host)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", name, info.Mode(), err)
		}
	}
}

func TestFlagsThatAComponentDoesNotHaveAreNamed(t *testing.T) {
	var got []string
	var sets cliflag.NamedFlagSets
	sets.FlagSet("one").StringSliceVar(&got, "names", nil, "")
	sets.FlagSet("two").AddFlagSet(pflag.NewFlagSet("", pflag.ContinueOnError))
	if err := parseComponentFlags(sets, []string{"--names=a", "--names=b"}); err != nil || !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("got %v, %v", got, err)
	}
	if err := parseComponentFlags(sets, []string{"--nmaes=a"}); err == nil || !strings.Contains(err.Error(), "nmaes") {
		t.Errorf("got %v", err)
	}
}
