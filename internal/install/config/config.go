// Package config renders and checks install-config.yaml, the document that
// tells an installer what cluster to make.
//
// It is pure: bytes in, bytes out. Keys that it does not know stay as they were
// written; comments and the order of keys do not.
package config

import (
	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// Params are what a cluster's own object says about its install-config.
type Params struct {
	ClusterName string
	BaseDomain  string
	Platform    hivev1.Platform
	// PullSecret is the content of a .dockerconfigjson; empty leaves the template's.
	PullSecret string
	// SSHKey is a public key; empty leaves the template's.
	SSHKey string
}

// Render fills a template in for one cluster. A nil template stands for a
// default of three control-plane machines and three workers; on the local
// platform, of one control plane and the workers that were asked for.
//
// The cluster's name and base domain are always those of p. So is the platform
// where it is local, or where the template names none. The result is not
// validated. A template that is no YAML mapping is fault.Denied.
func Render(template []byte, p Params) ([]byte, error) {
	doc, err := p.start(template)
	if err != nil {
		return nil, err
	}
	metadata, err := doc.section("metadata")
	if err != nil {
		return nil, err
	}
	metadata["name"] = p.ClusterName
	doc["baseDomain"] = p.BaseDomain
	if doc["platform"] == nil || p.Platform.Local != nil {
		doc["platform"] = platformSection(p.Platform)
	}
	doc.setUnlessEmpty("pullSecret", p.PullSecret)
	doc.setUnlessEmpty("sshKey", p.SSHKey)
	return doc.encode()
}

// WithPullSecret sets the pull secret and leaves everything else as written:
// names too, which a customization may have patched on purpose.
func WithPullSecret(raw []byte, pullSecret string) ([]byte, error) {
	doc, err := parse(raw)
	if err != nil {
		return nil, err
	}
	doc.setUnlessEmpty("pullSecret", pullSecret)
	return doc.encode()
}

func (p Params) start(template []byte) (document, error) {
	if template != nil {
		return parse(template)
	}
	return p.defaults(), nil
}

// defaults leaves out whatever the installer has a default of its own for.
func (p Params) defaults() document {
	masters, workers := int32(3), int32(3)
	if p.Platform.Local != nil {
		masters, workers = 1, localWorkers(p.Platform.Local)
	}
	return document{
		"apiVersion":   "v1",
		"controlPlane": map[string]any{"name": "master", "replicas": masters},
		"compute":      []any{map[string]any{"name": "worker", "replicas": workers}},
	}
}
