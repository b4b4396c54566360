package csr

import (
	"bytes"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// row is a rule of the reference: what changes about a good request and a good
// cluster, and what is said of the request then. "" is approval.
type row struct {
	name   string
	from   func() asked
	ask    func(*asked)
	given  func(*Snapshot)
	beside []asked
	want   string
}

func TestSignerAndForm(t *testing.T) {
	for _, r := range []row{
		{name: "S1 a client request is approved", from: bootstrap},
		{name: "S1 a serving request is approved", from: server},
		{name: "S1 another signer is not ours", from: bootstrap, ask: func(a *asked) { a.signer = "kubernetes.io/kube-apiserver-client" }, want: reasonSigner},
		{name: "S1 nor is a custom one", from: server, ask: func(a *asked) { a.signer = "example.com/kubelet-serving" }, want: reasonSigner},
		{name: "S1 none is none", from: server, ask: func(a *asked) { a.signer = "" }, want: reasonSigner},
		{name: "S1 a client request to the signer of servers is judged as one of a server", from: bootstrap, ask: func(a *asked) { a.signer = server().signer }, want: reasonOther},
		{name: "S1 and the other way round", from: server, ask: func(a *asked) { a.signer = bootstrap().signer }, want: reasonRenewal},
		{name: "S2 an approved one is skipped", from: bootstrap, ask: func(a *asked) { a.condition = certificatesv1.CertificateApproved }, want: reasonAnswered},
		{name: "S2 a denied one is skipped", from: bootstrap, ask: func(a *asked) { a.condition = certificatesv1.CertificateDenied }, want: reasonAnswered},
		{name: "S2 a failed one is skipped", from: bootstrap, ask: func(a *asked) { a.condition = certificatesv1.CertificateFailed }, want: reasonAnswered},
		{name: "S2 an issued one is skipped", from: bootstrap, ask: func(a *asked) { a.issued = true }, want: reasonAnswered},
		{name: "S3 another type of PEM is refused", from: bootstrap, ask: func(a *asked) { a.pem = retyped }, want: reasonPEM},
		{name: "S3 a second block is refused", from: bootstrap, ask: func(a *asked) { a.pem = twice }, want: reasonPEM},
		{name: "S3 a block before it that is none is refused", from: bootstrap, ask: func(a *asked) { a.pem = behindNonsense }, want: reasonPEM},
		{name: "S3 words before it are refused", from: bootstrap, ask: func(a *asked) { a.pem = func(b []byte) []byte { return append([]byte("x\n"), b...) } }, want: reasonPEM},
		{name: "S3 words after it are refused", from: bootstrap, ask: func(a *asked) { a.pem = func(b []byte) []byte { return append(b, 'x') } }, want: reasonPEM},
		{name: "S3 headers are refused", from: bootstrap, ask: func(a *asked) { a.pem = headed }, want: reasonPEM},
		{name: "S3 no PEM is refused", from: bootstrap, ask: func(a *asked) { a.pem = func([]byte) []byte { return nil } }, want: reasonPEM},
		{name: "S3 what cannot be parsed is refused", from: bootstrap, ask: func(a *asked) { a.der = func(b []byte) []byte { return b[:len(b)-9] } }, want: reasonDER},
		{name: "S3 bytes after the request are refused", from: bootstrap, ask: func(a *asked) { a.der = func(b []byte) []byte { return append(b, 0) } }, want: reasonDER},
		{name: "S3 a bad one beside it does not stop a good one", from: bootstrap, beside: []asked{changed(bootstrap, func(a *asked) { a.pem = retyped })}},
		{name: "S4 it must have been signed with its key", from: bootstrap, ask: func(a *asked) { a.der = forged }, want: reasonSignature},
		{name: "S5 as many as four open ones a node are judged", from: bootstrap, beside: old(11, 0)},
		{name: "S5 more are a flood", from: bootstrap, beside: old(12, 0), want: reasonFlood},
		{name: "S5 for servers, too", from: server, beside: old(12, 0), want: reasonFlood},
		{name: "S5 those of an hour ago count", from: bootstrap, beside: old(12, time.Hour+clockSkew), want: reasonFlood},
		{name: "S5 older ones do not", from: bootstrap, beside: old(12, time.Hour+clockSkew+time.Second)},
		{name: "S5 a list that nobody has read to its end is a flood", from: bootstrap, given: func(k *Snapshot) { k.Truncated = true }, want: reasonFlood},
		{name: "S5 nor do those for other signers", from: bootstrap, beside: each(old(12, 0), func(a *asked) { a.signer = "example.com/x" })},
		{name: "S5 nor do answered ones", from: bootstrap, beside: each(old(12, 0), func(a *asked) { a.condition = certificatesv1.CertificateDenied })},
		{name: "S6 Machines of other namespaces do not count", from: bootstrap, given: inNamespace("default"), want: reasonMachine},
		{name: "S6 for servers, too", from: server, given: inNamespace("default"), want: reasonMachine},
		{name: "S6 the hub's own inventory counts", from: bootstrap, given: inNamespace("")},
	} {
		t.Run(r.name, r.check)
	}
}

func TestClient(t *testing.T) {
	for _, r := range []row{
		{name: "C1 another organization is refused", ask: func(a *asked) { a.subject.Organization = []string{"system:masters"} }, want: reasonOrganization},
		{name: "C1 one more is refused", ask: func(a *asked) { a.subject.Organization = []string{"system:nodes", "system:masters"} }, want: reasonOrganization},
		{name: "C1 the same one twice is refused", ask: func(a *asked) { a.subject.Organization = []string{"system:nodes", "system:nodes"} }, want: reasonOrganization},
		{name: "C1 none is refused", ask: func(a *asked) { a.subject.Organization = nil }, want: reasonOrganization},
		{name: "C1 another attribute is refused", ask: func(a *asked) { a.subject.OrganizationalUnit = []string{"x"} }, want: reasonOrganization},
		{name: "C2 another prefix is refused", ask: func(a *asked) { a.subject.CommonName = "system:admin" }, want: reasonCommonName},
		{name: "C2 no name after the prefix is refused", ask: func(a *asked) { a.subject.CommonName = "system:node:" }, want: reasonCommonName},
		{name: "C2 two names are refused", ask: secondName, want: reasonCommonName},
		{name: "C3 a DNS name is refused", ask: func(a *asked) { a.dns = []string{"w0"} }, want: reasonNames},
		{name: "C3 an IP address is refused", ask: func(a *asked) { a.ips = []string{"10.0.0.2"} }, want: reasonNames},
		{name: "C3 a mail address is refused", ask: func(a *asked) { a.emails = []string{"a@b"} }, want: reasonNames},
		{name: "C4 a URI is refused", ask: func(a *asked) { a.uris = []string{"spiffe://a/b"} }, want: reasonNames},
		{name: "C4 a name of another kind is refused", ask: func(a *asked) { a.extra = []pkix.Extension{otherName()} }, want: reasonNames},
		{name: "C4 to be a CA is refused", ask: func(a *asked) { a.extra = []pkix.Extension{isCA} }, want: reasonNames},
		{name: "C5 today's usages are approved", ask: usages("client auth", "digital signature")},
		{name: "C5 those before Kubernetes 1.27 are approved", ask: usages("key encipherment", "digital signature", "client auth")},
		{name: "C5 another one is refused", ask: usages("digital signature", "client auth", "server auth"), want: reasonUsages},
		{name: "C5 one more is refused", ask: usages("digital signature", "key encipherment", "client auth", "cert sign"), want: reasonUsages},
		{name: "C5 one less is refused", ask: usages("client auth"), want: reasonUsages},
		{name: "C5 one twice is refused", ask: usages("digital signature", "client auth", "client auth"), want: reasonUsages},
		{name: "C5 none is refused", ask: usages(), want: reasonUsages},
		{name: "C6 another account is refused", ask: func(a *asked) { a.user = "system:serviceaccount:default:node-bootstrapper" }, want: reasonUser},
		{name: "C6 an administrator is refused", ask: func(a *asked) { a.user = "system:admin" }, want: reasonUser},
		{name: "C6 another node is refused", ask: func(a *asked) { a.user = "system:node:m0" }, want: reasonUser},
		{name: "C7 the groups may be in any order", ask: func(a *asked) { slices.Reverse(a.groups) }},
		{name: "C7 the groups of a master's bootstrap are approved", ask: func(a *asked) { a.groups = a.groups[1:] }},
		{name: "C7 one more is refused", ask: func(a *asked) { a.groups = append(a.groups, "system:masters") }, want: reasonGroups},
		{name: "C7 another one is refused", ask: func(a *asked) { a.groups[1] = "system:serviceaccounts:default" }, want: reasonGroups},
		{name: "C7 two less are refused", ask: func(a *asked) { a.groups = a.groups[:1] }, want: reasonGroups},
		{name: "C8 a node that does not exist is refused", ask: func(a *asked) { a.subject = nodeSubject("w9") }, want: reasonNode},
		{name: "C8 even if a machine has its name", ask: func(a *asked) { a.subject = nodeSubject("w9") }, given: func(k *Snapshot) { k.Machines = append(k.Machines, machine("w9", "10.0.0.9")) }, want: reasonNode},
		{name: "C8 a node has its name in one case", ask: func(a *asked) { a.subject = nodeSubject("W0") }, want: reasonNode},
		{name: "C9 a machine of another name is refused", given: addresses(corev1.NodeInternalDNS, "w7"), want: reasonMachine},
		{name: "C9 a machine without that kind of name is refused", given: addresses(corev1.NodeHostName, "w0"), want: reasonMachine},
		{name: "C9 case and a final dot make no difference", given: addresses(corev1.NodeInternalDNS, "W0.")},
		{name: "C9 no machine is refused", given: func(k *Snapshot) { k.Machines = nil }, want: reasonMachine},
		{name: "C10 a machine without that node is refused", given: func(k *Snapshot) { k.Machines[1].Node = "" }, want: reasonMachine},
		{name: "C10 a machine of another node is refused", given: func(k *Snapshot) { k.Machines[1].Node = "w1"; k.Machines[2].Node = "w0" }, want: reasonMachine},
		{name: "C10 a machine of a former node of that name is refused", given: func(k *Snapshot) { k.Machines[1].UID = "former" }, want: reasonMachine},
		{name: "C10 the node's UID is right", given: func(k *Snapshot) { k.Machines[1].UID = "w0" }},
		{name: "C10 two machines of one node are refused", given: func(k *Snapshot) { k.Machines = append(k.Machines, machine("w0", "10.0.0.9")) }, want: reasonMachine},
		{name: "C11 how old the machine is makes no difference"},
		{name: "C12 a cluster that wants none approved is heard", given: func(k *Snapshot) { k.ClientsOff = true }, want: reasonOff},
		{name: "C13 a request from before the resume is refused", ask: func(a *asked) { a.made = opened.Add(-time.Second) }, want: reasonOld},
		{name: "C13 one from its first second is approved", ask: func(a *asked) { a.made = opened }},
		{name: "C13 one from the future is refused", ask: func(a *asked) { a.made = now.Add(clockSkew + time.Second) }, want: reasonOld},
		{name: "C14 a node that is Ready is refused", ask: func(a *asked) { a.subject = nodeSubject("m0") }, want: reasonAlive},
		{name: "C14 one that is called Ready and gives no sign is refused", given: func(k *Snapshot) { k.Nodes[1].Ready = true }, want: reasonAlive},
		{name: "C14 one that is not and gives a sign is refused", given: func(k *Snapshot) { k.Nodes[1].Renewed = now.Add(-silentAfter) }, want: reasonAlive},
		{name: "C14 one whose clock is ahead is refused", given: func(k *Snapshot) { k.Nodes[1].Renewed = now.Add(time.Hour) }, want: reasonAlive},
		{name: "C15 a node that has had one is refused", beside: []asked{granted("w0", opened)}, want: reasonTwice},
		{name: "C15 whoever approved it", beside: []asked{changed(bootstrap, func(a *asked) { *a = granted("w0", opened); a.user = "system:admin" })}, want: reasonTwice},
		{name: "C15 one of a former resume does not count", beside: []asked{granted("w0", opened.Add(-time.Minute))}},
		{name: "C15 one that was made before and approved in this one counts", beside: []asked{changed(bootstrap, func(a *asked) { *a = granted("w0", slept); a.answered = opened })}, want: reasonTwice},
		{name: "C15 one that was made in this one counts, whatever date its approval has", beside: []asked{changed(bootstrap, func(a *asked) { *a = granted("w0", opened); a.answered = slept })}, want: reasonTwice},
		{name: "C15 a serving certificate does not", beside: []asked{changed(bootstrap, func(a *asked) { *a = granted("w0", opened); a.signer = server().signer })}},
		{name: "C15 nor does another node's", beside: []asked{granted("w1", opened)}},
		{name: "C15 nor does a renewal by itself", beside: []asked{changed(bootstrap, func(a *asked) { *a = granted("w0", opened); a.user = "system:node:w0" })}},
		{name: "C15 of two requests the older counts", beside: []asked{changed(bootstrap, func(a *asked) { a.name, a.made = "a", opened })}, want: reasonTwice},
		{name: "C15 the window is open for 45 minutes", ask: func(a *asked) { a.made = now }, given: func(k *Snapshot) { k.Window.Opened = now.Add(time.Second - clientWindow) }},
		{name: "C15 then it closes", ask: func(a *asked) { a.made = now }, given: func(k *Snapshot) { k.Window.Opened = now.Add(-clientWindow) }, want: reasonClosed},
		{name: "C15 it closes when the cluster is Ready", given: func(k *Snapshot) { k.Window.Ready = now }, want: reasonClosed},
		{name: "C15 without a resume it is closed", given: func(k *Snapshot) { k.Window = Window{} }, want: reasonClosed},
		{name: "C15 it is closed before the resume", given: func(k *Snapshot) { k.Window.Opened = now.Add(time.Second) }, want: reasonClosed},
		{name: "C16 a node's renewal is left to the cluster", ask: func(a *asked) { a.user, a.groups = "system:node:w0", server().groups }, want: reasonRenewal},
	} {
		r.from = bootstrap
		t.Run(r.name, r.check)
	}
}

func TestServing(t *testing.T) {
	for _, r := range []row{
		{name: "V1 somebody who is no node is refused", ask: func(a *asked) { a.user = bootstrapUser }, want: reasonOther},
		{name: "V1 the prefix alone is no node", ask: func(a *asked) { a.user = "system:node:"; a.subject = nodeSubject("") }, want: reasonCommonName},
		{name: "V2 more groups are approved", ask: func(a *asked) { a.groups = append(a.groups, "x") }},
		{name: "V2 without system:nodes it is refused", ask: func(a *asked) { a.groups[0] = "x" }, want: reasonGroups},
		{name: "V2 without system:authenticated it is refused", ask: func(a *asked) { a.groups = a.groups[:1] }, want: reasonGroups},
		{name: "V3 today's usages are approved", ask: usages("server auth", "digital signature")},
		{name: "V3 those before Kubernetes 1.27 are approved", ask: usages("digital signature", "key encipherment", "server auth")},
		{name: "V3 any third one is refused", ask: usages("digital signature", "client auth", "server auth"), want: reasonUsages},
		{name: "V3 those of a client are refused", ask: usages("digital signature", "client auth"), want: reasonUsages},
		{name: "V4 a node for another node is refused", ask: func(a *asked) { a.user = "system:node:w1" }, want: reasonOther},
		{name: "V5 one more organization is refused", ask: func(a *asked) { a.subject.Organization = []string{"system:nodes", "system:masters"} }, want: reasonOrganization},
		{name: "V5 another one is refused", ask: func(a *asked) { a.subject.Organization = []string{"x"} }, want: reasonOrganization},
		{name: "V6 no names are refused", ask: func(a *asked) { a.dns, a.ips = nil, nil }, want: reasonNames},
		{name: "V6 an empty list of names is refused", ask: func(a *asked) {
			a.dns, a.ips, a.extra = nil, nil, []pkix.Extension{{Id: oidSubjectAlt, Value: []byte{0x30, 0}}}
		}, want: reasonNames},
		{name: "V6 names of the issuer are none of the node", ask: func(a *asked) {
			a.dns, a.ips = nil, nil
			a.extra = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 18}, Value: []byte{0x30, 4, 0x82, 2, 'w', '0'}}}
		}, want: reasonNames},
		{name: "V6 a DNS name is enough", ask: func(a *asked) { a.ips = nil }},
		{name: "V6 an IP address is enough", ask: func(a *asked) { a.dns = nil }},
		{name: "V7 a mail address is refused", ask: func(a *asked) { a.emails = []string{"a@b"} }, want: reasonNames},
		{name: "V7 a URI is refused", ask: func(a *asked) { a.uris = []string{"spiffe://a/b"} }, want: reasonNames},
		{name: "V7 a name of another kind is refused", ask: func(a *asked) { a.dns, a.ips, a.extra = nil, nil, []pkix.Extension{otherName()} }, want: reasonNames},
		{name: "V7 to be a CA is refused", ask: func(a *asked) { a.extra = []pkix.Extension{isCA} }, want: reasonNames},
		{name: "V8 no machine is refused", given: func(k *Snapshot) { k.Machines = nil }, want: reasonMachine},
		{name: "V8 a machine without that node is refused", given: func(k *Snapshot) { k.Machines[1].Node = "" }, want: reasonMachine},
		{name: "V8 a node that does not exist is refused", given: func(k *Snapshot) { k.Nodes = k.Nodes[:1] }, want: reasonNode},
		{name: "V9 all names of the machine are approved", ask: func(a *asked) { a.dns = []string{"w0", "w0.internal", "w0.example.com"} }},
		{name: "V9 case and a final dot make no difference", given: addresses(corev1.NodeHostName, "W0."), ask: func(a *asked) { a.ips = nil }},
		{name: "V9 another's name is refused", ask: func(a *asked) { a.dns = []string{"w0", "m0"} }, want: reasonAddress},
		{name: "V9 an empty one is refused", ask: func(a *asked) { a.dns = []string{"w0", ""} }, want: reasonAddress},
		{name: "V9 a dot alone is refused", ask: func(a *asked) { a.dns = []string{"."} }, want: reasonAddress},
		{name: "V9 a wildcard is refused", given: addresses(corev1.NodeHostName, "*.example.com"), ask: func(a *asked) { a.dns, a.ips = []string{"*.example.com"}, nil }, want: reasonAddress},
		{name: "V9 an address is no name", ask: func(a *asked) { a.dns = []string{"10.0.0.2"} }, want: reasonAddress},
		{name: "V10 all addresses of the machine are approved", ask: func(a *asked) { a.ips = []string{"10.0.0.2", "2001:db8::2"} }},
		{name: "V10 an address may be written otherwise", ask: func(a *asked) { a.ips = []string{"::ffff:10.0.0.2", "2001:0db8:0:0::0002"} }},
		{name: "V10 the cloud may write it otherwise", given: addresses(corev1.NodeExternalIP, "2001:0DB8:0::2"), ask: func(a *asked) { a.dns, a.ips = nil, []string{"2001:db8::2"} }},
		{name: "V10 an IPv4 address as one of IPv6 is no kubelet's", ask: func(a *asked) { a.dns, a.ips, a.extra = nil, nil, []pkix.Extension{mapped()} }, want: reasonAddress},
		{name: "V10 another's address is refused", ask: func(a *asked) { a.ips = []string{"10.0.0.2", "10.0.0.1"} }, want: reasonAddress},
		{name: "V10 a name is no address", given: addresses(corev1.NodeHostName, "10.0.0.2"), ask: func(a *asked) { a.dns = nil }, want: reasonAddress},
		{name: "V11 a former certificate is no shortcut", beside: []asked{changed(server, func(a *asked) { a.ips = []string{"10.0.0.7"}; a.issued = true })}, ask: func(a *asked) { a.ips = []string{"10.0.0.7"} }, want: reasonAddress},
		{name: "V12 an egress address is another's", ask: func(a *asked) { a.ips = []string{"10.0.0.2", "10.0.0.100"} }, want: reasonAddress},
		{name: "C13 a request from before the resume is refused", ask: func(a *asked) { a.made = opened.Add(-time.Second) }, want: reasonOld},
		{name: "C15 it may be asked for again", beside: []asked{changed(server, func(a *asked) { a.condition = certificatesv1.CertificateApproved })}},
		{name: "C15 the window stays open for ten minutes after Ready", given: func(k *Snapshot) { k.Window.Ready = now.Add(time.Second - servingWindow) }},
		{name: "C15 then it closes", given: func(k *Snapshot) { k.Window.Ready = now.Add(-servingWindow) }, want: reasonClosed},
		{name: "C15 coming up after the install opens none", given: func(k *Snapshot) { k.Window = Window{Ready: now} }, want: reasonClosed},
		{name: "C12 a cluster that wants no clients approved gets servers", given: func(k *Snapshot) { k.ClientsOff = true }},
	} {
		r.from = server
		t.Run(r.name, r.check)
	}
}

