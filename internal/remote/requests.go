package remote

import (
	"context"
	"encoding/json"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"hotspare.io/hotspare/internal/power"
	"hotspare.io/hotspare/internal/power/csr"
)

// machinesPath is where OpenShift lists the Machines that vouch for nodes, and no others (S6).
// They are read by path, like cluster operators.
const machinesPath = "/apis/machine.openshift.io/v1beta1/namespaces/" + csr.MachineNamespace + "/machines"

// OpenShift's machine approver reads its configuration from this ConfigMap.
const (
	approverNamespace = "openshift-cluster-machine-approver"
	approverConfig    = "machine-approver-config"
	approverKey       = "config.yaml"
)

// maxRequests is the number of requests read per signer: clients that can request certificates
// must not be able to fill the hub's memory. A healthy cluster has a few per node.
const maxRequests = 2000

// ListRequestsOptions says what to read from a cluster in addition to its certificate requests.
type ListRequestsOptions struct {
	// Machines also reads its Machines, which vouch for nodes.
	Machines bool
}

// ListCertificateRequests lists the certificate requests for nodes of the cluster whose admin
// kubeconfig is in the Secret and, if any is open, the information needed to judge them. It
// returns nil if the cluster does not answer; an error is the hub's own.
func (c *Connector) ListCertificateRequests(ctx context.Context, secret types.NamespacedName, ask ListRequestsOptions) (*power.CertificateRequests, error) {
	a, trouble, err := c.connectSpoke(ctx, secret)
	if err != nil || trouble != "" {
		return nil, err
	}
	r, err := a.readCertificateRequests(ctx, ask)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // a cluster that does not answer is not an error; the next pass retries
	}
	return r, nil
}

// ApproveCertificateRequest approves a request in the cluster whose admin kubeconfig is in the
// Secret, if it is still in the version that was read. Trouble says why the cluster refused; it
// is empty if the request has changed or was deleted.
func (c *Connector) ApproveCertificateRequest(
	ctx context.Context, secret types.NamespacedName, r *certificatesv1.CertificateSigningRequest,
) (approved bool, trouble string, err error) {
	a, trouble, err := c.connectSpoke(ctx, secret)
	if err != nil || trouble != "" {
		return false, trouble, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err = a.certs.CertificateSigningRequests().UpdateApproval(ctx, r.Name, r, metav1.UpdateOptions{})
	switch {
	case err == nil:
		return true, "", nil
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		return false, "", nil // its next version is judged in the next pass
	case apierrors.IsForbidden(err):
		return false, "the admin kubeconfig may not approve certificate requests", nil
	}
	return false, describeNoAnswer(err), nil
}

func (sc *spokeClient) readCertificateRequests(ctx context.Context, ask ListRequestsOptions) (*power.CertificateRequests, error) {
	r := &power.CertificateRequests{}
	for _, signer := range []string{certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.KubeletServingSignerName} {
		if err := sc.listRequestsOfSigner(ctx, signer, r); err != nil {
			return nil, err
		}
	}
	if !r.HasOpen() {
		return r, nil
	}
	var err error
	if ask.Machines {
		r.Machines, err = sc.listMachines(ctx)
	}
	if err != nil {
		return nil, err
	}
	r.ClientsOff, err = sc.isClientApprovalOff(ctx)
	return r, err
}

func (sc *spokeClient) listRequestsOfSigner(ctx context.Context, signer string, r *power.CertificateRequests) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list, err := sc.certs.CertificateSigningRequests().List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.signerName", signer).String(), Limit: maxRequests,
	})
	if err != nil {
		return fmt.Errorf("listing certificate requests: %w", err)
	}
	r.List = append(r.List, list.Items...)
	r.Truncated = r.Truncated || list.Continue != ""
	return nil
}

// machineList contains the fields of OpenShift's MachineList that are read.
type machineList struct {
	Items []struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Status   struct {
			NodeRef   *corev1.ObjectReference `json:"nodeRef"`
			Addresses []corev1.NodeAddress    `json:"addresses"`
		} `json:"status"`
	} `json:"items"`
}

// listMachines lists the Machines that have nodes; an API without this kind has none.
func (sc *spokeClient) listMachines(ctx context.Context) ([]csr.Machine, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	raw, err := sc.core.RESTClient().Get().AbsPath(machinesPath).DoRaw(ctx)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing machines: %w", err)
	}
	var found machineList
	if err := json.Unmarshal(raw, &found); err != nil {
		return nil, fmt.Errorf("reading machines: %w", err)
	}
	var out []csr.Machine
	for _, m := range found.Items {
		ref := m.Status.NodeRef
		if ref == nil || ref.Kind != "" && ref.Kind != "Node" {
			continue
		}
		out = append(out, csr.Machine{Namespace: m.Metadata.Namespace, Node: ref.Name, UID: ref.UID, Addresses: m.Status.Addresses})
	}
	return out, nil
}

// isClientApprovalOff reports whether the cluster's own approver is configured to ignore client
// certificates. A configuration that cannot be parsed counts as off, because it may say so.
func (sc *spokeClient) isClientApprovalOff(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	m, err := sc.core.ConfigMaps(approverNamespace).Get(ctx, approverConfig, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the machine approver's configuration: %w", err)
	}
	var config struct {
		NodeClientCert struct {
			Disabled bool `json:"disabled"`
		} `json:"nodeClientCert"`
	}
	return yaml.Unmarshal([]byte(m.Data[approverKey]), &config) != nil || config.NodeClientCert.Disabled, nil
}
