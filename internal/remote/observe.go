package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certificatesv1 "k8s.io/client-go/kubernetes/typed/certificates/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	policyv1 "k8s.io/client-go/kubernetes/typed/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/internal/cabundle"
	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/power"
)

// operatorsPath is where OpenShift lists its cluster operators. They are read by path instead of
// with a typed client: three fields do not justify a dependency on OpenShift's modules.
const operatorsPath = "/apis/config.openshift.io/v1/clusteroperators"

// spokeClient is a client of one cluster.
type spokeClient struct {
	http   *http.Client
	core   *typedcorev1.CoreV1Client
	coor   *coordinationv1.CoordinationV1Client
	certs  *certificatesv1.CertificatesV1Client
	policy *policyv1.PolicyV1Client
	kube   client.Client
}

// newSpokeClient returns a client for a kubeconfig. Its errors are fixed phrases.
func newSpokeClient(kubeconfig []byte) (*spokeClient, error) {
	return newSpokeClientAs(nil, kubeconfig, cabundle.Bundle{})
}

// newSpokeClientAs is newSpokeClient for a client that authenticates as identify says, unless that is nil, and also
// trusts authorities.
func newSpokeClientAs(identify HubIdentity, kubeconfig []byte, authorities cabundle.Bundle) (*spokeClient, error) {
	config, err := parseKubeconfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	if identify != nil {
		cert, key, err := identify(config)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errNoIdentity, err)
		}
		if cert != nil {
			config.CertData, config.KeyData = cert, key
		}
	}
	h, err := newHTTPClient(config, authorities)
	if err != nil {
		return nil, err
	}
	core, err := typedcorev1.NewForConfigAndClient(config, h)
	if err != nil {
		return nil, errUnreadable
	}
	coor, err := coordinationv1.NewForConfigAndClient(config, h)
	if err != nil {
		return nil, errUnreadable
	}
	certs, err := certificatesv1.NewForConfigAndClient(config, h)
	if err != nil {
		return nil, errUnreadable
	}
	policy, err := policyv1.NewForConfigAndClient(config, h)
	if err != nil {
		return nil, errUnreadable
	}
	kube, err := client.New(config, client.Options{HTTPClient: h, Scheme: coreScheme(), Mapper: newRESTMapper()})
	if err != nil {
		return nil, errUnreadable
	}
	return &spokeClient{http: h, core: core, coor: coor, certs: certs, policy: policy, kube: kube}, nil
}

func (sc *spokeClient) closeConnections() { sc.http.CloseIdleConnections() }

// observeSpoke builds a Spoke from the cluster's answers. If any answer is missing, it returns an
// error.
func (sc *spokeClient) observeSpoke(ctx context.Context, ask ObserveOptions) (power.Spoke, error) {
	s := power.Spoke{Queried: true, Reachable: true}
	var err error
	if s.Nodes, err = sc.listNodes(ctx); err != nil {
		return s, err
	}
	if ask.Operators {
		s.Operators, s.OpenShift, err = sc.listOperators(ctx)
	}
	if err == nil && ask.ResumeProbe {
		s.ResumeProbe, err = sc.readResumeProbe(ctx)
	}
	if err == nil && ask.Version {
		s.Version = sc.readVersion(ctx)
	}
	if err == nil && ask.Activity {
		s.Activity, s.ActivityFailure = sc.readActivity(ctx, ask.IgnoredNamespaces)
	}
	if err == nil && ask.SpotMachines {
		s.SpotMachines, err = sc.listSpotMachines(ctx)
	}
	return s, err
}

// listNodes lists the nodes with their last sign of life.
func (sc *spokeClient) listNodes(ctx context.Context) ([]power.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	nodes, err := sc.core.Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	leases, err := sc.coor.Leases(corev1.NamespaceNodeLease).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing node leases: %w", err)
	}
	renewed := map[string]metav1.MicroTime{}
	for _, l := range leases.Items {
		if l.Spec.RenewTime != nil {
			renewed[l.Name] = *l.Spec.RenewTime
		}
	}
	out := make([]power.Node, len(nodes.Items))
	for i := range nodes.Items {
		out[i] = nodeReadiness(&nodes.Items[i], renewed[nodes.Items[i].Name])
	}
	return out, nil
}

// maxProblemLength is how much is kept of what a node says, in bytes.
const maxProblemLength = 200

// limitProblem returns the beginning of a message in one line.
func limitProblem(message string) string {
	line := strings.Join(strings.Fields(message), " ")
	if len(line) <= maxProblemLength {
		return line
	}
	return strings.ToValidUTF8(line[:maxProblemLength], "") + "…"
}

// nodeReadiness returns the readiness of a node. Its sign of life is its lease or its heartbeat,
// whichever is later.
func nodeReadiness(n *corev1.Node, lease metav1.MicroTime) power.Node {
	out := power.Node{Name: n.Name, UID: n.UID, Renewed: lease.Time}
	for _, c := range n.Status.Conditions {
		switch {
		case c.Type == corev1.NodeReady:
			out.Ready, out.ReadySince = c.Status == corev1.ConditionTrue, c.LastTransitionTime.Time
			if c.LastHeartbeatTime.After(out.Renewed) {
				out.Renewed = c.LastHeartbeatTime.Time
			}
		case c.Type == machine.ContainerRuntimeUnhealthy && c.Status == corev1.ConditionTrue:
			out.Problem = limitProblem(c.Message)
		}
	}
	return out
}

// clusterOperators contains the fields of OpenShift's ClusterOperatorList that are read.
type clusterOperators struct {
	Items []struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Status   struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	} `json:"items"`
}

// listOperators lists the cluster operators. An API without this kind is not an OpenShift API.
func (sc *spokeClient) listOperators(ctx context.Context) (list []power.Operator, openShift bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	raw, err := sc.core.RESTClient().Get().AbsPath(operatorsPath).DoRaw(ctx)
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("listing cluster operators: %w", err)
	}
	var found clusterOperators
	if err := json.Unmarshal(raw, &found); err != nil {
		return nil, false, fmt.Errorf("reading cluster operators: %w", err)
	}
	for _, o := range found.Items {
		list = append(list, power.Operator{Name: o.Metadata.Name, Settled: isOperatorSettled(o.Status.Conditions)})
	}
	return list, true, nil
}

// isOperatorSettled reports whether an operator is available, not progressing and not degraded. A
// disabled operator counts as settled.
func isOperatorSettled(conditions []metav1.Condition) bool {
	is := map[string]metav1.ConditionStatus{}
	for _, c := range conditions {
		is[c.Type] = c.Status
	}
	if is["Disabled"] == metav1.ConditionTrue {
		return true
	}
	return is["Available"] != metav1.ConditionFalse &&
		is["Progressing"] != metav1.ConditionTrue &&
		is["Degraded"] != metav1.ConditionTrue
}
