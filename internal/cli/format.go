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

// format is the value of --output.
type format string

const (
	asTable format = "table"
	asJSON  format = "json"
	asYAML  format = "yaml"
	asName  format = "name"
)

var formats = []string{string(asTable), string(asJSON), string(asYAML), string(asName)}

func (f *format) String() string { return string(*f) }

// Type is what help calls the value.
func (f *format) Type() string { return "format" }

// Set refuses what is not a format.
func (f *format) Set(value string) error {
	if !slices.Contains(formats, value) {
		return fmt.Errorf("choose one of %s", strings.Join(formats, ", "))
	}
	*f = format(value)
	return nil
}

// show prints an object or a list in the format asked for; text prints it for people.
func (a *app) show(obj runtime.Object, text func(io.Writer) error) error {
	switch a.flags.output {
	case asJSON, asYAML:
		if err := complete(obj); err != nil {
			return err
		}
		return a.encode(obj)
	case asName:
		return a.names(obj)
	default:
		return text(a.Stdout)
	}
}

// encode prints any value as JSON or YAML.
func (a *app) encode(value any) error {
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

// complete sets apiVersion and kind, which typed objects come without, and takes
// out the bookkeeping of server-side apply.
func complete(obj runtime.Object) error {
	if err := completeOne(obj); err != nil {
		return err
	}
	if !meta.IsListType(obj) {
		return nil
	}
	return meta.EachListItem(obj, completeOne)
}

func completeOne(obj runtime.Object) error {
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

// names prints kind.group/name for each object, as kubectl does.
func (a *app) names(obj runtime.Object) error {
	if meta.IsListType(obj) {
		return meta.EachListItem(obj, a.names)
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
