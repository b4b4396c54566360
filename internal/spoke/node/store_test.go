package node

import (
	"errors"
	"testing"
	"time"

	"k8s.io/client-go/util/certificate"

	"hotspare.io/hotspare/internal/pki"
)

func TestStore(t *testing.T) {
	s := newStore(t.TempDir(), "client")
	var none *certificate.NoCertKeyError
	if _, err := s.Current(); !errors.As(err, &none) {
		t.Errorf("an empty store: %v", err)
	}
	ca, err := pki.NewCA("test", noon.Time)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"first", "second"} {
		pair, err := ca.Client(noon.Time, time.Hour, name)
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
