package config

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
)

// Parts of random patches: half of them match a document somewhere.
var (
	verbs  = []string{"add", "add", "remove", "replace", "replace", "move", "copy", "test", "merge"}
	values = []string{"", "null", "{}", "[]", "[null]", "1", "1.0", "-1", "1e400", `"a"`, `"x.y"`, `"*&"`, `{"<<":{"a":1}}`, `{"a":{"b":[1,null]}}`, "{"}
	keys   = []string{
		"metadata", "name", "baseDomain", "platform", "vsphere", "apiVIPs", "vcenters", "password", "compute", "replicas",
		"pullSecret", "0", "1", "-", "-1", "01", "a~1b", "a~", "", "<<", "no",
	}
	roots = []string{"/metadata/name", "/compute/0", "/platform/vsphere", "/platform/vsphere/apiVIPs", "/platform/vsphere/vcenters/0/password", "pullSecret", ""}
)

func pick(r *rand.Rand, from []string) string { return from[r.IntN(len(from))] }

func randomPath(r *rand.Rand) string {
	path := pick(r, roots)
	for range r.IntN(3) {
		path += "/" + pick(r, keys)
	}
	return path
}

func randomPatches(r *rand.Rand) []hivev1.PatchEntity {
	out := make([]hivev1.PatchEntity, r.IntN(5))
	for i := range out {
		p := hivev1.PatchEntity{Op: pick(r, verbs), Path: randomPath(r)}
		if r.IntN(2) == 0 {
			p.From = randomPath(r)
		}
		if value := pick(r, values); r.IntN(2) == 0 {
			p.ValueJSON = value
		} else if value != "" {
			p.Value = &runtime.RawExtension{Raw: []byte(value)}
		}
		out[i] = p
	}
	return out
}

func TestRandomPatches(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	applied := 0
	for range *rounds {
		file := []string{"vsphere.yaml", "hive-aws.yaml", "helpernode-none.yaml", "ci-fake-secret.yaml"}[r.IntN(4)]
		if checkPatches(t, read(t, file), randomPatches(r)) {
			applied++
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("seed %d: %d applied", seed, applied)
	if applied < *rounds/10 {
		t.Errorf("only %d of the random patches applied: they test nothing", applied)
	}
}

// FuzzPatch lets the fuzzer choose the document and one patch, with a second one
// to the name.
func FuzzPatch(f *testing.F) {
	f.Add([]byte(valid), "replace", "metadata/name", "", `"foo"`)
	f.Add([]byte(small), "move", "/l/0", "l/1", "")
	f.Add([]byte(small), "test", "/l", "", "[1,null,{}]")
	f.Add([]byte(small), "add", "/l/-", "", `{"<<":[]}`)
	f.Fuzz(func(t *testing.T, raw []byte, verb, path, from, value string) {
		checkPatches(t, raw, []hivev1.PatchEntity{{Op: verb, Path: path, From: from, ValueJSON: value}, op("replace", "metadata/name", `"last"`)})
	})
}

func op(verb, path, value string) hivev1.PatchEntity {
	return hivev1.PatchEntity{Op: verb, Path: path, Value: &runtime.RawExtension{Raw: []byte(value)}}
}

// checkPatches checks the properties of all documents and patches, and returns whether the patches
// apply.
func checkPatches(t *testing.T, raw []byte, ps []hivev1.PatchEntity) bool {
	t.Helper()
	before := string(raw)
	got, err := ApplyPatches(raw, ps)
	if string(raw) != before {
		t.Errorf("the document that was handed in has changed")
	}
	slashed := make([]hivev1.PatchEntity, len(ps))
	for i, p := range ps {
		p.Path, p.From = other(p.Path), other(p.From)
		slashed[i] = p
	}
	again, errAgain := ApplyPatches(raw, slashed)
	if string(got) != string(again) || (err == nil) != (errAgain == nil) {
		t.Errorf("%v: a leading slash makes a difference: %v, %v", ps, err, errAgain)
	}
	if err != nil {
		if fault.KindOf(err) != fault.Denied || got != nil || strings.Contains(err.Error(), "c2VjcmV0") || strings.Contains(err.Error(), "Vc3nter") {
			t.Errorf("%v: got %s, %v", ps, got, err)
		}
		return false
	}
	checkResult(t, raw, got, ps)
	return true
}

// other returns the path with its leading slash if it has none, and without if it has one.
func other(path string) string {
	if bare, ok := strings.CutPrefix(path, "/"); ok && !strings.HasPrefix(bare, "/") {
		return bare
	}
	return "/" + strings.TrimPrefix(path, "/")
}

func checkResult(t *testing.T, raw, got []byte, ps []hivev1.PatchEntity) {
	t.Helper()
	if err := Validate(got); err != nil {
		t.Errorf("%v: the result is not valid: %v", ps, err)
	}
	name, domain, err := ClusterIdentity(got)
	if err != nil || name == "" || domain == "" {
		t.Errorf("%v: the result has name %q, domain %q, %v", ps, name, domain, err)
	}
	if want, ok := lastName(ps); ok && name != want {
		t.Errorf("%v: the name is %q, want %q", ps, name, want)
	}
	if want, ok := byLibrary(t, raw, ps); ok && len(ps) > 0 {
		var a, b any
		if yaml.Unmarshal(want, &a) != nil || yaml.Unmarshal(got, &b) != nil || !cmp.Equal(a, b) {
			t.Errorf("%v: the library alone comes to another result: %s", ps, cmp.Diff(a, b))
		}
	}
}

// lastName returns the name that the last patch sets, if it sets one.
func lastName(ps []hivev1.PatchEntity) (string, bool) {
	if len(ps) == 0 {
		return "", false
	}
	last := ps[len(ps)-1]
	if last.Op != "replace" && last.Op != "add" || strings.TrimPrefix(last.Path, "/") != "metadata/name" {
		return "", false
	}
	value, err := parsePatchValue(last)
	name, ok := value.(string)
	return name, err == nil && ok
}

// byLibrary applies all patches except tests at once, with the library alone.
func byLibrary(t *testing.T, raw []byte, ps []hivev1.PatchEntity) ([]byte, bool) {
	t.Helper()
	doc, err := yaml.YAMLToJSON(raw)
	if err != nil {
		t.Fatal(err)
	}
	var fields []map[string]any
	for _, p := range ps {
		if p.Op == "test" {
			continue
		}
		value, _ := parsePatchValue(p) // none for remove, move and copy
		fields = append(fields, map[string]any{
			"op": p.Op, "path": "/" + strings.TrimPrefix(p.Path, "/"), "from": "/" + strings.TrimPrefix(p.From, "/"), "value": value,
		})
	}
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(text)
	if err != nil {
		t.Errorf("the library does not read %s: %v", text, err)
		return nil, false
	}
	out, err := patch.Apply(doc)
	if err != nil {
		t.Errorf("the library does not apply %s: %v", text, err)
	}
	return out, err == nil
}
