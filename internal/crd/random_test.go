package crd

import (
	"encoding/json"
	"flag"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

var (
	seed    = flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the random objects")
	objects = flag.Int("objects", 400, "random objects of each kind")
)

// A value that is accepted but cannot be decoded would be stored, and block its readers. Exceptions
// are left to hivev1.Reading.
func TestWhatTheSchemaAcceptsTheTypesCanRead(t *testing.T) {
	t.Logf("-seed=%d", *seed)
	decoder := serializer.NewCodecFactory(known(t)).UniversalDeserializer()
	for _, kind := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			k, err := LoadSchema(kind)
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(*seed, 0))
			accepted := 0
			for range *objects {
				g := generator{r, 20 << r.IntN(6)}
				o := g.object(t, k)
				o["apiVersion"], o["kind"] = versionOf(t, kind), kind
				if v, err := k.Admit(t.Context(), o); err != nil || len(v.Faults) > 0 {
					continue
				}
				accepted++
				stored, err := json.Marshal(o)
				if err != nil {
					t.Fatal(err)
				}
				read, _, err := decoder.Decode(stored, nil, nil)
				if err == nil {
					err = read.(interface{ Whole() error }).Whole()
				}
				if err != nil {
					t.Errorf("it was accepted and cannot be read: %v\n%s", err, stored)
				}
			}
			t.Logf("%d of %d were accepted", accepted, *objects)
			if accepted < *objects/100 {
				t.Error("so few were accepted that this shows nothing")
			}
		})
	}
}

// kinds returns all kinds that have a CRD and are decoded leniently.
func kinds(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, group := range []apischema.GroupVersion{hivev1.GroupVersion, v1alpha1.GroupVersion} {
		for kind, typ := range known(t).KnownTypes(group) {
			_, readable := reflect.New(typ).Interface().(interface{ Whole() error })
			if _, ours := reflect.New(typ).Interface().(metav1.Object); ours && readable {
				out = append(out, kind)
			}
		}
	}
	slices.Sort(out)
	return out
}

