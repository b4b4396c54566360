package signer

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

	"hotspare.io/hotspare/internal/embedded/pki"
	"hotspare.io/hotspare/internal/embedded/spoke/informerloop"
)

// retryInterval is the delay before a request that was not approved is checked again: its node may
// register meanwhile, and no event about the request reports that.
const retryInterval = 2 * time.Second

// An Authority approves the requests that CheckApproval accepts, and signs the approved requests of
// nodes, regardless of who approved them.
//
// It signs because the signer of kube-controller-manager backdates each certificate by five
// minutes: for a certificate with a lifetime of one minute, 70 % of the validity is over when it is
// issued, and its owner would request the next one at once.
type Authority struct {
	Client kubernetes.Interface
	CA     *pki.CA
	// Life is the lifetime of the certificates, unless the request asks for a shorter one.
	Life time.Duration
	// InfraID is the prefix of the names of all nodes of the cluster.
	InfraID string
	// Installing reports whether the cluster is being installed.
	Installing func() bool
}

// Run approves and signs requests until ctx ends.
func (a *Authority) Run(ctx context.Context) {
	source := cache.NewListWatchFromClient(a.Client.CertificatesV1().RESTClient(),
		"certificatesigningrequests", metav1.NamespaceAll, fields.Everything())
	informerloop.Run(ctx, source, &certificatesv1.CertificateSigningRequest{}, a.reconcileRequest)
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
		klog.FromContext(ctx).V(1).Info("left a certificate request to other approvers", "request", request.Name, "reason", err)
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

// isNodeRequest reports whether the request is for a certificate of a node.
func isNodeRequest(request *certificatesv1.CertificateSigningRequest) bool {
	return request.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName ||
		request.Spec.SignerName == certificatesv1.KubeletServingSignerName
}

// requestDecision reports whether the request was approved, and whether it was denied or failed.
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

// wrapRequestError adds the name of the request to err. It returns nil for a conflict and for a
// deleted request: the next version of the request, if any, is reconciled anyway.
func wrapRequestError(err error, doing string, request *certificatesv1.CertificateSigningRequest) error {
	if err == nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("%s request %s: %w", doing, request.Name, err)
}
