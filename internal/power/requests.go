package power

import (
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/power/csr"
)

// CertificateRequests are the certificate requests of the cluster's nodes, and what is needed to
// judge them.
type CertificateRequests struct {
	// List has the requests for the two signers of nodes, including those already answered.
	List []certificatesv1.CertificateSigningRequest
	// Truncated is set if the cluster has more requests than hotspare reads.
	Truncated bool
	// Machines are the machines in the cluster's machine API, if they were requested.
	Machines []csr.Machine
	// ClientsOff is set when the cluster's own approver leaves client certificates alone.
	ClientsOff bool
}

// HasOpen reports whether any request is unanswered.
func (r *CertificateRequests) HasOpen() bool { return slices.ContainsFunc(r.List, csr.IsOpen) }

// NeedsCertificateRequests reports whether to list the cluster's certificate requests. Most
// resumes do not need them: the nodes rejoin before they are reported missing. Requests are
// considered only during a resume and for some time after it (Hive D16).
func (s Snapshot) NeedsCertificateRequests(now time.Time) bool {
	w := s.approvalWindow()
	if w.Opened.IsZero() || !s.Spoke.Reachable || s.LeaveRequests {
		return false
	}
	if !w.Ready.IsZero() {
		return w.IsOpen(now)
	}
	return slices.ContainsFunc(s.Spoke.Nodes, func(n Node) bool { return !n.Ready || n.ReadySince.After(w.Opened) })
}

// HasMachineNodes reports whether the platform itself knows the nodes of its machines.
func (s Snapshot) HasMachineNodes() bool {
	return slices.ContainsFunc(s.Machines, func(m cloud.Machine) bool { return m.Node != "" })
}

// approvalWindow returns the resume during which requests may be approved; zero if there is none.
// The transition after an install is not a resume.
func (s Snapshot) approvalWindow() csr.Window {
	if s.Record == nil || s.Record.Target != hivev1.PowerRunning || !s.WantsRunning() || !s.ManagesMachines() || !s.canHibernate() {
		return csr.Window{}
	}
	w := csr.Window{Opened: record{PowerTransition: *s.Record}.poweredOnAt(s.InstalledAt)}
	if s.Record.FinishedAt != nil {
		w.Ready = s.Record.FinishedAt.Time
	}
	return w
}

// requestReview is the result of judging the certificate requests in one pass.
type requestReview struct {
	decisions []csr.Decision
	// rejoined is set if nodes have had client certificates approved in this resume.
	rejoined bool
}

// reviewRequests judges the requests by the stored resume, if there is one.
func (s Snapshot) reviewRequests(now time.Time) requestReview {
	r, w := s.Spoke.Requests, s.approvalWindow()
	if r == nil || w.Opened.IsZero() {
		return requestReview{}
	}
	k := csr.Snapshot{
		Now: now, Window: w, Machines: s.vouchingMachines(), Truncated: r.Truncated, ClientsOff: r.ClientsOff,
	}
	for _, n := range s.Spoke.Nodes {
		k.Nodes = append(k.Nodes, csr.Node{Name: n.Name, UID: n.UID, Ready: n.Ready, Renewed: n.Renewed})
	}
	return requestReview{csr.Decide(r.List, k), csr.HasRejoined(r.List, k)}
}

// vouchingMachines returns the machines that vouch for nodes: the platform's own if it knows
// their nodes, otherwise the cluster's.
func (s Snapshot) vouchingMachines() []csr.Machine {
	if !s.HasMachineNodes() {
		return s.Spoke.Requests.Machines
	}
	var out []csr.Machine
	for _, m := range s.Machines {
		if m.Node != "" {
			out = append(out, csr.Machine{Node: m.Node, Addresses: m.Addresses})
		}
	}
	return out
}

// addToGap adds the requests that are not approved to the gap's message.
func (r requestReview) addToGap(g *gap) {
	if g == nil || g.reason != hivev1.ReasonWaitingForNodes {
		return
	}
	if waiting := csr.DescribeWaiting(r.decisions); waiting != "" {
		g.message += " " + waiting
	}
}

func (r requestReview) approvedRequests() []csr.Decision {
	var out []csr.Decision
	for _, v := range r.decisions {
		if v.Approve {
			out = append(out, v)
		}
	}
	return out
}

// shortenInterval shortens the requeue interval of a running cluster while its nodes may request
// serving certificates.
func (r requestReview) shortenInterval(pause time.Duration) time.Duration {
	if !r.rejoined {
		return pause
	}
	return min(pause, rejoinedInterval)
}

// AfterApprovalFailure returns the plan after approvals have failed for the given reasons.
func (p Plan) AfterApprovalFailure(troubles []string) Plan {
	if len(troubles) == 0 || p.Ready.Reason != hivev1.ReasonWaitingForNodes {
		return p
	}
	slices.Sort(troubles)
	p.Ready.Message += " Certificate requests cannot be approved: " + strings.Join(slices.Compact(troubles), ", ") + "."
	return p
}
