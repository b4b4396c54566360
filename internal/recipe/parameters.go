package recipe

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// MaxParameters and MaxParameterLength bound spec.platform.exec.with: it is stored with each cluster.
const (
	MaxParameters      = 32
	MaxParameterLength = 4096
)

// Schema is the JSON schema of the parameters: an object whose properties are strings.
type Schema struct {
	Type       string              `json:"type,omitempty"`
	Properties map[string]Property `json:"properties,omitempty"`
	Required   []string            `json:"required,omitempty"`
}

// Property is the JSON schema of one parameter.
type Property struct {
	Type        string   `json:"type,omitempty"`
	Description string   `json:"description,omitempty"`
	Default     *string  `json:"default,omitempty"`
	Enum        []string `json:"enum,omitempty"`
	// Pattern is a regular expression that the whole value or a part of it matches, as in JSON Schema.
	Pattern   string `json:"pattern,omitempty"`
	MinLength int    `json:"minLength,omitempty"`
	MaxLength int    `json:"maxLength,omitempty"`
}

// Parameters are the parameters of a recipe. The zero value has none.
type Parameters struct {
	properties map[string]Property
	required   []string
	patterns   map[string]*regexp.Regexp
}

// parameterName leaves no doubt about the environment variable: RECIPE_ and the name in capitals.
var parameterName = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// NewParameters validates a schema; nil means no parameters. A default must match its own schema.
func NewParameters(s *Schema) (Parameters, error) {
	p := Parameters{patterns: map[string]*regexp.Regexp{}}
	if s == nil {
		return p, nil
	}
	if s.Type != "" && s.Type != "object" {
		return p, fmt.Errorf("%s: with.type is %q: leave it out, or set it to object", FileName, s.Type)
	}
	if len(s.Properties) > MaxParameters {
		return p, fmt.Errorf("%s: with.properties has %d entries: use at most %d", FileName, len(s.Properties), MaxParameters)
	}
	p.properties, p.required = s.Properties, s.Required
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if err := p.checkProperty(name); err != nil {
			return p, fmt.Errorf("%s: with.properties.%s: %w", FileName, name, err)
		}
	}
	for _, name := range s.Required {
		if _, ok := s.Properties[name]; !ok {
			return p, fmt.Errorf("%s: with.required: %q is not among the properties: add it there", FileName, name)
		}
	}
	return p, nil
}

func (p *Parameters) checkProperty(name string) error {
	property := p.properties[name]
	if !parameterName.MatchString(name) {
		return fmt.Errorf("%q is not a parameter's name: use lower-case letters, digits and single dashes, as in machine-type", name)
	}
	if property.Type != "" && property.Type != "string" {
		return fmt.Errorf("type is %q: parameters are strings; limit them with enum or pattern", property.Type)
	}
	if property.Pattern != "" {
		pattern, err := regexp.Compile(property.Pattern)
		if err != nil {
			return fmt.Errorf("pattern: %w", err)
		}
		p.patterns[name] = pattern
	}
	if property.Default != nil {
		if err := p.checkValue(name, *property.Default); err != nil {
			return fmt.Errorf("default: %w", err)
		}
	}
	return nil
}

// Names returns the names of the parameters, sorted.
func (p Parameters) Names() []string { return slices.Sorted(maps.Keys(p.properties)) }

// Property returns the schema of a parameter.
func (p Parameters) Property(name string) Property { return p.properties[name] }

// IsRequired reports whether a parameter without a default must be set.
func (p Parameters) IsRequired(name string) bool {
	return slices.Contains(p.required, name) && p.properties[name].Default == nil
}

// Complete returns given with the defaults of what it leaves out. The error names the parameter, the
// value and what is allowed.
func (p Parameters) Complete(given map[string]string) (map[string]string, error) {
	out := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, ok := p.properties[name]; !ok {
			return nil, fmt.Errorf("with.%s: the recipe has no such parameter: %s", name, p.describeNames())
		}
		if err := p.checkValue(name, given[name]); err != nil {
			return nil, fmt.Errorf("with.%s: %w", name, err)
		}
		out[name] = given[name]
	}
	for _, name := range p.Names() {
		if _, ok := out[name]; ok {
			continue
		}
		if d := p.properties[name].Default; d != nil {
			out[name] = *d
		} else if p.IsRequired(name) {
			return nil, fmt.Errorf("with.%s is required: set it (%s)", name, orNone(p.properties[name].Description))
		}
	}
	return out, nil
}

func (p Parameters) describeNames() string {
	if len(p.properties) == 0 {
		return "it has none, so leave out with"
	}
	return "use " + strings.Join(p.Names(), ", ")
}

func (p Parameters) checkValue(name, value string) error {
	property := p.properties[name]
	switch n := len([]rune(value)); {
	case len(value) > MaxParameterLength:
		return fmt.Errorf("it has %d bytes: use at most %d", len(value), MaxParameterLength)
	case strings.ContainsRune(value, 0):
		return fmt.Errorf("%q contains a zero byte, which no environment variable can", value)
	case len(property.Enum) > 0 && !slices.Contains(property.Enum, value):
		return fmt.Errorf("%q is not one of %s", value, strings.Join(property.Enum, ", "))
	case p.patterns[name] != nil && !p.patterns[name].MatchString(value):
		return fmt.Errorf("%q does not match %s", value, property.Pattern)
	case n < property.MinLength:
		return fmt.Errorf("%q is shorter than %d characters", value, property.MinLength)
	case property.MaxLength > 0 && n > property.MaxLength:
		return fmt.Errorf("%q is longer than %d characters", value, property.MaxLength)
	}
	return nil
}

func orNone(text string) string {
	if text == "" {
		return "the recipe does not describe it"
	}
	return text
}
