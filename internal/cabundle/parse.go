// Package cabundle reads the CA certificates that the administrator of a hub configures for all
// clusters. Installers, and hotspare's own clients of clouds and clusters, trust them in addition
// to the system's.
package cabundle

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// blockType is the type of a PEM block that contains a certificate.
const blockType = "CERTIFICATE"

// Certificate is one certificate in DER form.
type Certificate []byte

// Parse returns the certificates in raw. It accepts all of raw or nothing: the error says what to
// correct and quotes nothing from raw, which may contain a private key by mistake. Text around the
// PEM blocks is a comment.
func Parse(raw []byte) ([]Certificate, error) {
	begun := countPEMBlocks(raw)
	if begun == 0 {
		return nil, errors.New("there is no PEM certificate: use certificates that start with -----BEGIN CERTIFICATE-----")
	}
	var found []Certificate
	rest := raw
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if err := checkIsCertificate(block); err != nil {
			return nil, fmt.Errorf("PEM block %d of %d %w", len(found)+1, begun, err)
		}
		found = append(found, block.Bytes)
	}
	// The decoder silently skips a block that it cannot decode.
	if len(found) != begun {
		return nil, fmt.Errorf("only %d of %d PEM blocks are complete: copy the certificates again, from BEGIN to END", len(found), begun)
	}
	return found, nil
}

// countPEMBlocks counts the lines that begin a PEM block, including indented ones, which the
// decoder skips.
func countPEMBlocks(raw []byte) int {
	count := 0
	for line := range bytes.Lines(raw) {
		if bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("-----BEGIN")) {
			count++
		}
	}
	return count
}

// checkIsCertificate returns an error if block is not a certificate. Its text continues the name of
// the block.
func checkIsCertificate(block *pem.Block) error {
	switch {
	case strings.HasSuffix(block.Type, "PRIVATE KEY"):
		return errors.New("is a private key: remove the key, and use certificates only")
	case block.Type != blockType:
		return errors.New("is not of type CERTIFICATE: remove it, and use certificates only")
	}
	if _, err := x509.ParseCertificate(block.Bytes); err != nil {
		return errors.New("is not an X.509 certificate: copy the certificate again")
	}
	return nil
}

// Encode returns the certificates in PEM, in the given order and without duplicates.
func Encode(certificates []Certificate) []byte {
	var out bytes.Buffer
	seen := map[[sha256.Size]byte]bool{}
	for _, c := range certificates {
		sum := sha256.Sum256(c)
		if seen[sum] {
			continue
		}
		seen[sum] = true
		out.Write(pem.EncodeToMemory(&pem.Block{Type: blockType, Bytes: c}))
	}
	return out.Bytes()
}

// SystemPoolWith returns a pool of the system's certificates and those in bundles, which are PEM.
// It returns nil, which means the system's certificates, if bundles contain none.
func SystemPoolWith(bundles ...[]byte) *x509.CertPool {
	all := bytes.Join(bundles, []byte("\n"))
	if len(bytes.TrimSpace(all)) == 0 {
		return nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // without system certificates, trust only the bundles
	}
	pool.AppendCertsFromPEM(all)
	return pool
}
