package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// customizationManifest is a customization as a user writes it.
func customizationManifest(namespace, name, spec string) string {
	return fmt.Sprintf(`
apiVersion: hive.openshift.io/v1
kind: ClusterDeploymentCustomization
metadata: {name: %s, namespace: %s}
spec: {%s}
`, name, namespace, spec)
}

func TestBadInventoriesAreRefusedWithARemedy(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	listing(t, h, ns)
	for inventory, parts := range map[string][]string{
		`[]`:                                    {"spec.inventory: it is empty", "or remove it"},
		`{}`:                                    {"spec.inventory: it is empty", "or remove it"},
		`{ClusterDeploymentCustomizations: []}`: {"spec.inventory: it is empty", "or remove it"},
		`{ClusterDeploymentCustomizations: null}`: {"spec.inventory: it is empty", "or remove it"},
		`foo`:                                    {`spec.inventory: "foo" is neither a list nor a mapping`, "write a list", "[{name: foo}]"},
		`7`:                                      {"spec.inventory: 7 is neither a list nor a mapping", "write a list"},
		`true`:                                   {"spec.inventory: true is neither a list nor a mapping", "write a list"},
		`{ClusterDeploymentCustomizations: foo}`: {"spec.inventory: ClusterDeploymentCustomizations is not a list", "write one"},
		`{customizations: [{name: foo}]}`:        {"spec.inventory", `not "customizations"`, "write a list"},
		`{ClusterDeploymentCustomizations: [{name: foo}], more: 1}`: {"spec.inventory", `not "more"`, "write a list"},
		`[{name: foo}, bar]`:                                            {"spec.inventory[1]: it is not a mapping", "write {name: foo}"},
		`[{name: foo, namespace: other}]`:                               {"spec.inventory[0]", "in the namespace of its pool", `remove "namespace"`},
		`[{name: foo, kind: Secret}]`:                                   {`spec.inventory[0].kind: "Secret"`, "remove it, or write ClusterDeploymentCustomization"},
		`[{name: foo}, {kind: ClusterDeploymentCustomization}]`:         {"spec.inventory[1].name: Required value"},
		`[{name: ""}]`:                                                  {"spec.inventory[0].name: it is missing", "write the name of a ClusterDeploymentCustomization"},
		`[{name: 7}]`:                                                   {"spec.inventory[0].name", "must be of type string"},
		`[{name: Foo_1}]`:                                               {`spec.inventory: "Foo_1" is not a valid name`, "lower-case letters"},
		`[{name: foo}, {name: bar}, {name: foo}]`:                       {`spec.inventory: "foo" is listed twice`, "list it once"},
		`{ClusterDeploymentCustomizations: [{name: a}, {name: a}]}`:     {`spec.inventory: "a" is listed twice`, "list it once"},
		"[" + strings.Repeat("{name: some-name-of-a-host},", 600) + "]": {"spec.inventory: it lists 600 names", "list fewer"},
	} {
		t.Run(fmt.Sprintf("%.60s", inventory), func(t *testing.T) {
			parallelSubtest(t)
			refused(t, h.apply(t, poolManifest(ns, "bad", onAWS, one, "inventory: "+inventory)), append(parts, `"bad"`)...)
		})
	}
}

