package node

import (
	"errors"
	"os"
	"testing"
	"time"

	"k8s.io/client-go/util/certificate"

	local "hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/embedded/pki"
)

// The installer writes the first certificate of a worker that is added to an installed cluster.
func TestANodeFindsTheCertificateThatItWasGiven(t *testing.T) {
	if got, want := newCertificateStore(local.PKIPath("m"), clientName).path, local.NodeCertificatePath("m"); got != want {
		t.Errorf("it looks at %s, not at %s", got, want)
	}
}

func TestStore(t *testing.T) {
	s := newCertificateStore(t.TempDir(), "client")
	var none *certificate.NoCertKeyError
	if _, err := s.Current(); !errors.As(err, &none) {
		t.Errorf("an empty store: %v", err)
	}
	ca, err := pki.NewCA("test", noon.Time)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"first", "second"} {
		pair, err := ca.IssueClientCert(noon.Time, time.Hour, name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Update(pair.Cert, pair.Key); err != nil {
			t.Fatal(err)
		}
		current, err := s.Current()
		if err != nil || current.Leaf.Subject.CommonName != name {
			t.Errorf("after storing %s: %v", name, err)
		}
	}
}

// client-go's manager requests a certificate if there is none, and gives up on other errors.
func TestACertificateThatIsCutIsNone(t *testing.T) {
	s := newCertificateStore(t.TempDir(), "client")
	ca, err := pki.NewCA("test", noon.Time)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.IssueClientCert(noon.Time, time.Hour, "node")
	if err != nil {
		t.Fatal(err)
	}
	whole := append(append([]byte{}, pair.Cert...), pair.Key...)
	for _, length := range []int{0, 1, len(pair.Cert) / 2, len(pair.Cert), len(whole) - 40} {
		if err := os.WriteFile(s.path, whole[:length], 0o600); err != nil {
			t.Fatal(err)
		}
		var none *certificate.NoCertKeyError
		if _, err := s.Current(); !errors.As(err, &none) {
			t.Errorf("with %d of %d bytes: %v", length, len(whole), err)
		}
	}
	if _, err := s.Update(pair.Cert, pair.Key); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Current(); err != nil {
		t.Errorf("after a new one was stored: %v", err)
	}
}

func TestOutdatedCertificatesHaveExpired(t *testing.T) {
	dir := t.TempDir()
	ca, err := pki.NewCA("test", noon.Time)
	if err != nil {
		t.Fatal(err)
	}
	good, err := ca.IssueClientCert(noon.Time, 24*time.Hour, "system:node:a", "system:nodes")
	if err != nil {
		t.Fatal(err)
	}
	s := newCertificateStore(dir, clientName)
	if _, err := s.Update(good.Cert, good.Key); err != nil {
		t.Fatal(err)
	}
	if err := InjectExpiredCertificates(dir, noon.Time); err != nil { // there is no serving certificate yet
		t.Fatal(err)
	}
	leaf := func() string {
		t.Helper()
		current, err := s.Current()
		if err != nil {
			t.Fatal(err)
		}
		return current.Leaf.Subject.String() + " until " + current.Leaf.NotAfter.Format(time.TimeOnly)
	}
	want := "CN=system:node:a,O=system:nodes until " + noon.Add(-time.Hour).UTC().Format(time.TimeOnly)
	if got := leaf(); got != want {
		t.Errorf("it is of %s, want %s", got, want)
	}
}
