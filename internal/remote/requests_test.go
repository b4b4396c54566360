package remote

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"hotspare.io/hotspare/internal/power/csr"
	"hotspare.io/hotspare/internal/power/csr/csrtest"
)

const (
	requestsPath  = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	clientsPath   = requestsPath + "?spec.signerName=kubernetes.io/kube-apiserver-client-kubelet"
	serversPath   = requestsPath + "?spec.signerName=kubernetes.io/kubelet-serving"
	approvingPath = "/api/v1/namespaces/openshift-cluster-machine-approver/configmaps/machine-approver-config"
)

// write takes an approval, unless it is to be refused.
func (a *api) write(w http.ResponseWriter, r *http.Request) {
	if a.refuse != 0 {
		http.Error(w, secret, a.refuse)
		return
	}
	raw, err := io.ReadAll(r.Body)
	if err == nil {
		_, _, err = scheme.Codecs.UniversalDeserializer().Decode(raw, nil, &a.put)
	}
	if err != nil || r.Method != http.MethodPut || r.URL.Path != requestsPath+"/csr-w0/approval" {
		http.Error(w, "no", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(a.put) // the client may have gone
}

// requesting is an API where node w0 asks for a certificate.
func requesting(t *testing.T) *api {
	a := newAPI(t)
	a.answers[clientsPath] = certificatesv1.CertificateSigningRequestList{
		Items: []certificatesv1.CertificateSigningRequest{csrtest.ClientRequest(t, "csr-w0", "w0", woke)},
	}
	a.answers[serversPath] = certificatesv1.CertificateSigningRequestList{}
	return a
}

func TestRequests(t *testing.T) {
	a := requesting(t)
	c, _ := connector(t, kubeconfig(a.Server, token(secret)))
	ask := func(ask ListRequestsOptions) (machines []csr.Machine, clientsOff bool, names string) {
		t.Helper()
		a.asked = nil
		r, err := c.ListCertificateRequests(t.Context(), key, ask)
		if err != nil || r == nil {
			t.Fatal(r, err)
		}
		var list []string
		for _, q := range r.List {
			list = append(list, q.Name)
		}
		return r.Machines, r.ClientsOff, strings.Join(list, " ")
	}
	t.Run("an API without Machines has requests", func(t *testing.T) {
		machines, off, names := ask(ListRequestsOptions{Machines: true})
		if len(machines) > 0 || off || names != "csr-w0" {
			t.Error(machines, off, names)
		}
	})
	t.Run("Machines of one namespace with nodes are read", func(t *testing.T) {
		a.answers["/apis/machine.openshift.io/v1beta1/namespaces/openshift-machine-api/machines"] = map[string]any{"items": []any{
			map[string]any{
				"metadata": map[string]any{"namespace": "openshift-machine-api", "name": "machine-w0"},
				"status": map[string]any{
					"nodeRef":   map[string]any{"kind": "Node", "name": "w0", "uid": "u"},
					"addresses": []any{map[string]any{"type": "InternalDNS", "address": "w0"}},
				},
			},
			map[string]any{"metadata": map[string]any{"name": "new"}},
			map[string]any{"status": map[string]any{"nodeRef": map[string]any{"kind": "Pod", "name": "w1"}}},
		}}
		want := []csr.Machine{{
			Namespace: "openshift-machine-api", Node: "w0", UID: "u",
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalDNS, Address: "w0"}},
		}}
		machines, _, _ := ask(ListRequestsOptions{Machines: true})
		if diff := cmp.Diff(want, machines); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("they are not, where the platform knows its nodes", func(t *testing.T) {
		if machines, _, _ := ask(ListRequestsOptions{}); len(machines) > 0 || slices.Contains(a.asked, machinesPath) {
			t.Error(machines, a.asked)
		}
	})
	for name, config := range map[string]string{
		"C12 an approver that is told to leave client certificates alone is heard": "nodeClientCert:\n  disabled: true\n",
		"C12 one whose orders cannot be read may have been":                        "{",
	} {
		t.Run(name, func(t *testing.T) {
			a.answers[approvingPath] = corev1.ConfigMap{Data: map[string]string{"config.yaml": config}}
			if _, off, _ := ask(ListRequestsOptions{}); !off {
				t.Error("not heard")
			}
		})
	}
	t.Run("C12 one that is told nothing does not stand in the way", func(t *testing.T) {
		a.answers[approvingPath] = corev1.ConfigMap{}
		if _, off, _ := ask(ListRequestsOptions{}); off {
			t.Error("it does")
		}
	})
	t.Run("where nothing is open nothing else is asked", func(t *testing.T) {
		done := csrtest.ClientRequest(t, "csr-w0", "w0", woke)
		done.Status.Certificate = []byte("x")
		a.answers[clientsPath] = certificatesv1.CertificateSigningRequestList{Items: []certificatesv1.CertificateSigningRequest{done}}
		ask(ListRequestsOptions{Machines: true})
		if diff := cmp.Diff([]string{requestsPath, requestsPath}, a.asked); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("S5 a list without an end is a flood", func(t *testing.T) {
		a.answers[clientsPath] = certificatesv1.CertificateSigningRequestList{ListMeta: metav1.ListMeta{Continue: "x"}}
		r, err := c.ListCertificateRequests(t.Context(), key, ListRequestsOptions{})
		if err != nil || !r.Truncated {
			t.Error(r, err)
		}
	})
	t.Run("half an answer is none", func(t *testing.T) {
		a.answers[serversPath] = http.StatusInternalServerError
		if r, err := c.ListCertificateRequests(t.Context(), key, ListRequestsOptions{}); r != nil || err != nil {
			t.Error(r, err)
		}
	})
}

func TestApprove(t *testing.T) {
	a := requesting(t)
	c, _ := connector(t, kubeconfig(a.Server, token(secret)))
	judged := csr.Decision{Node: "w0", Request: &a.answers[clientsPath].(certificatesv1.CertificateSigningRequestList).Items[0]}
	request := judged.ApprovedRequest(metav1.NewTime(woke))
	t.Run("an approval has the version that was read", func(t *testing.T) {
		approved, trouble, err := c.ApproveCertificateRequest(t.Context(), key, request)
		if !approved || trouble != "" || err != nil {
			t.Fatal(approved, trouble, err)
		}
		got := a.put
		if got.ResourceVersion != request.ResourceVersion || len(got.Status.Conditions) != 1 || got.Status.Conditions[0].Type != certificatesv1.CertificateApproved {
			t.Errorf("wrote %+v", got)
		}
	})
	for name, want := range map[int]string{
		http.StatusConflict:            "",
		http.StatusNotFound:            "",
		http.StatusForbidden:           "the admin kubeconfig may not approve certificate requests",
		http.StatusInternalServerError: "it is not ready to serve",
	} {
		t.Run(http.StatusText(name)+" is a fact", func(t *testing.T) {
			a.refuse = name
			approved, trouble, err := c.ApproveCertificateRequest(t.Context(), key, request)
			if approved || trouble != want || err != nil {
				t.Error(approved, trouble, err)
			}
		})
	}
}