func TestBadPatchesAreRefusedWithARemedy(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	for spec, parts := range map[string][]string{
		`installConfigPatches: [{op: replace, path: "", value: 1}]`:                                                          {"spec.installConfigPatches[0].path", "it is empty", "metadata/name"},
		`installConfigPatches: [{op: replace, path: /a~b, value: 1}]`:                                                        {"spec.installConfigPatches[0].path", "/a~b", "write ~0 for ~"},
		`clusterDeploymentSpecPatches: [{op: copy, path: a, from: b~}]`:                                                      {"spec.clusterDeploymentSpecPatches[0].from", "b~", "write ~0 for ~"},
		`installConfigPatches: [{op: move, path: /a}]`:                                                                       {"spec.installConfigPatches[0]", "move needs from"},
		`installConfigPatches: [{op: copy, path: /a, from: ""}]`:                                                             {"spec.installConfigPatches[0]", "copy needs from"},
		`installConfigPatches: [{op: add, path: /a, from: /b, value: 1}]`:                                                    {"spec.installConfigPatches[0]", "from is only valid with move and copy, not with add", "remove it"},
		`installConfigPatches: [{op: delete, path: /a}]`:                                                                     {"spec.installConfigPatches[0].op", `"delete"`, `"remove"`},
		`installConfigPatches: [{op: remove}]`:                                                                               {"spec.installConfigPatches[0].path", "Required"},
		`installConfigPatches: [{op: add, path: /a}]`:                                                                        {"spec.installConfigPatches[0]: add needs a value", "set value, or valueJSON"},
		`clusterDeploymentSpecPatches: [{op: replace, path: /a, value: null}]`:                                               {"spec.clusterDeploymentSpecPatches[0]: replace needs a value", `valueJSON, which can also be "null"`},
		`installConfigPatches: [{op: add, path: /a, valueJSON: my-password}]`:                                                {"spec.installConfigPatches[0].valueJSON", "not JSON", "double quotes"},
		`installerManifestPatches: [{manifestSelector: {glob: x}, patches: [{op: remove, path: /a}, {op: test, path: /a}]}]`: {"spec.installerManifestPatches[0].patches[1]: test needs a value"},
		"installConfigPatches: [" + strings.Repeat("{op: remove, path: /a},", 129) + "]":                                     {"spec.installConfigPatches", "at most 128 items"},
	} {
		t.Run(fmt.Sprintf("%.80s", spec), func(t *testing.T) {
			parallelSubtest(t)
			r := h.apply(t, customizationManifest(ns, "bad", spec))
			refused(t, r, append(parts, `"bad"`)...)
			if strings.Contains(r.all(), "my-password") {
				t.Error("a value is quoted: it may be a secret")
			}
		})
	}
}

func TestPatchesAreTakenInAllTheirForms(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	for i, spec := range []string{
		`installConfigPatches: [{op: replace, path: metadata/name, value: foo}]`, // as in the enhancement
		`installConfigPatches: [{op: add, path: /a~0b~1c, value: {d: [1, null, x]}}, {op: remove, path: /a}, {op: test, path: a, value: ""}]`,
		`installConfigPatches: [{op: add, path: /a, valueJSON: "null"}, {op: add, path: /b, valueJSON: '{"a": [1]}'}]`,
		`clusterDeploymentSpecPatches: [{op: move, path: /a, from: b}, {op: copy, path: a, from: /b}]`,
		`installerManifestPatches: [{manifestSelector: {glob: openshift/*.yaml}, patches: [{op: add, path: /metadata/labels/a, value: foo}]}]`,
		`installConfigPatches: null`,
		``,
	} {
		if r := h.apply(t, customizationManifest(ns, fmt.Sprintf("c%d", i), spec)); r.code != 0 {
			t.Errorf("%s: it was refused:\n%s", spec, r.all())
		}
	}
}

func TestAnInventoryIsStoredAsAListHoweverItIsWritten(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	listing(t, h, ns)
	want := []any{map[string]any{"name": "foo"}, map[string]any{"name": "bar"}}
	for name, inventory := range map[string]string{
		"list": `[{name: foo}, {name: bar}]`, "mapping": `{ClusterDeploymentCustomizations: [{name: foo}, {name: bar}]}`,
	} {
		for side, flag := range map[string]string{"client": "--server-side=false", "server": "--server-side"} {
			t.Run(name+" applied by the "+side, func(t *testing.T) {
				parallelSubtest(t)
				pool := fakePool(ns, name+"-"+side, 0, 0)
				manifest := poolManifest(ns, pool.Name, onAWS, "size: 0", paper)
				for range 2 { // the second time what is stored is of the other form
					if r := h.apply(t, manifest+"  inventory: "+inventory+"\n", flag); r.code != 0 {
						t.Fatalf("it was refused:\n%s", r.all())
					}
					got, _, _ := unstructured.NestedFieldNoCopy(h.raw(t, pool).Object, "spec", "inventory")
					if diff := cmp.Diff(any(want), got); diff != "" {
						t.Fatal(diff)
					}
				}
				if r := h.apply(t, manifest, flag); r.code != 0 {
					t.Fatalf("it was refused:\n%s", r.all())
				}
				if got, has, _ := unstructured.NestedFieldNoCopy(h.raw(t, pool).Object, "spec", "inventory"); has {
					t.Errorf("it was taken away, and is still %v", got)
				}
			})
		}
	}
	for characters, n := range map[int]int{253: 122, 20: 365} {
		entries := make([]string, n)
		for i := range entries {
			entries[i] = fmt.Sprintf("{name: \"%0*d\"}", characters, i)
		}
		if r := h.apply(t, poolManifest(ns, fmt.Sprintf("of-%d", n), onAWS, "size: 0", paper, "inventory: ["+strings.Join(entries, ", ")+"]"), "--server-side"); r.code != 0 {
			t.Errorf("%d names of %d characters are refused: %.300s", n, characters, r.all())
		}
	}
}