// check judges the request among the others, in every order of all.
func (r row) check(t *testing.T) {
	a := r.from()
	if r.ask != nil {
		r.ask(&a)
	}
	k := known()
	if r.given != nil {
		r.given(&k)
	}
	mine := a.request()
	all := []request{mine}
	for i, o := range r.beside {
		o.name = fmt.Sprint(o.name, i)
		all = append(all, o.request())
	}
	for range 2 {
		for _, v := range Decide(all, k) {
			if v.Request.Name != mine.Name {
				continue
			}
			if v.Reason != r.want || v.Approve != (r.want == "") {
				t.Errorf("approve %v, %q; want %q", v.Approve, v.Reason, r.want)
			}
		}
		slices.Reverse(all)
	}
}

func changed(from func() asked, change func(*asked)) asked {
	a := from()
	change(&a)
	return a
}

// granted is a client certificate that was approved at that time.
func granted(node string, at time.Time) asked {
	return changed(bootstrap, func(a *asked) {
		a.subject, a.made, a.condition, a.issued = nodeSubject(node), at, certificatesv1.CertificateApproved, true
	})
}

// old returns n open requests of that age by a user that is no node.
func old(n int, age time.Duration) []asked {
	return slices.Repeat([]asked{changed(bootstrap, func(a *asked) { a.name, a.made, a.user = "b", now.Add(-age), "x" })}, n)
}

