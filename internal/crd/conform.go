package crd

import (
	"math"
	"reflect"
	"regexp"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// certainlyConforms reports whether a value certainly conforms to a schema, apart from its rules.
// It is an optimization only: the API server's own validation builds validators for each field of a
// value and takes ten times as long. Values that are invalid, or constrained by something that this
// function does not consider, return false and are left to that validation.
func certainlyConforms(value any, s *schema.Structural) bool {
	if s.XIntOrString || s.XEmbeddedResource || !valueConformsToBounds(value, s.ValueValidation) {
		return false
	}
	switch v := value.(type) {
	case map[string]any:
		return s.Type == "object" && objectConforms(v, s)
	case []any:
		return s.Type == "array" && s.Items != nil && !slices.ContainsFunc(v, func(item any) bool { return !certainlyConforms(item, s.Items) })
	case string:
		return s.Type == "string"
	case bool:
		return s.Type == "boolean"
	case int64:
		return s.Type == "integer"
	}
	return false
}

func objectConforms(object map[string]any, s *schema.Structural) bool {
	for name, value := range object {
		of, known := s.Properties[name]
		switch {
		case known:
			if !certainlyConforms(value, &of) {
				return false
			}
		case s.AdditionalProperties == nil:
		case s.AdditionalProperties.Structural == nil || !certainlyConforms(value, s.AdditionalProperties.Structural):
			return false
		}
	}
	return true
}

// valueConformsToBounds reports whether a value is certainly within the bounds of its schema.
func valueConformsToBounds(value any, b *schema.ValueValidation) bool {
	if b == nil {
		return true
	}
	if hasRareBounds(b) || len(b.Enum) > 0 && !slices.ContainsFunc(b.Enum, func(e schema.JSON) bool { return reflect.DeepEqual(e.Object, value) }) {
		return false
	}
	switch v := value.(type) {
	case map[string]any:
		return !slices.ContainsFunc(b.Required, func(name string) bool { _, has := v[name]; return !has })
	case []any:
		return isInBounds(int64(len(v)), b.MinItems, b.MaxItems)
	case string:
		return isInBounds(int64(utf8.RuneCountInString(v)), b.MinLength, b.MaxLength) && matchesPattern(v, b.Pattern) && matchesFormat(v, b.Format)
	case int64:
		return numberConformsToRange(v, b)
	case bool:
		return b.Format == ""
	}
	return false
}

// hasRareBounds reports whether a schema has bounds that only the API server's validator checks.
func hasRareBounds(b *schema.ValueValidation) bool {
	ofNumbers := b.ExclusiveMaximum || b.ExclusiveMinimum || b.MultipleOf != nil
	ofObjects := b.UniqueItems || b.MaxProperties != nil || b.MinProperties != nil
	combined := len(b.AllOf) > 0 || len(b.OneOf) > 0 || len(b.AnyOf) > 0 || b.Not != nil
	return ofNumbers || ofObjects || combined
}

// numberConformsToRange reports whether a number is certainly within the bounds of its schema.
func numberConformsToRange(v int64, b *schema.ValueValidation) bool {
	if b.Minimum != nil && float64(v) < *b.Minimum || b.Maximum != nil && float64(v) > *b.Maximum {
		return false
	}
	switch b.Format {
	case "", "int64":
		return true
	case "int32":
		return v >= math.MinInt32 && v <= math.MaxInt32
	}
	return false
}

func isInBounds(n int64, least, most *int64) bool {
	return (least == nil || n >= *least) && (most == nil || n <= *most)
}

var compiledPatterns sync.Map // patterns of the schemas: string to *regexp.Regexp

func matchesPattern(text, pattern string) bool {
	if pattern == "" {
		return true
	}
	compiled, ok := compiledPatterns.Load(pattern)
	if !ok {
		re, err := regexp.Compile(pattern)
		if err != nil {
			return false
		}
		compiled, _ = compiledPatterns.LoadOrStore(pattern, re)
	}
	return compiled.(*regexp.Regexp).MatchString(text)
}

func matchesFormat(text, format string) bool {
	switch format {
	case "":
		return true
	case "date-time":
		_, err := time.Parse("2006-01-02T15:04:05Z", text) // only the format that the API itself writes
		return err == nil && len(text) == len("2006-01-02T15:04:05Z")
	}
	return false
}