// As it may be stored from before the policies, or under somebody else's hub.
func TestABadInventoryThatIsStoredStopsNoOtherWrite(t *testing.T) {
	h := own(t)
	ns := h.namespace(t)
	loosen(t, h)
	inventories := map[string]string{
		"empty": `[]`, "twice": `[{name: a}, {name: a}]`, "number": `7`, "mapping": `{ClusterDeploymentCustomizations: [{name: ""}]}`, "strange": `{a: b}`,
	}
	eventually(t, "the policy looks away", func(context.Context) error {
		for name, inventory := range inventories {
			manifest := strings.Replace(poolManifest(ns, name, onAWS, "size: 0", paper, "inventory: "+inventory), "metadata: {", "metadata: {finalizers: [example.com/kept], ", 1)
			if r := h.apply(t, manifest, "--server-side"); r.code != 0 {
				return fmt.Errorf("%s", r.all())
			}
		}
		return nil
	})
	if err := h.down(); err != nil {
		t.Fatal(err)
	}
	h.restart(t)
	eventually(t, "the policy looks again", func(context.Context) error {
		r := h.apply(t, poolManifest(ns, "late", onAWS, "size: 0", paper, "inventory: []"), "--dry-run=server")
		if r.code == 0 || !strings.Contains(r.all(), "spec.inventory: it is empty") {
			return fmt.Errorf("exit code %d: %s", r.code, r.all())
		}
		return nil
	})
	listing(t, h, ns)
	for name := range inventories {
		pool := &hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
		h.merge(t, pool, `{"metadata":{"labels":{"touched":"yes"}},"spec":{"size":1}}`)
		if r := h.run(t, "", "kubectl", "patch", "clusterpool", name, "-n", ns, "--subresource=status", "--type=merge", "-p", `{"status":{"plan":"x"}}`); r.code != 0 {
			t.Errorf("its status cannot be written: %s", r.all())
		}
		refused(t, h.run(t, "", "kubectl", "patch", "clusterpool", name, "-n", ns, "--type=merge", "-p", `{"spec":{"inventory":[{"name":"B"}]}}`), `"B" is not a valid name`)
		if err := h.Delete(t.Context(), h.untyped(pool)); err != nil {
			t.Fatal(err)
		}
		finalizers := h.raw(t, pool).GetFinalizers()
		h.merge(t, pool, `{"metadata":{"finalizers":null}}`)
		h.gone(t, h.untyped(pool))
		t.Logf("%s is gone; it had %v", name, finalizers)
	}
}

// listing waits until the hub turns mappings into lists: for some seconds after its
// start the API server refuses what it would change (ServiceUnavailable).
func listing(t *testing.T, h *hub, namespace string) {
	t.Helper()
	manifest := poolManifest(namespace, "first", onAWS, "size: 0", paper, "inventory: {ClusterDeploymentCustomizations: [{name: foo}]}")
	eventually(t, "the hub turns mappings into lists", func(context.Context) error {
		if r := h.apply(t, manifest, "--dry-run=server", "-o", "jsonpath={.spec.inventory}"); r.out != `[{"name":"foo"}]` {
			return fmt.Errorf("it says %s", r.all())
		}
		return nil
	})
}

// loosen takes the policies on pools away.
func loosen(t *testing.T, h *hub) {
	t.Helper()
	const refuses, lists = "clusterpool-inventory.hotspare.io", "clusterpool-inventory-form.hotspare.io"
	for _, o := range []client.Object{
		&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: refuses}},
		&admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: lists}},
	} {
		if err := h.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}
