package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"hotspare.io/hotspare/internal/fault"
)

// document is an install-config as a tree. Numbers are json.Number, so that they are written back
// digit for digit.
type document map[string]any

// lineErrorPattern matches the part of a YAML error that is safe to show: the other parts can quote
// the text, which contains secrets.
var lineErrorPattern = regexp.MustCompile(`line \d+: [^\n]*`)

func parseDocument(raw []byte) (document, error) {
	asJSON, err := yaml.YAMLToJSONStrict(raw)
	if err != nil {
		where := lineErrorPattern.FindString(err.Error())
		if where == "" {
			where = "it cannot be parsed"
		}
		return nil, fault.NewDenied("install-config is not valid YAML: %s", where)
	}
	var tree any
	decoder := json.NewDecoder(bytes.NewReader(asJSON))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		return nil, fault.NewDenied("install-config is not valid YAML: it cannot be parsed")
	}
	mapping, ok := tree.(map[string]any)
	if !ok {
		return nil, fault.NewDenied("install-config is %s, want a mapping with keys such as baseDomain and platform", describeKind(tree))
	}
	return mapping, nil
}

// encodeYAML returns the document as YAML that decodes to the same document; false if that is
// impossible. JSON has values that YAML cannot represent: a key << merges, a number such as 1e400
// is infinite.
func (d document) encodeYAML() ([]byte, bool) {
	raw, err := json.Marshal(d)
	if err != nil {
		return nil, false
	}
	before, err := decodeJSONValue(raw)
	if err != nil {
		return nil, false
	}
	out, err := yaml.JSONToYAML(raw)
	if err != nil {
		return nil, false
	}
	back, err := parseDocument(out)
	return out, err == nil && equalJSON(before, map[string]any(back))
}

// newUnwritableError returns an error that says that a value cannot be written as YAML. It quotes
// nothing.
func newUnwritableError(what string) error {
	return fault.NewDenied("%s cannot be written as YAML: use no key << and no numbers of more than 64 bits in values", what)
}

// visitValuesAt visits the values at a path such as compute[].platform, with the path of each:
// compute[0].platform. It skips values that are empty, or that cannot be reached because a parent
// has another kind.
func (d document) visitValuesAt(path string, visit func(path string, v any)) {
	visitValuesBelow(map[string]any(d), "", strings.Split(path, "."), visit)
}

func visitValuesBelow(v any, at string, rest []string, visit func(string, any)) {
	if len(rest) == 0 {
		if v != nil {
			visit(at, v)
		}
		return
	}
	key, isList := strings.CutSuffix(rest[0], "[]")
	mapping, _ := v.(map[string]any)
	below := key
	if at != "" {
		below = at + "." + key
	}
	if !isList {
		visitValuesBelow(mapping[key], below, rest[1:], visit)
		return
	}
	for i, item := range toList(mapping[key]) {
		visitValuesBelow(item, fmt.Sprintf("%s[%d]", below, i), rest[1:], visit)
	}
}

// valueAt returns the value at a path without lists; nil if there is none.
func (d document) valueAt(path string) any {
	var found any
	d.visitValuesAt(path, func(_ string, v any) { found = v })
	return found
}

// ensureSection returns the mapping at key. It creates the mapping if it is absent.
func (d document) ensureSection(key string) (map[string]any, error) {
	if d[key] == nil {
		d[key] = map[string]any{}
	}
	mapping, ok := d[key].(map[string]any)
	if !ok {
		return nil, fault.NewDenied("%s: is %s, want a mapping", key, describeKind(d[key]))
	}
	return mapping, nil
}

func (d document) setUnlessEmpty(key, value string) {
	if value != "" {
		d[key] = value
	}
}

// describeKind names the kind of a value, for people.
func describeKind(v any) string {
	switch v.(type) {
	case nil:
		return "empty"
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	case string:
		return "a string"
	case json.Number:
		return "a number"
	default:
		return "a boolean"
	}
}
