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
	bootstrapper       = "system:serviceaccount:" + bootstrapNamespace + ":node-bootstrapper"
	serviceAccounts    = "system:serviceaccounts"
	bootstrapGroup     = serviceAccounts + ":" + bootstrapNamespace
)

// client says why a client certificate is not granted; "" if it is.
func (k Known) client(r *certificatesv1.CertificateSigningRequest, parsed *x509.CertificateRequest, name string, p past) string {
	switch {
	case r.Spec.Username == parsed.Subject.CommonName:
		return whyRenewal // C16: for kube-controller-manager
	case !nameless(parsed):
		return whyNames // C3, C4
	case !usable(r.Spec.Usages, certificatesv1.UsageClientAuth):
		return whyUsages // C5
	case r.Spec.Username != bootstrapper:
		return whyUser // C6
	case !same(r.Spec.Groups, bootstrapGroup, serviceAccounts, everybody) && !same(r.Spec.Groups, bootstrapGroup, everybody):
		return whyGroups // C7
	case k.ClientsOff:
		return whyOff // C12
	case p.granted.Has(name):
		return whyTwice // C15
	case !k.Window.openForClients(k.Now):
		return whyClosed // C15
	case !k.timely(r):
		return whyOld // C13
	}
	n, ok := k.node(name)
	if !ok {
		return whyNode // C8
	}
	m, ok := k.machineOf(n)
	if !ok || !m.called(name, corev1.NodeInternalDNS) {
		return whyMachine // C9, C10
	}
	if !k.silent(n) {
		return whyAlive // C14
	}
	return ""
}

// timely reports whether the request was made in this resume. One from the future
// has a clock that proves nothing.
func (k Known) timely(r *certificatesv1.CertificateSigningRequest) bool {
	made := r.CreationTimestamp.Time
	return !made.Before(k.Window.Opened) && !made.After(k.Now.Add(skew))
}

// called reports whether name is one of the machine's names of those kinds,
// whatever its case and a final dot.
func (m Machine) called(name string, kinds ...corev1.NodeAddressType) bool {
	if normal(name) == "" {
		return false // an address that a cloud has left empty vouches for nothing
	}
	return slices.ContainsFunc(m.Addresses, func(a corev1.NodeAddress) bool {
		return slices.Contains(kinds, a.Type) && normal(a.Address) == normal(name)
	})
}

func normal(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }
