package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"

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

func (d document) encode() ([]byte, error) {
	asJSON, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("encoding install-config: %w", err)
	}
	return yaml.JSONToYAML(asJSON)
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
