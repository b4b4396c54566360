package power

import (
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/power/csr"
	"hotspare.io/hotspare/internal/power/csr/csrtest"
)

// away makes the second node one that has not come back.
func away(s *Snapshot) { s.Spoke.Nodes[1].Ready, s.Spoke.Nodes[1].Renewed = false, installed }

// back makes it one that was called away in this resume and has come back.
func back(s *Snapshot) { s.Spoke.Nodes[1].ReadySince = now.Add(-time.Second) }

func leaving(s *Snapshot) { s.LeaveRequests = true }

// vouched makes the platform vouch for its machines' nodes.
func vouched(s *Snapshot) {
	for i, m := range s.Machines {
		s.Machines[i].Node, s.Machines[i].Addresses = m.Name, []corev1.NodeAddress{{Type: corev1.NodeInternalDNS, Address: m.Name}}
	}
}

// listed are the requests that were seen, and the Machines beside them.
func listed(list ...certificatesv1.CertificateSigningRequest) with {
	return func(s *Snapshot) {
		s.Spoke.Requests = &CertificateRequests{List: list}
		for _, n := range s.Spoke.Nodes {
			s.Spoke.Requests.Machines = append(s.Spoke.Requests.Machines, csr.Machine{
				Namespace: csr.MachineNamespace, Node: n.Name, Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalDNS, Address: n.Name}},
			})
		}
	}
}

func TestAsksRequests(t *testing.T) {
	for name, c := range map[string]struct {
		in   Snapshot
		want bool
	}{
		"a resume whose nodes were never missed is not bothered": {seen(going("Running", time.Minute)), false},
		"one that misses a node is asked":                        {seen(going("Running", time.Minute), away), true},
		"one whose node has come back is asked":                  {seen(going("Running", time.Minute), back), true},
		"it is asked for a while after it arrived":               {seen(came("Running", 9*time.Minute)), true},
		"then no more":                                 {seen(came("Running", 10*time.Minute)), false},
		"D16: nor if a node is lost then":              {seen(came("Running", time.Hour), away), false},
		"coming up after the install is no resume":     {seen(going("Running", 100*time.Hour), away), false},
		"nor is a cluster without a record":            {seen(anew, away), false},
		"one that is to sleep is not asked":            {seen(hibernate, going("Hibernating", time.Minute), away), false},
		"nor if that is new":                           {seen(hibernate, going("Running", time.Minute), away), false},
		"nor one that was to sleep until now":          {seen(came("Hibernating", time.Minute), away), false},
		"nor one that has arrived and answers no more": {seen(came("Running", time.Minute), silent), false},
		"nor one that does not answer":                 {seen(going("Running", time.Minute), silent), false},
		"nor one that cannot hibernate":                {seen(of("4.3.0"), going("Running", time.Minute), away), false},
		"nor one without actuator":                     {seen(unactuated, going("Running", time.Minute), away), false},
		"nor one whose requests are to be left alone":  {seen(going("Running", time.Minute), away, leaving), false},
		"nor a paused one":                             {seen(paused, going("Running", time.Minute), away), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.in.NeedsCertificateRequests(now); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestRequests(t *testing.T) {
	good := csrtest.ClientRequest(t, "good", "w0", now.Add(-time.Minute))
	bad := csrtest.ClientRequest(t, "bad", "w9", now.Add(-time.Minute))
	done := csrtest.ClientRequest(t, "done", "w0", now.Add(-time.Minute))
	done.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, LastUpdateTime: metav1.NewTime(now)}}
	const told = "Waiting for nodes to be ready: w0."
	const refused = " 1 certificate request is not approved: bad (the cluster has no such node)."
	for name, c := range map[string]struct {
		in      Snapshot
		approve string
		ready   string
	}{
		"the request of a node that is missed is approved": {seen(going("Running", 5*time.Minute), away, listed(good)), "good", told},
		"one that is not approved is told":                 {seen(going("Running", 5*time.Minute), away, listed(bad, good)), "good", told + refused},
		"one after the time is up, too":                    {seen(going("Running", time.Hour), away, listed(good)), "", told + " 1 certificate request is not approved: good (the approval window of this resume is over)."},
		"the platform vouches if it can": {
			seen(going("Running", 5*time.Minute), away, vouched, listed(good), func(s *Snapshot) { s.Spoke.Requests.Machines = nil }), "good", told,
		},
		"then the cluster's Machines do not count": {
			seen(going("Running", 5*time.Minute), away, vouched, listed(good), func(s *Snapshot) { s.Machines = cloud.Machines{{Name: "m0", State: cloud.Running, Node: "m0"}} }), "",
			told + " 1 certificate request is not approved: good (no known machine belongs to that node).",
		},
		"a list that was not read to its end is a flood":  {seen(going("Running", 5*time.Minute), away, listed(good), func(s *Snapshot) { s.Spoke.Requests.Truncated = true }), "", told + " 1 certificate request is not approved: good (there are too many open requests)."},
		"nothing is told of a cluster that runs":          {seen(came("Running", time.Minute), listed(bad)), "", "The cluster is running."},
		"a resume that is not begun opens nothing":        {seen(came("Running", time.Minute), machines("m0:Running w0:Stopped"), away, listed(good)), "", "Waiting for machines to be running: w0."},
		"a cluster that cannot hibernate is left alone":   {seen(of("4.3.0"), going("Running", 5*time.Minute), away, listed(good)), "", told},
		"a cluster that wants no clients approved is not": {seen(going("Running", 5*time.Minute), away, listed(good), func(s *Snapshot) { s.Spoke.Requests.ClientsOff = true }), "", told + " 1 certificate request is not approved: good (the cluster's machine approver is configured not to approve client certificates)."},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(c.in, now)
			var approve []string
			for _, v := range d.Approve {
				approve = append(approve, v.Request.Name)
			}
			if got := strings.Join(approve, " "); got != c.approve {
				t.Errorf("approves %q, want %q", got, c.approve)
			}
			if d.Ready.Message != c.ready {
				t.Errorf("got  %s\nwant %s", d.Ready.Message, c.ready)
			}
			agree(t, d)
		})
	}
	t.Run("a node that was let in again is looked after", func(t *testing.T) {
		if d := Decide(seen(going("Running", 5*time.Minute), back, listed(done)), now); d.Ready.Reason != hivev1.ReasonRunning || d.Next != rejoinedInterval {
			t.Errorf("%s", d)
		}
	})
	t.Run("until the time is over", func(t *testing.T) {
		if d := Decide(seen(came("Running", time.Hour), listed(done)), now); !steadily(d) {
			t.Errorf("%s", d)
		}
	})
	t.Run("a decision says what it approves", func(t *testing.T) {
		if got := Decide(seen(going("Running", 5*time.Minute), away, listed(good)), now).String(); !strings.Contains(got, "approve good for node w0") {
			t.Error(got)
		}
	})
	t.Run("what stands in the way is told once, in one order", func(t *testing.T) {
		d := Decide(seen(going("Running", 5*time.Minute), away, listed(good)), now)
		if got := d.AfterApprovalFailure([]string{"b", "a", "b"}).Ready.Message; got != told+" Certificate requests cannot be approved: a, b." {
			t.Error(got)
		}
	})
}
