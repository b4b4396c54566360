// Package hivetypes tests hotspare through Hive's own public API types: what its clients
// decode, keep and write.
package hivetypes

import (
	"reflect"
	"strings"

	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// kinds are the kinds that hotspare serves, as Hive's types have them, by the plural name.
var kinds = map[string]reflect.Type{
	"clusterpools":                    reflect.TypeFor[hivev1.ClusterPool](),
	"clusterclaims":                   reflect.TypeFor[hivev1.ClusterClaim](),
	"clusterdeployments":              reflect.TypeFor[hivev1.ClusterDeployment](),
	"clusterdeploymentcustomizations": reflect.TypeFor[hivev1.ClusterDeploymentCustomization](),
	"clusterimagesets":                reflect.TypeFor[hivev1.ClusterImageSet](),
	"clusterprovisions":               reflect.TypeFor[hivev1.ClusterProvision](),
	"clusterdeprovisions":             reflect.TypeFor[hivev1.ClusterDeprovision](),
	"machinepools":                    reflect.TypeFor[hivev1.MachinePool](),
}

// shape is the part of a schema that decides whether a Go type can decode a value.
type shape struct {
	Type        string            `json:"type,omitempty"`
	Format      string            `json:"format,omitempty"`
	IntOrString bool              `json:"intOrString,omitempty"`
	Properties  map[string]*shape `json:"properties,omitempty"`
	Items       *shape            `json:"items,omitempty"`
	Values      *shape            `json:"values,omitempty"`
}

// shapeOf returns the shape of a Go type's JSON.
func shapeOf(t reflect.Type) *shape {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t {
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		return &shape{Type: "string", Format: "date-time"}
	case reflect.TypeFor[metav1.Duration]():
		return &shape{Type: "string", Format: "duration"}
	case reflect.TypeFor[runtime.RawExtension]():
		return &shape{} // anything
	case reflect.TypeFor[resource.Quantity]():
		return &shape{IntOrString: true, Format: "quantity"}
	case reflect.TypeFor[intstr.IntOrString]():
		return &shape{IntOrString: true}
	case reflect.TypeFor[corev1.PodSpec]():
		return podSpec()
	}
	switch t.Kind() {
	case reflect.String:
		return &shape{Type: "string"}
	case reflect.Bool:
		return &shape{Type: "boolean"}
	case reflect.Int32, reflect.Uint32:
		return &shape{Type: "integer", Format: "int32"}
	case reflect.Int, reflect.Int64:
		return &shape{Type: "integer", Format: "int64"}
	case reflect.Float64, reflect.Float32:
		return &shape{Type: "number"}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return &shape{Type: "string", Format: "byte"}
		}
		return &shape{Type: "array", Items: shapeOf(t.Elem())}
	case reflect.Map:
		return &shape{Type: "object", Values: shapeOf(t.Elem())}
	case reflect.Struct:
		s := &shape{Type: "object", Properties: map[string]*shape{}}
		s.add(t)
		return s
	}
	panic("a type without a shape: " + t.String())
}

// add adds the fields of a struct.
func (s *shape) add(t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
		case name == "" && f.Anonymous:
			e := f.Type
			if e.Kind() == reflect.Pointer {
				e = e.Elem()
			}
			s.add(e)
		case name == "":
			s.Properties[f.Name] = shapeOf(f.Type)
		default:
			s.Properties[name] = shapeOf(f.Type)
		}
	}
}

// podSpec is the part of a pod's specification that a ClusterProvision keeps: nobody
// reads it, and the whole schema is longer than all others together.
func podSpec() *shape {
	text := &shape{Type: "string"}
	container := &shape{Type: "object", Properties: map[string]*shape{"name": text, "image": text}}
	return &shape{Type: "object", Properties: map[string]*shape{"containers": {Type: "array", Items: container}}}
}
