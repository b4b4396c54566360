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

	"hotspare.io/hotspare/internal/pki"
)

// store keeps one certificate and its key in one file. client-go's file store
// keeps each that there ever was; with certificates that live for a minute that
// is a thousand a day.
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

// Current implements certificate.Store. A file without a certificate and its key is like
// none: a full disk may have cut it, and the node can ask for another certificate.
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
		klog.Background().Info("a certificate cannot be read: the node asks for another", "path", s.path, "why", err.Error())
		return nil, newNoCertificateError("no certificate that can be read at " + s.path)
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

// parseKeyPair returns the pair; its leaf, whose dates the manager looks at, is parsed too.
func parseKeyPair(cert, key []byte) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("parsing certificate: %w", err)
	}
	return &pair, nil
}
