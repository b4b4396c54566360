package pki

import (
	"crypto/ecdsa"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	certSuffix = ".crt"
	keySuffix  = ".key"
)

// A Pair is a certificate and its private key, both PEM.
type Pair struct {
	Cert, Key []byte
}

// Write stores the pair as dir/name.crt and dir/name.key. It creates dir if needed. It writes the
// key first, so that an existing certificate always has its key.
func (p Pair) Write(dir, name string) error {
	if err := WriteFile(filepath.Join(dir, name+keySuffix), p.Key); err != nil {
		return err
	}
	return WriteFile(filepath.Join(dir, name+certSuffix), p.Cert)
}

// ReadPair reads the pair that Write stored. The error is fs.ErrNotExist if there is none.
func ReadPair(dir, name string) (Pair, error) {
	crt, err := os.ReadFile(filepath.Join(dir, name+certSuffix))
	if err != nil {
		return Pair{}, fmt.Errorf("reading certificate: %w", err)
	}
	key, err := os.ReadFile(filepath.Join(dir, name+keySuffix))
	if err != nil {
		return Pair{}, fmt.Errorf("reading key: %w", err)
	}
	return Pair{Cert: crt, Key: key}, nil
}

func encodeKeyPair(der []byte, key *ecdsa.PrivateKey) (Pair, error) {
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return Pair{}, fmt.Errorf("encoding key: %w", err)
	}
	return Pair{Cert: encodeCertPEM(der), Key: keyPEM}, nil
}

func encodeCertPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der})
}
