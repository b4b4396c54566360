package csr

import (
	"crypto/x509"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
)

// The account that OpenShift's machines boot with.
const (
	bootstrapNamespace = "openshift-machine-config-operator"
	bootstrapUser      = "system:serviceaccount:" + bootstrapNamespace + ":node-bootstrapper"
	serviceAccounts    = "system:serviceaccounts"
	bootstrapGroup     = serviceAccounts + ":" + bootstrapNamespace
)

// clientRefusal returns why a client certificate is not granted; "" if it is.
func (s Snapshot) clientRefusal(r *certificatesv1.CertificateSigningRequest, parsed *x509.CertificateRequest, name string, p requestHistory) string {
	switch {
	case r.Spec.Username == parsed.Subject.CommonName:
		return reasonRenewal // C16: for kube-controller-manager
	case !hasNoExtensions(parsed):
		return reasonNames // C3, C4
	case !hasKubeletUsages(r.Spec.Usages, certificatesv1.UsageClientAuth):
		return reasonUsages // C5
	case r.Spec.Username != bootstrapUser:
		return reasonUser // C6
	case !hasExactly(r.Spec.Groups, bootstrapGroup, serviceAccounts, authenticatedGroup) && !hasExactly(r.Spec.Groups, bootstrapGroup, authenticatedGroup):
		return reasonGroups // C7
	case s.ClientsOff:
		return reasonOff // C12
	case p.granted.Has(name):
		return reasonTwice // C15
	case !s.Window.isOpenForClients(s.Now):
		return reasonClosed // C15
	case !s.isFromThisResume(r):
		return reasonOld // C13
	}
	n, ok := s.findNode(name)
	if !ok {
		return reasonNode // C8
	}
	m, ok := s.machineOfNode(n)
	if !ok || !m.hasName(name, corev1.NodeInternalDNS) {
		return reasonMachine // C9, C10
	}
	if !s.isSilent(n) {
		return reasonAlive // C14
	}
	return ""
}

// isFromThisResume reports whether the request was created in this resume. A creation time in the
// future comes from a clock that proves nothing.
func (s Snapshot) isFromThisResume(r *certificatesv1.CertificateSigningRequest) bool {
	made := r.CreationTimestamp.Time
	return !made.Before(s.Window.Opened) && !made.After(s.Now.Add(clockSkew))
}

// hasName reports whether name is one of the machine's names of those kinds, ignoring case and a
// trailing dot.
func (m Machine) hasName(name string, kinds ...corev1.NodeAddressType) bool {
	if normalizeName(name) == "" {
		return false // an empty address proves nothing
	}
	return slices.ContainsFunc(m.Addresses, func(a corev1.NodeAddress) bool {
		return slices.Contains(kinds, a.Type) && normalizeName(a.Address) == normalizeName(name)
	})
}

func normalizeName(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }
