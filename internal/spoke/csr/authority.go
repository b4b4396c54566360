package csr

import (
	"context"
	"crypto/x509"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"hotspare.io/hotspare/internal/pki"
	"hotspare.io/hotspare/internal/spoke/loop"
)

// retryInterval is when a request that was not approved is judged again: its node may
// register meanwhile, and nothing about the request would tell.
const retryInterval = 2 * time.Second

// An Authority approves the requests that Judge lets pass, and signs those for
// nodes that are approved, by whomever.
//
// It signs because kube-controller-manager's signer begins the validity of each
// certificate five minutes in the past: of one that lives for a minute, 70 % are
// over when it is made, and its owner would ask for the next one at once.
type Authority struct {
	Client kubernetes.Interface
	CA     *pki.CA
	// Life is how long the certificates live, unless a shorter life is asked for.
	Life time.Duration
	// InfraID begins the names of all nodes of the cluster.
	InfraID string
	// Installing tells whether the cluster is being installed.
	Installing func() bool
}

// Run works until ctx ends.
func (a *Authority) Run(ctx context.Context) {
	source := cache.NewListWatchFromClient(a.Client.CertificatesV1().RESTClient(),
		"certificatesigningrequests", metav1.NamespaceAll, fields.Everything())
	loop.Run(ctx, source, &certificatesv1.CertificateSigningRequest{}, a.reconcileRequest)
}

func (a *Authority) reconcileRequest(ctx context.Context, request *certificatesv1.CertificateSigningRequest) (time.Duration, error) {
	if !isNodeRequest(request) || len(request.Status.Certificate) > 0 {
		return 0, nil
	}
	approved, refused := requestDecision(request)
	if refused {
		return 0, nil
	}
	if approved {
		return 0, a.signRequest(ctx, request)
	}
	seen, err := a.observeRequestedNode(ctx, request)
	if err != nil {
		return 0, err
	}
	if err := CheckApproval(request, seen); err != nil {
		klog.FromContext(ctx).V(1).Info("left a request to others", "request", request.Name, "reason", err)
		return retryInterval, nil
	}
	return 0, a.approveRequest(ctx, request)
}

func (a *Authority) observeRequestedNode(ctx context.Context, request *certificatesv1.CertificateSigningRequest) (Snapshot, error) {
	seen := Snapshot{Installing: a.Installing(), InfraID: a.InfraID}
	name := RequestedNodeName(request)
	if name == "" {
		return seen, nil
	}
	node, err := a.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return seen, nil
	}
	if err != nil {
		return seen, fmt.Errorf("getting node %s: %w", name, err)
	}
	seen.Node = node
	return seen, nil
}

func (a *Authority) approveRequest(ctx context.Context, request *certificatesv1.CertificateSigningRequest) error {
	request = withCondition(request, certificatesv1.CertificateApproved, "AutoApproved", "Approved by the rules for nodes of a local cluster.")
	_, err := a.Client.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, request.Name, request, metav1.UpdateOptions{})
	return wrapRequestError(err, "approving", request)
}

// signRequest issues the certificate, or records why it cannot be issued.
func (a *Authority) signRequest(ctx context.Context, request *certificatesv1.CertificateSigningRequest) error {
	raw, err := a.issueCertificate(request)
	if err != nil {
		return a.markRequestFailed(ctx, request, err)
	}
	request = request.DeepCopy()
	request.Status.Certificate = raw
	_, err = a.Client.CertificatesV1().CertificateSigningRequests().UpdateStatus(ctx, request, metav1.UpdateOptions{})
	return wrapRequestError(err, "signing", request)
}

func (a *Authority) issueCertificate(request *certificatesv1.CertificateSigningRequest) ([]byte, error) {
	parsed, err := ParseRequest(request)
	if err != nil {
		return nil, err
	}
	usage := x509.ExtKeyUsageClientAuth
	if request.Spec.SignerName == certificatesv1.KubeletServingSignerName {
		usage = x509.ExtKeyUsageServerAuth
	}
	life := a.Life
	if s := request.Spec.ExpirationSeconds; s != nil {
		life = min(life, time.Duration(*s)*time.Second)
	}
	return a.CA.IssueRequestedCert(time.Now(), life, parsed, usage)
}

func (a *Authority) markRequestFailed(ctx context.Context, request *certificatesv1.CertificateSigningRequest, reason error) error {
	request = withCondition(request, certificatesv1.CertificateFailed, "SignerValidationFailure", reason.Error())
	_, err := a.Client.CertificatesV1().CertificateSigningRequests().UpdateStatus(ctx, request, metav1.UpdateOptions{})
	return wrapRequestError(err, "failing", request)
}

// isNodeRequest reports whether nodes' certificates are asked for.
func isNodeRequest(request *certificatesv1.CertificateSigningRequest) bool {
	return request.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName ||
		request.Spec.SignerName == certificatesv1.KubeletServingSignerName
}

// requestDecision tells what has been said about the request.
func requestDecision(request *certificatesv1.CertificateSigningRequest) (approved, refused bool) {
	for _, c := range request.Status.Conditions {
		switch c.Type {
		case certificatesv1.CertificateApproved:
			approved = true
		case certificatesv1.CertificateDenied, certificatesv1.CertificateFailed:
			refused = true
		}
	}
	return approved, refused
}

// withCondition returns a copy of the request with one more condition.
func withCondition(request *certificatesv1.CertificateSigningRequest, kind certificatesv1.RequestConditionType, reason, message string) *certificatesv1.CertificateSigningRequest {
	request = request.DeepCopy()
	request.Status.Conditions = append(request.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastUpdateTime: metav1.Now(),
	})
	return request
}

// wrapRequestError names the request. A conflict or a request that is gone is no error: its
// next version, if any, is looked at anyway.
func wrapRequestError(err error, doing string, request *certificatesv1.CertificateSigningRequest) error {
	if err == nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("%s request %s: %w", doing, request.Name, err)
}
