package crd

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// This file repeats what the policies of config/admission/inventory.yaml deny, with the same
// messages and, as far as possible, in the same order: the API server reports only the first fault.

const customizationsKey = "ClusterDeploymentCustomizations"

// validateInventory validates the inventory of a pool's spec, in either form.
func validateInventory(spec map[string]any) field.ErrorList {
	at := field.NewPath("spec", "inventory")
	given := spec["inventory"]
	if given == nil {
		return nil
	}
	list := given
	if m, isMap := given.(map[string]any); isMap {
		if unknown := listUnknownKeys(m, customizationsKey); len(unknown) > 0 {
			return invalidFieldList(at, "a mapping can only have the key ClusterDeploymentCustomizations, not \"%s\": write a list, such as [{name: foo}]", unknown[0])
		}
		list = m[customizationsKey]
	}
	entries, isList := list.([]any)
	if _, isMap := given.(map[string]any); isMap && !isList && list != nil {
		return invalidFieldList(at, "ClusterDeploymentCustomizations is not a list: write one, such as [{name: foo}]")
	}
	if !isList && list != nil {
		return invalidFieldList(at, "%s is neither a list nor a mapping: write a list of ClusterDeploymentCustomizations, such as [{name: foo}]", formatFieldValue(given))
	}
	if len(entries) == 0 {
		return invalidFieldList(at, "it is empty, so the pool could not create clusters: list ClusterDeploymentCustomizations, such as [{name: foo}], or remove it")
	}
	var out field.ErrorList
	for _, wrong := range []func(*field.Path, any) field.ErrorList{checkEntryShape, checkEntryKeys, checkEntryKind, checkEntryName, checkEntryNameType} {
		for i, e := range entries {
			out = append(out, wrong(at.Index(i), e)...)
		}
	}
	return append(out, checkEntryNames(at, entries)...)
}

func checkEntryShape(at *field.Path, entry any) field.ErrorList {
	if _, ok := entry.(map[string]any); !ok {
		return invalidFieldList(at, "it is not a mapping: write {name: foo}")
	}
	return nil
}

func checkEntryKeys(at *field.Path, entry any) field.ErrorList {
	e, _ := entry.(map[string]any)
	if unknown := listUnknownKeys(e, "name", "kind"); len(unknown) > 0 {
		return invalidFieldList(at, "an entry can only have a name and a kind, and is in the namespace of its pool: remove \"%s\"", unknown[0])
	}
	return nil
}

func checkEntryKind(at *field.Path, entry any) field.ErrorList {
	e, _ := entry.(map[string]any)
	switch e["kind"] {
	case nil, "", "ClusterDeploymentCustomization":
		return nil
	}
	return invalidFieldList(at.Child("kind"), "%s is not a kind that an inventory can have: remove it, or write ClusterDeploymentCustomization", formatFieldValue(e["kind"]))
}

func checkEntryName(at *field.Path, entry any) field.ErrorList {
	if e, ok := entry.(map[string]any); ok && (e["name"] == nil || e["name"] == "") {
		return invalidFieldList(at.Child("name"), "it is missing: write the name of a ClusterDeploymentCustomization")
	}
	return nil
}

func checkEntryNameType(at *field.Path, entry any) field.ErrorList {
	e, _ := entry.(map[string]any)
	if _, isText := e["name"].(string); !isText && e["name"] != nil {
		return invalidFieldList(at.Child("name"), "%s is not a string: write the name of a ClusterDeploymentCustomization, in quotes", formatFieldValue(e["name"]))
	}
	return nil
}

var objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// maxComparisons bounds the comparisons that an API server makes between names: the number of names
// times their length.
const maxComparisons = 4_000_000

// checkEntryNames checks the names that are set.
func checkEntryNames(at *field.Path, entries []any) field.ErrorList {
	var out field.ErrorList
	seen := map[string]int{}
	names, characters := 0, 0
	for _, entry := range entries {
		e, _ := entry.(map[string]any)
		name, _ := e["name"].(string)
		if name == "" {
			continue
		}
		seen[name]++
		names++
		characters += utf8.RuneCountInString(name)
		if len(name) > 253 || !objectName.MatchString(name) {
			out = append(out, invalidFieldList(at, `"%s" is not a valid name of a ClusterDeploymentCustomization: use lower-case letters, digits, "-" and "."`, name)...)
		}
	}
	if names*(10*names+characters) > maxComparisons {
		out = append(out, invalidFieldList(at, "it lists %d names of %d characters, more than the API server can compare: "+
			"list fewer, and create a second pool for the others", names, characters)...)
	}
	for _, entry := range entries {
		e, _ := entry.(map[string]any)
		name, _ := e["name"].(string)
		if name != "" && seen[name] > 1 {
			seen[name] = 0
			out = append(out, invalidFieldList(at, `"%s" is listed twice, but only one cluster at a time can use it: list it once`, name)...)
		}
	}
	return out
}

// listUnknownKeys returns the keys of a mapping that are not known, sorted.
func listUnknownKeys(m map[string]any, known ...string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(m)), func(k string) bool { return slices.Contains(known, k) })
}

// formatFieldValue formats a value on one line.
func formatFieldValue(v any) string {
	switch v := v.(type) {
	case string:
		return `"` + v + `"`
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case bool, int64:
		return fmt.Sprint(v)
	default:
		return "it"
	}
}

func invalidFieldList(at *field.Path, format string, args ...any) field.ErrorList {
	return field.ErrorList{field.Invalid(at, field.OmitValueType{}, fmt.Sprintf(format, args...))}
}
