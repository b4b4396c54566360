package csr

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// The oracle says why an approval is wrong. It is written the other way round than
// the judge, and reads requests without x509 and pem: it takes the one good request
// there can be for a node, writes down what that is, and compares.

// csrInfo is CertificationRequestInfo of RFC 2986.
type csrInfo struct {
	Version    int
	Subject    asn1.RawValue
	Key        asn1.RawValue
	Attributes asn1.RawValue `asn1:"tag:0"`
}

// wrong returns what is wrong with approving this request, given all.
func wrong(r *request, all []request, s Snapshot) string {
	lines := strings.Split(strings.TrimRight(string(r.Spec.Request), " \t\r\n"), "\n")
	if strings.TrimRight(lines[0], "\r") != "-----BEGIN CERTIFICATE REQUEST-----" || strings.TrimRight(lines[len(lines)-1], "\r") != "-----END CERTIFICATE REQUEST-----" {
		return "armour"
	}
	der, err := base64.StdEncoding.DecodeString(strings.Map(unspaced, strings.Join(lines[1:len(lines)-1], "")))
	if err != nil {
		return "base64"
	}
	subject, names, problem := dissect(der)
	if problem != "" {
		return problem
	}
	for _, n := range s.Nodes {
		if subject == "[2.5.4.10=system:nodes] [2.5.4.3=system:node:"+n.Name+"]" {
			return wrongFor(r, n, names, all, s)
		}
	}
	return "subject " + subject
}

func unspaced(c rune) rune {
	if strings.ContainsRune(" \t\r", c) {
		return -1
	}
	return c
}

func wrongFor(r *request, n Node, names []string, all []request, s Snapshot) string {
	var machines []Machine
	for _, m := range s.Machines {
		if (m.Namespace == "" || m.Namespace == "openshift-machine-api") && m.Node == n.Name && (m.UID == "" || m.UID == n.UID) {
			machines = append(machines, m)
		}
	}
	age := s.Now.Sub(s.Window.Opened)
	afterReady := s.Now.Sub(s.Window.Ready)
	switch {
	case len(machines) != 1:
		return fmt.Sprintf("%d machines", len(machines))
	case len(r.Status.Conditions) > 0 || len(r.Status.Certificate) > 0:
		return "answered"
	case r.CreationTimestamp.Unix() < s.Window.Opened.Unix(), r.CreationTimestamp.Sub(s.Now) > 10*time.Second:
		return "made at another time"
	case s.Window.Opened.IsZero() || age < 0:
		return "no resume"
	case crowd(all, s.Now) > 4*len(s.Nodes):
		return "flood"
	}
	asked := fmt.Sprint(r.Spec.SignerName, " ", sorted(r.Spec.Usages))
	switch strings.Replace(asked, " key encipherment", "", 1) {
	case "kubernetes.io/kube-apiserver-client-kubelet [client auth digital signature]":
		if !s.Window.Ready.IsZero() || age >= 45*time.Minute {
			return "window"
		}
		return wrongClient(r, n, names, machines[0], all, s)
	case "kubernetes.io/kubelet-serving [digital signature server auth]":
		if s.Window.Ready.IsZero() && age >= 45*time.Minute || !s.Window.Ready.IsZero() && afterReady >= 10*time.Minute {
			return "window"
		}
		return wrongServer(r, n, names, machines[0])
	}
	return asked
}

