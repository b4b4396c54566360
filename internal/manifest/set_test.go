package manifest_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"hotspare.io/hotspare/internal/manifest"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// load reads text as one file, f.yaml.
func load(t *testing.T, text string) (*manifest.Set, error) {
	t.Helper()
	folder(t, map[string]string{"f.yaml": text})
	docs, err := manifest.Reader{}.Read([]string{"f.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	return manifest.Load(t.Context(), docs, manifest.Defaults{Namespace: "default", Created: noon})
}

func must(t *testing.T, text string) *manifest.Set {
	t.Helper()
	s, err := load(t, text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// pool returns a ClusterPool that the API server accepts, changed by pairs of old and new text.
func pool(changes ...string) string {
	return strings.NewReplacer(changes...).Replace(`
apiVersion: hive.openshift.io/v1
kind: ClusterPool
metadata: {name: dev}
spec:
  size: 1
  platform: {local: {}}
  baseDomain: example.com
  imageSetRef: {name: v1}
`)
}

var dev = types.NamespacedName{Namespace: "default", Name: "dev"}

func TestDefaultsAreThoseOfTheAPI(t *testing.T) {
	p := must(t, pool()).Pools[dev]
	if p == nil || *p.Spec.Platform.Local.Workers != 1 || p.Spec.Platform.Local.CertificateDuration != "24h" {
		t.Errorf("without the schema's defaults the pool has another version than on the hub: %+v", p)
	}
	if p != nil && !p.CreationTimestamp.Time.Equal(noon) {
		t.Errorf("an object without an age is made now, not at %v", p.CreationTimestamp)
	}
}

func TestWarningsAreTheWordsOfTheAPI(t *testing.T) {
	const refused = " (the API server refuses this)"
	for name, tc := range map[string]struct{ text, want string }{
		"nothing to say":      {pool(), ""},
		"a negative size":     {pool("size: 1", "size: -1"), `spec.size: Invalid value: -1: spec.size in body should be greater than or equal to 0` + refused},
		"a lifetime of 1w":    {pool("size: 1", "size: 1\n  claimLifetime: {default: 1w}"), `spec.claimLifetime.default: Invalid value: "1w": "1w" is not a duration of at most ten years: write hours (h), minutes (m) and seconds (s), such as 8h or 1h30m; a day is 24h, a week 168h` + refused},
		"two platforms":       {pool("{local: {}}", "{local: {}, aws: {region: a}}"), "spec.platform: Invalid value: set exactly one platform: aws, azure, gcp, vsphere, openstack, baremetal, agentBareMetal, ibmcloud, nutanix, none, local, exec or capi" + refused},
		"no domain":           {pool("  baseDomain: example.com\n", ""), "spec.baseDomain: Required value" + refused},
		"a misspelt field":    {pool("size: 1", "size: 1\n  runingCount: 1"), "spec.runingCount: there is no such field, so it has no effect"},
		"a field of metadata": {pool("{name: dev}", "{name: dev, label: {}}"), "metadata.label: there is no such field, so it has no effect"},
		"an inventory":        {pool("size: 1", "size: 1\n  inventory: [{name: foo}, {name: bar, kind: ClusterDeploymentCustomization}]"), ""},
		"one in a mapping":    {pool("size: 1", "size: 1\n  inventory: {ClusterDeploymentCustomizations: [{name: foo}]}"), ""},
		"an empty inventory":  {pool("size: 1", "size: 1\n  inventory: []"), "spec.inventory: Invalid value: it is empty, so the pool could not create clusters: list ClusterDeploymentCustomizations, such as [{name: foo}], or remove it" + refused},
		"an entry twice":      {pool("size: 1", "size: 1\n  inventory: {ClusterDeploymentCustomizations: [{name: foo}, {name: foo}]}"), `spec.inventory: Invalid value: "foo" is listed twice, but only one cluster at a time can use it: list it once` + refused},
		"an entry of another namespace": {
			pool("size: 1", "size: 1\n  inventory: [{name: foo, namespace: other}]"),
			`spec.inventory[0]: Invalid value: an entry can only have a name and a kind, and is in the namespace of its pool: remove "namespace"` + refused,
		},
		"a name that is none": {pool("name: dev", "name: Dev_1"), `metadata.name: Invalid value: "Dev_1": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')` + refused},
	} {
		t.Run(name, func(t *testing.T) {
			s := must(t, tc.text)
			var got []string
			for _, w := range s.Warnings {
				got = append(got, w.Field+": "+w.Message)
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, "\n")); diff != "" {
				t.Error(diff)
			}
			if len(s.Pools) != 1 {
				t.Error("what the API server refuses is taken all the same: it may be older than the rule")
			}
		})
	}
}

func TestAnInventoryIsReadInBothForms(t *testing.T) {
	for _, form := range []string{"[{name: foo}, {name: bar}]", "{ClusterDeploymentCustomizations: [{name: foo}, {name: bar}]}"} {
		p := must(t, pool("size: 1", "size: 1\n  inventory: "+form)).Pools[dev]
		if got := strings.Join(p.Spec.Inventory.Names(), " "); got != "foo bar" {
			t.Errorf("%s is read as %q", form, got)
		}
	}
}

func TestPatchesWithoutTheirValueAreWarnedOf(t *testing.T) {
	s := must(t, "apiVersion: hive.openshift.io/v1\nkind: ClusterDeploymentCustomization\nmetadata: {name: foo}\nspec:\n  installConfigPatches: [{op: add, path: a}, {op: move, path: ''}]\n")
	var got []string
	for _, w := range s.Warnings {
		got = append(got, w.String())
	}
	const at, refused = "f.yaml, document 1: ClusterDeploymentCustomization default/foo: spec.installConfigPatches", " (the API server refuses this)"
	want := []string{
		at + "[1]: Invalid value: move needs from: set it to the path of the source" + refused,
		at + `[1].path: Invalid value: "": it is empty: write the path to change, such as metadata/name` + refused,
		at + `[0]: Invalid value: add needs a value: set value, or valueJSON, which can also be "null"` + refused,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatCannotBeDecodedIsNamed(t *testing.T) {
	secret := func(data string) string { return "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n" + data }
	for name, tc := range map[string]struct{ text, want string }{
		"a size in words":                       {pool("size: 1", "size: three"), `f.yaml, document 1: ClusterPool default/dev: spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"`},
		"an inventory that is a text":           {pool("size: 1", "size: 1\n  inventory: foo"), `f.yaml, document 1: ClusterPool default/dev: spec.inventory: Invalid value: "foo" is neither a list nor a mapping: write a list`},
		"a huge size":                           {pool("size: 1", "size: 3000000000"), `f.yaml, document 1: ClusterPool default/dev: `},
		"no spec":                               {"apiVersion: hive.openshift.io/v1\nkind: ClusterPool\nmetadata: {name: dev}\nspec: 3\n", `f.yaml, document 1: ClusterPool default/dev: spec: Invalid value: "integer": spec in body must be of type object: "integer"`},
		"an age in words":                       {pool("{name: dev}", "{name: dev, creationTimestamp: yesterday}"), `f.yaml, document 1: ClusterPool default/dev: reading metadata: parsing time "yesterday"`},
		"no name":                               {pool("{name: dev}", "{}"), "f.yaml, document 1: ClusterPool: metadata.name is empty, want a text"},
		"a namespace that YAML takes for false": {pool("name: dev", "name: dev, namespace: n"), "f.yaml, document 1: ClusterPool dev: metadata.namespace is a boolean, want a text: put it in quotes"},
		"a name that is a number":               {pool("name: dev", "name: 7"), "f.yaml, document 1: ClusterPool: metadata.name is a number, want a text: put it in quotes"},
		"no metadata":                           {"apiVersion: v1\nkind: Secret\n", "f.yaml, document 1: Secret: metadata.name is empty, want a text"},
		"plain data":                            {secret("data: {a: 'hush!'}"), `f.yaml, document 1: Secret default/s: data["a"] is not base64: encode it, or move it to stringData`},
		"data of numbers":                       {secret("data: {a: 3}"), `f.yaml, document 1: Secret default/s: data["a"] is not base64: encode it, or move it to stringData`},
		"all that is wrong":                     {pool("size: 1", "size: x") + "---" + pool("{name: dev}", "{}"), "f.yaml, document 2: ClusterPool: metadata.name is empty, want a text\nf.yaml, document 1: ClusterPool default/dev: spec.size"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, tc.text)
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "hush") {
				t.Error("a Secret is quoted")
			}
		})
	}
}

func TestSecretsAreReadAsTheAPIDoes(t *testing.T) {
	s := must(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: team}\ndata: {a: eA==, b: eA==}\nstringData: {b: plain}\n")
	var got []string
	for k, v := range s.Secrets[types.NamespacedName{Namespace: "team", Name: "s"}].Data {
		got = append(got, fmt.Sprintf("%s=%s", k, v))
	}
	slices.Sort(got)
	if text := strings.Join(got, " "); text != "a=x b=plain" {
		t.Errorf("got %s", text)
	}
}

func TestALaterObjectReplacesAndKeepsItsStatus(t *testing.T) {
	before := pool("{name: dev}", "{name: dev, uid: u, generation: 4, creationTimestamp: '2026-01-01T00:00:00Z'}") + "status: {pending: [dev-1]}\n"
	s := must(t, before+"---"+pool("size: 1", "size: 5"))
	p := s.Pools[dev]
	got := fmt.Sprintln(p.Spec.Size, p.Status.Pending, p.UID, p.Generation, p.CreationTimestamp.UTC().Format(time.DateOnly))
	if want := "5 [dev-1] u 4 2026-01-01\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	want := []string{"f.yaml, document 2: ClusterPool default/dev replaces that of f.yaml, document 1; it keeps the status and age unless it sets its own"}
	if diff := cmp.Diff(want, s.Notes); diff != "" {
		t.Error(diff)
	}
}

func TestOtherKindsAreLeftOutWithANote(t *testing.T) {
	other := func(version, kind string) string {
		return "---\napiVersion: " + version + "\nkind: " + kind + "\nmetadata: {name: x}\n"
	}
	s := must(t, other("v1", "ConfigMap")+other("v1", "ConfigMap")+other("hive.openshift.io/v1", "MachinePool")+
		other("hive.openshift.io/v2", "ClusterPool")+other("sealed/v1", "Secret")+"---"+pool())
	want := []string{"left out, since no plan depends on it: 1 ClusterPool (hive.openshift.io/v2), 2 ConfigMap (v1), 1 MachinePool (hive.openshift.io/v1), 1 Secret (sealed/v1)"}
	if diff := cmp.Diff(want, s.Notes); diff != "" {
		t.Error(diff)
	}
	if keys := slices.Collect(maps.Keys(s.Pools)); len(keys) != 1 || keys[0] != dev {
		t.Errorf("got pools %v", keys)
	}
}
