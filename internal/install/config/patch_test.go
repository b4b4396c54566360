package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
)

// patches parses patches in the form of a customization.
func patches(t *testing.T, text string) []hivev1.PatchEntity {
	t.Helper()
	var out []hivev1.PatchEntity
	if err := yaml.UnmarshalStrict([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

const small = `{baseDomain: a.b, metadata: {name: c}, platform: {none: {}}, l: [1, null, {k: v}], z: null, "x/y~z": 1}`

func TestPatch(t *testing.T) {
	for name, tt := range map[string]struct{ patches, want string }{
		"a name, as the enhancement writes it": {`[{op: replace, path: metadata/name, value: foo}]`, `{metadata: {name: foo}}`},
		"a value in JSON":                      {`[{op: add, path: /m, valueJSON: '{"a":[1]}'}]`, `{m: {a: [1]}}`},
		"valueJSON wins":                       {`[{op: add, path: /m, value: 1, valueJSON: "2"}]`, `{m: 2}`},
		"a null":                               {`[{op: add, path: /m, valueJSON: "null"}]`, `{m: null}`},
		"false is a value":                     {`[{op: add, path: /m, value: false}]`, `{m: false}`},
		"an empty text is a value":             {`[{op: add, path: /m, value: ""}]`, `{m: ""}`},
		"add replaces what is there":           {`[{op: add, path: /z, value: 1}]`, `{z: 1}`},
		"replacing a null":                     {`[{op: replace, path: /z, value: 1}]`, `{z: 1}`},
		"the end of a list":                    {`[{op: add, path: /l/-, value: 4}]`, `{l: [1, null, {k: v}, 4]}`},
		"the end of a list, counted":           {`[{op: add, path: l/3, value: 4}]`, `{l: [1, null, {k: v}, 4]}`},
		"the middle of a list":                 {`[{op: add, path: /l/1, value: 4}]`, `{l: [1, 4, null, {k: v}]}`},
		"inside a list":                        {`[{op: replace, path: /l/2/k, value: w}]`, `{l: [1, null, {k: w}]}`},
		"an entry that goes":                   {`[{op: remove, path: /l/0}, {op: remove, path: /l/0}]`, `{l: [{k: v}]}`},
		"a move within a list":                 {`[{op: move, from: l/0, path: l/2}]`, `{l: [null, {k: v}, 1]}`},
		"a copy":                               {`[{op: copy, from: l/2, path: m}]`, `{m: {k: v}}`},
		"a copy of a null":                     {`[{op: copy, from: z, path: m}]`, `{m: null}`},
		"an escaped key":                       {`[{op: replace, path: /x~1y~0z, value: 2}]`, `{"x/y~z": 2}`},
		"tests that pass":                      {`[{op: test, path: l, value: [1.0, null, {k: v}]}, {op: test, path: z, valueJSON: "null"}]`, `{}`},
		"a later patch sees an earlier one":    {`[{op: add, path: m, value: {}}, {op: add, path: m/k, value: 1}, {op: move, from: m, path: o}]`, `{o: {k: 1}}`},
		"no patches":                           {`[]`, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ApplyPatches([]byte(small), patches(t, tt.patches))
			if err != nil {
				t.Fatal(err)
			}
			want := tree(t, []byte(small))
			for key, value := range tree(t, []byte(tt.want)) {
				want[key] = value
			}
			if diff := cmp.Diff(want, tree(t, got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPatchDenies(t *testing.T) {
	for name, tt := range map[string]struct{ patches, want string }{
		// malformed
		"no operation":           {`[{path: a, value: 1}]`, `installConfigPatches[0]: op: "" is not an operation: use add, remove, replace, move, copy or test`},
		"another operation":      {`[{op: Replace, path: z, value: 1}]`, `installConfigPatches[0]: op: "Replace" is not an operation: use add, remove, replace, move, copy or test`},
		"no path":                {`[{op: remove}]`, `installConfigPatches[0]: path: "" has an empty part: name a key in each, such as /metadata/name`},
		"the whole document":     {`[{op: add, path: /, value: {}}]`, `installConfigPatches[0]: path: "/" has an empty part: name a key in each, such as /metadata/name`},
		"a slash too many":       {`[{op: add, path: metadata//name, value: x}]`, `installConfigPatches[0]: path: "metadata//name" has an empty part: name a key in each, such as /metadata/name`},
		"a bad escape":           {`[{op: remove, path: /a~b}]`, `installConfigPatches[0]: path: "/a~b" has an invalid escape after ~: write ~0 for ~, and ~1 for a / inside a key`},
		"no value":               {`[{op: replace, path: z}]`, `installConfigPatches[0]: value: is missing: set value or valueJSON; for a null set valueJSON to "null"`},
		"a null for a value":     {`[{op: test, path: z, value: null}]`, `installConfigPatches[0]: value: is missing: set value or valueJSON; for a null set valueJSON to "null"`},
		"a text without quotes":  {`[{op: add, path: z, valueJSON: foo}]`, `installConfigPatches[0]: valueJSON: is not valid JSON: write a string in quotes, as "\"text\"", or use value`},
		"two values in one":      {`[{op: add, path: z, valueJSON: "1 2"}]`, `installConfigPatches[0]: valueJSON: is not valid JSON: write a string in quotes, as "\"text\"", or use value`},
		"a copy from nowhere":    {`[{op: copy, path: z}]`, `installConfigPatches[0]: from: "" has an empty part: name a key in each, such as /metadata/name`},
		"a malformed second one": {`[{op: remove, path: z}, {op: remove, path: ""}]`, `installConfigPatches[1]: path: "" has an empty part: name a key in each, such as /metadata/name`},

		// a path that does not exist
		"a misspelt key":           {`[{op: replace, path: metadata/nam, value: x}]`, `installConfigPatches[0]: replace /metadata/nam: no such path: /metadata has no key "nam": correct the path, or use add`},
		"removing nothing":         {`[{op: remove, path: m}]`, `installConfigPatches[0]: remove /m: no such path: the document has no key "m": correct the path, or remove the patch`},
		"testing nothing":          {`[{op: test, path: m, valueJSON: "null"}]`, `installConfigPatches[0]: test /m: no such path: the document has no key "m": correct the path, or remove the patch`},
		"a parent that is missing": {`[{op: add, path: /platform/vsphere/apiVIPs/0, value: x}]`, `installConfigPatches[0]: add /platform/vsphere/apiVIPs/0: no such path: /platform has no key "vsphere": correct the path, or first add its parent`},
		"below a text":             {`[{op: add, path: /metadata/name/x, value: x}]`, `installConfigPatches[0]: add /metadata/name/x: no such path: /metadata/name is a string and cannot have children: correct the path, or first add its parent`},
		"below a null":             {`[{op: add, path: /z/x, value: x}]`, `installConfigPatches[0]: add /z/x: no such path: /z is empty and cannot have children: correct the path, or first add its parent`},
		"below a null entry":       {`[{op: replace, path: /l/1/x, value: x}]`, `installConfigPatches[0]: replace /l/1/x: no such path: /l/1 is empty and has no children: correct the path, or use add`},
		"past the end of a list":   {`[{op: replace, path: /l/3, value: x}]`, `installConfigPatches[0]: replace /l/3: no such path: /l is a list of 3 and has no entry "3"; the first entry is 0: correct the path, or use add`},
		"adding past the end":      {`[{op: add, path: /l/4, value: x}]`, `installConfigPatches[0]: add /l/4: /l is a list of 3 and has no position "4": use - for its end: correct the path, or first add its parent`},
		"counting from the end":    {`[{op: remove, path: /l/-1}]`, `installConfigPatches[0]: remove /l/-1: no such path: /l is a list of 3 and has no entry "-1"; the first entry is 0: correct the path, or remove the patch`},
		"moving from nowhere":      {`[{op: move, from: m, path: z}]`, `installConfigPatches[0]: move /z: from /m: no such path: the document has no key "m": correct it`},
		"moving into itself":       {`[{op: move, from: metadata, path: metadata/name}]`, `installConfigPatches[0]: move /metadata/name: the path no longer exists after from, /metadata, is removed: correct path or from`},
		"moving past the end":      {`[{op: move, from: l/0, path: l/3}]`, `installConfigPatches[0]: move /l/3: the path no longer exists after from, /l/0, is removed: correct path or from`},
		"a test that fails":        {`[{op: test, path: l, value: [1, 2, {k: v}]}]`, `installConfigPatches[0]: test /l: the test fails, because the value differs: correct the value, or remove the patch`},

		// a result that is invalid
		"a key that merges":     {`[{op: add, path: z, valueJSON: '{"<<":{"a":1}}'}]`, `installConfigPatches: the result cannot be written as YAML: use no key << and no numbers of more than 64 bits in values`},
		"an infinite number":    {`[{op: add, path: z, valueJSON: "1e400"}]`, `installConfigPatches: the result cannot be written as YAML: use no key << and no numbers of more than 64 bits in values`},
		"a bad name":            {`[{op: replace, path: metadata/name, value: My_Cluster}]`, `with installConfigPatches applied: metadata.name: "My_Cluster" is not a DNS label: use at most 63 lower-case letters, digits and -, with a letter or digit at both ends`},
		"a domain that is gone": {`[{op: remove, path: baseDomain}]`, `with installConfigPatches applied: baseDomain: is missing: set it`},
		"a second platform":     {`[{op: add, path: platform/local, value: {}}]`, `with installConfigPatches applied: platform: has 2 keys ["local" "none"], want exactly one`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ApplyPatches([]byte(small), patches(t, tt.patches))
			if diff := cmp.Diff(tt.want, text(err)); diff != "" || got != nil {
				t.Errorf("%s\n%s", got, diff)
			}
			if fault.KindOf(err) != fault.Denied {
				t.Errorf("a fault that is %s, want denied", fault.KindOf(err))
			}
		})
	}
}

func TestPatchOfARealInstallConfig(t *testing.T) {
	raw := read(t, "vsphere.yaml")
	got, err := ApplyPatches(raw, patches(t, `
- {op: replace, path: metadata/name, value: foo}
- {op: replace, path: /baseDomain, value: prepared.example.com}
- {op: replace, path: /platform/vsphere/apiVIPs/0, value: 10.0.0.10}
- {op: replace, path: /platform/vsphere/ingressVIPs, value: [10.0.0.11]}
- {op: test, path: /compute/0/replicas, value: 2}
- {op: copy, from: /platform/vsphere/failureDomains/0, path: /platform/vsphere/failureDomains/-}
- {op: replace, path: /platform/vsphere/failureDomains/1/name, value: fd2}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer("mypool-x7k2p", "foo", "baseDomain: lab.", "baseDomain: prepared.", "10.0.0.2", "10.0.0.10", "10.0.0.3", "10.0.0.11").Replace(string(raw))
	domains := tree(t, []byte(want))
	vsphere := domains["platform"].(map[string]any)["vsphere"].(map[string]any)
	first := vsphere["failureDomains"].([]any)[0].(map[string]any)
	second := map[string]any{"name": "fd2"}
	for key, value := range first {
		if key != "name" {
			second[key] = value
		}
	}
	vsphere["failureDomains"] = []any{first, second}
	if diff := cmp.Diff(domains, tree(t, got)); diff != "" {
		t.Error(diff)
	}
	name, domain, err := ClusterIdentity(got)
	if name != "foo" || domain != "prepared.example.com" || err != nil {
		t.Errorf("identity %q, %q, %v", name, domain, err)
	}
}

func TestPatchKeepsNumbersDigitForDigit(t *testing.T) {
	got, err := ApplyPatches([]byte("baseDomain: b.c\nmetadata: {name: c}\nplatform: {aws: {size: 9007199254740993}}"),
		patches(t, `[{op: copy, from: platform/aws/size, path: a}, {op: add, path: b, valueJSON: "9007199254740995"}]`))
	if err != nil {
		t.Fatal(err)
	}
	want := "a: 9007199254740993\nb: 9007199254740995\nbaseDomain: b.c\nmetadata:\n  name: c\nplatform:\n  aws:\n    size: 9007199254740993\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestTheOrderOfPatchesMatters(t *testing.T) {
	ps := patches(t, `[{op: replace, path: metadata/name, value: foo}, {op: replace, path: metadata/name, value: bar}]`)
	for _, want := range []string{"bar", "foo"} {
		got, err := ApplyPatches([]byte(small), ps)
		if err != nil {
			t.Fatal(err)
		}
		if name, _, err := ClusterIdentity(got); name != want || err != nil {
			t.Errorf("name %q, %v, want %q", name, err, want)
		}
		slices.Reverse(ps)
	}
}

// An error must not reveal a secret, even if a patch moves it to a place whose value is quoted.
func TestPatchErrorsTellNoSecrets(t *testing.T) {
	raw := read(t, "vsphere.yaml")
	secrets := []string{"c2VjcmV0OnRva2Vu", "Vc3nter", "N3w-s3cret"}
	for _, text := range []string{
		`[{op: copy, from: pullSecret, path: metadata/name}]`,
		`[{op: copy, from: platform/vsphere/vcenters/0/password, path: baseDomain}]`,
		`[{op: move, from: platform/vsphere/vcenters/0/password, path: metadata/name}]`,
		`[{op: add, path: pullSecret, value: N3w-s3cret}, {op: move, from: pullSecret, path: metadata/name}]`,
		`[{op: add, path: pullSecret, value: N3w-s3cret}, {op: copy, from: pullSecret, path: metadata/name}, {op: remove, path: pullSecret}]`,
		`[{op: add, path: pullSecret/x, value: N3w-s3cret}]`,
		`[{op: test, path: pullSecret, value: N3w-s3cret}]`,
		`[{op: add, path: pullSecret, valueJSON: N3w-s3cret}]`,
	} {
		_, err := ApplyPatches(raw, patches(t, text))
		if err == nil {
			t.Errorf("%s applies", text)
			continue
		}
		for _, secret := range secrets {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the error tells %s: %v", text, secret, err)
			}
		}
	}
}

func TestPatchBlamesTheTemplateForItself(t *testing.T) {
	_, err := ApplyPatches([]byte("metadata: {name: c}\nplatform: {none: {}}"), nil)
	if got, want := text(err), "baseDomain: is missing: set it"; got != want {
		t.Error(cmp.Diff(want, got))
	}
}

func TestCopiesOfCopiesEndSomewhere(t *testing.T) {
	var ps []hivev1.PatchEntity
	ps = append(ps, hivev1.PatchEntity{Op: "add", Path: "l", Value: &runtime.RawExtension{Raw: []byte(`["0123456789"]`)}})
	for range 60 {
		ps = append(ps, hivev1.PatchEntity{Op: "copy", From: "l", Path: "l/-"})
	}
	_, err := ApplyPatches([]byte(small), ps)
	if fault.KindOf(err) != fault.Denied || !strings.Contains(text(err), "makes the document larger than 1048576 bytes") {
		t.Errorf("got %v", err)
	}
}

func TestIdentityDenies(t *testing.T) {
	for in, want := range map[string]string{
		"[]":                                     "install-config is a list, want a mapping with keys such as baseDomain and platform",
		"baseDomain: a.b":                        "metadata: is empty, want a mapping with the key name",
		"metadata: {name: c}":                    "baseDomain: is missing: set it",
		"{metadata: {name: 1}, baseDomain: a.b}": "metadata.name: is a number, want a string: put it in quotes",
	} {
		name, domain, err := ClusterIdentity([]byte(in))
		if text(err) != want || fault.KindOf(err) != fault.Denied || name != "" || domain != "" {
			t.Errorf("%s: %q, %q, %v", in, name, domain, err)
		}
	}
}

// Read from the API, a null is a nil pointer; constructed in Go it can be any of these.
func TestANullIsNoValueHoweverItCame(t *testing.T) {
	for _, value := range []*runtime.RawExtension{nil, {}, {Raw: []byte("null")}, {Raw: []byte(" null ")}} {
		_, err := ApplyPatches([]byte(small), []hivev1.PatchEntity{{Op: "add", Path: "z", Value: value}})
		if !strings.Contains(text(err), "value: is missing") {
			t.Errorf("%v: got %v", value, err)
		}
	}
}

func TestSame(t *testing.T) {
	for name, tt := range map[string]struct {
		a, b string
		want bool
	}{
		"the order of keys":               {`{"a":1,"b":2}`, `{"b":2,"a":1}`, true},
		"the order of a list":             {`[1,2]`, `[2,1]`, false},
		"a null and nothing":              {`{"a":null}`, `{"b":null}`, false},
		"a longer list":                   {`[null]`, `[]`, false},
		"a number and a text":             {`1`, `"1"`, false},
		"another spelling":                {`10`, `1.0e1`, true},
		"zeros":                           {`0`, `-0`, true},
		"numbers that float64 mixes up":   {`9007199254740993`, `9007199254740992`, false},
		"numbers that are infinite alike": {`1e400`, `1e401`, false},
		"a number as infinite as itself":  {`1e400`, `1e400`, true},
	} {
		t.Run(name, func(t *testing.T) {
			a, errA := decodeJSONValue([]byte(tt.a))
			b, errB := decodeJSONValue([]byte(tt.b))
			if errA != nil || errB != nil || equalJSON(a, b) != tt.want || equalJSON(b, a) != tt.want {
				t.Errorf("got %t, %v, %v", !tt.want, errA, errB)
			}
		})
	}
}
