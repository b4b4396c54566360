package pki

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"time"
)

// KubeletClientUser is the user name of an API server when it requests logs from a node.
const KubeletClientUser = "kube-apiserver-kubelet-client"

// IssueClientCert returns a certificate that authenticates user, a member of groups, to an API
// server that trusts this CA. It is valid from now for the duration life.
func (c *CA) IssueClientCert(now time.Time, life time.Duration, user string, groups ...string) (Pair, error) {
	return c.issueCertAndKey(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		NotBefore:   now.Add(-Backdate),
		NotAfter:    now.Add(life),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// IssueServerCert returns a certificate for a server called name that clients reach by any of
// hosts, each a DNS name or an IP address.
func (c *CA) IssueServerCert(now time.Time, life time.Duration, name string, hosts ...string) (Pair, error) {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		NotBefore:   now.Add(-Backdate),
		NotAfter:    now.Add(life),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
			continue
		}
		template.DNSNames = append(template.DNSNames, host)
	}
	return c.issueCertAndKey(template)
}

// IssueRequestedCert returns the PEM certificate that request asks for, for the given usages, valid
// from now for the duration life. The caller must have approved the request: its subject and its
// names are granted unchanged.
func (c *CA) IssueRequestedCert(now time.Time, life time.Duration, request *x509.CertificateRequest, usages ...x509.ExtKeyUsage) ([]byte, error) {
	if err := request.CheckSignature(); err != nil {
		return nil, fmt.Errorf("checking the request of %s: %w", request.Subject.CommonName, err)
	}
	der, err := c.signCertificate(&x509.Certificate{
		Subject:     request.Subject,
		NotBefore:   now.Add(-Backdate),
		NotAfter:    now.Add(life),
		DNSNames:    request.DNSNames,
		IPAddresses: request.IPAddresses,
		ExtKeyUsage: usages,
	}, request.PublicKey)
	if err != nil {
		return nil, err
	}
	return encodeCertPEM(der), nil
}

// issueCertAndKey issues a certificate for a new key.
func (c *CA) issueCertAndKey(template *x509.Certificate) (Pair, error) {
	key, err := generateKey()
	if err != nil {
		return Pair{}, err
	}
	der, err := c.signCertificate(template, key.Public())
	if err != nil {
		return Pair{}, err
	}
	return encodeKeyPair(der, key)
}

// signCertificate adds the fields that all leaf certificates share to the template, and signs it.
func (c *CA) signCertificate(template *x509.Certificate, public crypto.PublicKey) ([]byte, error) {
	serial, err := newSerialNumber()
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageDigitalSignature
	if _, ok := public.(*rsa.PublicKey); ok {
		template.KeyUsage |= x509.KeyUsageKeyEncipherment
	}
	der, err := x509.CreateCertificate(rand.Reader, template, c.cert, public, c.key)
	if err != nil {
		return nil, fmt.Errorf("signing certificate of %s: %w", template.Subject.CommonName, err)
	}
	return der, nil
}
