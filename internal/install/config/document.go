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

// document is an install-config as a tree. Numbers are json.Number, so that
// they are written back digit for digit.
type document map[string]any

// atLine is the part of a YAML error that is safe to show: others can quote
// the text, which holds secrets.
var atLine = regexp.MustCompile(`line \d+: [^\n]*`)

func parse(raw []byte) (document, error) {
	asJSON, err := yaml.YAMLToJSONStrict(raw)
	if err != nil {
		where := atLine.FindString(err.Error())
		if where == "" {
			where = "nothing in it can be read"
		}
		return nil, fault.Denying("install-config is not valid YAML: %s", where)
	}
	var tree any
	decoder := json.NewDecoder(bytes.NewReader(asJSON))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		return nil, fault.Denying("install-config is not valid YAML: nothing in it can be read")
	}
	mapping, ok := tree.(map[string]any)
	if !ok {
		return nil, fault.Denying("install-config is %s, want a mapping with keys such as baseDomain and platform", kindOf(tree))
	}
	return mapping, nil
}

// written is the document as YAML that is read as the same document; false if
// there is none. JSON has values without one: a key << merges, a number such as
// 1e400 is infinite.
func (d document) written() ([]byte, bool) {
	raw, err := json.Marshal(d)
	if err != nil {
		return nil, false
	}
	before, err := decode(raw)
	if err != nil {
		return nil, false
	}
	out, err := yaml.JSONToYAML(raw)
	if err != nil {
		return nil, false
	}
	back, err := parse(out)
	return out, err == nil && same(before, map[string]any(back))
}

// errUnwritten says that something has no YAML. It quotes nothing.
func errUnwritten(what string) error {
	return fault.Denying("%s cannot be written as YAML: use no key << and no numbers beyond 64 bits in values", what)
}

// each visits whatever stands at a path such as compute[].platform, with the
// path of the one: compute[0].platform. What is empty, or cannot be reached
// because something above it is of another kind, is not visited.
func (d document) each(path string, visit func(path string, v any)) {
	descend(map[string]any(d), "", strings.Split(path, "."), visit)
}

func descend(v any, at string, rest []string, visit func(string, any)) {
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
		descend(mapping[key], below, rest[1:], visit)
		return
	}
	for i, item := range list(mapping[key]) {
		descend(item, fmt.Sprintf("%s[%d]", below, i), rest[1:], visit)
	}
}

// at is what stands at a path without lists; nil if nothing does.
func (d document) at(path string) any {
	var found any
	d.each(path, func(_ string, v any) { found = v })
	return found
}

// section returns the mapping at key, making it if it is absent.
func (d document) section(key string) (map[string]any, error) {
	if d[key] == nil {
		d[key] = map[string]any{}
	}
	mapping, ok := d[key].(map[string]any)
	if !ok {
		return nil, fault.Denying("%s: is %s, want a mapping", key, kindOf(d[key]))
	}
	return mapping, nil
}

func (d document) setUnlessEmpty(key, value string) {
	if value != "" {
		d[key] = value
	}
}

// kindOf names what stands in a document, for people.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "empty"
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	case string:
		return "a text"
	case json.Number:
		return "a number"
	default:
		return "a boolean"
	}
}
