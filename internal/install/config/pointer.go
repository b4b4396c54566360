package config

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// pointer is an RFC 6901 pointer, decoded: the keys and indices to follow.
type pointer []string

var (
	unescaped = strings.NewReplacer("~1", "/", "~0", "~")
	escaped   = strings.NewReplacer("~", "~0", "/", "~1")
	// badEscape is a ~ that stands for nothing.
	badEscape = regexp.MustCompile(`~([^01]|$)`)
	// index is a place in a list. RFC 6901 knows no signs and no leading zeros.
	index = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})$`)
)

// parsePointer reads a pointer with or without its leading slash. An empty part
// is refused, and with it the pointer to the whole document: whoever writes one
// has most likely lost a word.
func parsePointer(text string) (pointer, error) {
	parts := strings.Split(strings.TrimPrefix(text, "/"), "/")
	for i, part := range parts {
		if part == "" {
			return nil, fmt.Errorf("%q has an empty part: name a key in each, such as /metadata/name", text)
		}
		if badEscape.MatchString(part) {
			return nil, fmt.Errorf("%q has a ~ that stands for nothing: write ~0 for ~, and ~1 for a / inside a key", text)
		}
		parts[i] = unescaped.Replace(part)
	}
	return parts, nil
}

func (p pointer) String() string {
	var b strings.Builder
	for _, part := range p {
		b.WriteString("/" + escaped.Replace(part))
	}
	return b.String()
}

func (p pointer) parent() pointer { return p[:len(p)-1] }
func (p pointer) last() string    { return p[len(p)-1] }

// find returns what stands at p. The error says how far the path goes, and quotes
// nothing of the document.
func (p pointer) find(tree any) (any, error) {
	for i, part := range p {
		where := p[:i]
		switch node := tree.(type) {
		case map[string]any:
			value, ok := node[part]
			if !ok {
				return nil, fmt.Errorf("no such path: %s has no key %q", where.named(), part)
			}
			tree = value
		case []any:
			n, err := strconv.Atoi(part)
			if !index.MatchString(part) || err != nil || n >= len(node) {
				return nil, fmt.Errorf("no such path: %s is a list of %d and has no entry %q, the first one is 0", where.named(), len(node), part)
			}
			tree = node[n]
		default:
			return nil, fmt.Errorf("no such path: %s is %s, nothing is below it", where.named(), kindOf(tree))
		}
	}
	return tree, nil
}

// room is an error unless something can be added at p.
func (p pointer) room(tree any) error {
	above, err := p.parent().find(tree)
	if err != nil {
		return err
	}
	switch node := above.(type) {
	case map[string]any:
		return nil
	case []any:
		n, err := strconv.Atoi(p.last())
		if p.last() == "-" || index.MatchString(p.last()) && err == nil && n <= len(node) {
			return nil
		}
		return fmt.Errorf("%s is a list of %d and has no place %q: use - for its end", p.parent().named(), len(node), p.last())
	default:
		return fmt.Errorf("no such path: %s is %s, nothing can be below it", p.parent().named(), kindOf(above))
	}
}

// named is p for people.
func (p pointer) named() string {
	if len(p) == 0 {
		return "the document"
	}
	return p.String()
}

// same reports whether two trees are equal as JSON is: 1, 1.0 and 1e0 are, the
// order of keys does not matter.
func same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && sameKeys(a, b)
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !same(a[i], b[i]) {
				return false
			}
		}
		return true
	case json.Number:
		b, ok := b.(json.Number)
		return ok && sameNumber(a, b)
	default:
		return a == b
	}
}

func sameKeys(a, b map[string]any) bool {
	if len(a) != len(b) {
		return false
	}
	for key, value := range a {
		other, ok := b[key]
		if !ok || !same(value, other) {
			return false
		}
	}
	return true
}

// sameNumber compares whole numbers exactly and others as float64: the exact
// value of 1e999999999 does not fit into memory.
func sameNumber(a, b json.Number) bool {
	n, errA := a.Int64()
	m, errB := b.Int64()
	if errA == nil && errB == nil {
		return n == m
	}
	x, errA := a.Float64()
	y, errB := b.Float64()
	return a == b || errA == nil && errB == nil && x == y
}
