package pki

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func newTestCA(t *testing.T) *CA {
	t.Helper()
	ca, err := NewCA("test", noon)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func leafOf(t *testing.T, pair Pair) *x509.Certificate {
	t.Helper()
	if _, err := tls.X509KeyPair(pair.Cert, pair.Key); err != nil {
		t.Fatalf("certificate and key do not fit: %v", err)
	}
	certs, err := cert.ParseCertsPEM(pair.Cert)
	if err != nil {
		t.Fatal(err)
	}
	return certs[0]
}

func verify(ca *CA, leaf *x509.Certificate, at time.Time, host string, usage x509.ExtKeyUsage) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.CertPEM())
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: roots, CurrentTime: at, DNSName: host, KeyUsages: []x509.ExtKeyUsage{usage},
	})
	return err
}

func TestClient(t *testing.T) {
	ca := newTestCA(t)
	pair, err := ca.IssueClientCert(noon, time.Hour, "ada", "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	leaf := leafOf(t, pair)
	if diff := cmp.Diff([]string{"a", "b"}, leaf.Subject.Organization); diff != "" || leaf.Subject.CommonName != "ada" {
		t.Errorf("subject %v, groups %s", leaf.Subject, diff)
	}
	for name, c := range map[string]struct {
		at time.Time
		ok bool
	}{
		"a clock slightly behind accepts it": {noon.Add(-Backdate), true},
		"it is good to its end":              {noon.Add(time.Hour), true},
		"it is no good before":               {noon.Add(-time.Minute), false},
		"it is no good after":                {noon.Add(time.Hour + time.Second), false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := verify(ca, leaf, c.at, "", x509.ExtKeyUsageClientAuth); (err == nil) != c.ok {
				t.Errorf("verify: %v", err)
			}
		})
	}
	if verify(ca, leaf, noon, "", x509.ExtKeyUsageServerAuth) == nil {
		t.Error("a client certificate serves")
	}
}

func TestServer(t *testing.T) {
	ca := newTestCA(t)
	pair, err := ca.IssueServerCert(noon, time.Hour, "api", "127.0.0.1", "localhost")
	if err != nil {
		t.Fatal(err)
	}
	leaf := leafOf(t, pair)
	for _, host := range []string{"127.0.0.1", "localhost"} {
		if err := verify(ca, leaf, noon, host, x509.ExtKeyUsageServerAuth); err != nil {
			t.Errorf("as %s: %v", host, err)
		}
	}
	if verify(ca, leaf, noon, "elsewhere", x509.ExtKeyUsageServerAuth) == nil {
		t.Error("it is good for a host that was not asked for")
	}
}

func TestRequest(t *testing.T) {
	ca := newTestCA(t)
	key, err := generateKey()
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: "system:node:n", Organization: []string{"system:nodes"}},
		DNSNames: []string{"n"},
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	request, err := x509.ParseCertificateRequest(der)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := ca.IssueRequestedCert(noon, time.Minute, request, x509.ExtKeyUsageServerAuth)
	if err != nil {
		t.Fatal(err)
	}
	certs, err := cert.ParseCertsPEM(raw)
	if err != nil {
		t.Fatal(err)
	}
	leaf := certs[0]
	if leaf.Subject.CommonName != "system:node:n" || !key.PublicKey.Equal(leaf.PublicKey) {
		t.Errorf("it is for %s", leaf.Subject)
	}
	if err := verify(ca, leaf, noon, "n", x509.ExtKeyUsageServerAuth); err != nil {
		t.Error(err)
	}
	if life := leaf.NotAfter.Sub(leaf.NotBefore); life != time.Minute+Backdate {
		t.Errorf("it lives %v: clients renew at 70 %% of that, which may not be in the past", life)
	}

	request.Signature[0]++
	if _, err := ca.IssueRequestedCert(noon, time.Minute, request, x509.ExtKeyUsageServerAuth); err == nil {
		t.Error("a request for somebody else's key was granted")
	}
}

func TestCAOnDisk(t *testing.T) {
	t.Run("what was written is loaded", func(t *testing.T) {
		dir := t.TempDir()
		made, err := LoadOrCreateCA(dir, ClusterCA, "test", noon)
		if err != nil {
			t.Fatal(err)
		}
		loaded, err := LoadOrCreateCA(dir, ClusterCA, "test", noon)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(made.CertPEM(), loaded.CertPEM()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("none is fs.ErrNotExist", func(t *testing.T) {
		if _, err := LoadCA(t.TempDir(), ClusterCA); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	})
	t.Run("a certificate that has lost its key is not replaced", func(t *testing.T) {
		dir := t.TempDir()
		if err := newTestCA(t).Write(dir, ClusterCA); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, "ca.key")); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadOrCreateCA(dir, ClusterCA, "test", noon); err == nil {
			t.Error("a new CA took its place")
		}
	})
	t.Run("a leaf is not a CA", func(t *testing.T) {
		dir := t.TempDir()
		pair, err := newTestCA(t).IssueClientCert(noon, time.Hour, "ada")
		if err != nil {
			t.Fatal(err)
		}
		if err := pair.Write(dir, ClusterCA); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadCA(dir, ClusterCA); err == nil {
			t.Error("loaded")
		}
	})
	t.Run("only its owner reads a key", func(t *testing.T) {
		dir := t.TempDir()
		if err := newTestCA(t).Write(dir, ClusterCA); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(dir, "ca.key"))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, error %v", info.Mode(), err)
		}
	})
}