func known(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{hivev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// versionOf is the apiVersion of a kind.
func versionOf(t *testing.T, kind string) string {
	t.Helper()
	if _, hives := known(t).KnownTypes(hivev1.GroupVersion)[kind]; hives {
		return hivev1.GroupVersion.String()
	}
	return v1alpha1.GroupVersion.String()
}

// generator generates values that a schema may accept; one in odd of them is wild.
type generator struct {
	*rand.Rand
	odd int
}

func (g generator) object(t *testing.T, k *Schema) map[string]any {
	t.Helper()
	o, ok := g.value(k.shape, "").(map[string]any)
	if !ok {
		o = map[string]any{}
	}
	o["metadata"] = map[string]any{"name": "random"}
	if k.namespaced {
		o["metadata"] = map[string]any{"name": "random", "namespace": "some"}
	}
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	// As if it came from a client: with numbers as the API server decodes them.
	var read map[string]any
	if err := utiljson.Unmarshal(raw, &read); err != nil {
		t.Fatal(err)
	}
	return read
}

// one reports true once in n times.
func (g generator) one(n int) bool { return g.IntN(n) == 0 }

func (g generator) value(s *schema.Structural, key string) any {
	switch {
	case s.Nullable && g.one(6):
		return nil
	case s.ValueValidation != nil && s.ValueValidation.Format == "date-time":
		// Never a list: to the API server's validation a list is a string that has a format.
		return g.moment()
	case g.one(2 * g.odd):
		return g.wild()
	case s.ValueValidation != nil && len(s.ValueValidation.Enum) > 0:
		return s.ValueValidation.Enum[g.IntN(len(s.ValueValidation.Enum))].Object
	case s.XIntOrString:
		return pick[any](g, g.number(), g.quantity())
	}
	switch s.Type {
	case "object":
		return g.members(s, key)
	case "array":
		list := []any{}
		for range g.length(s) {
			list = append(list, g.value(s.Items, ""))
		}
		return list
	case "integer":
		return g.number()
	case "number":
		return pick[any](g, g.number(), 0.5)
	case "boolean":
		return g.one(2)
	case "string":
		return g.word()
	}
	return g.wild()
}

func (g generator) members(s *schema.Structural, key string) any {
	out := map[string]any{}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
		for range g.IntN(3) {
			out[g.word()] = g.value(s.AdditionalProperties.Structural, "")
		}
	}
	if s.XPreserveUnknownFields {
		for range g.IntN(3) {
			out[g.word()] = g.wild()
		}
	}
	for _, typical := range []string{"observedGeneration", "timeAdded"} {
		if _, shared := s.Properties[typical]; shared {
			g.odd = math.MaxInt32 // a metav1.Condition or a corev1.Taint, whose schemas are not ours to tighten
		}
	}
	names := slices.Sorted(maps.Keys(s.Properties))
	only := g.IntN(len(names) + 1) // one platform is named
	for i, name := range names {
		p := s.Properties[name]
		if (key == "platform" && i == only) || (key != "platform" && (required(s, name) || g.one(2))) {
			out[name] = g.value(&p, name)
		}
	}
	return out
}

func required(s *schema.Structural, name string) bool {
	return s.ValueValidation != nil && slices.Contains(s.ValueValidation.Required, name)
}

// length returns a number of items for a list, rarely below the list's minimum.
func (g generator) length(s *schema.Structural) int {
	n := g.IntN(3)
	if s.ValueValidation != nil && s.ValueValidation.MinItems != nil && !g.one(g.odd) {
		n = max(n, int(*s.ValueValidation.MinItems))
	}
	return n
}

// quantity returns the text of a field that accepts a number or a text, usually a
// resource.Quantity.
func (g generator) quantity() string {
	if !g.one(g.odd) {
		return "3"
	}
	return g.word()
}

// wild returns a value of any type.
func (g generator) wild() any {
	return pick[any](g, nil, true, g.number(), 2.5, g.word(), g.moment(), []any{}, []any{g.word(), 1}, map[string]any{},
		map[string]any{g.word(): g.word()}, map[string]any{"name": 7})
}

// number returns a number as a client may write it.
func (g generator) number() any {
	if !g.one(g.odd) {
		return json.Number("3")
	}
	return json.Number(pick(g, "0", "1", "20", "-1", "2147483647", "2147483648", "-2147483648", "-2147483649", "3000000000",
		"9223372036854775807", "9223372036854775808", "-9223372036854775808", "1.0", "1e3", "1e10", "1e19", "1e21", "-0", "-0.0"))
}

// word returns a string: usually a duration, a name, or another format that a string may require.
func (g generator) word() string {
	if !g.one(g.odd) {
		return "8h"
	}
	return pick(g, "a", "", "1h30m", "1w", "0s", "-1h", "0.5h", "9999999999999h", "100m", "1Gi", "true", "null", "12", "http://[",
		"2020-01-01T00:00:00Z", "\u00e9\u00b5s", strings.Repeat("x", 300))
}

// moment returns a time as a client may write it.
func (g generator) moment() string {
	if !g.one(g.odd) {
		return "2020-01-01T00:00:00Z"
	}
	return pick(g, "2020-02-29T23:59:59.123456789+14:00", "2020-01-01t00:00:00Z", "2020-01-01T00:00:00z", "2020-01-01 00:00:00Z", "2020-01-01",
		"2020-01-01T00:00:00", "2020-12-31T23:59:60Z", "2020-01-01T24:00:00Z", "2020-13-01T00:00:00Z", "0000-00-00T00:00:00Z", "0001-01-01T00:00:00Z",
		"2020-01-01T00:00:00+0000", "2020-01-01T00:00:00,5Z", "2020-01-01T00:00:00x5Z", "2020-01-01T00:00:00.Z", "2020-01-01T00:00:00+24:00",
		"2020-01-01T00:00:00-99:99", "20200101T000000Z", "")
}

func pick[T any](g generator, from ...T) T { return from[g.IntN(len(from))] }
