// Package pki creates the keys, certificates and kubeconfigs of a cluster.
//
// Everything is derived from a CA that is stored on disk. Signing a leaf certificate is cheap, so a
// component signs a new one at each start and stores none. All keys are ECDSA P-256. Files are
// written atomically, with mode 0600.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Names of the CAs of a cluster, for CA.Write and LoadCA.
const (
	// ClusterCA signs the certificates of the API server, of its clients and of the nodes.
	ClusterCA = "ca"
	// FrontProxyCA signs the certificate that the API server presents to aggregated API servers.
	FrontProxyCA = "front-proxy-ca"
)

// Backdate is how long before its creation a certificate becomes valid, so that a peer whose clock
// is slightly behind accepts it at once.
const Backdate = 5 * time.Second

// caLifetime is longer than the life of any cluster on a laptop.
const caLifetime = 10 * 365 * 24 * time.Hour

// A CA is a self-signed certificate and the key that signs with it. It is safe for concurrent use.
type CA struct {
	cert *x509.Certificate
	key  crypto.Signer
	pair Pair
}

// NewCA creates a CA with the common name cn, in memory only: see Write.
func NewCA(cn string, now time.Time) (*CA, error) {
	key, err := generateKey()
	if err != nil {
		return nil, err
	}
	serial, err := newSerialNumber()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: cn},
		NotBefore:             now.Add(-Backdate),
		NotAfter:              now.Add(caLifetime),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("signing CA %s: %w", cn, err)
	}
	pair, err := encodeKeyPair(der, key)
	if err != nil {
		return nil, err
	}
	return parseCA(pair)
}

// LoadCA reads the CA that Write stored in dir under name. The error is fs.ErrNotExist if there is
// none.
func LoadCA(dir, name string) (*CA, error) {
	pair, err := ReadPair(dir, name)
	if err != nil {
		return nil, err
	}
	ca, err := parseCA(pair)
	if err != nil {
		return nil, fmt.Errorf("reading CA %s: %w", filepath.Join(dir, name+certSuffix), err)
	}
	return ca, nil
}

// LoadOrCreateCA loads the CA called name from dir. If there is none, it creates one with the
// common name cn and stores it.
func LoadOrCreateCA(dir, name, cn string, now time.Time) (*CA, error) {
	ca, err := LoadCA(dir, name)
	if !errors.Is(err, fs.ErrNotExist) {
		return ca, err
	}
	if _, err := os.Stat(filepath.Join(dir, name+certSuffix)); err == nil {
		return nil, fmt.Errorf("loading CA %s: its certificate exists, but its key is missing", filepath.Join(dir, name))
	}
	if ca, err = NewCA(cn, now); err != nil {
		return nil, err
	}
	return ca, ca.Write(dir, name)
}

// Write stores the CA as dir/name.crt and dir/name.key. It creates dir if needed.
func (c *CA) Write(dir, name string) error {
	return c.pair.Write(dir, name)
}

// CertPEM returns the certificate, for clients that must trust this CA.
func (c *CA) CertPEM() []byte {
	return c.pair.Cert
}

func parseCA(pair Pair) (*CA, error) {
	certs, err := cert.ParseCertsPEM(pair.Cert)
	if err != nil {
		return nil, err
	}
	if !certs[0].IsCA {
		return nil, errors.New("not a CA certificate")
	}
	parsed, err := keyutil.ParsePrivateKeyPEM(pair.Key)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a key of type %T cannot sign", parsed)
	}
	return &CA{cert: certs[0], key: key, pair: pair}, nil
}

func generateKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating a key: %w", err)
	}
	return key, nil
}

// newSerialNumber returns a random positive number of up to 127 bits; RFC 5280 allows 20 octets.
func newSerialNumber() (*big.Int, error) {
	limit := new(big.Int).Lsh(big.NewInt(1), 127)
	n, err := rand.Int(rand.Reader, limit)
	if err != nil {
		return nil, fmt.Errorf("generating a serial number: %w", err)
	}
	return n.Add(n, big.NewInt(1)), nil
}
