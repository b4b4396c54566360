package collect

import (
	"encoding/json"
	"fmt"
)

// withKind is an object whose JSON has these values of apiVersion and kind.
type withKind struct {
	APIVersion, Kind string
	object           any
}

// MarshalJSON returns the JSON of the object, with its kind.
func (w withKind) MarshalJSON() ([]byte, error) {
	raw, err := json.Marshal(w.object)
	if err != nil {
		return nil, fmt.Errorf("encoding a %s: %w", w.Kind, err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("encoding a %s: %w", w.Kind, err)
	}
	for name, value := range map[string]string{"apiVersion": w.APIVersion, "kind": w.Kind} {
		if fields[name], err = json.Marshal(value); err != nil {
			return nil, fmt.Errorf("encoding a %s: %w", w.Kind, err)
		}
	}
	return json.Marshal(fields)
}
