package crd

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	books "hotspare.io/hotspare/internal/inventory"
	"hotspare.io/hotspare/internal/pool"
	"hotspare.io/hotspare/internal/pool/facts"
)

var update = flag.Bool("update", false, "write testdata anew")

// least contains the required fields of each kind.
var least = map[string]string{
	"ClusterPool":  `{"size":1,"platform":{"local":{}},"baseDomain":"example.com","imageSetRef":{"name":"v1"}}`,
	"ClusterClaim": `{"clusterPoolName":"dev"}`,

	"ClusterDeploymentCustomization": `{}`,
}

// contradictions are values that are valid, but not together.
var contradictions = map[string][]string{
	"ClusterPool": {
		`{"size":3,"maxSize":1}`, `{"size":1,"runningCount":2}`, `{"size":1,"maxConcurrent":0}`, `{"size":0,"runningCount":0,"maxSize":0}`,
		`{"claimLifetime":{"default":"8h","maximum":"1h"}}`, `{"platform":{"local":{},"aws":{"region":"a"}}}`, `{"platform":{"local":null,"aws":null}}`,
		`{"hibernationConfig":{"resumeTimeout":"5m"},"powerstateTransitionToRunningTimeout":"10m"}`,
		`{"inventory":[{"name":"a"},{"name":"a"}]}`, `{"inventory":{"ClusterDeploymentCustomizations":[{"name":"a"}]}}`,
		`{"labels":{"a":"not a label"}}`, `{"labels":{"a/b/c":"x"}}`,
	},
	"ClusterClaim": {`{"namespace":"chosen"}`, `{"subjects":[{"kind":"User","name":"a"},{"kind":"User","name":"a"}]}`},
}

// The table is testdata/badinput-*.txt: each field of the Go types with each test value for its
// type, and the outcome. A new field has no row until somebody has reviewed its lines and written
// them with -update.
func TestEachFieldWithBadInput(t *testing.T) {
	for kind, typ := range map[string]reflect.Type{
		"ClusterPool": reflect.TypeFor[hivev1.ClusterPoolSpec](), "ClusterClaim": reflect.TypeFor[hivev1.ClusterClaimSpec](),
	} {
		t.Run(kind, func(t *testing.T) {
			judge := judge{t: t, kind: kind, policies: policiesOf(t, kind)}
			var err error
			if judge.schema, err = LoadSchema(kind); err != nil {
				t.Fatal(err)
			}
			var table strings.Builder
			for _, f := range fieldsOf(typ, nil) {
				for _, v := range valuesFor(f.typ) {
					said := judge.with(f.path, v)
					fmt.Fprintf(&table, "%s = %s: %s\n", strings.Join(f.path, "."), short(v), said)
					if name, _ := strings.CutSuffix(f.path[len(f.path)-1], "[]"); strings.HasPrefix(said, denied) && !strings.Contains(said, name) {
						t.Errorf("nothing names %s: %s", name, said)
					}
				}
			}
			for _, c := range contradictions[kind] {
				fmt.Fprintf(&table, "%s: %s\n", c, judge.merged(c))
			}
			compare(t, filepath.Join("testdata", "badinput-"+strings.ToLower(kind)+".txt"), table.String())
		})
	}
}

type specField struct {
	path []string
	typ  reflect.Type
}

// fieldsOf lists the fields of a struct and of the structs of ours in it; of a
// list, those of its first item.
func fieldsOf(t reflect.Type, at []string) []specField {
	var out []specField
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		typ := t.Field(i).Type
		path := append(slices.Clone(at), name)
		out = append(out, specField{slices.Clone(path), typ})
		if typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		if typ.Kind() == reflect.Slice {
			typ = typ.Elem()
			path[len(path)-1] += "[]"
			out = append(out, specField{path, typ})
		}
		if typ.Kind() == reflect.Struct && typ.PkgPath() == reflect.TypeFor[hivev1.Platform]().PkgPath() {
			out = append(out, fieldsOf(typ, path)...)
		}
	}
	return out
}

const missing = "missing"

// valuesFor returns the values, in JSON, with which a field of this type is tested.
func valuesFor(t reflect.Type) []string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	out := []string{missing, "null"}
	switch {
	case t == reflect.TypeFor[hivev1.Duration](), t == reflect.TypeFor[hivev1.ExecTimeout]():
		return append(out, "8", "[]", `""`, `"0"`, `"0s"`, `"1h30m"`, `"1.5h"`, `"-1h"`, `"8"`, `"1w"`, `"1d"`, `"forever"`, `"87600h"`, `"87601h"`,
			`"9999999999999h"`, `"9999999999999999999ns"`, quoted("1h", 33))
	case t.Kind() == reflect.Int32:
		return append(out, `"3"`, "true", "[]", "1.5", "-1", "-2147483649", "0", "2147483647", "2147483648", "9223372036854775808", "1e30")
	case t.Kind() == reflect.Bool:
		return append(out, `"true"`, "1", "[]", "true")
	case t.Kind() == reflect.String:
		return append(out, "7", "true", "[]", "{}", `""`, `" "`, `"UPPER_case!"`, quoted("x", 300))
	case t.Kind() == reflect.Slice:
		return append(out, `"x"`, "{}", "7", "[]", "[null]", "[[]]")
	case t.Kind() == reflect.Map:
		return append(out, `"x"`, "[]", "{}", `{"a":7}`, `{"a":null}`, `{"":"x"}`, `{"a":`+quoted("x", 300)+`}`)
	default:
		return append(out, `"x"`, "[]", "7", "{}", `{"name":""}`, `{"name":7}`, `{"stranger":1}`)
	}
}

