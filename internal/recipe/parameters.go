package recipe

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// MaxParameters and MaxParameterLength are the maximum number of parameters, and the maximum size of a
// value in bytes. Each ClusterDeployment stores the parameters.
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
	// Pattern is a regular expression that must match the value or, as in JSON Schema, a part of it.
	Pattern   string `json:"pattern,omitempty"`
	MinLength int    `json:"minLength,omitempty"`
	MaxLength int    `json:"maxLength,omitempty"`
}

// Parameters are the parameters of a recipe. The zero value has no parameters.
type Parameters struct {
	properties map[string]Property
	required   []string
	patterns   map[string]*regexp.Regexp
}

// parameterName matches names whose environment variables are unique: see EnvironmentName.
var parameterName = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// NewParameters validates a schema; nil means no parameters. Each default must match its own schema.
// The error lists all faults.
func NewParameters(s *Schema) (Parameters, error) {
	p := Parameters{patterns: map[string]*regexp.Regexp{}}
	if s == nil {
		return p, nil
	}
	var errs []error
	if s.Type != "" && s.Type != "object" {
		errs = append(errs, fmt.Errorf("%s: with.type is %q: remove it, or set it to object", FileName, s.Type))
	}
	if len(s.Properties) > MaxParameters {
		errs = append(errs, fmt.Errorf("%s: with.properties has %d entries: use at most %d", FileName, len(s.Properties), MaxParameters))
	}
	p.properties, p.required = s.Properties, s.Required
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if err := p.validateProperty(name); err != nil {
			errs = append(errs, fmt.Errorf("%s: with.properties.%s: %w", FileName, name, err))
		}
	}
	for _, name := range s.Required {
		if _, ok := s.Properties[name]; !ok {
			errs = append(errs, fmt.Errorf("%s: with.required: %q is not among the properties: add it to with.properties", FileName, name))
		}
	}
	return p, errors.Join(errs...)
}

func (p *Parameters) validateProperty(name string) error {
	property := p.properties[name]
	if !parameterName.MatchString(name) {
		return fmt.Errorf("%q is not a valid name of a parameter: use lowercase letters, digits and single hyphens, as in machine-type", name)
	}
	if property.Type != "" && property.Type != "string" {
		return fmt.Errorf("type is %q: all parameters are strings: remove type, and restrict the value with enum or pattern", property.Type)
	}
	if property.Pattern != "" {
		pattern, err := regexp.Compile(property.Pattern)
		if err != nil {
			return fmt.Errorf("pattern: %w", err)
		}
		p.patterns[name] = pattern
	}
	if property.Default != nil {
		if err := p.validateValue(name, *property.Default); err != nil {
			return fmt.Errorf("default: %w", err)
		}
	}
	return nil
}

// Names returns the names of the parameters, sorted.
func (p Parameters) Names() []string { return slices.Sorted(maps.Keys(p.properties)) }

// Property returns the schema of a parameter.
func (p Parameters) Property(name string) Property { return p.properties[name] }

// IsRequired reports whether a parameter must be set: it is required and has no default.
func (p Parameters) IsRequired(name string) bool {
	return slices.Contains(p.required, name) && p.properties[name].Default == nil
}

// Complete validates the given values and returns them with the defaults of the others. The error
// lists all faults, each with the parameter, the value and the allowed values.
func (p Parameters) Complete(given map[string]string) (map[string]string, error) {
	out := map[string]string{}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, ok := p.properties[name]; !ok {
			errs = append(errs, fmt.Errorf("with.%s: the recipe has no such parameter: %s", name, p.describeNames()))
			continue
		}
		if err := p.validateValue(name, given[name]); err != nil {
			errs = append(errs, fmt.Errorf("with.%s: %w", name, err))
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
			errs = append(errs, fmt.Errorf("with.%s is required: set it (%s)", name, describeOrNone(p.properties[name].Description)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return out, nil
}

func (p Parameters) describeNames() string {
	if len(p.properties) == 0 {
		return "it has no parameters, so remove with"
	}
	return "use " + strings.Join(p.Names(), ", ")
}

func (p Parameters) validateValue(name, value string) error {
	property := p.properties[name]
	switch n := len([]rune(value)); {
	case len(value) > MaxParameterLength:
		return fmt.Errorf("it has %d bytes: use at most %d", len(value), MaxParameterLength)
	case strings.ContainsRune(value, 0):
		return fmt.Errorf("%q contains a zero byte, which environment variables cannot contain", value)
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

func describeOrNone(text string) string {
	if text == "" {
		return "it has no description"
	}
	return text
}
