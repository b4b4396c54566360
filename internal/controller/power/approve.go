package power

import (
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/power"
)

// approveRequests approves the certificate requests of the plan. One failure does not stop the
// others; the returned plan reports the failures.
func (r *Reconciler) approveRequests(ctx context.Context, cd *hivev1.ClusterDeployment, d power.Plan) (power.Plan, error) {
	var troubles []string
	for _, v := range d.Approve {
		approved, trouble, err := r.Remote.ApproveCertificateRequest(ctx, kubeconfigSecret(cd), v.ApprovedRequest(metav1.NewTime(r.Clock.Now())))
		if err != nil {
			return d, fmt.Errorf("approving certificate requests of %s: %w", client.ObjectKeyFromObject(cd), err)
		}
		if trouble != "" {
			troubles = append(troubles, trouble)
		}
		if approved {
			r.Events.Eventf(cd, requestRef(v.Request), corev1.EventTypeNormal, "CertificateApproved", "ApproveCertificate",
				"approved certificate request %s of node %s for signer %s", v.Request.Name, v.Node, v.Request.Spec.SignerName)
			r.Metrics.RecordCertificateApproval(v.Request.Spec.SignerName)
		}
	}
	return d.AfterApprovalFailure(troubles), nil
}

// requestRef returns a reference to the request for an event. Without it, events of two requests
// would count as the same event, and the second would not be recorded.
func requestRef(r *certificatesv1.CertificateSigningRequest) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: certificatesv1.SchemeGroupVersion.String(), Kind: "CertificateSigningRequest", Name: r.Name, UID: r.UID,
	}
}
