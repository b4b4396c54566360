package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"hotspare.io/hotspare/internal/fault"
)

// Validate checks what is written: that it is of the right kind, well formed and
// free of contradictions. Of what may be missing it wants only the names and one
// platform: Complete wants the rest. It accepts keys that it does not know, and
// whatever openshift-install accepts, except a name with dots.
//
// Its error is fault.Denied and tells of every problem, each with its path, what
// stands there and a remedy. It quotes names, numbers and addresses, never secrets.
func Validate(raw []byte) error {
	doc, err := parse(raw)
	if err != nil {
		return err
	}
	return validate(doc).denied()
}

func validate(doc document) *problems {
	var found problems
	found.checkNames(doc)
	found.checkPlatform(doc["platform"])
	found.checkMachines("controlPlane", doc["controlPlane"])
	found.checkControlPlane(doc)
	found.checkCompute(doc["compute"])
	found.checkShapes(doc)
	found.checkNetworks(doc)
	found.checkAddresses(doc)
	found.checkSources(doc)
	found.checkTexts(doc)
	return &found
}

// problems are sentences that each begin with a path.
type problems []string

// denied is all of them as one fault.Denied, or nil.
func (ps problems) denied() error {
	if len(ps) == 0 {
		return nil
	}
	return fault.Denying("%s", strings.Join(ps, "; "))
}

func (ps *problems) add(path, format string, args ...any) {
	*ps = append(*ps, path+": "+fmt.Sprintf(format, args...))
}

func (ps *problems) checkNames(doc document) {
	metadata, ok := doc["metadata"].(map[string]any)
	if !ok {
		ps.add("metadata", "is %s, want a mapping with the key name", kindOf(doc["metadata"]))
	} else if name, ok := ps.text("metadata.name", metadata["name"]); ok && len(validation.IsDNS1123Label(name)) > 0 {
		ps.add("metadata.name", "%q is not a DNS label: use at most 63 lower-case letters, digits and -, with a letter or digit at both ends", name)
	}
	if domain, ok := ps.text("baseDomain", doc["baseDomain"]); ok && len(validation.IsDNS1123Subdomain(strings.TrimSuffix(domain, "."))) > 0 {
		ps.add("baseDomain", "%q is not a DNS domain: use lower-case labels with dots between them, such as ci.example.com", domain)
	}
}

// text returns v if it is a text with something in it, else it adds a problem.
func (ps *problems) text(path string, v any) (string, bool) {
	s, ok := v.(string)
	switch {
	case v == nil || ok && s == "":
		ps.add(path, "is missing: set it")
		return "", false
	case !ok:
		ps.add(path, "is %s, want a text: put it in quotes", kindOf(v))
	}
	return s, ok
}

func (ps *problems) checkPlatform(v any) {
	platforms, ok := v.(map[string]any)
	if !ok {
		ps.add("platform", "is %s, want a mapping with one key, such as aws or local", kindOf(v))
		return
	}
	names := slices.Sorted(maps.Keys(platforms))
	if len(names) > 1 { // a null beside another is as if absent
		names = slices.DeleteFunc(names, func(name string) bool { return platforms[name] == nil })
	}
	if len(names) != 1 {
		ps.add("platform", "has %d keys %q, want exactly one", len(names), names)
		return
	}
	name := names[0]
	if _, ok := platforms[name].(map[string]any); !ok {
		ps.add("platform."+name, "is %s, want a mapping: write {} if there is nothing to set", kindOf(platforms[name]))
	}
	if !slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, name) }) {
		ps.add("platform."+name, "is no platform: use %s", either(known))
	}
}

// known are the platforms of openshift-install, of any version, and local.
var known = []string{
	"alibabacloud", "aws", "azure", "baremetal", "external", "gcp", "ibmcloud", "libvirt", "local", "none", "nutanix",
	"openstack", "ovirt", "powervc", "powervs", "vsphere",
}

// checkControlPlane: its name is fixed, and there is one machine at least.
func (ps *problems) checkControlPlane(doc document) {
	group, _ := doc["controlPlane"].(map[string]any)
	if name, ok := group["name"].(string); ok && name != "" && name != "master" {
		ps.add("controlPlane.name", "%q is none: use master", name)
	}
	if n, ok := group["replicas"].(json.Number); ok && n.String() == "0" {
		ps.add("controlPlane.replicas", "0 is too few: use 3, or 1 for a cluster of a single node")
	}
}

func (ps *problems) checkCompute(v any) {
	pools, ok := v.([]any)
	if v != nil && !ok {
		ps.add("compute", "is %s, want a list", kindOf(v))
	}
	seen := map[string]bool{}
	for i, pool := range pools {
		path := fmt.Sprintf("compute[%d]", i)
		ps.checkMachines(path, pool)
		group, _ := pool.(map[string]any)
		name, _ := group["name"].(string)
		switch {
		case name == "":
		case name != "worker" && name != "edge":
			ps.add(path+".name", "%q is none: use worker, or edge for machines in local zones of AWS; other machines are added when the cluster runs", name)
		case seen[name]:
			ps.add(path+".name", "%q is there already: put its machines together", name)
		}
		seen[name] = true
	}
}

// checkMachines checks one group of machines, which may be absent.
func (ps *problems) checkMachines(path string, v any) {
	if v == nil {
		return
	}
	group, ok := v.(map[string]any)
	if !ok {
		ps.add(path, "is %s, want a mapping", kindOf(v))
		return
	}
	replicas, given := group["replicas"]
	if !given || replicas == nil {
		return
	}
	number, ok := replicas.(json.Number)
	if !ok {
		ps.add(path+".replicas", "is %s, want a whole number, 0 or more", kindOf(replicas))
		return
	}
	if n, err := number.Int64(); err != nil || n < 0 {
		ps.add(path+".replicas", "%s is not a whole number, 0 or more", number)
	}
}
