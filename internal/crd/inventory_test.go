package crd

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// wrong returns what is wrong with a spec, first according to this package and then according to
// the policy, which reports only the first fault.
func wrong(t *testing.T, kind string, spec map[string]any) (here, byPolicy string) {
	t.Helper()
	return wrongNamed(t, kind, "dev", spec)
}

func wrongNamed(t *testing.T, kind, name string, spec map[string]any) (here, byPolicy string) {
	t.Helper()
	object := map[string]any{"metadata": map[string]any{"name": name}, "spec": spec}
	var words []string
	for _, f := range policies[kind](object, spec) {
		words = append(words, f.Field+": "+f.Detail)
	}
	var told []string
	for _, p := range policiesOf(t, kind) {
		if p.action == denied {
			told = append(told, p.judge(t, object, nil)...)
		}
	}
	return strings.Join(words, "\n"), strings.Join(append(told, "")[:1], "")
}

func TestWhatIsWrongWithAnInventory(t *testing.T) {
	const list, either = ": write a list, such as [{name: foo}]", ": write a list of ClusterDeploymentCustomizations, such as [{name: foo}]"
	const empty = "spec.inventory: it is empty, so the pool could not create clusters: list ClusterDeploymentCustomizations, such as [{name: foo}], or remove it"
	const kind = " is not a kind that an inventory can have: remove it, or write ClusterDeploymentCustomization"
	const none, text = ".name: it is missing: write the name of a ClusterDeploymentCustomization", " is not a string: write the name of a ClusterDeploymentCustomization, in quotes"
	const twice, misnomer = " is listed twice, but only one cluster at a time can use it: list it once", ` is not a valid name of a ClusterDeploymentCustomization: use lower-case letters, digits, "-" and "."`
	for name, tc := range map[string]struct{ inventory, want string }{
		"none":                                {`null`, ""},
		"a list":                              {`[{"name":"a"},{"kind":"","name":"b"},{"kind":"ClusterDeploymentCustomization","name":"c.d-e"},{"kind":null,"name":"0"}]`, ""},
		"the enhancement's form":              {`{"ClusterDeploymentCustomizations":[{"name":"a"},{"name":"b"}]}`, ""},
		"an empty list":                       {`[]`, empty},
		"an empty mapping":                    {`{}`, empty},
		"the enhancement's form, empty":       {`{"ClusterDeploymentCustomizations":[]}`, empty},
		"the enhancement's form, null":        {`{"ClusterDeploymentCustomizations":null}`, empty},
		"a text":                              {`"x"`, `spec.inventory: "x" is neither a list nor a mapping` + either},
		"a number":                            {`7`, `spec.inventory: 7 is neither a list nor a mapping` + either},
		"a broken number":                     {`2.5`, `spec.inventory: 2.5 is neither a list nor a mapping` + either},
		"a boolean":                           {`true`, `spec.inventory: true is neither a list nor a mapping` + either},
		"a text in the enhancement's form":    {`{"ClusterDeploymentCustomizations":"a"}`, "spec.inventory: ClusterDeploymentCustomizations is not a list: write one, such as [{name: foo}]"},
		"an entry in place of the list":       {`{"name":"a","kind":"x"}`, `spec.inventory: a mapping can only have the key ClusterDeploymentCustomizations, not "kind"` + list},
		"a key beside the enhancement's":      {`{"ClusterDeploymentCustomizations":[{"name":"a"}],"more":1}`, `spec.inventory: a mapping can only have the key ClusterDeploymentCustomizations, not "more"` + list},
		"an entry that is only a name":        {`[{"name":"a"},"b"]`, "spec.inventory[1]: it is not a mapping: write {name: foo}"},
		"an entry that is null":               {`[null]`, "spec.inventory[0]: it is not a mapping: write {name: foo}"},
		"an entry of another namespace":       {`[{"name":"a"},{"name":"b","namespace":"other"}]`, `spec.inventory[1]: an entry can only have a name and a kind, and is in the namespace of its pool: remove "namespace"`},
		"another kind":                        {`[{"name":"a","kind":"Secret"}]`, `spec.inventory[0].kind: "Secret"` + kind},
		"a kind that is a number":             {`[{"name":"a","kind":7}]`, `spec.inventory[0].kind: 7` + kind},
		"a kind that is a list":               {`[{"name":"a","kind":[]}]`, `spec.inventory[0].kind: it` + kind},
		"no name":                             {`[{"name":"a"},{}]`, "spec.inventory[1]" + none},
		"a name that is null":                 {`[{"name":null}]`, "spec.inventory[0]" + none},
		"an empty name":                       {`{"ClusterDeploymentCustomizations":[{"name":""}]}`, "spec.inventory[0]" + none},
		"a name that is a number":             {`[{"name":7}]`, "spec.inventory[0].name: 7" + text},
		"a name that is a mapping":            {`[{"name":{}}]`, "spec.inventory[0].name: it" + text},
		"a name that no object has":           {`[{"name":"Foo_1"}]`, `spec.inventory: "Foo_1"` + misnomer},
		"a name with a dot at its end":        {`[{"name":"foo."}]`, `spec.inventory: "foo."` + misnomer},
		"a name of several lines":             {`[{"name":"foo\nbar"}]`, "spec.inventory: \"foo\nbar\"" + misnomer},
		"the longest name":                    {`[{"name":` + quoted("x", 253) + `}]`, ""},
		"a longer name":                       {`[{"name":` + quoted("x", 254) + `}]`, "spec.inventory: " + quoted("x", 254) + misnomer},
		"a name twice":                        {`[{"name":"a"},{"name":"b"},{"kind":"","name":"a"}]`, `spec.inventory: "a"` + twice},
		"two names twice, in the enhancement": {`{"ClusterDeploymentCustomizations":[{"name":"b"},{"name":"a"},{"name":"a"},{"name":"b"}]}`, `spec.inventory: "b"` + twice + "\n" + `spec.inventory: "a"` + twice},
		"as many as can be compared":          {many(471, 8), ""},
		"more than that":                      {many(472, 8), "spec.inventory: it lists 472 names of 3776 characters, more than the API server can compare: list fewer, and create a second pool for the others"},
		"all that is wrong": {
			`[{},7,{"name":"a","x":1},{"name":"B","kind":"C"}]`,
			"spec.inventory[1]: it is not a mapping: write {name: foo}\n" +
				`spec.inventory[2]: an entry can only have a name and a kind, and is in the namespace of its pool: remove "x"` + "\n" +
				`spec.inventory[3].kind: "C"` + kind + "\nspec.inventory[0]" + none + "\n" + `spec.inventory: "B"` + misnomer,
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := map[string]any{"inventory": judge{t: t}.parse(tc.inventory)}
			here, byPolicy := wrong(t, "ClusterPool", spec)
			if diff := cmp.Diff(tc.want, here); diff != "" {
				t.Error(diff)
			}
			if first, _, _ := strings.Cut(tc.want+"\nspec", "\nspec"); byPolicy != first {
				t.Errorf("by policy: %s", byPolicy)
			}
		})
	}
	if here, byPolicy := wrong(t, "ClusterPool", map[string]any{}); here+byPolicy != "" {
		t.Errorf("a pool may have no inventory: %s%s", here, byPolicy)
	}
}

