package signer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"

	"hotspare.io/hotspare/internal/embedded/pki"
)

type request = certificatesv1.CertificateSigningRequest

// with returns the request after the edits.
func with(r *request, edits ...func(*request)) *request {
	for _, edit := range edits {
		edit(r)
	}
	return r
}

func as(user string, groups ...string) func(*request) {
	return func(r *request) { r.Spec.Username, r.Spec.Groups = user, groups }
}

func usages(u ...certificatesv1.KeyUsage) func(*request) {
	return func(r *request) { r.Spec.Usages = u }
}

func signer(name string) func(*request) {
	return func(r *request) { r.Spec.SignerName = name }
}

// bootstrap returns a new worker's request for its client certificate.
func bootstrap(t *testing.T, cn string, hosts ...string) *request {
	t.Helper()
	return with(newRequest(t, cn, hosts...),
		signer(certificatesv1.KubeAPIServerClientKubeletSignerName),
		usages(certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth),
		as(pki.NodeBootstrapperUser, append(pki.NodeBootstrapperGroups(), "system:authenticated")...))
}

// serving returns the request of node cn for its serving certificate.
func serving(t *testing.T, cn string, hosts ...string) *request {
	t.Helper()
	return with(newRequest(t, cn, hosts...),
		signer(certificatesv1.KubeletServingSignerName),
		usages(certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth),
		as(cn, "system:nodes", "system:authenticated"))
}

func newRequest(t *testing.T, cn string, hosts ...string) *request {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var dns []string
	var ips []net.IP
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			ips = append(ips, ip)
			continue
		}
		dns = append(dns, h)
	}
	raw, err := cert.MakeCSRFromTemplate(key, &x509.CertificateRequest{
		Subject:     pkix.Name{CommonName: cn, Organization: []string{"system:nodes"}},
		DNSNames:    dns,
		IPAddresses: ips,
	})
	if err != nil {
		t.Fatal(err)
	}
	return &request{Spec: certificatesv1.CertificateSigningRequestSpec{Request: raw}}
}

func node(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: "127.0.0.1"},
			{Type: corev1.NodeInternalDNS, Address: name},
		}},
	}
}

func TestJudge(t *testing.T) {
	const me, other = "system:node:c1-worker-0", "system:node:c1-worker-1"
	installing := Snapshot{Installing: true, InfraID: "c1"}
	running := Snapshot{InfraID: "c1", Node: node("c1-worker-0")}
	unknown := Snapshot{InfraID: "c1"}
	groups := append(pki.NodeBootstrapperGroups(), "system:authenticated")

	for name, c := range map[string]struct {
		request *request
		seen    Snapshot
		want    error
	}{
		"a new worker gets in while the cluster is installed": {bootstrap(t, me), installing, nil},
		"nobody new gets in after that":                       {bootstrap(t, me), running, ErrClusterInstalled},
		"a node of another cluster does not":                  {bootstrap(t, "system:node:c2-worker-0"), installing, ErrUnknownNode},
		"nor one whose cluster's name begins like ours":       {bootstrap(t, "system:node:c10-worker-0"), installing, ErrUnknownNode},
		"nor an administrator":                                {bootstrap(t, "system:admin"), installing, ErrMalformedRequest},
		"nor one with a name":                                 {bootstrap(t, me, "kubernetes"), installing, ErrMalformedRequest},
		"nor one that would serve": {
			with(bootstrap(t, me), usages(certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth)), installing, ErrMalformedRequest,
		},
		"nor with another account": {
			with(bootstrap(t, me), as("system:serviceaccount:default:default", groups...)), installing, ErrWrongRequestor,
		},
		"nor with more groups than the account has": {
			with(bootstrap(t, me), as(pki.NodeBootstrapperUser, append(groups, "system:masters")...)), installing, ErrWrongRequestor,
		},
		"a renewal is for the stock approver": {
			with(bootstrap(t, me), as(me, "system:nodes", "system:authenticated")), installing, ErrWrongRequestor,
		},

		"a node serves by its addresses":             {serving(t, me, "c1-worker-0", "127.0.0.1"), running, nil},
		"it does not while the cluster knows it not": {serving(t, me, "127.0.0.1"), unknown, ErrUnknownNode},
		"it does not by another's":                   {serving(t, me, "c1-worker-1"), running, ErrForeignAddress},
		"it does not by another's IP":                {serving(t, me, "127.0.0.1", "10.0.0.1"), running, ErrForeignAddress},
		"it must have one":                           {serving(t, me), running, ErrMalformedRequest},
		"it cannot ask for another node": {
			with(serving(t, other, "127.0.0.1"), as(me, "system:nodes")), running, ErrWrongRequestor,
		},
		"it must be a node": {
			with(serving(t, me, "127.0.0.1"), as(me, "system:authenticated")), running, ErrWrongRequestor,
		},

		"other signers are not ours": {
			with(serving(t, me, "127.0.0.1"), signer(certificatesv1.KubeAPIServerClientSignerName)), running, ErrNotNodeSigner,
		},
		"nonsense is refused": {
			with(bootstrap(t, me), func(r *request) { r.Spec.Request = []byte("x") }), installing, ErrMalformedRequest,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := CheckApproval(c.request, c.seen); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestNodeName(t *testing.T) {
	for cn, want := range map[string]string{
		"system:node:a": "a",
		"system:admin":  "",
		"a":             "",
	} {
		if got := RequestedNodeName(newRequest(t, cn)); got != want {
			t.Errorf("%s: got %q", cn, got)
		}
	}
}
