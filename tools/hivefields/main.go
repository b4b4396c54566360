// Command hivefields completes the generated CRDs with the fields of Hive that the Go
// types of hotspare preserve as written, such as the sections of spec.platform:
//
//	go run ./tools/hivefields tools/hivefields/fields.txt config/crd
//
// Each line of the file describes a field: its resource, its path, its type, and the
// text that kubectl explain prints about it. The test module test/hivetypes keeps the
// list equal to Hive's public API types.
package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: hivefields FIELDS FOLDER")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "hivefields:", err)
		os.Exit(1)
	}
}

func run(list, folder string) error {
	fields, err := readFields(list)
	if err != nil {
		return err
	}
	names, err := filepath.Glob(filepath.Join(folder, "hive.openshift.io_*.yaml"))
	if err != nil {
		return err
	}
	for _, name := range names {
		_, resource, _ := strings.Cut(strings.TrimSuffix(filepath.Base(name), ".yaml"), "_")
		if err := completeCRD(name, fields[resource]); err != nil {
			return fmt.Errorf("completing %s: %w", name, err)
		}
		delete(fields, resource)
	}
	if len(fields) > 0 {
		return fmt.Errorf("%s has fields of resources without a CRD: %v", list, fields)
	}
	return nil
}

// field is one line of the list.
type field struct {
	path, typ, description string
}

// samePlatform maps a resource to the resource whose spec.platform it shares.
var samePlatform = map[string]string{"clusterpools": "clusterdeployments"}

// readFields reads the list, by resource.
func readFields(name string) (map[string][]field, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was opened for reading only
	out := map[string][]field{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.SplitN(line, " ", 4)
		if len(words) < 3 {
			return nil, fmt.Errorf("%s: %q is not a resource, a path and a type", name, line)
		}
		f := field{path: words[1], typ: words[2]}
		if len(words) == 4 {
			f.description = words[3]
		}
		out[words[0]] = append(out[words[0]], f)
	}
	for to, from := range samePlatform {
		for _, f := range out[from] {
			if strings.HasPrefix(f.path, "spec.platform.") {
				out[to] = append(out[to], f)
			}
		}
	}
	return out, nil
}

