package kas

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

// node is a value of a file, and where it stands. What is wrong with it is noted, and
// reading goes on, so that all faults of a file are told at once.
type node struct {
	file  string
	path  string
	value any
	// faults are those of all files.
	faults *[]error
}

// parse reads a file; an empty one is an empty object.
func parse(f File, faults *[]error) node {
	n := node{file: f.Name, faults: faults}
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

// given reports whether there is a value.
func (n node) given() bool { return n.value != nil }

// fail notes a fault: file, path, value, and what to do.
func (n node) fail(format string, args ...any) {
	where := n.path
	if where == "" {
		where = "the file"
	}
	*n.faults = append(*n.faults, fmt.Errorf("%s: %s: %s: %s", n.file, where, n.told(), fmt.Sprintf(format, args...)))
}

func (n node) told() string {
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

// at is a value in an object; one that is not there has no value.
func (n node) at(key string) node {
	out := node{file: n.file, path: key, faults: n.faults}
	if n.path != "" {
		out.path = n.path + "." + key
	}
	if m, ok := n.value.(map[string]any); ok {
		out.value = m[key]
	}
	return out
}

// has notes each key of an object that is none of these, and a value that is no object.
func (n node) has(known ...string) {
	if n.object() {
		for _, key := range n.keys() {
			if !slices.Contains(known, key) {
				n.at(key).fail("there is no key %q: it is one of %s", key, strings.Join(known, ", "))
			}
		}
	}
}

func (n node) object() bool {
	if _, ok := n.value.(map[string]any); !ok && n.given() {
		n.fail("write an object, with keys and values")
		return false
	}
	return n.given()
}

// keys are those of an object, sorted.
func (n node) keys() []string {
	m, _ := n.value.(map[string]any)
	return slices.Sorted(maps.Keys(m))
}

// items are those of a list.
func (n node) items() []node {
	list, ok := n.value.([]any)
	if !ok && n.given() {
		n.fail("write a list")
	}
	out := make([]node, len(list))
	for i, v := range list {
		out[i] = node{file: n.file, path: fmt.Sprintf("%s[%d]", n.path, i), value: v, faults: n.faults}
	}
	return out
}

// text is a text that has to be there.
func (n node) text() string {
	s, ok := n.value.(string)
	if !ok || s == "" {
		n.fail("write a text")
	}
	return s
}

// whole is a whole number, of at least that.
func (n node) whole(least int32) int32 {
	v, ok := n.value.(int64)
	switch {
	case !ok:
		n.fail("write a whole number of %d or more", least)
		return least
	case v < int64(least):
		n.fail("it is below %d", least)
		return least
	case v > math.MaxInt32:
		n.fail("it is above %d", math.MaxInt32)
		return least
	}
	return int32(v)
}

// flag is true or false, or what it is when nothing is said.
func (n node) flag(otherwise bool) bool {
	if !n.given() {
		return otherwise
	}
	v, ok := n.value.(bool)
	if !ok {
		n.fail("write true or false")
	}
	return v
}

// quantity is an amount such as 50Mi.
func (n node) quantity() *resource.Quantity {
	q, err := resource.ParseQuantity(n.text())
	if err != nil || q.Sign() <= 0 {
		if s, ok := n.value.(string); ok && s != "" {
			n.fail("write an amount above 0, such as 50Mi")
		}
		return nil
	}
	return &q
}
