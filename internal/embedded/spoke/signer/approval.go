// Package signer decides which certificates the nodes of a local cluster get without manual approval.
//
// A node's first client certificate is approved only while the cluster is being installed.
// Afterwards, a node renews its certificate with its current one, and kube-controller-manager
// approves the renewal. A node whose certificate expired during a long hibernation must request a
// new one with the bootstrap identity, and a component outside of the cluster must approve it.
// Serving certificates are approved for nodes that the cluster knows, for the addresses recorded in
// their Nodes.
package signer

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

	"hotspare.io/hotspare/internal/embedded/pki"
)

// nodePrefix is the prefix before the name of a node in its user name.
const nodePrefix = "system:node:"

// Reasons why CheckApproval does not approve a request. Other approvers may still approve it.
var (
	ErrNotNodeSigner    = errors.New("not a certificate of a node")
	ErrClusterInstalled = errors.New("the cluster is installed: its administrators approve new nodes")
	ErrWrongRequestor   = errors.New("requested by another account")
	ErrUnknownNode      = errors.New("not a node of this cluster")
	ErrForeignAddress   = errors.New("it requests an address that is not the node's")
	ErrMalformedRequest = errors.New("not a kubelet's request")
)

// Snapshot is the input of CheckApproval, in addition to the request.
type Snapshot struct {
	// Installing reports that the cluster is being installed.
	Installing bool
	// InfraID is the prefix of the names of all nodes of the cluster.
	InfraID string
	// Node is the node that the request names, nil if it does not exist.
	Node *corev1.Node
}

// RequestedNodeName returns the name of the node that the request is about, or "" if it is not
// about a node.
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

// CheckApproval returns nil if the request should be approved, and otherwise an error with the
// reason.
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

// ParseRequest returns the parsed certificate request of a node, or ErrMalformedRequest if it is
// not what a kubelet would request from the signer.
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