func quoted(s string, times int) string { return `"` + strings.Repeat(s, times) + `"` }

// short shortens a value to a line of limited length.
func short(v string) string {
	if len(v) > 40 {
		return fmt.Sprintf("%.20s… (%d)", v, len(v))
	}
	return v
}

// judge determines the outcome for an object.
type judge struct {
	t        *testing.T
	kind     string
	schema   *Schema
	policies []policy
}

func (j judge) spec() map[string]any { return j.parse(least[j.kind]).(map[string]any) }

func (j judge) parse(raw string) any {
	j.t.Helper()
	var v any
	if err := utiljson.Unmarshal([]byte(raw), &v); err != nil {
		j.t.Fatal(err)
	}
	return v
}

func (j judge) with(path []string, value string) string {
	spec := j.spec()
	at := spec
	for i, key := range path[:len(path)-1] {
		name, isList := strings.CutSuffix(key, "[]")
		next, _ := at[name].(map[string]any)
		if next == nil {
			next = map[string]any{}
		}
		at[name] = next
		if isList {
			next["name"] = "a" // required in an item
			at[name] = []any{next}
		}
		at = next
		for field, value := range requiredIn(path[i:]) {
			at[field] = value
		}
	}
	if len(path) > 2 && path[1] == "exec" {
		spec["platform"].(map[string]any)["exec"].(map[string]any)["recipe"] = "k3d" // required
	}
	name, isList := strings.CutSuffix(path[len(path)-1], "[]")
	switch {
	case value == missing:
		delete(at, name)
	case isList:
		at[name] = []any{j.parse(value)}
	default:
		at[name] = j.parse(value)
	}
	if len(path) > 1 && path[0] == "platform" && path[1] != "local" {
		delete(spec["platform"].(map[string]any), "local")
	}
	return j.of(spec)
}

// requiredIn returns what a struct of platform capi requires in addition to the field below it; path
// begins with the field of the struct.
func requiredIn(path []string) map[string]any {
	switch {
	case path[0] == "capi" && path[1] != "templateRef":
		return map[string]any{"classRef": map[string]any{"name": "a"}}
	case path[0] == "classRef":
		return map[string]any{"name": "a"}
	case path[0] == "workers[]":
		return map[string]any{"class": "a"}
	case path[0] == "variables[]":
		return map[string]any{"value": true}
	}
	return nil
}

func (j judge) merged(more string) string {
	spec := j.spec()
	for k, v := range j.parse(more).(map[string]any) {
		spec[k] = v
	}
	return j.of(spec)
}

func (j judge) of(spec map[string]any) string {
	j.t.Helper()
	object := map[string]any{
		"apiVersion": hivev1.GroupVersion.String(), "kind": j.kind, "metadata": map[string]any{"name": "dev", "namespace": "default"}, "spec": spec,
	}
	v, err := j.schema.Admit(j.t.Context(), object)
	if err != nil {
		j.t.Fatal(err)
	}
	if len(v.Faults) > 0 {
		return denied + v.Faults.ToAggregate().Error()
	}
	said := []string{"accepted" + j.outcome(object)}
	for _, f := range v.Unknown {
		said = append(said, "there is no "+f)
	}
	for _, p := range j.policies {
		words := p.judge(j.t, object, nil)
		if p.action == denied && len(words) > 0 {
			return denied + strings.Join(words, "; ")
		}
		said = append(said, words...)
	}
	return strings.Join(said, "; ")
}

// outcome returns what a pool would do next. Accepted values can be decoded.
func (j judge) outcome(object map[string]any) string {
	raw, err := json.Marshal(object)
	if err != nil {
		j.t.Fatal(err)
	}
	if j.kind != "ClusterPool" {
		var c hivev1.ClusterClaim
		if err := json.Unmarshal(raw, &c); err != nil || c.Unreadable != "" {
			j.t.Errorf("it was accepted and cannot be read: %v %s\n%s", err, c.Unreadable, raw)
		}
		return ""
	}
	var p hivev1.ClusterPool
	if err := json.Unmarshal(raw, &p); err != nil || p.Unreadable != "" {
		j.t.Errorf("it was accepted and cannot be read: %v %s\n%s", err, p.Unreadable, raw)
	}
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s, err := facts.Objects{Pool: &p, Clusters: map[string]*hivev1.ClusterDeployment{"a": {
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "a", CreationTimestamp: metav1.NewTime(noon)},
		Spec:       hivev1.ClusterDeploymentSpec{Installed: true, ClusterPoolRef: &hivev1.ClusterPoolReference{Namespace: "default", PoolName: "dev"}},
	}}}.PoolSnapshot(books.Plan{}, noon)
	if err != nil {
		return ", then " + err.Error()
	}
	s.Members[0].Version = s.Settings.Version // not about staleness
	return ": " + pool.Decide(s).Report.Words
}

func compare(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s differs (-want +got); -update writes it anew:\n%s", path, diff)
	}
}