func many(n, characters int) string {
	entries := make([]string, n)
	for i := range entries {
		entries[i] = fmt.Sprintf(`{"name":"%0*d"}`, characters, i)
	}
	return "[" + strings.Join(entries, ",") + "]"
}

func TestWhatIsWrongWithPatches(t *testing.T) {
	const value, text = ` needs a value: set value, or valueJSON, which can also be "null"`, ".valueJSON: it is not JSON: put a string in double quotes, or write it as value, which takes a string without quotes"
	for name, tc := range map[string]struct{ spec, want string }{
		"no patches":         {`{}`, ""},
		"null":               {`{"installConfigPatches":null,"clusterDeploymentSpecPatches":null,"installerManifestPatches":null}`, ""},
		"values of any type": {`{"installConfigPatches":[{"op":"add","value":""},{"op":"replace","value":0},{"op":"test","value":false},{"op":"add","value":[]},{"op":"add","value":{}}]}`, ""},
		"values as JSON":     {`{"installConfigPatches":[{"op":"add","valueJSON":"null"},{"op":"add","valueJSON":" {} "},{"op":"add","valueJSON":"[1]\n"},{"op":"add","valueJSON":"\"\""},{"op":"add","valueJSON":"-1.5e+3"},{"op":"add","valueJSON":"true"}]}`, ""},
		"without a value":    {`{"installConfigPatches":[{"op":"remove"},{"op":"move"},{"op":"copy"}]}`, ""},
		"add without":        {`{"installConfigPatches":[{"op":"remove"},{"op":"add"}]}`, "spec.installConfigPatches[1]: add" + value},
		"replace by null":    {`{"clusterDeploymentSpecPatches":[{"op":"replace","value":null}]}`, "spec.clusterDeploymentSpecPatches[0]: replace" + value},
		"an empty valueJSON": {`{"installConfigPatches":[{"op":"test","valueJSON":""}]}`, "spec.installConfigPatches[0]: test" + value},
		"in a manifest": {
			`{"installerManifestPatches":[{"manifestSelector":{"glob":"a"},"patches":[]},{"manifestSelector":{"glob":"a"},"patches":[{"op":"remove"},{"op":"test"}]}]}`,
			"spec.installerManifestPatches[1].patches[1]: test" + value,
		},
		"a text without quotes": {`{"installConfigPatches":[{"op":"add","valueJSON":"foo"}]}`, "spec.installConfigPatches[0]" + text},
		"half a mapping":        {`{"installConfigPatches":[{"op":"add","valueJSON":"{\"a\":1"}]}`, "spec.installConfigPatches[0]" + text},
		"one quote":             {`{"installConfigPatches":[{"op":"add","valueJSON":"\""}]}`, "spec.installConfigPatches[0]" + text},
		"blanks":                {`{"installConfigPatches":[{"op":"add","valueJSON":"  "}]}`, "spec.installConfigPatches[0]" + text},
		"a number with a zero":  {`{"installConfigPatches":[{"op":"add","valueJSON":"007"}]}`, "spec.installConfigPatches[0]" + text},
		"several": {
			`{"installConfigPatches":[{"op":"add","valueJSON":"foo"}],"clusterDeploymentSpecPatches":[{"op":"add"}]}`,
			"spec.clusterDeploymentSpecPatches[0]: add" + value + "\nspec.installConfigPatches[0]" + text,
		},
	} {
		t.Run(name, func(t *testing.T) {
			here, byPolicy := wrong(t, "ClusterDeploymentCustomization", judge{t: t}.parse(tc.spec).(map[string]any))
			if diff := cmp.Diff(tc.want, here); diff != "" {
				t.Error(diff)
			}
			if first, _, _ := strings.Cut(tc.want+"\nspec", "\nspec"); byPolicy != first {
				t.Errorf("by policy: %s", byPolicy)
			}
		})
	}
}

