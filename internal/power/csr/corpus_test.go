package csr

import (
	"bytes"
	"crypto/x509/pkix"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
)

type addressOf = corev1.NodeAddress

// A mutation changes one respect of a request or of the cluster at random. harmless
// ones alone must leave it approved.
type mutation struct {
	name     string
	harmless bool
	do       func(r *rand.Rand, a *asked, k *Snapshot)
}

var mutations = []mutation{
	{"usages in another order", true, func(r *rand.Rand, a *asked, _ *Snapshot) {
		r.Shuffle(len(a.usages), func(i, j int) { a.usages[i], a.usages[j] = a.usages[j], a.usages[i] })
	}},
	{"the older usages", true, func(_ *rand.Rand, a *asked, _ *Snapshot) { a.usages = append(a.usages, "key encipherment") }},
	{"groups in another order", true, func(_ *rand.Rand, a *asked, _ *Snapshot) { slices.Reverse(a.groups) }},
	{"lines that end as on Windows", true, func(_ *rand.Rand, a *asked, _ *Snapshot) {
		a.pem = func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")) }
	}},
	{"later", true, func(r *rand.Rand, a *asked, _ *Snapshot) {
		a.made = a.made.Add(time.Duration(r.IntN(240)) * time.Second)
	}},
	{"machines in another order", true, func(_ *rand.Rand, _ *asked, k *Snapshot) { slices.Reverse(k.Machines); slices.Reverse(k.Nodes) }},
	{"another node down", true, func(_ *rand.Rand, _ *asked, k *Snapshot) { k.Nodes[1].Ready = k.Nodes[1].Name == "w1" }},

	{"a word of the subject", false, func(r *rand.Rand, a *asked, _ *Snapshot) { a.subject.CommonName = garble(r, a.subject.CommonName) }},
	{"a node that is up", false, func(_ *rand.Rand, a *asked, _ *Snapshot) { a.subject.CommonName = "system:node:m0" }},
	{"another organization", false, func(r *rand.Rand, a *asked, _ *Snapshot) {
		a.subject.Organization = append(a.subject.Organization, pick(r, "system:masters", "system:nodes", "", "x"))
	}},
	{"more of a subject", false, func(r *rand.Rand, a *asked, _ *Snapshot) {
		words := []string{pick(r, "x", "system:nodes")}
		*pick(r, &a.subject.OrganizationalUnit, &a.subject.Country, &a.subject.Locality, &a.subject.Province, &a.subject.StreetAddress) = words
	}},
	{"two common names", false, func(_ *rand.Rand, a *asked, _ *Snapshot) {
		a.subject.ExtraNames = []pkix.AttributeTypeAndValue{{Type: oidCommonName, Value: "system:node:m0"}}
	}},
	{"a mail address", false, func(_ *rand.Rand, a *asked, _ *Snapshot) { a.emails = []string{"root@example.com"} }},
	{"a URI", false, func(_ *rand.Rand, a *asked, _ *Snapshot) { a.uris = []string{"spiffe://cluster/node"} }},
	{"a name that x509 does not know", false, func(_ *rand.Rand, a *asked, _ *Snapshot) {
		a.dns, a.ips, a.extra = nil, nil, []pkix.Extension{otherName()}
	}},
	{"a CA", false, func(_ *rand.Rand, a *asked, _ *Snapshot) { a.extra = append(a.extra, isCA) }},
	{"another's DNS name", false, func(r *rand.Rand, a *asked, _ *Snapshot) {
		a.dns = append(a.dns, pick(r, "m0", "m0.internal", "*", "*.example.com", "", ".", "w0.x", "kubernetes.default.svc", "10.0.0.2")+pick(r, "", "x"))
	}},
	{"another's IP address", false, func(r *rand.Rand, a *asked, _ *Snapshot) {
		a.ips = append(a.ips, pick(r, "10.0.0.1", "10.0.0.3", "0.0.0.0", "::", "127.0.0.1", "2001:db8::1", "10.0.0.20"))
	}},
	{"a usage more", false, func(r *rand.Rand, a *asked, _ *Snapshot) { a.usages = append(a.usages, anyUsage(r)) }},
	{"a usage less", false, func(r *rand.Rand, a *asked, _ *Snapshot) {
		a.usages = slices.Delete(a.usages, 0, min(len(a.usages), 1+r.IntN(2)))
	}},
	{"another usage", false, func(r *rand.Rand, a *asked, _ *Snapshot) {
		a.usages = append(a.usages[:min(1, len(a.usages))], anyUsage(r))
	}},
	{"another signer", false, func(r *rand.Rand, a *asked, _ *Snapshot) {
		a.signer = pick(r, "kubernetes.io/kube-apiserver-client", "kubernetes.io/legacy-unknown", "example.com/kubelet-serving", "", garble(r, a.signer))
	}},
	{"the other signer", false, func(_ *rand.Rand, a *asked, _ *Snapshot) {
		if a.signer == server().signer {
			a.signer = bootstrap().signer
			return
		}
		a.signer = server().signer
	}},
	{"another user", false, func(r *rand.Rand, a *asked, _ *Snapshot) {
		a.user = pick(r, "system:admin", "system:node:m0", "system:node:", "", "system:serviceaccount:default:node-bootstrapper", garble(r, a.user))
	}},
	{"a group less", false, func(r *rand.Rand, a *asked, _ *Snapshot) {
		a.groups = slices.DeleteFunc(a.groups, func(g string) bool { return g == "system:authenticated" || r.IntN(2) == 0 })
	}},
	{"another group", false, func(r *rand.Rand, a *asked, _ *Snapshot) {
		i := slices.Index(a.groups, "system:authenticated")
		if i >= 0 {
			a.groups[i] = pick(r, "system:unauthenticated", "system:masters", "")
		}
	}},
	{"bits of the signature", false, func(_ *rand.Rand, a *asked, _ *Snapshot) { a.der = forged }},
	{"bits of anything", false, func(r *rand.Rand, a *asked, _ *Snapshot) {
		a.der = func(b []byte) []byte { b[r.IntN(len(b))] ^= 1 << r.IntN(8); return b }
	}},
	{"a piece of it", false, func(r *rand.Rand, a *asked, _ *Snapshot) { a.der = func(b []byte) []byte { return b[:r.IntN(len(b))] } }},
	{"other armour", false, func(r *rand.Rand, a *asked, _ *Snapshot) {
		a.pem = pick(r, retyped, twice, headed, func([]byte) []byte { return nil }, func(b []byte) []byte { return append([]byte(" "), b...) }, func(b []byte) []byte { return append(b, 'x') })
	}},
	{"before the resume", false, func(r *rand.Rand, a *asked, _ *Snapshot) {
		a.made = opened.Add(-time.Duration(1+r.IntN(9999)) * time.Second)
	}},
	{"in the future", false, func(r *rand.Rand, a *asked, _ *Snapshot) {
		a.made = now.Add(time.Duration(11+r.IntN(9999)) * time.Second)
	}},
	{"answered", false, func(r *rand.Rand, a *asked, _ *Snapshot) {
		a.condition = pick(r, certificatesv1.CertificateApproved, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed)
	}},
	{"issued", false, func(_ *rand.Rand, a *asked, _ *Snapshot) { a.issued = true }},
	{"the node unknown", false, func(_ *rand.Rand, _ *asked, k *Snapshot) { k.Nodes = k.Nodes[:1] }},
	{"its machine unknown", false, func(_ *rand.Rand, _ *asked, k *Snapshot) { k.Machines = slices.DeleteFunc(k.Machines, of("w0")) }},
	{"its machine twice", false, func(_ *rand.Rand, _ *asked, k *Snapshot) { k.Machines = append(k.Machines, machine("w0", "10.0.0.8")) }},
	{"its machine elsewhere", false, func(r *rand.Rand, _ *asked, k *Snapshot) {
		inNamespace(pick(r, "default", "openshift-machine-api2"))(k)
	}},
	{"its machine of a former node", false, func(_ *rand.Rand, _ *asked, k *Snapshot) {
		for i := range k.Machines {
			k.Machines[i].UID = "former"
		}
	}},
	{"the window over", false, func(_ *rand.Rand, _ *asked, k *Snapshot) { k.Window.Opened = now.Add(-46 * time.Minute) }},
	{"long after Ready", false, func(_ *rand.Rand, _ *asked, k *Snapshot) { k.Window.Ready = now.Add(-11 * time.Minute) }},
	{"no resume", false, func(_ *rand.Rand, _ *asked, k *Snapshot) { k.Window = Window{} }},
}

