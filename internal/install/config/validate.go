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

// Validate checks the content that is there: that it has the right kinds, is well formed and free
// of contradictions. It requires only the names and one platform; ValidateComplete requires the
// rest. It accepts unknown keys, and whatever openshift-install accepts, except a name with dots.
//
// Its error is fault.Denied and reports every problem, each with its path, the value there and a
// remedy. It quotes names, numbers and addresses, never secrets.
func Validate(raw []byte) error {
	doc, err := parseDocument(raw)
	if err != nil {
		return err
	}
	return collectProblems(doc).deniedError()
}

func collectProblems(doc document) *problems {
	var found problems
	found.checkClusterNames(doc)
	found.checkPlatform(doc["platform"])
	found.checkMachines("controlPlane", doc["controlPlane"])
	found.checkControlPlane(doc)
	found.checkCompute(doc["compute"])
	found.checkValueKinds(doc)
	found.checkNetworks(doc)
	found.checkAddresses(doc)
	found.checkRenamedKeys(doc)
	found.checkPublicTexts(doc)
	return &found
}

// problems are sentences that each begin with a path.
type problems []string

// deniedError returns all problems as one fault.Denied, or nil.
func (ps problems) deniedError() error {
	if len(ps) == 0 {
		return nil
	}
	return fault.NewDenied("%s", strings.Join(ps, "; "))
}

func (ps *problems) addProblem(path, format string, args ...any) {
	*ps = append(*ps, path+": "+fmt.Sprintf(format, args...))
}

func (ps *problems) checkClusterNames(doc document) {
	metadata, ok := doc["metadata"].(map[string]any)
	if !ok {
		ps.addProblem("metadata", "is %s, want a mapping with the key name", describeKind(doc["metadata"]))
	} else if name, ok := ps.requireNonEmptyText("metadata.name", metadata["name"]); ok && len(validation.IsDNS1123Label(name)) > 0 {
		ps.addProblem("metadata.name", "%q is not a DNS label: use at most 63 lower-case letters, digits and -, with a letter or digit at both ends", name)
	}
	if domain, ok := ps.requireNonEmptyText("baseDomain", doc["baseDomain"]); ok && len(validation.IsDNS1123Subdomain(strings.TrimSuffix(domain, "."))) > 0 {
		ps.addProblem("baseDomain", "%q is not a DNS domain: use lower-case labels with dots between them, such as ci.example.com", domain)
	}
}

// requireNonEmptyText returns v if it is a non-empty text; otherwise it adds a problem.
func (ps *problems) requireNonEmptyText(path string, v any) (string, bool) {
	s, ok := v.(string)
	switch {
	case v == nil || ok && s == "":
		ps.addProblem(path, "is missing: set it")
		return "", false
	case !ok:
		ps.addProblem(path, "is %s, want a string: put it in quotes", describeKind(v))
	}
	return s, ok
}

func (ps *problems) checkPlatform(v any) {
	platforms, ok := v.(map[string]any)
	if !ok {
		ps.addProblem("platform", "is %s, want a mapping with one key, such as aws or local", describeKind(v))
		return
	}
	names := slices.Sorted(maps.Keys(platforms))
	if len(names) > 1 { // a null in addition to another platform counts as absent
		names = slices.DeleteFunc(names, func(name string) bool { return platforms[name] == nil })
	}
	if len(names) != 1 {
		ps.addProblem("platform", "has %d keys %q, want exactly one", len(names), names)
		return
	}
	name := names[0]
	if _, ok := platforms[name].(map[string]any); !ok {
		ps.addProblem("platform."+name, "is %s, want a mapping: use {} to set nothing", describeKind(platforms[name]))
	}
	if !slices.ContainsFunc(knownPlatforms, func(k string) bool { return strings.EqualFold(k, name) }) {
		ps.addProblem("platform."+name, "is not a platform: use %s", joinAlternatives(knownPlatforms))
	}
}

// knownPlatforms are the platforms of openshift-install, of any version, and those of hotspare.
var knownPlatforms = []string{
	"alibabacloud", "aws", "azure", "baremetal", "capi", "exec", "external", "gcp", "ibmcloud", "libvirt", "local", "none", "nutanix",
	"openstack", "ovirt", "powervc", "powervs", "vsphere",
}

// checkControlPlane checks that the control plane has its fixed name and at least one machine.
func (ps *problems) checkControlPlane(doc document) {
	group, _ := doc["controlPlane"].(map[string]any)
	if name, ok := group["name"].(string); ok && name != "" && name != "master" {
		ps.addProblem("controlPlane.name", "%q is not allowed: use master", name)
	}
	if n, ok := group["replicas"].(json.Number); ok && n.String() == "0" {
		ps.addProblem("controlPlane.replicas", "0 is too few: use 3, or 1 for a cluster of a single node")
	}
}

func (ps *problems) checkCompute(v any) {
	pools, ok := v.([]any)
	if v != nil && !ok {
		ps.addProblem("compute", "is %s, want a list", describeKind(v))
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
			ps.addProblem(path+".name", "%q is not allowed: use worker, or edge for machines in AWS Local Zones; add other machines after the install", name)
		case seen[name]:
			ps.addProblem(path+".name", "%q is already in the list: merge the two entries", name)
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
		ps.addProblem(path, "is %s, want a mapping", describeKind(v))
		return
	}
	replicas, given := group["replicas"]
	if !given || replicas == nil {
		return
	}
	number, ok := replicas.(json.Number)
	if !ok {
		ps.addProblem(path+".replicas", "is %s, want a whole number, 0 or more", describeKind(replicas))
		return
	}
	if n, err := number.Int64(); err != nil || n < 0 {
		ps.addProblem(path+".replicas", "%s is not a whole number, 0 or more", number)
	}
}