// The checks of manifests and those of the API server are separate programs, and must agree.
func TestManifestsAndPoliciesAreJudgedAlike(t *testing.T) {
	t.Logf("-seed=%d", *seed)
	g := generator{rand.New(rand.NewPCG(*seed, 1)), 4}
	refused := map[string]int{}
	for range *objects {
		for kind, spec := range map[string]map[string]any{"ClusterPool": {"inventory": g.inventory()}, "ClusterDeploymentCustomization": {"installConfigPatches": g.patches()}} {
			here, byPolicy := wrong(t, kind, spec)
			if (here == "") != (byPolicy == "") || !strings.HasPrefix(here, byPolicy) {
				t.Errorf("%v\nhere:      %s\nby policy: %s", spec, here, byPolicy)
			}
			if here != "" {
				refused[kind]++
			}
		}
	}
	t.Logf("refused of %d: %v", *objects, refused)
	for _, kind := range []string{"ClusterPool", "ClusterDeploymentCustomization"} {
		if n := refused[kind]; n < *objects/20 || n > *objects*19/20 {
			t.Errorf("%d of %d %ss were refused: this shows little", n, *objects, kind)
		}
	}
}

func (g generator) inventory() any {
	if g.one(2 * g.odd) {
		return g.plain()
	}
	list := []any{}
	for range g.IntN(4) {
		list = append(list, g.entry())
	}
	switch {
	case g.one(3 * g.odd):
		return map[string]any{customizationsKey: list, "more": list}
	case g.one(2):
		return map[string]any{customizationsKey: list}
	}
	return list
}

