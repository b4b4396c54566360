package power

import (
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/power"
	"hotspare.io/hotspare/internal/power/csr/csrtest"
)

// resumed is a hub whose cluster waits for node w0 after a resume; w0 asks for a
// certificate, and somebody else for another.
func resumed(t *testing.T) *hub {
	h := newHub(t)
	cycle(h)
	h.edit(wants(hivev1.PowerHibernating))
	h.until("Hibernating")
	h.sim.clock.Step(time.Hour)
	h.away = "w0"
	h.edit(wants(hivev1.PowerRunning))
	h.until("WaitingForNodes")
	for len(h.events.Events) > 0 {
		<-h.events.Events
	}
	h.requests = []certificatesv1.CertificateSigningRequest{
		csrtest.ClientRequest(t, "csr-evil", "m0", h.sim.clock.Now()),
		csrtest.ClientRequest(t, "csr-w0", "w0", h.sim.clock.Now()),
	}
	return h
}

func (h *hub) ready() string {
	h.Helper()
	return condition.Find(h.get().Status.Conditions, hivev1.ClusterReady).Message
}

// event returns the next recorded event; "" if there is none.
func (h *hub) event() string {
	select {
	case e := <-h.events.Events:
		return e
	default:
		return ""
	}
}

func (h *hub) approved(name string) bool {
	for _, r := range h.requests {
		if r.Name == name {
			return len(r.Status.Conditions) > 0
		}
	}
	return false
}

func TestCertificateRequests(t *testing.T) {
	t.Run("a cluster that is resumed has its node let in, and nobody else", func(t *testing.T) {
		h := resumed(t)
		h.pass()
		if !h.approved("csr-w0") || h.approved("csr-evil") {
			t.Errorf("approved: w0 %v, evil %v", h.approved("csr-w0"), h.approved("csr-evil"))
		}
		if got := h.ready(); !strings.Contains(got, "1 certificate request is not approved: csr-evil (") {
			t.Error(got)
		}
		if got := h.event(); got != "Normal CertificateApproved approved certificate request csr-w0 of node w0 for signer "+certificatesv1.KubeAPIServerClientKubeletSignerName {
			t.Error(got)
		}
		h.until("Running")
		if h.approved("csr-evil") || len(h.events.Events) > 1 {
			t.Errorf("evil approved: %v; %d events", h.approved("csr-evil"), len(h.events.Events))
		}
	})
	t.Run("a resume whose nodes come back by themselves is not asked on its way", func(t *testing.T) {
		h := newHub(t)
		cycle(h)
		if h.listed > 0 {
			t.Errorf("asked %d times", h.listed)
		}
	})
	t.Run("a running cluster that loses a node is not asked", func(t *testing.T) {
		h := newHub(t)
		cycle(h)
		h.sim.clock.Step(time.Hour)
		h.away = "w0"
		h.requests = []certificatesv1.CertificateSigningRequest{csrtest.ClientRequest(t, "csr-w0", "w0", h.sim.clock.Now())}
		h.until("WaitingForNodes")
		h.sim.clock.Step(h.pass())
		h.pass()
		if h.listed > 0 || h.approved("csr-w0") {
			t.Errorf("asked %d times, approved: %v", h.listed, h.approved("csr-w0"))
		}
	})
	t.Run("a cluster that wants its requests left alone is not asked", func(t *testing.T) {
		h := resumed(t)
		h.edit(annotate(hivev1.AnnotationLeaveRequests))
		asked := h.listed
		h.pass()
		if h.listed > asked || h.approved("csr-w0") {
			t.Error("asked")
		}
	})
	t.Run("what stands in the way is told", func(t *testing.T) {
		h := resumed(t)
		h.deaf = "the admin kubeconfig may not approve certificate requests"
		h.pass()
		if got := h.ready(); !strings.HasSuffix(got, " Certificate requests cannot be approved: "+h.deaf+".") {
			t.Error(got)
		}
		if len(h.events.Events) > 0 {
			t.Error(h.event())
		}
	})
	t.Run("a request that changes in between is judged anew", func(t *testing.T) {
		h := resumed(t)
		cd := h.get()
		seen, err := h.observeCluster(t.Context(), cd)
		if err != nil {
			t.Fatal(err)
		}
		d := power.Decide(seen, h.sim.clock.Now())
		h.requests[1].ResourceVersion, h.requests[1].Spec.Groups = "2", []string{"system:masters"}
		if _, err := h.Reconciler.approveRequests(t.Context(), cd, d); err != nil {
			t.Fatal(err)
		}
		h.pass()
		if len(d.Approve) != 1 || h.approved("csr-w0") || len(h.events.Events) > 0 {
			t.Errorf("approved %v, after %v", h.approved("csr-w0"), d.Approve)
		}
	})
	t.Run("after a death nothing is approved twice", func(t *testing.T) {
		h := resumed(t)
		h.requests = append(h.requests, csrtest.ClientRequest(t, "csr-w0-again", "w0", h.sim.clock.Now()))
		h.dieAfter = h.writes + 1
		h.pass()
		h.away = "w0" // it died with the process, and asks again
		h.pass()
		if !h.approved("csr-w0") || h.approved("csr-w0-again") {
			t.Errorf("approved: %v and %v", h.approved("csr-w0"), h.approved("csr-w0-again"))
		}
	})
}
