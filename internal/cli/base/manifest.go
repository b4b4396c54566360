package base

import (
	"encoding/json"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PrintManifests prints objects that can be applied, without their status: as YAML unless -o sets another
// format.
func (a *App) PrintManifests(objects []client.Object) error {
	items := []any{}
	for _, o := range objects {
		if a.Flags.Output == AsName {
			if err := a.PrintNames(o); err != nil {
				return err
			}
			continue
		}
		fields, err := manifestFields(o)
		if err != nil {
			return err
		}
		items = append(items, fields)
	}
	switch a.Flags.Output {
	case AsName:
		return nil
	case AsJSON:
		return a.PrintEncoded(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	}
	a.Flags.Output = AsYAML
	for n, fields := range items {
		if n > 0 {
			fmt.Fprintln(a.Stdout, "---")
		}
		if err := a.PrintEncoded(fields); err != nil {
			return err
		}
	}
	return nil
}

// manifestFields returns the fields of an object without its status.
func manifestFields(o client.Object) (map[string]any, error) {
	if err := SetTypeMeta(o); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("writing JSON: %w", err)
	}
	fields := map[string]any{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("reading JSON: %w", err)
	}
	delete(fields, "status")
	return fields, nil
}
