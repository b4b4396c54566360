package local

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"hotspare.io/hotspare/internal/activity"
	"hotspare.io/hotspare/internal/cloud/local"
	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/embedded/pki"
)

// newAuthority creates the control plane of a cluster in the store, and returns its CA and the URL of its API.
func newAuthority(t *testing.T, store *local.Store, infraID string) (*pki.CA, string) {
	t.Helper()
	c, err := store.CreateMachine(machine.Config{Name: machine.ControlPlaneName(infraID), InfraID: infraID, Role: machine.ControlPlane})
	if err != nil {
		t.Fatal(err)
	}
	keys := machine.PKIPath(store.MachineDir(infraID, c.Name))
	if err := pki.EnsureCluster(keys, infraID, time.Now()); err != nil {
		t.Fatal(err)
	}
	ca, err := pki.LoadCA(keys, pki.ClusterCA)
	if err != nil {
		t.Fatal(err)
	}
	return ca, fmt.Sprintf("https://127.0.0.1:%d", c.APIPort)
}

func issue(t *testing.T, ca *pki.CA, user, group string) pki.Pair {
	t.Helper()
	pair, err := ca.IssueClientCert(time.Now(), time.Hour, user, group)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func TestTheHubGetsAnIdentityForTheClusterOfAnAdministratorOnly(t *testing.T) {
	store, err := local.Open(t.TempDir(), []string{"false"})
	if err != nil {
		t.Fatal(err)
	}
	mine, url := newAuthority(t, store, "mine")
	theirs, _ := newAuthority(t, store, "theirs")
	admin, stranger := issue(t, mine, "system:admin", "system:masters"), issue(t, theirs, "system:admin", "system:masters")
	for name, tc := range map[string]struct {
		host      string
		cert, key []byte
		want      bool
	}{
		"an administrator":                     {url, admin.Cert, admin.Key, true},
		"an administrator of another cluster":  {url, stranger.Cert, stranger.Key, false},
		"a certificate without its key":        {url, admin.Cert, stranger.Key, false},
		"a certificate alone":                  {url, admin.Cert, nil, false},
		"nothing":                              {url, nil, nil, false},
		"a port that no cluster has":           {"https://127.0.0.1:1", admin.Cert, admin.Key, false},
		"a host that only looks like this one": {"https://127.0.0.1:1.example.com", admin.Cert, admin.Key, false},
		"an administrator, without encryption": {"http" + url[len("https"):], admin.Cert, admin.Key, false},
	} {
		t.Run(name, func(t *testing.T) {
			cert, key, err := IssueHubIdentity(store, &rest.Config{Host: tc.host, TLSClientConfig: rest.TLSClientConfig{CertData: tc.cert, KeyData: tc.key}})
			if got := cert != nil && key != nil; got != tc.want || err != nil {
				t.Fatalf("it gets an identity: %t, %v", got, err)
			}
			if tc.want {
				block, _ := pem.Decode(cert)
				parsed, err := x509.ParseCertificate(block.Bytes)
				if err != nil || parsed.Subject.CommonName != activity.HubUser {
					t.Errorf("it is %v, %v", parsed.Subject, err)
				}
			}
		})
	}
	user := issue(t, mine, "jane", "developers")
	if cert, _, _ := IssueHubIdentity(store, &rest.Config{Host: url, TLSClientConfig: rest.TLSClientConfig{CertData: user.Cert, KeyData: user.Key}}); cert != nil {
		t.Error("a user who is no administrator gets the rights of one")
	}
}

// A client that is the administrator by mistake counts as use, and the cluster never sleeps.
func TestAnAuthorityThatCannotBeReadIsAnError(t *testing.T) {
	store, err := local.Open(t.TempDir(), []string{"false"})
	if err != nil {
		t.Fatal(err)
	}
	mine, url := newAuthority(t, store, "mine")
	admin := issue(t, mine, "system:admin", "system:masters")
	config := &rest.Config{Host: url, TLSClientConfig: rest.TLSClientConfig{CertData: admin.Cert, KeyData: admin.Key}}
	path := filepath.Join(machine.PKIPath(store.MachineDir("mine", machine.ControlPlaneName("mine"))), pki.ClusterCA+".key")
	key, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("half a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if cert, _, err := IssueHubIdentity(store, config); cert != nil || err == nil {
		t.Errorf("with an authority that cannot be read, it gets an identity: %t, %v", cert != nil, err)
	}
	if err := os.WriteFile(path, key, 0o600); err != nil {
		t.Fatal(err)
	}
	if cert, _, err := IssueHubIdentity(store, config); cert == nil || err != nil {
		t.Errorf("once it can be read, it gets an identity: %t, %v", cert != nil, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if cert, _, err := IssueHubIdentity(store, config); cert != nil || err != nil {
		t.Errorf("without an authority, it gets an identity: %t, %v", cert != nil, err)
	}
}
