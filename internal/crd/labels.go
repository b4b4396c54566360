package crd

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Patterns of label keys, label values and annotation keys.
var (
	labelKey      = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)
	labelValue    = regexp.MustCompile(`^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$`)
	annotationKey = regexp.MustCompile(`^([A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?([.][A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)
)

// longestKey is the maximum length of a key: a DNS name, a slash and a name.
const longestKey = 253 + 1 + 63

// findPoolViolations returns what the admission policies deny about a pool.
func findPoolViolations(object, spec map[string]any) field.ErrorList {
	out := validateInventory(spec)
	name, _, _ := unstructured.NestedString(object, "metadata", "name")
	if strings.Contains(name, ".") {
		out = append(out, invalidFieldList(field.NewPath("metadata", "name"),
			`"%s" contains a dot, but becomes part of the names of namespaces, which cannot contain dots: write "-" instead`, name)...)
	}
	return append(out, validateClusterLabels(filterStringValues(spec["labels"]), filterStringValues(spec["annotations"]))...)
}

// validateClusterLabels returns the first key and the first value in a pool's spec.labels and
// spec.annotations that its clusters cannot have. It applies the same checks as the policy
// clusterpool-labels.hotspare.io.
func validateClusterLabels(labels, annotations map[string]string) field.ErrorList {
	var out field.ErrorList
	at := field.NewPath("spec", "labels")
	if k, found := firstInvalidKey(labels, func(k, _ string) bool { return len([]rune(k)) > longestKey || !labelKey.MatchString(k) }); found {
		out = append(out, invalidFieldList(at, `"%s" is not a valid label key: use at most 63 letters, digits, "-", "_" and ".", optionally after a DNS name and "/"`, k)...)
	}
	if k, found := firstInvalidKey(labels, func(_, v string) bool { return !labelValue.MatchString(v) }); found {
		out = append(out, invalidFieldList(field.NewPath(`spec.labels["`+k+`"]`),
			`"%s" is not a valid label value: use at most 63 letters, digits, "-", "_" and "."`, labels[k])...)
	}
	if k, found := firstInvalidKey(annotations, func(k, _ string) bool { return len([]rune(k)) > longestKey || !annotationKey.MatchString(k) }); found {
		out = append(out, invalidFieldList(field.NewPath("spec", "annotations"),
			`"%s" is not a valid annotation key: use at most 63 letters, digits, "-", "_" and ".", optionally after a DNS name and "/"`, k)...)
	}
	return out
}

func firstInvalidKey(m map[string]string, bad func(key, value string) bool) (key string, found bool) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if bad(k, m[k]) {
			return k, true
		}
	}
	return "", false
}

// filterStringValues returns the string values of a mapping; the schema rejects others.
func filterStringValues(v any) map[string]string {
	m, _ := v.(map[string]any)
	out := map[string]string{}
	for k, v := range m {
		if text, ok := v.(string); ok {
			out[k] = text
		}
	}
	return out
}
