package csr

import (
	"bytes"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// Prefix and group of the names of nodes.
const (
	userPrefix         = "system:node:"
	nodesGroup         = "system:nodes"
	authenticatedGroup = "system:authenticated"
)

// Object identifiers of RFC 5280.
var (
	oidCommonName   = asn1.ObjectIdentifier{2, 5, 4, 3}
	oidOrganization = asn1.ObjectIdentifier{2, 5, 4, 10}
	oidSubjectAlt   = asn1.ObjectIdentifier{2, 5, 29, 17}
)

// Tags of the names that a serving certificate may have (RFC 5280, 4.2.1.6).
const (
	tagDNS = 2
	tagIP  = 7
)

// parseRequest parses the certificate request (S3, S4). It accepts only one PEM block with
// nothing around it, so that a signer cannot read anything else in it.
func parseRequest(raw []byte) (*x509.CertificateRequest, string) {
	if bytes.Count(raw, []byte("-----BEGIN")) != 1 {
		return nil, reasonPEM
	}
	block, rest := pem.Decode(raw)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(block.Headers) > 0 || !bytes.HasPrefix(raw, []byte("-----BEGIN")) || len(bytes.TrimSpace(rest)) > 0 {
		return nil, reasonPEM
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, reasonDER
	}
	if parsed.CheckSignature() != nil {
		return nil, reasonSignature
	}
	return parsed, ""
}

// commonNameOf returns the common name in a request of any form that others have approved; "" if
// it cannot be read.
func commonNameOf(raw []byte) string {
	block, _ := pem.Decode(bytes.TrimSpace(raw))
	if block == nil {
		return ""
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return ""
	}
	return parsed.Subject.CommonName
}

// nodeInSubject returns the node in the subject, which must be exactly O=system:nodes,
// CN=system:node:<name> (C1, C2, V5).
func nodeInSubject(parsed *x509.CertificateRequest) (node, why string) {
	organizations, names := 0, 0
	for _, a := range parsed.Subject.Names {
		switch {
		case a.Type.Equal(oidOrganization) && a.Value == nodesGroup:
			organizations++
		case a.Type.Equal(oidCommonName):
			names++
		default:
			return "", reasonOrganization
		}
	}
	if organizations != 1 {
		return "", reasonOrganization
	}
	node, ok := strings.CutPrefix(parsed.Subject.CommonName, userPrefix)
	if names != 1 || !ok || node == "" {
		return "", reasonCommonName
	}
	return node, ""
}

// hasNoExtensions reports whether the request contains no other names, nor anything else that
// would be copied into a certificate (C3, C4).
func hasNoExtensions(parsed *x509.CertificateRequest) bool { return len(parsed.Extensions) == 0 }

// hasPlainNames reports whether the names are DNS names and IP addresses, at least one, and
// nothing else is requested (V6, V7). It parses the extension itself, because x509 ignores the
// kinds of names that it does not know.
func hasPlainNames(parsed *x509.CertificateRequest) bool {
	if len(parsed.Extensions) != 1 || !parsed.Extensions[0].Id.Equal(oidSubjectAlt) {
		return false
	}
	var names []asn1.RawValue
	rest, err := asn1.Unmarshal(parsed.Extensions[0].Value, &names)
	if err != nil || len(rest) > 0 || len(names) == 0 {
		return false
	}
	return !slices.ContainsFunc(names, func(n asn1.RawValue) bool {
		return n.Class != asn1.ClassContextSpecific || n.IsCompound || (n.Tag != tagDNS && n.Tag != tagIP)
	})
}

// hasKubeletUsages reports whether the usages are those of a kubelet: digital signature and auth,
// and optionally key encipherment, which kubelets omit for elliptic-curve keys (C5, V3).
func hasKubeletUsages(usages []certificatesv1.KeyUsage, auth certificatesv1.KeyUsage) bool {
	return hasExactly(usages, certificatesv1.UsageDigitalSignature, auth) ||
		hasExactly(usages, certificatesv1.UsageDigitalSignature, auth, certificatesv1.UsageKeyEncipherment)
}

// hasExactly reports whether list has exactly these entries, in any order.
func hasExactly[T ~string](list []T, want ...T) bool {
	list = slices.Clone(list)
	slices.Sort(list)
	slices.Sort(want)
	return slices.Equal(list, want)
}

// isAnswered reports whether the request has any condition or a certificate (S2).
func isAnswered(r *certificatesv1.CertificateSigningRequest) bool {
	return len(r.Status.Certificate) > 0 || hasCondition(r, certificatesv1.CertificateApproved) ||
		hasCondition(r, certificatesv1.CertificateDenied) || hasCondition(r, certificatesv1.CertificateFailed)
}

// IsOpen reports whether the request is unanswered.
func IsOpen(r certificatesv1.CertificateSigningRequest) bool { return !isAnswered(&r) }

func hasCondition(r *certificatesv1.CertificateSigningRequest, kind certificatesv1.RequestConditionType) bool {
	return slices.ContainsFunc(r.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == kind
	})
}

// isForNodes reports whether the signer is one of the two for nodes (S1).
func isForNodes(r *certificatesv1.CertificateSigningRequest) bool {
	return r.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName ||
		r.Spec.SignerName == certificatesv1.KubeletServingSignerName
}