func each(list []asked, change func(*asked)) []asked {
	for i := range list {
		change(&list[i])
	}
	return list
}

// mapped asks for 10.0.0.2 in 16 bytes.
func mapped() pkix.Extension {
	return pkix.Extension{Id: oidSubjectAlt, Value: append([]byte{0x30, 18, 0x87, 16}, net.ParseIP("10.0.0.2").To16()...)}
}

func usages(list ...certificatesv1.KeyUsage) func(*asked) {
	return func(a *asked) { a.usages = list }
}

func inNamespace(ns string) func(*Snapshot) {
	return func(k *Snapshot) {
		for i := range k.Machines {
			k.Machines[i].Namespace = ns
		}
	}
}

// addresses gives the machine of w0 one name only, of that kind.
func addresses(kind corev1.NodeAddressType, name string) func(*Snapshot) {
	return func(k *Snapshot) { k.Machines[1].Addresses = []corev1.NodeAddress{{Type: kind, Address: name}} }
}

func secondName(a *asked) {
	a.subject.ExtraNames = []pkix.AttributeTypeAndValue{{Type: oidCommonName, Value: "system:node:m0"}, {Type: oidCommonName, Value: "system:node:w0"}}
	a.subject.ExtraNames = append(a.subject.ExtraNames, pkix.AttributeTypeAndValue{Type: oidOrganization, Value: nodesGroup})
}

