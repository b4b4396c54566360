package power

import (
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/csr"
)

// CertificateRequests are what nodes ask the cluster to certify, and what of it is known.
type CertificateRequests struct {
	// List has the requests for the two signers of nodes, answered ones too.
	List []certificatesv1.CertificateSigningRequest
	// Truncated is set when there were more than anybody would list.
	Truncated bool
	// Machines are those of the cluster's machine API, if they were asked for.
	Machines []csr.Machine
	// ClientsOff is set when the cluster's own approver leaves client certificates alone.
	ClientsOff bool
}

// HasOpen reports whether any request waits for an answer.
func (r *CertificateRequests) HasOpen() bool { return slices.ContainsFunc(r.List, csr.IsOpen) }

// NeedsCertificateRequests reports whether the spoke's certificate requests are worth asking
// for. In most resumes they are not: the nodes come back before anybody has
// missed them. Only a resume opens the door, and a while after it (Hive D16).
func (s Snapshot) NeedsCertificateRequests(now time.Time) bool {
	w := s.approvalWindow()
	if w.Opened.IsZero() || !s.Spoke.Answers || s.LeaveRequests {
		return false
	}
	if !w.Ready.IsZero() {
		return w.IsOpen(now)
	}
	return slices.ContainsFunc(s.Spoke.Nodes, func(n Node) bool { return !n.Ready || n.ReadySince.After(w.Opened) })
}

// HasMachineNodes reports whether the platform itself vouches for its machines' nodes.
func (s Snapshot) HasMachineNodes() bool {
	return slices.ContainsFunc(s.Machines, func(m cloud.Machine) bool { return m.Node != "" })
}

// approvalWindow is the resume in whose course requests may be approved; zero if there is
// none. Coming up after the install is no resume.
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

// requestReview is what has been judged in a pass.
type requestReview struct {
	decisions []csr.Decision
	// rejoined says that nodes have been let in again in this resume.
	rejoined bool
}

// reviewRequests judges the requests by the resume that is stored, if there is one.
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

// vouchingMachines are the machines that vouch for nodes: the platform's own if it knows
// them, else the cluster's.
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

// addToGap adds to what is missing which requests are not approved.
func (j requestReview) addToGap(g *gap) {
	if g == nil || g.reason != hivev1.ReasonWaitingForNodes {
		return
	}
	if waiting := csr.DescribeWaiting(j.decisions); waiting != "" {
		g.message += " " + waiting
	}
}

func (j requestReview) approvedRequests() []csr.Decision {
	var out []csr.Decision
	for _, v := range j.decisions {
		if v.Approve {
			out = append(out, v)
		}
	}
	return out
}

// shortenInterval shortens the pause of a running cluster for as long as its nodes may ask
// for serving certificates.
func (j requestReview) shortenInterval(pause time.Duration) time.Duration {
	if !j.rejoined {
		return pause
	}
	return min(pause, rejoinedInterval)
}

// AfterApprovalFailure is the decision after approving has failed, for these reasons.
func (d Plan) AfterApprovalFailure(troubles []string) Plan {
	if len(troubles) == 0 || d.Ready.Reason != hivev1.ReasonWaitingForNodes {
		return d
	}
	slices.Sort(troubles)
	d.Ready.Message += " Certificate requests cannot be approved: " + strings.Join(slices.Compact(troubles), ", ") + "."
	return d
}
