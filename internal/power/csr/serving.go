package csr

import (
	"crypto/x509"
	"net/netip"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
)

// servingRefusal returns why a serving certificate is not granted; "" if it is. Comparing with
// the certificate that the node presents now is not an alternative (V11): the hub cannot dial
// nodes.
func (s Snapshot) servingRefusal(r *certificatesv1.CertificateSigningRequest, parsed *x509.CertificateRequest, name string) string {
	switch {
	case r.Spec.Username != parsed.Subject.CommonName:
		return reasonOther // V1, V4: the subject has the prefix, and a name after it
	case !slices.Contains(r.Spec.Groups, nodesGroup) || !slices.Contains(r.Spec.Groups, authenticatedGroup):
		return reasonGroups // V2
	case !hasKubeletUsages(r.Spec.Usages, certificatesv1.UsageServerAuth):
		return reasonUsages // V3
	case !hasPlainNames(parsed):
		return reasonNames // V6, V7
	case !s.Window.IsOpen(s.Now):
		return reasonClosed
	case !s.isFromThisResume(r):
		return reasonOld
	}
	n, ok := s.findNode(name)
	if !ok {
		return reasonNode
	}
	m, ok := s.machineOfNode(n)
	if !ok {
		return reasonMachine // V8
	}
	if !m.ownsNames(parsed) {
		return reasonAddress // V9, V10
	}
	return ""
}

// ownsNames reports whether all names in the request belong to the machine.
func (m Machine) ownsNames(parsed *x509.CertificateRequest) bool {
	for _, name := range parsed.DNSNames {
		if strings.Contains(name, "*") || !m.hasName(name, corev1.NodeInternalDNS, corev1.NodeExternalDNS, corev1.NodeHostName) {
			return false
		}
	}
	for _, raw := range parsed.IPAddresses {
		ip, ok := netip.AddrFromSlice(raw)
		if !ok || !m.hasAddress(ip) {
			return false
		}
	}
	return true
}

// hasAddress reports whether the machine has that address.
func (m Machine) hasAddress(ip netip.Addr) bool {
	return slices.ContainsFunc(m.Addresses, func(a corev1.NodeAddress) bool {
		if a.Type != corev1.NodeInternalIP && a.Type != corev1.NodeExternalIP {
			return false
		}
		have, err := netip.ParseAddr(a.Address)
		return err == nil && have.Unmap() == ip
	})
}
