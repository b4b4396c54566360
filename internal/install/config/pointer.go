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
	// badEscape matches a ~ that is not part of a valid escape.
	badEscape = regexp.MustCompile(`~([^01]|$)`)
	// index matches a position in a list. RFC 6901 allows no signs and no leading zeros.
	index = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})$`)
)

// parsePointer parses a pointer with or without its leading slash. It rejects empty parts, and with
// them the pointer to the whole document: an empty part is most likely a typo.
func parsePointer(text string) (pointer, error) {
	parts := strings.Split(strings.TrimPrefix(text, "/"), "/")
	for i, part := range parts {
		if part == "" {
			return nil, fmt.Errorf("%q has an empty part: name a key in each, such as /metadata/name", text)
		}
		if badEscape.MatchString(part) {
			return nil, fmt.Errorf("%q has an invalid escape after ~: write ~0 for ~, and ~1 for a / inside a key", text)
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

func (p pointer) parentPointer() pointer { return p[:len(p)-1] }
func (p pointer) lastPart() string       { return p[len(p)-1] }

// findValue returns the value at p. The error says how far the path exists, and quotes nothing of
// the document.
func (p pointer) findValue(tree any) (any, error) {
	for i, part := range p {
		where := p[:i]
		switch node := tree.(type) {
		case map[string]any:
			value, ok := node[part]
			if !ok {
				return nil, fmt.Errorf("no such path: %s has no key %q", where.describePath(), part)
			}
			tree = value
		case []any:
			n, err := strconv.Atoi(part)
			if !index.MatchString(part) || err != nil || n >= len(node) {
				return nil, fmt.Errorf("no such path: %s is a list of %d and has no entry %q; the first entry is 0", where.describePath(), len(node), part)
			}
			tree = node[n]
		default:
			return nil, fmt.Errorf("no such path: %s is %s and has no children", where.describePath(), describeKind(tree))
		}
	}
	return tree, nil
}

// checkAddable returns an error unless a value can be added at p.
func (p pointer) checkAddable(tree any) error {
	above, err := p.parentPointer().findValue(tree)
	if err != nil {
		return err
	}
	switch node := above.(type) {
	case map[string]any:
		return nil
	case []any:
		n, err := strconv.Atoi(p.lastPart())
		if p.lastPart() == "-" || index.MatchString(p.lastPart()) && err == nil && n <= len(node) {
			return nil
		}
		return fmt.Errorf("%s is a list of %d and has no position %q: use - for its end", p.parentPointer().describePath(), len(node), p.lastPart())
	default:
		return fmt.Errorf("no such path: %s is %s and cannot have children", p.parentPointer().describePath(), describeKind(above))
	}
}

// describePath formats p for people.
func (p pointer) describePath() string {
	if len(p) == 0 {
		return "the document"
	}
	return p.String()
}

// equalJSON reports whether two trees are equal as JSON: 1, 1.0 and 1e0 are equal, and the order of
// keys does not matter.
func equalJSON(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && equalMappings(a, b)
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !equalJSON(a[i], b[i]) {
				return false
			}
		}
		return true
	case json.Number:
		b, ok := b.(json.Number)
		return ok && equalNumbers(a, b)
	default:
		return a == b
	}
}

func equalMappings(a, b map[string]any) bool {
	if len(a) != len(b) {
		return false
	}
	for key, value := range a {
		other, ok := b[key]
		if !ok || !equalJSON(value, other) {
			return false
		}
	}
	return true
}

// equalNumbers compares integers exactly and other numbers as float64: the exact value of
// 1e999999999 does not fit into memory.
func equalNumbers(a, b json.Number) bool {
	n, errA := a.Int64()
	m, errB := b.Int64()
	if errA == nil && errB == nil {
		return n == m
	}
	x, errA := a.Float64()
	y, errB := b.Float64()
	return a == b || errA == nil && errB == nil && x == y
}
