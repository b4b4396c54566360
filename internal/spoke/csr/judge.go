// Package csr decides which certificates the nodes of a local cluster get without
// anybody being asked.
//
// A node's first client certificate is granted while the cluster is installed,
// and only then. Afterwards a node renews its certificate with the one it has,
// which is for kube-controller-manager to approve. A node that slept so long that
// its certificate has expired must ask as a stranger again, and somebody outside
// of the cluster has to answer for it. Serving certificates are granted to nodes
// that the cluster knows, for the addresses it knows them by.
package csr

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/apis/certificates"

	"hotspare.io/hotspare/internal/pki"
)

// nodePrefix precedes the name of a node in its user name.
const nodePrefix = "system:node:"

// Why a request is not granted here. Others may grant it.
var (
	ErrNotNodeSigner    = errors.New("not a certificate of a node")
	ErrClusterInstalled = errors.New("the cluster is installed: new nodes are approved from outside")
	ErrWrongRequestor   = errors.New("asked for by somebody else")
	ErrUnknownNode      = errors.New("not a node of this cluster")
	ErrForeignAddress   = errors.New("asked for an address that is not the node's")
	ErrMalformedRequest = errors.New("not what a kubelet asks for")
)

// Snapshot is what a request is judged by.
type Snapshot struct {
	// Installing says that the cluster is being installed.
	Installing bool
	// InfraID begins the names of all nodes of the cluster.
	InfraID string
	// Node is the node that the request names, nil if there is none.
	Node *corev1.Node
}

// RequestedNodeName returns the name of the node that the request is about, or "" if it is
// not about a node.
func RequestedNodeName(request *certificatesv1.CertificateSigningRequest) string {
	parsed, err := certificates.ParseCSR(request.Spec.Request)
	if err != nil {
		return ""
	}
	name, ok := strings.CutPrefix(parsed.Subject.CommonName, nodePrefix)
	if !ok {
		return ""
	}
	return name
}

// CheckApproval returns nil if the request is to be approved, or else why not.
func CheckApproval(request *certificatesv1.CertificateSigningRequest, seen Snapshot) error {
	switch request.Spec.SignerName {
	case certificatesv1.KubeAPIServerClientKubeletSignerName:
		return checkClientRequest(request, seen)
	case certificatesv1.KubeletServingSignerName:
		return checkServingRequest(request, seen)
	default:
		return ErrNotNodeSigner
	}
}

func checkClientRequest(request *certificatesv1.CertificateSigningRequest, seen Snapshot) error {
	if !seen.Installing {
		return ErrClusterInstalled
	}
	if _, err := ParseRequest(request); err != nil {
		return err
	}
	groups := sets.New(append(pki.NodeBootstrapperGroups(), "system:authenticated")...)
	if request.Spec.Username != pki.NodeBootstrapperUser || !groups.Equal(sets.New(request.Spec.Groups...)) {
		return ErrWrongRequestor
	}
	if !strings.HasPrefix(RequestedNodeName(request), seen.InfraID+"-") {
		return ErrUnknownNode
	}
	return nil
}

func checkServingRequest(request *certificatesv1.CertificateSigningRequest, seen Snapshot) error {
	parsed, err := ParseRequest(request)
	if err != nil {
		return err
	}
	if request.Spec.Username != parsed.Subject.CommonName || !slices.Contains(request.Spec.Groups, "system:nodes") {
		return ErrWrongRequestor
	}
	if seen.Node == nil || nodePrefix+seen.Node.Name != parsed.Subject.CommonName {
		return ErrUnknownNode
	}
	if !ownsRequestedNames(seen.Node, parsed) {
		return ErrForeignAddress
	}
	return nil
}

// ownsRequestedNames reports whether all names in the request are addresses of the node.
func ownsRequestedNames(node *corev1.Node, parsed *x509.CertificateRequest) bool {
	names := sets.New[string]()
	for _, a := range node.Status.Addresses {
		names.Insert(a.Address)
	}
	return names.HasAll(parsed.DNSNames...) &&
		!slices.ContainsFunc(parsed.IPAddresses, func(ip net.IP) bool { return !names.Has(ip.String()) })
}

// ParseRequest returns what a node asks for, or ErrMalformed if it is not what a
// kubelet would ask its signer for.
func ParseRequest(request *certificatesv1.CertificateSigningRequest) (*x509.CertificateRequest, error) {
	parsed, err := certificates.ParseCSR(request.Spec.Request)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformedRequest, err)
	}
	usages := sets.NewString()
	for _, u := range request.Spec.Usages {
		usages.Insert(string(u))
	}
	validate := certificates.ValidateKubeletClientCSR
	if request.Spec.SignerName == certificatesv1.KubeletServingSignerName {
		validate = certificates.ValidateKubeletServingCSR
	}
	if err := validate(parsed, usages); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformedRequest, err)
	}
	return parsed, nil
}