// completeCRD adds the fields to the schema of a CRD.
func completeCRD(name string, fields []field) error {
	raw, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var crd map[string]any
	if err := yaml.Unmarshal(raw, &crd); err != nil {
		return err
	}
	version := crd["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	root := version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
	for _, f := range fields {
		if err := addField(root, f); err != nil {
			return fmt.Errorf("%s: %w", f.path, err)
		}
	}
	boundTimes(root)
	allowMapping(root)
	requireRegion(root)
	if raw, err = yaml.Marshal(crd); err != nil {
		return err
	}
	return os.WriteFile(name, append([]byte("---\n"), raw...), 0o644)
}

// addField adds a field. The objects above it become typed: they no longer preserve unknown fields.
func addField(node map[string]any, f field) error {
	for _, steps := range strings.Split(f.path, ".") {
		part := strings.TrimRight(steps, "[]{}")
		if err := setNodeType(node, "object"); err != nil {
			return err
		}
		delete(node, "x-kubernetes-preserve-unknown-fields")
		node = ensureChild(ensureChild(node, "properties"), part)
		for range strings.Count(steps, "[]") {
			if err := setNodeType(node, "array"); err != nil {
				return err
			}
			delete(node, "x-kubernetes-preserve-unknown-fields")
			node = ensureChild(node, "items")
		}
		for range strings.Count(steps, "{}") {
			if err := setNodeType(node, "object"); err != nil {
				return err
			}
			node = ensureChild(node, "additionalProperties")
		}
	}
	if f.typ != "any" {
		delete(node, "x-kubernetes-preserve-unknown-fields")
	}
	written, ok := types[f.typ]
	if !ok {
		return fmt.Errorf("there is no type %q", f.typ)
	}
	for key, value := range written {
		node[key] = value
	}
	if _, ok := node["description"]; !ok && f.description != "" {
		node["description"] = f.description
	}
	return nil
}

// setNodeType sets the type of a node, and returns an error if it has another type.
func setNodeType(node map[string]any, typ string) error {
	if was, ok := node["type"]; ok && was != typ {
		return fmt.Errorf("it is below a %v", was)
	}
	node["type"] = typ
	return nil
}

func ensureChild(node map[string]any, name string) map[string]any {
	c, ok := node[name].(map[string]any)
	if !ok {
		c = map[string]any{}
		node[name] = c
	}
	return c
}

// timePattern matches the times that Go can parse. The format date-time accepts more.
const timePattern = `^.{10}T.{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`

// boundTimes adds the pattern to times of imported types, which only have the format.
func boundTimes(node any) {
	switch n := node.(type) {
	case []any:
		for _, below := range n {
			boundTimes(below)
		}
	case map[string]any:
		if n["type"] == "string" && n["format"] == "date-time" && n["pattern"] == nil {
			n["pattern"] = timePattern
		}
		for _, below := range n {
			boundTimes(below)
		}
	}
}

// allowMapping allows spec.inventory of a ClusterPool to be a list or the enhancement's mapping of
// one. Neither it nor its items then have a type, which the API server permits only together with
// x-kubernetes-preserve-unknown-fields. kubectl explain shows the fields of both forms; admission
// policies deny what the schema cannot reject.
func allowMapping(root map[string]any) {
	spec := ensureChild(ensureChild(root, "properties"), "spec")
	list, ok := ensureChild(spec, "properties")["inventory"].(map[string]any)
	if !ok {
		return
	}
	for _, node := range []map[string]any{list, ensureChild(list, "items")} {
		delete(node, "type")
		node["x-kubernetes-preserve-unknown-fields"] = true
	}
	list["properties"] = map[string]any{"ClusterDeploymentCustomizations": map[string]any{
		"description":                          "ClusterDeploymentCustomizations is the list in the enhancement's form of an inventory. The API server stores the list alone.",
		"items":                                list["items"],
		"x-kubernetes-preserve-unknown-fields": true,
	}}
}

// requiredRegion is a platform for which Hive requires a region, with an example.
type requiredRegion struct{ platform, name, example string }

var requiredRegions = []requiredRegion{
	{"aws", "AWS", "us-east-1"},
	{"azure", "Azure", "eastus"},
	{"gcp", "GCP", "us-central1"},
	{"ibmcloud", "IBM Cloud", "us-south"},
}

// requireRegion adds rules that reject a platform in the CRD's spec without a region. A stored
// object without one stays writable, and so does a cluster of such a pool, because the pool copies
// its platform.
func requireRegion(root map[string]any) {
	spec := ensureChild(ensureChild(root, "properties"), "spec")
	platform, ok := ensureChild(spec, "properties")["platform"].(map[string]any)
	switch {
	case !ok || platform["x-kubernetes-validations"] == nil: // a platform without the rule that requires exactly one
	case ensureChild(spec, "properties")["clusterPoolRef"] != nil:
		requireRegionUnlessPooled(spec)
	default:
		requireRegionOfPlatforms(platform)
	}
}

// requireRegionOfPlatforms adds a rule to each platform, which costs nothing for other platforms.
func requireRegionOfPlatforms(platform map[string]any) {
	for _, r := range requiredRegions {
		node := ensureChild(ensureChild(platform, "properties"), r.platform)
		appendRule(node, map[string]any{
			"rule":            "self.?region.orValue('') != '' || oldSelf.hasValue() && oldSelf.value().?region.orValue('') == ''",
			"optionalOldSelf": true, "reason": "FieldValueRequired", "fieldPath": ".region", "message": r.message(),
		})
	}
}

// requireRegionUnlessPooled adds one rule for all platforms to the spec of a cluster. An API server reads
// the schemas of all fields of an object for each field that a rule reads, and writes clusters often: so
// clusters of pools read one field.
func requireRegionUnlessPooled(spec map[string]any) {
	var missing, messages string
	for i, r := range requiredRegions {
		at := "self.?platform.?" + r.platform
		known := "oldSelf.?platform.?" + r.platform
		if i > 0 {
			missing += " || "
		}
		missing += fmt.Sprintf("%[1]s.hasValue() && %[1]s.?region.orValue('') == '' && !(%[2]s.hasValue() && %[2]s.?region.orValue('') == '')", at, known)
		messages += fmt.Sprintf("has(self.platform.%s) ? '%s: %s' : ", r.platform, r.platform+".region", r.message())
	}
	appendRule(spec, map[string]any{
		"rule": "has(self.clusterPoolRef) || !(" + missing + ")", "optionalOldSelf": true, "reason": "FieldValueRequired", "fieldPath": ".platform",
		"message": "write the region of the cluster", "messageExpression": messages + "'write the region of the cluster'",
	})
}

func (r requiredRegion) message() string {
	return fmt.Sprintf("write the %s region of the cluster, such as %s", r.name, r.example)
}

func appendRule(node, rule map[string]any) {
	rules, _ := node["x-kubernetes-validations"].([]any)
	node["x-kubernetes-validations"] = append(rules, rule)
}

// types maps the type names of the list to schemas.
var types = map[string]map[string]any{
	"any":         {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
	"object":      {"type": "object"},
	"string":      {"type": "string"},
	"boolean":     {"type": "boolean"},
	"int32":       {"type": "integer", "format": "int32"},
	"int64":       {"type": "integer", "format": "int64"},
	"bytes":       {"type": "string", "pattern": `^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$`},
	"intOrString": {"x-kubernetes-int-or-string": true},
	"quantity": {
		"x-kubernetes-int-or-string": true,
		"pattern":                    `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`,
	},
	"time":     {"type": "string", "nullable": true, "pattern": timePattern},
	"duration": {"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`},
}