func retyped(raw []byte) []byte {
	return bytes.ReplaceAll(raw, []byte("CERTIFICATE REQUEST"), []byte("NEW CERTIFICATE REQUEST"))
}

func twice(raw []byte) []byte { return append(raw, raw...) }

func behindNonsense(raw []byte) []byte {
	return append([]byte("-----BEGIN CERTIFICATE REQUEST-----\n!\n-----END CERTIFICATE REQUEST-----\n"), raw...)
}

func headed(raw []byte) []byte {
	block, _ := pem.Decode(raw)
	block.Headers = map[string]string{"a": "b"}
	return pem.EncodeToMemory(block)
}

// forged replaces the signature by one of another key.
func forged(der []byte) []byte {
	var whole struct {
		Info      asn1.RawValue
		Algorithm asn1.RawValue
		Signature asn1.BitString
	}
	if _, err := asn1.Unmarshal(der, &whole); err != nil {
		panic(err)
	}
	whole.Signature.Bytes = signed(whole.Info.FullBytes)
	out, err := asn1.Marshal(whole)
	if err != nil {
		panic(err)
	}
	return out
}

func TestJudgeLeavesTheRequestAsItIs(t *testing.T) {
	r := bootstrap().request()
	before := r.DeepCopy()
	v := Decide([]request{r}, known())[0]
	got := v.ApprovedRequest(metav1.NewTime(now))
	if len(before.Status.Conditions) != len(v.Request.Status.Conditions) {
		t.Error("the request that was read has changed")
	}
	if got.ResourceVersion != before.ResourceVersion || !hasCondition(got, certificatesv1.CertificateApproved) || len(got.Status.Conditions) != 1 {
		t.Errorf("approved as %+v", got)
	}
}

