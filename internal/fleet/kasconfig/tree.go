package kasconfig

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// node is a value in a file, and its path. Errors are recorded and reading continues, so that all
// errors of a file are reported at once.
type node struct {
	file  string
	path  string
	value any
	// errs are the errors of all files.
	errs *[]error
}

// parseFile parses a file; an empty file is an empty object.
func parseFile(f File, faults *[]error) node {
	n := node{file: f.Name, errs: faults}
	raw, err := yaml.YAMLToJSONStrict(f.Text)
	if err == nil {
		err = utiljson.Unmarshal(raw, &n.value)
	}
	if err != nil {
		*faults = append(*faults, fmt.Errorf("%s: %w", f.Name, err))
	}
	if n.value == nil {
		n.value = map[string]any{}
	}
	return n
}

// isSet reports whether there is a value.
func (n node) isSet() bool { return n.value != nil }

// addError records an error with file, path, value, and what to do.
func (n node) addError(format string, args ...any) {
	where := n.path
	if where == "" {
		where = "the file"
	}
	*n.errs = append(*n.errs, fmt.Errorf("%s: %s: %s: %s", n.file, where, n.describeValue(), fmt.Sprintf(format, args...)))
}

func (n node) describeValue() string {
	switch v := n.value.(type) {
	case nil:
		return "nothing"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	default:
		raw, err := json.Marshal(v)
		if err != nil {
			return fmt.Sprint(v)
		}
		return string(raw)
	}
}

// field returns a field of an object; a missing field is a node without a value.
func (n node) field(key string) node {
	out := node{file: n.file, path: key, errs: n.errs}
	if n.path != "" {
		out.path = n.path + "." + key
	}
	if m, ok := n.value.(map[string]any); ok {
		out.value = m[key]
	}
	return out
}

// checkKeys records an error for each key of an object that is not in known, and for a value that
// is not an object.
func (n node) checkKeys(known ...string) {
	if n.checkObject() {
		for _, key := range n.sortedKeys() {
			if !slices.Contains(known, key) {
				n.field(key).addError("unknown key %q: use one of %s", key, strings.Join(known, ", "))
			}
		}
	}
}

func (n node) checkObject() bool {
	if _, ok := n.value.(map[string]any); !ok && n.isSet() {
		n.addError("write an object, with keys and values")
		return false
	}
	return n.isSet()
}

// sortedKeys returns the keys of an object, sorted.
func (n node) sortedKeys() []string {
	m, _ := n.value.(map[string]any)
	return slices.Sorted(maps.Keys(m))
}

// listItems returns the items of a list.
func (n node) listItems() []node {
	list, ok := n.value.([]any)
	if !ok && n.isSet() {
		n.addError("write a list")
	}
	out := make([]node, len(list))
	for i, v := range list {
		out[i] = node{file: n.file, path: fmt.Sprintf("%s[%d]", n.path, i), value: v, errs: n.errs}
	}
	return out
}

// parseText returns a required text.
func (n node) parseText() string {
	s, ok := n.value.(string)
	if !ok || s == "" {
		n.addError("write a string")
	}
	return s
}

// parseWholeNumber returns a whole number that is at least least.
func (n node) parseWholeNumber(least int32) int32 {
	v, ok := n.value.(int64)
	switch {
	case !ok:
		n.addError("write a whole number of %d or more", least)
		return least
	case v < int64(least):
		n.addError("it is below %d", least)
		return least
	case v > math.MaxInt32:
		n.addError("it is above %d", math.MaxInt32)
		return least
	}
	return int32(v)
}

// parseBool returns true or false; otherwise if there is no value.
func (n node) parseBool(otherwise bool) bool {
	if !n.isSet() {
		return otherwise
	}
	v, ok := n.value.(bool)
	if !ok {
		n.addError("write true or false")
	}
	return v
}

// parseQuantity returns a quantity such as 50Mi; nil, with an error recorded, if it is invalid or
// not above 0.
func (n node) parseQuantity() *resource.Quantity {
	q, err := resource.ParseQuantity(n.parseText())
	if err != nil || q.Sign() <= 0 {
		if s, ok := n.value.(string); ok && s != "" {
			n.addError("write an amount above 0, such as 50Mi")
		}
		return nil
	}
	return &q
}
