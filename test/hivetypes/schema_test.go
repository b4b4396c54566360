package hivetypes

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// free are fields that our schema leaves open although Hive's types do not.
var free = map[string]string{
	"clusterpools spec.inventory":                                                     "a mapping is stored as the list in it",
	"clusterdeploymentcustomizations spec.installConfigPatches[].value":               "a value that is no text is warned of",
	"clusterdeploymentcustomizations spec.installerManifestPatches[].patches[].value": "a value that is no text is warned of",
}

// TestNothingIsStoredThatHivesTypesCannotDecode compares each field's JSON type in our
// CRDs with Hive's types: one object that does not decode hides all of its kind.
func TestNothingIsStoredThatHivesTypesCannotDecode(t *testing.T) {
	for resource, typ := range kinds {
		raw, err := os.ReadFile(filepath.Join("..", "..", "config", "crd", "hive.openshift.io_"+resource+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var crd struct {
			Spec struct {
				Versions []struct {
					Schema struct{ OpenAPIV3Schema property }
				}
			}
		}
		if err := yaml.Unmarshal(raw, &crd); err != nil {
			t.Fatal(err)
		}
		root, hive := crd.Spec.Versions[0].Schema.OpenAPIV3Schema, shapeOf(typ)
		for _, section := range []string{"spec", "status"} {
			p := root.Properties[section]
			for _, fault := range misfits(resource, section, &p, hive.Properties[section]) {
				t.Error(fault)
			}
		}
	}
}

// property is a node of a CRD's schema.
type property struct {
	Type                 string
	Format               string
	Pattern              string
	Rules                []struct{ Rule string } `json:"x-kubernetes-validations"`
	Open                 bool                    `json:"x-kubernetes-preserve-unknown-fields"`
	IntOrString          bool                    `json:"x-kubernetes-int-or-string"`
	Properties           map[string]property
	Items                *property
	AdditionalProperties *property
}

// misfits says where the schema takes what the shape cannot decode, or drops what it has.
func misfits(resource, at string, p *property, s *shape) []string {
	wrong := func(why string) []string { return []string{fmt.Sprintf("%s %s: %s", resource, at, why)} }
	if _, ok := free[resource+" "+at]; ok || s.open() {
		return nil
	}
	if p.Open {
		return wrong("anything is taken")
	}
	if p.Type != s.Type || p.IntOrString != s.IntOrString {
		return wrong(fmt.Sprintf("type %q, Hive has %q", p.Type, s.Type))
	}
	switch {
	case s.Type == "integer" && s.Format == "int32" && p.Format != "int32":
		return wrong("it may be longer than 32 bits")
	case s.Format == "byte" && p.Pattern == "": // with the format byte a list is taken too
		return wrong("it may be no base64")
	case (s.Format == "date-time" || s.Format == "duration") && p.Pattern == "" && len(p.Rules) == 0:
		return wrong("it may be no " + s.Format)
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		below, ok := p.Properties[name]
		if !ok {
			out = append(out, fmt.Sprintf("%s %s.%s: it is not kept", resource, at, name))
			continue
		}
		out = append(out, misfits(resource, at+"."+name, &below, s.Properties[name])...)
	}
	if s.Items != nil {
		out = append(out, misfits(resource, at+"[]", p.Items, s.Items)...)
	}
	if s.Values != nil {
		out = append(out, misfits(resource, at+"{}", p.AdditionalProperties, s.Values)...)
	}
	return out
}

// refused are examples that the API refuses, and why.
var refused = map[string]string{
	"docs__hive-integration__kube-api-select-ocp-versions.md.L63.yaml": "name or generateName is required", // a part of one
}

// TestExamples gives manifests of public projects to the API, and decodes what it would
// store with Hive's types.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("testdata/examples/*/*")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no examples", err)
	}
	h := start(t)
	count := 0
	err = filepath.WalkDir("testdata/examples", func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, o := range objects(t, string(raw)) {
			if o.GroupVersionKind().Group == hivev1.SchemeGroupVersion.Group && h.store(t, path, o) {
				count++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d objects were decoded", count)
	if count < 40 {
		t.Errorf("%d objects were decoded, want 40 at least", count)
	}
}

// store has the API server say what it would store, and decodes it.
func (h *hub) store(t *testing.T, path string, o *unstructured.Unstructured) bool {
	t.Helper()
	o.SetNamespace("default")
	switch o.GetKind() {
	case "ClusterImageSet":
		o.SetNamespace("")
	case "ClusterClaim": // whoever moves a claim leaves out where its cluster was
		unstructured.RemoveNestedField(o.Object, "spec", "namespace")
	}
	err := h.Create(t.Context(), o, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
	if why, ok := refused[filepath.Base(path)]; ok {
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %s", path, err, why)
		}
		return false
	}
	if err != nil {
		t.Errorf("%s: %s %s: %v", path, o.GetKind(), o.GetName(), err)
		return false
	}
	typed, err := h.Scheme().New(o.GroupVersionKind())
	if err != nil {
		return false // a kind that is not served
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, typed); err != nil {
		t.Errorf("%s: %s %s cannot be decoded: %v", path, o.GetKind(), o.GetName(), err)
		return false
	}
	return true
}
