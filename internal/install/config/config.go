// Package config renders and checks install-config.yaml, the document that
// tells an installer what cluster to make.
//
// It is pure: bytes in, bytes out. Keys that it does not know stay as they were
// written; comments and the order of keys do not.
//
// A document is made in two steps. Render makes what may be stored beside the
// cluster; Fill adds what the cluster's Secrets hold, just before an installer
// starts. Validate judges what is written, at any time; Complete also what is
// missing, at the end.
package config

import (
	"fmt"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// Params are what a cluster's own object says about its install-config, and
// what the Secrets hold that it names.
type Params struct {
	ClusterName string
	BaseDomain  string
	Platform    hivev1.Platform
	// PullSecret is the content of a .dockerconfigjson; empty leaves the template's.
	PullSecret string
	// GlobalPullSecret is one that all clusters get, beside their own or the template's;
	// Fill adds it, so that it is stored nowhere else.
	GlobalPullSecret string
	// SSHKey is a public key; empty leaves the template's.
	SSHKey string
	// Credentials is the data of the platform's credentials Secret. It goes into the
	// document only where the platform's installer reads it there.
	Credentials map[string][]byte
}

// Render fills a template in for one cluster. A nil template stands for a
// default of three control-plane machines and three workers; on the local
// platform, of one control plane and the workers that were asked for.
//
// The cluster's name and base domain are always those of p. So is the platform
// where it is local, or where the template names none. The result is not
// validated, and rendering it again changes nothing. A template that is no YAML
// mapping is fault.Denied.
func Render(template []byte, p Params) ([]byte, error) {
	doc, err := p.startDocument(template)
	if err != nil {
		return nil, err
	}
	metadata, err := doc.ensureSection("metadata")
	if err != nil {
		return nil, err
	}
	metadata["name"] = p.ClusterName
	doc["baseDomain"] = p.BaseDomain
	if doc["platform"] == nil || p.Platform.Local != nil {
		doc["platform"] = platformSection(p.Platform)
	}
	doc.setUnlessEmpty("sshKey", p.SSHKey)
	return p.fillAndEncode(doc)
}

// FillFromSecrets adds what the cluster's Secrets hold. The pull secret replaces the
// document's, the rest only takes the place of what is absent or empty:
// credentials, the SSH key, and the API version of a document without one. All
// else stays as written; names too, which a customization may have patched on
// purpose. Credentials that cannot be read are fault.Denied, and not quoted.
func FillFromSecrets(raw []byte, p Params) ([]byte, error) {
	doc, err := parseDocument(raw)
	if err != nil {
		return nil, err
	}
	if isEmptyValue(doc["apiVersion"]) {
		doc["apiVersion"] = apiVersions[0]
	}
	if isEmptyValue(doc["sshKey"]) {
		doc.setUnlessEmpty("sshKey", p.SSHKey)
	}
	if own, isText := doc["pullSecret"].(string); p.PullSecret == "" && (isText || isEmptyValue(doc["pullSecret"])) {
		p.PullSecret = own
	}
	if p.PullSecret, err = MergePullSecrets(p.GlobalPullSecret, p.PullSecret); err != nil {
		return nil, fmt.Errorf("global pull secret: %w", err)
	}
	return p.fillAndEncode(doc)
}

func (p Params) fillAndEncode(doc document) ([]byte, error) {
	doc.setUnlessEmpty("pullSecret", p.PullSecret)
	if err := p.fillCredentials(doc); err != nil {
		return nil, err
	}
	out, ok := doc.encodeYAML()
	if !ok {
		return nil, newUnwritableError("install-config: it")
	}
	return out, nil
}

func (p Params) startDocument(template []byte) (document, error) {
	if template != nil {
		return parseDocument(template)
	}
	return p.defaultDocument(), nil
}

// apiVersions are those that openshift-install reads, the latest first.
var apiVersions = []string{"v1", "v1beta4", "v1beta3"}

// defaultDocument leaves out whatever the installer of each version has a default of
// its own for: types of machines, and the kind of network. Networks are written,
// so that a patch can change one of them.
func (p Params) defaultDocument() document {
	masters, workers := int32(3), int32(3)
	if p.Platform.Local != nil {
		masters, workers = 1, localWorkers(p.Platform.Local)
	}
	doc := document{
		"apiVersion":   apiVersions[0],
		"controlPlane": map[string]any{"name": "master", "replicas": masters},
		"compute":      []any{map[string]any{"name": "worker", "replicas": workers}},
	}
	name := p.Platform.Name()
	if name == "" || name == "local" {
		return doc
	}
	doc["networking"] = defaultNetworking(name)
	switch {
	case manualCredentials[name]:
		doc["credentialsMode"] = "Manual"
	case isPrivateCluster(p.Platform):
		doc["publish"] = "Internal"
	}
	return doc
}

// defaultNetworking is what openshift-install has as default. Where the addresses of a
// cluster's API are prepared, its machines are in a network that exists, and only
// who wrote the addresses knows which.
func defaultNetworking(platform string) map[string]any {
	out := map[string]any{
		"clusterNetwork": []any{map[string]any{"cidr": "10.128.0.0/14", "hostPrefix": 23}},
		"serviceNetwork": []any{"172.30.0.0/16"},
	}
	if !preparedAddresses[platform] {
		out["machineNetwork"] = []any{map[string]any{"cidr": "10.0.0.0/16"}}
	}
	return out
}