func (g generator) entry() any {
	if g.one(4 * g.odd) {
		return g.plain()
	}
	e := map[string]any{"name": pick(g, "a", "b", "c", "d", "e", "f", "g", "h")}
	if g.one(g.odd) {
		e[pick(g, "name", "kind", "kind", "namespace")] = g.plain()
	}
	if g.one(g.odd) {
		e["kind"] = "ClusterDeploymentCustomization"
	}
	return e
}

func (g generator) patches() any {
	list := []any{}
	for range g.IntN(4) {
		p := map[string]any{"op": pick(g, "add", "remove", "replace", "move", "copy", "test"), "path": "/a"}
		if !g.one(g.odd) {
			p["value"] = g.plain()
		}
		if g.one(g.odd) {
			p["valueJSON"] = pick(g, "", "null", "foo", "[]", "{", "12", "1.", `"x"`, "tru", strings.Repeat("1", 120))
		}
		list = append(list, p)
	}
	return list
}

// plain is a value as it comes out of JSON.
func (g generator) plain() any {
	return pick[any](g, nil, true, int64(7), 2.5, "", "a", "Foo_1", []any{}, []any{"a"}, map[string]any{}, map[string]any{"name": "a"}, map[string]any{"b": "a", "a": "b"})
}

func TestAnInventoryIsJudgedWhenItChanges(t *testing.T) {
	for name, tc := range map[string]struct {
		old, now string
		refused  bool
	}{
		"bad, and as it was":                        {`{"inventory":[],"size":1}`, `{"inventory":[],"size":2}`, false},
		"of another type, and as it was":            {`{"inventory":7}`, `{"inventory":7}`, false},
		"bad, and now as the list that was in it":   {`{"inventory":{"ClusterDeploymentCustomizations":[]}}`, `{"inventory":[]}`, false},
		"bad, and as it was in the enhancement":     {`{"inventory":{"ClusterDeploymentCustomizations":[]}}`, `{"inventory":{"ClusterDeploymentCustomizations":[]}}`, false},
		"taken away":                                {`{"inventory":[]}`, `{}`, false},
		"set to null":                               {`{"inventory":[]}`, `{"inventory":null}`, false},
		"bad where none was":                        {`{}`, `{"inventory":[]}`, true},
		"bad where null was":                        {`{"inventory":null}`, `{"inventory":[]}`, true},
		"bad in another way":                        {`{"inventory":[]}`, `{"inventory":[{"name":""}]}`, true},
		"bad and then longer":                       {`{"inventory":[{"name":"a"},{"name":"a"}]}`, `{"inventory":[{"name":"a"},{"name":"a"},{"name":"b"}]}`, true},
		"bad, and mapped though it was a list once": {`{"inventory":[]}`, `{"inventory":{"ClusterDeploymentCustomizations":[]}}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			j := judge{t: t}
			meta := map[string]any{"name": "dev"}
			old, now := map[string]any{"metadata": meta, "spec": j.parse(tc.old)}, map[string]any{"metadata": meta, "spec": j.parse(tc.now)}
			var told []string
			for _, p := range policiesOf(t, "ClusterPool") {
				if p.action == denied {
					told = append(told, p.judge(t, now, old)...)
				}
			}
			if got := len(told) > 0; got != tc.refused {
				t.Errorf("refused: %v %q", got, told)
			}
		})
	}
}
