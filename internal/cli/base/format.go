package base

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"
)

// outputFormat is the value of --output.
type outputFormat string

// Values of --output.
const (
	AsTable outputFormat = "table"
	AsJSON  outputFormat = "json"
	AsYAML  outputFormat = "yaml"
	AsName  outputFormat = "name"
)

// Formats lists the values of --output, for help and completion.
var Formats = []string{string(AsTable), string(AsJSON), string(AsYAML), string(AsName)}

func (f *outputFormat) String() string { return string(*f) }

// Type is the name of the value in the help.
func (f *outputFormat) Type() string { return "format" }

// Set returns an error for a value that is not a format.
func (f *outputFormat) Set(value string) error {
	if !slices.Contains(Formats, value) {
		return fmt.Errorf("choose one of %s", strings.Join(Formats, ", "))
	}
	*f = outputFormat(value)
	return nil
}

// PrintObject prints an object or a list in the format of --output; text prints the default
// format, for people.
func (a *App) PrintObject(obj runtime.Object, text func(io.Writer) error) error {
	switch a.Flags.Output {
	case AsJSON, AsYAML:
		if err := SetTypeMeta(obj); err != nil {
			return err
		}
		return a.PrintEncoded(obj)
	case AsName:
		return a.PrintNames(obj)
	default:
		return text(a.Stdout)
	}
}

// PrintEncoded prints a value as JSON or, with -o yaml, as YAML.
func (a *App) PrintEncoded(value any) error {
	raw, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	raw = append(raw, '\n')
	if a.Flags.Output == AsYAML {
		if raw, err = yaml.JSONToYAML(raw); err != nil {
			return fmt.Errorf("writing YAML: %w", err)
		}
	}
	_, err = a.Stdout.Write(raw)
	return err
}

// SetTypeMeta sets apiVersion and kind, which typed clients leave empty, and removes
// managedFields.
func SetTypeMeta(obj runtime.Object) error {
	if err := SetObjectTypeMeta(obj); err != nil {
		return err
	}
	if !meta.IsListType(obj) {
		return nil
	}
	return meta.EachListItem(obj, SetObjectTypeMeta)
}

// SetObjectTypeMeta sets apiVersion and kind, which a typed client leaves empty.
func SetObjectTypeMeta(obj runtime.Object) error {
	gvk, err := apiutil.GVKForObject(obj, Scheme)
	if err != nil {
		return err
	}
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	if o, ok := obj.(client.Object); ok {
		o.SetManagedFields(nil)
	}
	return nil
}

// PrintNames prints kind.group/name for each object, as kubectl does.
func (a *App) PrintNames(obj runtime.Object) error {
	if meta.IsListType(obj) {
		return meta.EachListItem(obj, a.PrintNames)
	}
	gvk, err := apiutil.GVKForObject(obj, Scheme)
	if err != nil {
		return err
	}
	o, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.Stdout, "%s/%s\n", strings.ToLower(gvk.GroupKind().String()), o.GetName())
	return err
}