func TestWaiting(t *testing.T) {
	mine := changed(bootstrap, func(a *asked) { a.name = "a"; a.subject = nodeSubject("m0") })
	for name, c := range map[string]struct {
		requests []asked
		want     string
	}{
		"nothing waits":                     {nil, ""},
		"an approved one does not wait":     {[]asked{bootstrap()}, ""},
		"one is told":                       {[]asked{mine}, "1 certificate request is not approved: a (" + reasonAlive + ")."},
		"one of others is not told":         {[]asked{changed(bootstrap, func(a *asked) { a.signer = "example.com/x" })}, ""},
		"an answered one is not told":       {[]asked{changed(bootstrap, func(a *asked) { a.issued = true })}, ""},
		"one of a former resume is not":     {[]asked{changed(bootstrap, func(a *asked) { a.made = slept })}, ""},
		"one of a slow clock is":            {[]asked{changed(bootstrap, func(a *asked) { a.made = opened.Add(-time.Minute) })}, "1 certificate request is not approved: csr-client (" + reasonOld + ")."},
		"a renewal is not":                  {[]asked{changed(bootstrap, func(a *asked) { a.user = "system:node:w0" })}, ""},
		"what others have written is short": {[]asked{changed(bootstrap, func(a *asked) { a.name = strings.Repeat("x", 253); a.user = "u" })}, "1 certificate request is not approved: " + strings.Repeat("x", 40) + "… (" + reasonUser + ")."},
		"many are counted": {
			each(old(5, 0), func(a *asked) { a.name = "b" }),
			"5 certificate requests are not approved: b (" + reasonUser + "), b (" + reasonUser + "), b (" + reasonUser + "), and 2 more.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var all []request
			for _, a := range c.requests {
				all = append(all, a.request())
			}
			if got := DescribeWaiting(Decide(all, known())); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
