package crd

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	apischema "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/utils/ptr"
)

// Values that are not validated because they certainly conform have no fault that validation would
// find.
func TestWhatConformsIsValid(t *testing.T) {
	t.Logf("-seed=%d", *seed)
	all := 0
	for _, kind := range kinds(t) {
		k, err := LoadSchema(kind)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(*seed, 0))
		for range *objects {
			g := generator{r, 20 << r.IntN(6)}
			o := g.object(t, k)
			o["apiVersion"], o["kind"] = versionOf(t, kind), kind
			defaulting.Default(o, k.shape)
			if !certainlyConforms(o, k.shape) {
				continue
			}
			all++
			if faults := apischema.ValidateCustomResource(nil, o, k.valueValidator); len(faults) > 0 {
				raw, _ := json.Marshal(o) //nolint:errchkjson // it came from the generator
				t.Errorf("%s conforms, and has faults %v\n%s", kind, faults, raw)
			}
		}
	}
	t.Logf("%d conformed", all)
	if all < *objects {
		t.Error("so few conformed that this shows nothing")
	}
}

// Values that violate a bound, or have a bound that is not considered, are left to validation.
func TestWhatDoesNotCertainlyConform(t *testing.T) {
	one := ptr.To(int64(1))
	text := func(b schema.ValueValidation) *schema.Structural {
		return &schema.Structural{Generic: schema.Generic{Type: "string"}, ValueValidation: &b}
	}
	number := func(b schema.ValueValidation) *schema.Structural {
		return &schema.Structural{Generic: schema.Generic{Type: "integer"}, ValueValidation: &b}
	}
	object := func(b schema.ValueValidation) *schema.Structural {
		return &schema.Structural{Generic: schema.Generic{Type: "object"}, ValueValidation: &b}
	}
	list := func(b schema.ValueValidation) *schema.Structural {
		return &schema.Structural{Generic: schema.Generic{Type: "array"}, Items: text(schema.ValueValidation{}), ValueValidation: &b}
	}
	for name, c := range map[string]struct {
		value any
		s     *schema.Structural
	}{
		"another type":            {int64(1), text(schema.ValueValidation{})},
		"nothing":                 {nil, text(schema.ValueValidation{})},
		"a float":                 {1.0, number(schema.ValueValidation{})},
		"too short":               {"", text(schema.ValueValidation{MinLength: one})},
		"too long":                {"ab", text(schema.ValueValidation{MaxLength: one})},
		"another pattern":         {"ab", text(schema.ValueValidation{Pattern: "^b"})},
		"not in the enum":         {"ab", text(schema.ValueValidation{Enum: []schema.JSON{{Object: "a"}}})},
		"an unknown format":       {"ab", text(schema.ValueValidation{Format: "uuid"})},
		"no time":                 {"2026-13-01T00:00:00Z", text(schema.ValueValidation{Format: "date-time"})},
		"below the minimum":       {int64(0), number(schema.ValueValidation{Minimum: ptr.To(1.0)})},
		"above the maximum":       {int64(2), number(schema.ValueValidation{Maximum: ptr.To(1.0)})},
		"beyond int32":            {int64(1 << 31), number(schema.ValueValidation{Format: "int32"})},
		"a multiple":              {int64(2), number(schema.ValueValidation{MultipleOf: ptr.To(2.0)})},
		"a field that is missing": {map[string]any{}, object(schema.ValueValidation{Required: []string{"a"}})},
		"alternatives":            {map[string]any{}, object(schema.ValueValidation{AnyOf: []schema.NestedValueValidation{{}}})},
		"a bound on properties":   {map[string]any{}, object(schema.ValueValidation{MaxProperties: one})},
		"too many items":          {[]any{"a", "b"}, list(schema.ValueValidation{MaxItems: one})},
		"a wrong item":            {[]any{int64(1)}, list(schema.ValueValidation{})},
	} {
		if certainlyConforms(c.value, c.s) {
			t.Errorf("%s certainly conforms", name)
		}
	}
}