func of(node string) func(Machine) bool { return func(m Machine) bool { return m.Node == node } }

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func anyUsage(r *rand.Rand) certificatesv1.KeyUsage {
	return pick(r, certificatesv1.UsageCertSign, certificatesv1.UsageCRLSign, certificatesv1.UsageAny, certificatesv1.UsageCodeSigning,
		certificatesv1.UsageSigning, certificatesv1.UsageKeyAgreement, "", "Digital Signature")
}

// garble changes one letter.
func garble(r *rand.Rand, s string) string {
	if s == "" {
		return "x"
	}
	i := r.IntN(len(s))
	return s[:i] + pick(r, "", "x", "w1", strings.ToUpper(s[i:i+1])+"'") + s[i+1:]
}

// A single change for the worse, whichever, and there is no approval; changes that
// make no difference make none.
func TestEachMutationAlone(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, from := range []func() asked{bootstrap, server} {
		for _, m := range mutations {
			for range 10 {
				a, k := from(), known()
				m.do(r, &a, &k)
				mine := a.request()
				v := Decide([]request{mine}, k)[0]
				problem := wrong(&mine, []request{mine}, k)
				if m.name == "a node that is up" && a.signer == server().signer {
					continue // such a node may ask for a certificate, as itself
				}
				if v.Approve != m.harmless {
					t.Errorf("seed %d: %s with %s: approve %v %q; the oracle: %q", seed, a.name, m.name, v.Approve, v.Reason, problem)
				}
				if m.name == "bits of anything" {
					continue // in what frames the signature, the oracle is lax
				}
				if v.Approve != (problem == "") {
					t.Errorf("seed %d: %s with %s: approve %v %q, but the oracle: %q", seed, a.name, m.name, v.Approve, v.Reason, problem)
				}
			}
		}
	}
}