func TestServiceAccountKeyIsKept(t *testing.T) {
	dir := t.TempDir()
	var keys []string
	for range 2 {
		if err := EnsureServiceAccountKey(dir); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(ServiceAccountKeyPath(dir))
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, string(raw))
	}
	if keys[0] != keys[1] {
		t.Error("the second start made another key")
	}
}

func TestWriteTokens(t *testing.T) {
	dir := t.TempDir()
	if err := WriteBootstrapToken(dir, "secret"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(TokenFilePath(dir))
	if err != nil {
		t.Fatal(err)
	}
	want := "secret,system:serviceaccount:openshift-machine-config-operator:node-bootstrapper,node-bootstrapper," +
		`"system:serviceaccounts,system:serviceaccounts:openshift-machine-config-operator"` + "\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	if token, err := ReadBootstrapToken(dir); err != nil || token != "secret" {
		t.Errorf("read back: %q, %v", token, err)
	}
	if _, err := ReadBootstrapToken(t.TempDir()); err == nil {
		t.Error("a token was read that nobody wrote")
	}
}

func TestKubeconfig(t *testing.T) {
	ca := newTestCA(t)
	pair, err := ca.IssueClientCert(noon, time.Hour, "ada")
	if err != nil {
		t.Fatal(err)
	}
	cluster := Cluster{Name: "c", Server: "https://127.0.0.1:1", CA: ca.CertPEM()}

	raw, err := ClientKubeconfig(cluster, "ada", pair)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != cluster.Server || string(config.CertData) != string(pair.Cert) || string(config.CAData) != string(cluster.CA) {
		t.Errorf("client-go reads %v", config)
	}

	raw, err = BootstrapKubeconfig(cluster, "secret")
	if err != nil {
		t.Fatal(err)
	}
	if config, err = clientcmd.RESTConfigFromKubeConfig(raw); err != nil || config.BearerToken != "secret" {
		t.Errorf("client-go reads %v: %v", config, err)
	}
}

func TestFresh(t *testing.T) {
	ours, theirs := newTestCA(t), newTestCA(t)
	cluster := Cluster{Name: "c", Server: "https://127.0.0.1:1", CA: ours.CertPEM()}
	elsewhere := Cluster{Name: "c", Server: "https://127.0.0.1:2", CA: ours.CertPEM()}
	year := 365 * 24 * time.Hour
	for name, c := range map[string]struct {
		signer  *CA
		user    string
		cluster Cluster
		after   time.Duration
		want    bool
	}{
		"a new one is fresh":                          {ours, "ada", cluster, 0, true},
		"it stays so for most of its life":            {ours, "ada", cluster, year - 31*24*time.Hour, true},
		"in its last month it is not":                 {ours, "ada", cluster, year - 29*24*time.Hour, false},
		"the certificate of another user is not":      {ours, "bob", cluster, 0, false},
		"the address of another server is not":        {ours, "ada", elsewhere, 0, false},
		"a certificate from a CA of that name is not": {theirs, "ada", cluster, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			pair, err := c.signer.IssueClientCert(noon, year, c.user)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := ClientKubeconfig(c.cluster, c.user, pair)
			if err != nil {
				t.Fatal(err)
			}
			if got := ours.IsKubeconfigCurrent(raw, cluster, "ada", noon.Add(c.after)); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
	if ours.IsKubeconfigCurrent(nil, cluster, "ada", noon) || ours.IsKubeconfigCurrent([]byte("{}"), cluster, "ada", noon) {
		t.Error("nothing is fresh")
	}
}

func TestWriteFileLeavesNothingElse(t *testing.T) {
	dir := t.TempDir()
	for _, content := range []string{"old", "new"} {
		if err := WriteFile(filepath.Join(dir, "f"), []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := WriteFile(filepath.Join(dir, "f", "below"), nil); err == nil || !strings.Contains(err.Error(), "writing ") {
		t.Errorf("a file as folder: %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v %v", entries, err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "f"))
	if err != nil || string(got) != "new" {
		t.Errorf("%q %v", got, err)
	}
}
