package cli

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

const (
	asTable outputFormat = "table"
	asJSON  outputFormat = "json"
	asYAML  outputFormat = "yaml"
	asName  outputFormat = "name"
)

var formats = []string{string(asTable), string(asJSON), string(asYAML), string(asName)}

func (f *outputFormat) String() string { return string(*f) }

// Type is what help calls the value.
func (f *outputFormat) Type() string { return "format" }

// Set refuses what is not a format.
func (f *outputFormat) Set(value string) error {
	if !slices.Contains(formats, value) {
		return fmt.Errorf("choose one of %s", strings.Join(formats, ", "))
	}
	*f = outputFormat(value)
	return nil
}

// printObject prints an object or a list in the format asked for; text prints it for people.
func (a *app) printObject(obj runtime.Object, text func(io.Writer) error) error {
	switch a.flags.output {
	case asJSON, asYAML:
		if err := setTypeMeta(obj); err != nil {
			return err
		}
		return a.printEncoded(obj)
	case asName:
		return a.printNames(obj)
	default:
		return text(a.Stdout)
	}
}

// printEncoded prints any value as JSON or YAML.
func (a *app) printEncoded(value any) error {
	raw, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	raw = append(raw, '\n')
	if a.flags.output == asYAML {
		if raw, err = yaml.JSONToYAML(raw); err != nil {
			return fmt.Errorf("writing YAML: %w", err)
		}
	}
	_, err = a.Stdout.Write(raw)
	return err
}

// setTypeMeta sets apiVersion and kind, which typed objects come without, and takes
// out the bookkeeping of server-side apply.
func setTypeMeta(obj runtime.Object) error {
	if err := setObjectTypeMeta(obj); err != nil {
		return err
	}
	if !meta.IsListType(obj) {
		return nil
	}
	return meta.EachListItem(obj, setObjectTypeMeta)
}

func setObjectTypeMeta(obj runtime.Object) error {
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return err
	}
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	if o, ok := obj.(client.Object); ok {
		o.SetManagedFields(nil)
	}
	return nil
}

// printNames prints kind.group/name for each object, as kubectl does.
func (a *app) printNames(obj runtime.Object) error {
	if meta.IsListType(obj) {
		return meta.EachListItem(obj, a.printNames)
	}
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return err
	}
	o, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.Stdout, "%s.%s/%s\n", strings.ToLower(gvk.Kind), gvk.Group, o.GetName())
	return err
}
