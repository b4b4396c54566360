package pool

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// inventoryMark is appended before hashing if the pool has an inventory: adding or removing the
// inventory makes clusters stale, editing it does not (enhancement: inventory).
const inventoryMark = "hasInventory"

// Version returns the pool's version: 16 hexadecimal digits, a hash of the fields of the spec that
// shape a cluster: platform, baseDomain, imageSetRef, installConfigSecretTemplateRef and
// customizationRef.
//
// It hashes canonical JSON of the values that are set, so that a new field in the API, or another
// order of keys, does not change any pool's version (in Hive an upgrade could replace every
// unclaimed cluster). The tests have golden values.
func Version(spec hivev1.ClusterPoolSpec) (string, error) {
	shape := map[string]any{
		"platform":                       spec.Platform,
		"baseDomain":                     spec.BaseDomain,
		"imageSetRef":                    spec.ImageSetRef,
		"installConfigSecretTemplateRef": spec.InstallConfigSecretTemplateRef,
		"customizationRef":               spec.CustomizationRef,
	}
	raw, err := canonicalJSON(shape)
	if err != nil {
		return "", fmt.Errorf("hashing the pool's spec: %w", err)
	}
	if len(spec.Inventory) > 0 {
		raw = append(raw, inventoryMark...)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8]), nil
}

// canonicalJSON returns JSON with sorted keys and without nulls and empty values.
func canonicalJSON(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var tree any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&tree); err != nil {
		return nil, err
	}
	return json.Marshal(pruneEmptyValues(tree, 0))
}

// platformDepth is the depth of a platform's name: {"platform": {"aws": {}}} is meaningful even if
// the platform's settings are empty.
const platformDepth = 2

func pruneEmptyValues(v any, depth int) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	for k, child := range m {
		child = pruneEmptyValues(child, depth+1)
		if isEmptyValue(child) && !(depth+1 == platformDepth && child != nil) {
			delete(m, k)
			continue
		}
		m[k] = child
	}
	return m
}

func isEmptyValue(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}