// Whole crowds of requests, each with some mutations, in clusters with some: none
// is approved that the oracle objects to, and never two for a node.
func TestCorpus(t *testing.T) {
	first := rand.Uint64()
	t.Logf("seed %d", first)
	approved := 0
	for i := range uint64(400) {
		seed := first + i
		r := rand.New(rand.NewPCG(seed, 0))
		all, k := crowdOf(r)
		clients := map[string]int{}
		for _, v := range Decide(all, k) {
			if !v.Approve {
				continue
			}
			approved++
			if problem := wrong(v.Request, all, k); problem != "" {
				t.Errorf("seed %d: %s was approved: %s", seed, v.Request.Name, problem)
			}
			if strings.HasSuffix(v.Request.Spec.SignerName, "client-kubelet") {
				clients[v.Node]++
			}
		}
		for node, n := range clients {
			if n > 1 {
				t.Errorf("seed %d: %d client certificates for %s", seed, n, node)
			}
		}
		if t.Failed() {
			return
		}
	}
	if approved < 40 {
		t.Errorf("only %d were approved: this shows nothing", approved)
	}
}

// crowdOf makes up to 16 requests; most have something wrong.
func crowdOf(r *rand.Rand) ([]request, Snapshot) {
	k := known()
	var all []request
	for i := range 1 + r.IntN(16) {
		a := pick(r, bootstrap, server)()
		if r.IntN(3) == 0 {
			node := pick(r, "w1", "m0")
			a.subject, a.ips = nodeSubject(node), nil
			if a.dns != nil {
				a.dns, a.user = []string{node}, "system:node:"+node
			}
		}
		for range r.IntN(3) {
			m := mutations[r.IntN(len(mutations))]
			if i > 0 || r.IntN(4) > 0 {
				other := known()
				m.do(r, &a, &other) // of the request only
				continue
			}
			m.do(r, &a, &k)
		}
		a.name = fmt.Sprint("csr-", i)
		all = append(all, a.request())
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all, k
}

// What the order of lists is makes no difference.
func TestOrderMakesNoDifference(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 150 {
		all, k := crowdOf(r)
		before := told(Decide(all, k))
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		slices.Reverse(k.Nodes)
		slices.Reverse(k.Machines)
		if after := told(Decide(all, k)); before != after {
			t.Fatalf("seed %d: first\n%s\nthen\n%s", seed, before, after)
		}
	}
}

func told(verdicts []Decision) string {
	var out strings.Builder
	for _, v := range verdicts {
		fmt.Fprintln(&out, v.Request.Name, v.Approve, v.Reason)
	}
	return out.String()
}

// FuzzRequest looks for bytes, user and times that are approved wrongly.
func FuzzRequest(f *testing.F) {
	for _, a := range []asked{bootstrap(), server(), changed(bootstrap, secondName), changed(server, func(a *asked) { a.extra = []pkix.Extension{isCA} })} {
		r := a.request()
		f.Add(r.Spec.Request, a.signer == server().signer, a.user, strings.Join(a.groups, ","), fmt.Sprint(a.usages[0], ",", a.usages[1]), int64(60))
	}
	f.Fuzz(func(t *testing.T, raw []byte, serving bool, user, groups, usages string, age int64) {
		a := bootstrap()
		if serving {
			a = server()
		}
		r := a.request()
		r.Spec.Request, r.Spec.Username, r.Spec.Groups = raw, user, strings.Split(groups, ",")
		r.Spec.Usages = nil
		for _, u := range strings.Split(usages, ",") {
			r.Spec.Usages = append(r.Spec.Usages, certificatesv1.KeyUsage(u))
		}
		r.CreationTimestamp.Time = opened.Add(time.Duration(age%7200) * time.Second)
		all, k := []request{r}, known()
		for _, v := range Decide(all, k) {
			if problem := wrong(&r, all, k); v.Approve && problem != "" {
				t.Errorf("approved: %s", problem)
			}
		}
	})
}
