package node

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/util/certificate"

	"hotspare.io/hotspare/internal/embedded/pki"
)

// InjectExpiredCertificates replaces the certificates that a node keeps in dir with ones that expired an
// hour before now. The node must not be running. Missing certificates are skipped.
//
// The replacements are signed with the node's own key, because the node does not have the key of
// the CA. This has no effect, because a node never presents an expired certificate.
func InjectExpiredCertificates(dir string, now time.Time) error {
	for _, name := range []string{clientName, servingName} {
		s := newCertificateStore(dir, name)
		current, err := s.Current()
		var none *certificate.NoCertKeyError
		if errors.As(err, &none) {
			continue
		}
		if err == nil {
			err = s.storeExpired(current, now)
		}
		if err != nil {
			return fmt.Errorf("replacing the certificate %s with an expired one: %w", name, err)
		}
	}
	return nil
}

// storeExpired stores the certificate with a validity period that has ended.
func (s store) storeExpired(current *tls.Certificate, now time.Time) error {
	old := *current.Leaf
	old.NotBefore, old.NotAfter = now.Add(-2*time.Hour), now.Add(-time.Hour)
	old.SignatureAlgorithm = x509.UnknownSignatureAlgorithm // derive the algorithm from the signing key
	der, err := x509.CreateCertificate(rand.Reader, &old, &old, old.PublicKey, current.PrivateKey)
	if err != nil {
		return err
	}
	key, err := x509.MarshalPKCS8PrivateKey(current.PrivateKey)
	if err != nil {
		return err
	}
	pair := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
	return pki.WriteFile(s.path, pair)
}
