package csr

import (
	"cmp"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Decision is what the hub does about a request.
type Decision struct {
	// Request is the version that was judged.
	Request *certificatesv1.CertificateSigningRequest
	// Approve is set if the request must be approved; otherwise it is left alone.
	Approve bool
	// Node is the node that the request is for; set if it is approved.
	Node string
	// Waiting is set if the request is not approved and a node may be waiting for it: it is open,
	// for a node's certificate, not old, and not left to another approver.
	Waiting bool
	// Reason says in a few words why the request was left alone. It quotes nothing from the request.
	Reason string
}

// requestHistory summarizes the requests made so far in this resume.
type requestHistory struct {
	// granted contains the nodes that have had a client certificate approved.
	granted sets.Set[string]
	// flooded is set if there are too many open requests to trust any of them.
	flooded bool
}

// Decide judges all requests of a cluster; the list must be complete. Its order does not matter:
// of two requests for one node, the older one counts.
func Decide(requests []certificatesv1.CertificateSigningRequest, s Snapshot) []Decision {
	sorted := make([]*certificatesv1.CertificateSigningRequest, len(requests))
	for i := range requests {
		sorted[i] = &requests[i]
	}
	slices.SortFunc(sorted, func(a, b *certificatesv1.CertificateSigningRequest) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	p := s.readHistory(sorted)
	verdicts := make([]Decision, 0, len(sorted))
	for _, r := range sorted {
		v := s.decideRequest(r, p)
		if v.Approve && r.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName {
			p.granted.Insert(v.Node)
		}
		verdicts = append(verdicts, v)
	}
	return verdicts
}

func (s Snapshot) decideRequest(r *certificatesv1.CertificateSigningRequest, p requestHistory) Decision {
	node, why := s.nodeOrRefusal(r, p)
	if why == "" {
		return Decision{Request: r, Approve: true, Node: node}
	}
	// A request from shortly before the resume may come from a cluster whose clock is slow.
	recent := !r.CreationTimestamp.Time.Before(s.Window.Opened.Add(-floodWindow))
	waits := isForNodes(r) && !isAnswered(r) && why != reasonRenewal && recent
	return Decision{Request: r, Waiting: waits, Reason: why}
}

// nodeOrRefusal returns the node that the request is granted for, or why it is not granted.
func (s Snapshot) nodeOrRefusal(r *certificatesv1.CertificateSigningRequest, p requestHistory) (node, why string) {
	switch {
	case !isForNodes(r):
		return "", reasonSigner
	case isAnswered(r):
		return "", reasonAnswered
	case p.flooded:
		return "", reasonFlood
	}
	parsed, why := parseRequest(r.Spec.Request)
	if why != "" {
		return "", why
	}
	if node, why = nodeInSubject(parsed); why != "" {
		return "", why
	}
	if r.Spec.SignerName == certificatesv1.KubeletServingSignerName {
		return node, s.servingRefusal(r, parsed, node)
	}
	return node, s.clientRefusal(r, parsed, node, p)
}

// readHistory derives the history from the requests themselves: the cluster keeps approved ones
// for an hour, so that a crash of the hub loses nothing.
func (s Snapshot) readHistory(requests []*certificatesv1.CertificateSigningRequest) requestHistory {
	p := requestHistory{granted: sets.New[string]()}
	open := 0
	for _, r := range requests {
		if !isForNodes(r) {
			continue
		}
		if !isAnswered(r) && s.Now.Sub(r.CreationTimestamp.Time) <= floodWindow+clockSkew {
			open++
		}
		if node := s.approvedClientNode(r); node != "" {
			p.granted.Insert(node)
		}
	}
	p.flooded = s.Truncated || open > floodPerNode*len(s.Nodes)
	return p
}

// HasRejoined reports whether a node has had a client certificate approved in this resume, and
// may request a serving certificate next.
func HasRejoined(requests []certificatesv1.CertificateSigningRequest, s Snapshot) bool {
	return s.Window.IsOpen(s.Now) && slices.ContainsFunc(requests, func(r certificatesv1.CertificateSigningRequest) bool {
		return s.approvedClientNode(&r) != ""
	})
}

// approvedClientNode returns the node for which any approver has approved a client certificate in
// this resume; "" otherwise. Renewals by the node itself do not count.
func (s Snapshot) approvedClientNode(r *certificatesv1.CertificateSigningRequest) string {
	if r.Spec.SignerName != certificatesv1.KubeAPIServerClientKubeletSignerName || !s.isApprovedInWindow(r) {
		return ""
	}
	name := commonNameOf(r.Spec.Request)
	if name == r.Spec.Username {
		return ""
	}
	node, _ := strings.CutPrefix(name, userPrefix)
	return node
}

func (s Snapshot) isApprovedInWindow(r *certificatesv1.CertificateSigningRequest) bool {
	for _, c := range r.Status.Conditions {
		if c.Type != certificatesv1.CertificateApproved {
			continue
		}
		if !r.CreationTimestamp.Time.Before(s.Window.Opened) || !c.LastUpdateTime.Time.Before(s.Window.Opened) {
			return true
		}
	}
	return false
}

// ApprovedRequest returns the request with its approval. It keeps the resourceVersion that was
// judged, so a request that has changed since cannot be approved with it.
func (d Decision) ApprovedRequest(now metav1.Time) *certificatesv1.CertificateSigningRequest {
	r := d.Request.DeepCopy()
	r.Status.Conditions = append(r.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue,
		Reason: "ClusterResumed", Message: "Approved by hotspare: node " + d.Node + " resumed with its cluster.",
		LastUpdateTime: now,
	})
	return r
}
