package config

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"regexp"
	"strings"
)

// checkRenamedKeys checks that mirrors, and addresses, are listed under only one of their two
// names.
func (ps *problems) checkRenamedKeys(doc document) {
	for _, twice := range []struct{ older, newer string }{
		{"imageContentSources", "imageDigestSources"},
		{"platform.aws.subnets", "platform.aws.vpc.subnets"},
	} {
		if len(toList(doc.valueAt(twice.older))) > 0 && len(toList(doc.valueAt(twice.newer))) > 0 {
			ps.addProblem(twice.older, "is the older name of %s, and both are set: remove %s", twice.newer, twice.older)
		}
	}
	older, newer := doc.listTextsAt("platform.openstack.lbFloatingIP"), doc.listTextsAt("platform.openstack.apiFloatingIP")
	if len(older) > 0 && len(newer) > 0 && older[0] != newer[0] {
		ps.addProblem("platform.openstack.lbFloatingIP", "is the older name of apiFloatingIP, and the two differ: remove it")
	}
}

// privateKey is part of the first line of a private key in PEM. In a public place such a key is a
// misplaced secret.
const privateKey = "PRIVATE KEY-----"

// checkPublicTexts checks texts that have a format of their own. It quotes nothing of them.
func (ps *problems) checkPublicTexts(doc document) {
	if key, _ := doc["sshKey"].(string); strings.Contains(key, privateKey) {
		ps.addProblem("sshKey", "is a private key: use the public key, as in a file that ends in .pub, and create a new key pair")
	}
	bundle, _ := doc["additionalTrustBundle"].(string)
	switch {
	case strings.TrimSpace(bundle) == "":
	case strings.Contains(bundle, privateKey):
		ps.addProblem("additionalTrustBundle", "contains a private key: use certificates only, and create a new key pair")
	case !strings.Contains(bundle, "-----BEGIN CERTIFICATE-----") || !strings.Contains(bundle, "-----END CERTIFICATE-----"):
		ps.addProblem("additionalTrustBundle", "is not a certificate in PEM: use one or more that start with -----BEGIN CERTIFICATE-----")
	}
}

// publicKey matches a line of an authorized_keys file; options may precede the key. A key in base64
// begins with AAAA.
var publicKey = regexp.MustCompile(`(^|\s)(ssh-(rsa|dss|ed25519)|ecdsa-sha2-nistp(256|384|521)|sk-(ssh-ed25519|ecdsa-sha2-nistp256)@openssh\.com)[a-z0-9@.-]*[ \t]+AAAA`)

// checkSSHKey checks the SSH key if there is one. A variable that was not replaced is left to the
// installer: templates in use contain one.
func (ps *problems) checkSSHKey(v any) {
	key, ok := v.(string)
	key = strings.TrimSpace(key)
	if !ok || key == "" || strings.HasPrefix(key, "$") || strings.Contains(key, privateKey) {
		return
	}
	for line := range strings.Lines(key) {
		if !strings.HasPrefix(line, "#") && publicKey.MatchString(line) {
			return
		}
	}
	ps.addProblem("sshKey", `is not a public key: use one as in a file that ends in .pub, such as "ssh-ed25519 AAAA…", or remove the field`)
}

// checkTrustBundle checks that each certificate can be parsed.
func (ps *problems) checkTrustBundle(v any) {
	bundle, _ := v.(string)
	if !strings.Contains(bundle, "-----BEGIN CERTIFICATE-----") {
		return // Validate has reported it
	}
	rest := []byte(strings.TrimSpace(bundle))
	for n := 1; len(rest) > 0; n++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			ps.addProblem("additionalTrustBundle", "entry %d is not PEM: use certificates only, each from -----BEGIN CERTIFICATE----- to -----END CERTIFICATE-----", n)
			return
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			ps.addProblem("additionalTrustBundle", "entry %d cannot be parsed as a certificate: copy the whole certificate again", n)
		}
	}
}

// checkPullSecret checks that the value is a pull secret, and not the name of one. It quotes only
// the names of registries.
func (ps *problems) checkPullSecret(v any) {
	const remedy = "name a Secret of type kubernetes.io/dockerconfigjson in spec.pullSecretRef"
	if isEmptyValue(v) {
		ps.addProblem("pullSecret", "is missing: %s", remedy)
		return
	}
	text, ok := v.(string)
	if !ok {
		ps.addProblem("pullSecret", "is %s, want a string of JSON: put it in single quotes, or %s", describeKind(v), remedy)
		return
	}
	var secret struct {
		Auths map[string]map[string]json.RawMessage `json:"auths"`
	}
	if json.Unmarshal([]byte(text), &secret) != nil {
		ps.addProblem("pullSecret", `is not JSON such as {"auths":{"quay.io":{"auth":"…"}}}: %s`, remedy)
		return
	}
	if len(secret.Auths) == 0 {
		ps.addProblem("pullSecret", `has no registry in "auths": download it again, or %s`, remedy)
	}
	for _, registry := range sortedKeys(secret.Auths) {
		entry := secret.Auths[registry]
		if entry["auth"] == nil && entry["credsStore"] == nil {
			ps.addProblem("pullSecret", `the entry of %q in "auths" has no auth: add it, or remove the entry`, registry)
		}
	}
}
