// Package config renders and checks install-config.yaml, the document that describes to an
// installer the cluster to create.
//
// It is pure: bytes in, bytes out. It keeps unknown keys, but neither comments nor the order of
// keys.
//
// A document is created in two steps. Render creates the part that may be stored with the cluster;
// FillFromSecrets adds the content of the cluster's Secrets just before an installer starts.
// Validate checks the content that is there, at any time; ValidateComplete also checks, at the end,
// that nothing is missing.
package config

import (
	"fmt"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// Params contains what a cluster's own object specifies about its install-config, and the content
// of the Secrets that it names.
type Params struct {
	ClusterName string
	BaseDomain  string
	Platform    hivev1.Platform
	// PullSecret is the content of a .dockerconfigjson; empty keeps the template's.
	PullSecret string
	// GlobalPullSecret is a pull secret for all clusters, in addition to their own or the template's.
	// FillFromSecrets adds it, so that it is stored nowhere else.
	GlobalPullSecret string
	// SSHKey is a public key; empty keeps the template's.
	SSHKey string
	// Credentials is the data of the platform's credentials Secret. It is added to the document only
	// where the platform's installer reads it there.
	Credentials map[string][]byte
}

// Render fills in a template for one cluster. A nil template selects a default of three
// control-plane machines and three workers; on the local platform, of one control plane and the
// requested number of workers; on the exec platform, of no machines, since a recipe defines its own.
//
// The cluster's name and base domain always come from p. The platform does too where it is local,
// exec or capi, or where the template names none. The result is not validated, and rendering it again
// changes nothing. A template that is not a YAML mapping is fault.Denied.
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
	if doc["platform"] == nil || hasOwnInstaller(p.Platform) {
		doc["platform"] = platformSection(p.Platform)
	}
	doc.setUnlessEmpty("sshKey", p.SSHKey)
	return p.fillAndEncode(doc)
}

// FillFromSecrets adds the content of the cluster's Secrets. The pull secret replaces the
// document's; everything else is only set where a value is absent or empty: credentials, the SSH
// key, and the API version of a document without one. All other values stay as written, including
// names, which a customization may have patched on purpose. Credentials that cannot be read are
// fault.Denied and are not quoted.
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

// apiVersions are the versions that openshift-install reads, the latest first.
var apiVersions = []string{"v1", "v1beta4", "v1beta3"}

// defaultDocument omits everything for which the installer of each version has its own default:
// machine types and the kind of network. It contains the networks, so that a patch can change one
// of them.
func (p Params) defaultDocument() document {
	if p.Platform.Exec != nil {
		return document{"apiVersion": apiVersions[0]}
	}
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
	if name == "" || name == "local" || name == "capi" {
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

// defaultNetworking returns openshift-install's defaults. Where the addresses of a cluster's API
// are allocated in advance, its machines are in an existing network, which only the author of the
// addresses knows.
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
