package csr

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"net"
	"net/url"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	// now is five minutes into a resume.
	now    = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	opened = now.Add(-5 * time.Minute)
	slept  = opened.Add(-72 * time.Hour)
)

type request = certificatesv1.CertificateSigningRequest

// asked is a request before it is signed, and what the API server adds to it.
type asked struct {
	subject   pkix.Name
	dns       []string
	ips       []string
	emails    []string
	uris      []string
	extra     []pkix.Extension
	pem       func([]byte) []byte // changes what was encoded
	der       func([]byte) []byte // changes what was signed
	name      string
	signer    string
	usages    []certificatesv1.KeyUsage
	user      string
	groups    []string
	made      time.Time
	condition certificatesv1.RequestConditionType
	issued    bool
	// answered is when it was answered; zero means when it was created.
	answered time.Time
}

// bootstrap is a request that is right in all respects: for a client certificate.
func bootstrap() asked {
	return asked{
		subject: nodeSubject("w0"),
		name:    "csr-client",
		signer:  "kubernetes.io/kube-apiserver-client-kubelet",
		usages:  []certificatesv1.KeyUsage{"digital signature", "client auth"},
		user:    "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper",
		groups:  []string{"system:serviceaccounts", "system:serviceaccounts:openshift-machine-config-operator", "system:authenticated"},
		made:    opened.Add(time.Minute),
	}
}

// server is one for a serving certificate.
func server() asked {
	return asked{
		subject: nodeSubject("w0"),
		dns:     []string{"w0"},
		ips:     []string{"10.0.0.2"},
		name:    "csr-serving",
		signer:  "kubernetes.io/kubelet-serving",
		usages:  []certificatesv1.KeyUsage{"digital signature", "server auth"},
		user:    "system:node:w0",
		groups:  []string{"system:nodes", "system:authenticated"},
		made:    opened.Add(time.Minute),
	}
}

func nodeSubject(node string) pkix.Name {
	return pkix.Name{Organization: []string{"system:nodes"}, CommonName: "system:node:" + node}
}

// known is a cluster whose node m0 is back, while w0 is not; w1 is not, too.
func known() Snapshot {
	return Snapshot{
		Now:    now,
		Window: Window{Opened: opened},
		Machines: []Machine{
			machine("m0", "10.0.0.1"), machine("w0", "10.0.0.2"), machine("w1", "10.0.0.3"),
		},
		Nodes: []Node{
			{Name: "m0", UID: "m0", Ready: true, Renewed: now.Add(-time.Second)},
			{Name: "w0", UID: "w0", Renewed: slept},
			{Name: "w1", UID: "w1", Renewed: slept},
		},
	}
}

func machine(node, ip string) Machine {
	return Machine{Namespace: "openshift-machine-api", Node: node, Addresses: []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: ip},
		{Type: corev1.NodeExternalIP, Address: "2001:db8::" + ip[len(ip)-1:]},
		{Type: corev1.NodeInternalDNS, Address: node},
		{Type: corev1.NodeHostName, Address: node + ".internal"},
		{Type: corev1.NodeExternalDNS, Address: node + ".example.com"},
		{Type: corev1.NodeExternalDNS, Address: ""},
	}}
}

// keys sign all requests: making one takes longer than all else.
var keys = sync.OnceValue(func() [2]*ecdsa.PrivateKey {
	var out [2]*ecdsa.PrivateKey
	for i := range out {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			panic(err)
		}
		out[i] = key
	}
	return out
})

// request signs it.
func (a asked) request() request {
	template := &x509.CertificateRequest{Subject: a.subject, DNSNames: a.dns, EmailAddresses: a.emails, ExtraExtensions: a.extra}
	for _, ip := range a.ips {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(ip))
	}
	for _, uri := range a.uris {
		parsed, err := url.Parse(uri)
		if err != nil {
			panic(err)
		}
		template.URIs = append(template.URIs, parsed)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, keys()[0])
	if err != nil {
		panic(err)
	}
	if a.der != nil {
		der = a.der(der)
	}
	raw := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	if a.pem != nil {
		raw = a.pem(raw)
	}
	r := request{
		ObjectMeta: metav1.ObjectMeta{Name: a.name, ResourceVersion: "7", CreationTimestamp: metav1.NewTime(a.made)},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: raw, SignerName: a.signer, Usages: a.usages, Username: a.user, Groups: a.groups,
		},
	}
	if a.condition != "" {
		at := a.answered
		if at.IsZero() {
			at = a.made
		}
		r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
			{Type: a.condition, Status: corev1.ConditionTrue, LastUpdateTime: metav1.NewTime(at)},
		}
	}
	if a.issued {
		r.Status.Certificate = []byte("x")
	}
	return r
}

// otherName is an extension with names that x509 passes over: a user of a Windows
// domain, besides a name that is good.
func otherName() pkix.Extension {
	upn, err := asn1.Marshal([]asn1.RawValue{
		{Class: asn1.ClassContextSpecific, Tag: tagDNS, Bytes: []byte("w0")},
		{Class: asn1.ClassContextSpecific, Tag: 0, IsCompound: true, Bytes: []byte{6, 3, 42, 3, 4, 0xa0, 3, 12, 1, 'x'}},
	})
	if err != nil {
		panic(err)
	}
	return pkix.Extension{Id: oidSubjectAlt, Value: upn}
}

// isCA is an extension that asks for a certificate that may sign others.
var isCA = pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Critical: true, Value: []byte{0x30, 3, 1, 1, 0xff}}

// signed signs with a key that is not in the request.
func signed(info []byte) []byte {
	sum := sha256.Sum256(info)
	raw, err := ecdsa.SignASN1(rand.Reader, keys()[1], sum[:])
	if err != nil {
		panic(err)
	}
	return raw
}