func wrongClient(r *request, n Node, names []string, m Machine, all []request, s Snapshot) string {
	who := fmt.Sprint(r.Spec.Username, " ", sorted(r.Spec.Groups))
	const account = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper [system:authenticated system:serviceaccounts"
	switch {
	case who != account+" system:serviceaccounts:openshift-machine-config-operator]" && who != account+":openshift-machine-config-operator]":
		return who
	case len(names) > 0:
		return "names"
	case s.ClientsOff:
		return "off"
	case n.Ready, n.Renewed.Add(40*time.Second).After(s.Now) || n.Renewed.Add(40*time.Second).Equal(s.Now):
		return "alive"
	case !slices.ContainsFunc(m.Addresses, func(a addressOf) bool {
		return a.Type == "InternalDNS" && strings.EqualFold(strings.TrimSuffix(a.Address, "."), n.Name)
	}):
		return "name"
	}
	for _, o := range all {
		if o.Spec.SignerName == r.Spec.SignerName && len(o.Status.Conditions) > 0 && o.Status.Conditions[0].Type == "Approved" &&
			!o.Status.Conditions[0].LastUpdateTime.Time.Before(s.Window.Opened) && o.Spec.Username != "system:node:"+n.Name && about(&o, n.Name) {
			return "had one"
		}
	}
	return ""
}

func wrongServer(r *request, n Node, names []string, m Machine) string {
	if r.Spec.Username != "system:node:"+n.Name {
		return "user"
	}
	groups := strings.Join(r.Spec.Groups, "|")
	if !strings.Contains("|"+groups+"|", "|system:nodes|") || !strings.Contains("|"+groups+"|", "|system:authenticated|") {
		return "groups " + groups
	}
	if len(names) == 0 {
		return "no names"
	}
	allowed := map[string]bool{}
	for _, a := range m.Addresses {
		switch a.Type {
		case "InternalIP", "ExternalIP":
			allowed[fmt.Sprint("7:", net.ParseIP(a.Address))] = true
		default:
			allowed["2:"+strings.ToLower(strings.TrimSuffix(a.Address, "."))] = true
		}
	}
	delete(allowed, "2:")
	for _, name := range names {
		if !allowed[strings.ToLower(name)] && !allowed[strings.TrimSuffix(strings.ToLower(name), ".")] || strings.Contains(name, "*") {
			return name
		}
	}
	return ""
}

// dissect reads DER: the subject's attributes, and what is asked for by extensions,
// as "tag:value".
func dissect(der []byte) (subject string, names []string, problem string) {
	var whole struct {
		Info      asn1.RawValue
		Algorithm asn1.RawValue
		Signature asn1.BitString
	}
	var info csrInfo
	if rest, err := asn1.Unmarshal(der, &whole); err != nil || len(rest) > 0 {
		return "", nil, "DER"
	}
	if _, err := asn1.Unmarshal(whole.Info.FullBytes, &info); err != nil {
		return "", nil, "info"
	}
	key, err := x509.ParsePKIXPublicKey(info.Key.FullBytes)
	if err != nil {
		return "", nil, "key"
	}
	sum := sha256.Sum256(whole.Info.FullBytes)
	public, ok := key.(*ecdsa.PublicKey)
	if !ok || !strings.HasSuffix(string(whole.Algorithm.FullBytes), "\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x02") || !ecdsa.VerifyASN1(public, sum[:], whole.Signature.Bytes) {
		return "", nil, "signature"
	}
	var attributes []string
	for _, set := range children(info.Subject.Bytes) {
		for _, pair := range children(set.Bytes) {
			var oid asn1.ObjectIdentifier
			rest, err := asn1.Unmarshal(pair.Bytes, &oid)
			if err != nil {
				return "", nil, "attribute"
			}
			attributes = append(attributes, fmt.Sprintf("[%s=%s]", oid, children(rest)[0].Bytes))
		}
	}
	slices.Sort(attributes)
	names, ok = extensions(info.Attributes.Bytes)
	if !ok {
		return "", nil, "extensions"
	}
	return strings.Join(attributes, " "), names, ""
}

// extensions returns the names that are asked for, and whether nothing else is.
func extensions(raw []byte) ([]string, bool) {
	var names []string
	for _, attribute := range children(raw) {
		for _, list := range children(children(attribute.Bytes)[1].Bytes) {
			for _, extension := range children(list.Bytes) {
				parts := children(extension.Bytes)
				var oid asn1.ObjectIdentifier
				if _, err := asn1.Unmarshal(parts[0].FullBytes, &oid); err != nil || oid.String() != "2.5.29.17" {
					return nil, false
				}
				for _, name := range children(children(parts[len(parts)-1].Bytes)[0].Bytes) {
					switch name.Tag {
					case 7:
						names = append(names, fmt.Sprint("7:", net.IP(name.Bytes)))
					default:
						names = append(names, fmt.Sprintf("%d:%s", name.Tag, name.Bytes))
					}
				}
			}
		}
	}
	return names, true
}

// children are the values inside of a constructed one.
func children(raw []byte) []asn1.RawValue {
	var out []asn1.RawValue
	for len(raw) > 0 {
		var v asn1.RawValue
		rest, err := asn1.Unmarshal(raw, &v)
		if err != nil {
			return out
		}
		out, raw = append(out, v), rest
	}
	return out
}

// crowd counts the open requests for nodes of the last hour.
func crowd(all []request, at time.Time) int {
	n := 0
	for _, r := range all {
		kubelets := r.Spec.SignerName == "kubernetes.io/kube-apiserver-client-kubelet" || r.Spec.SignerName == "kubernetes.io/kubelet-serving"
		if kubelets && len(r.Status.Conditions) == 0 && len(r.Status.Certificate) == 0 && r.CreationTimestamp.After(at.Add(-time.Hour)) {
			n++
		}
	}
	return n
}

// about reports whether the request can be read and names the node.
func about(r *request, node string) bool {
	block := strings.Split(strings.TrimSpace(string(r.Spec.Request)), "\n")
	der, err := base64.StdEncoding.DecodeString(strings.Join(block[1:max(1, len(block)-1)], ""))
	if err != nil {
		return false
	}
	subject, _, _ := dissect(der)
	return subject == "[2.5.4.10=system:nodes] [2.5.4.3=system:node:"+node+"]"
}

func sorted[T ~string](list []T) []T {
	list = slices.Clone(list)
	slices.Sort(list)
	return list
}
