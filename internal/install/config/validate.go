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

// Validate checks what every installer needs. Its error is fault.Denied and
// tells of every problem, each with its path and a remedy. It quotes names and
// counts, never secrets.
func Validate(raw []byte) error {
	doc, err := parse(raw)
	if err != nil {
		return err
	}
	var found problems
	found.checkNames(doc)
	found.checkPlatform(doc["platform"])
	found.checkMachines("controlPlane", doc["controlPlane"])
	found.checkCompute(doc["compute"])
	return found.denied()
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
	if domain, ok := ps.text("baseDomain", doc["baseDomain"]); ok && len(validation.IsDNS1123Subdomain(domain)) > 0 {
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
	if len(names) != 1 {
		ps.add("platform", "has %d keys %q, want exactly one", len(names), names)
		return
	}
	if _, ok := platforms[names[0]].(map[string]any); !ok {
		ps.add("platform."+names[0], "is %s, want a mapping: write {} if there is nothing to set", kindOf(platforms[names[0]]))
	}
}

func (ps *problems) checkCompute(v any) {
	pools, ok := v.([]any)
	if v != nil && !ok {
		ps.add("compute", "is %s, want a list", kindOf(v))
	}
	for i, pool := range pools {
		ps.checkMachines(fmt.Sprintf("compute[%d]", i), pool)
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
