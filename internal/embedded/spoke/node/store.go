package node

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/client-go/util/certificate"
	"k8s.io/klog/v2"

	"hotspare.io/hotspare/internal/embedded/pki"
)

// store keeps one certificate and its key in one file. client-go's file store keeps every
// certificate; with a certificate lifetime of one minute, that is a thousand files a day.
type store struct {
	path string
}

// Names of the stores.
const (
	clientName  = "kubelet-client"
	servingName = "kubelet-server"
)

func newCertificateStore(dir, name string) store {
	return store{path: filepath.Join(dir, name+".pem")}
}

// Current implements certificate.Store. A file without a complete certificate and key counts as
// missing: a full disk may have truncated it, and the node can request another certificate.
func (s store) Current() (*tls.Certificate, error) {
	raw, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, newNoCertificateError("no certificate at " + s.path)
	}
	if err != nil {
		return nil, fmt.Errorf("reading certificate: %w", err)
	}
	pair, err := parseKeyPair(raw, raw)
	if err != nil {
		klog.Background().Info("a certificate cannot be read: the node requests another", "path", s.path, "why", err.Error())
		return nil, newNoCertificateError("no readable certificate at " + s.path)
	}
	return pair, nil
}

func newNoCertificateError(why string) error {
	none := certificate.NoCertKeyError(why)
	return &none
}

// Update implements certificate.Store.
func (s store) Update(cert, key []byte) (*tls.Certificate, error) {
	if err := pki.WriteFile(s.path, append(cert[:len(cert):len(cert)], key...)); err != nil {
		return nil, err
	}
	return parseKeyPair(cert, key)
}

// parseKeyPair returns the pair with a parsed leaf, because the manager reads the dates of the
// leaf.
func parseKeyPair(cert, key []byte) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("parsing certificate: %w", err)
	}
	return &pair, nil
}
