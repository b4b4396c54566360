package crd

import (
	"io/fs"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apivalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"sigs.k8s.io/yaml"

	"hotspare.io/hotspare/config"
)

// The API server rejects the whole kind if a rule does not compile, or if it estimates the rule to
// be too expensive. LoadSchema accepts both.
func TestTheAPIServerTakesEveryKind(t *testing.T) {
	names, err := fs.Glob(config.Manifests, "crd/*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("found no CRDs: %v", err)
	}
	for _, name := range names {
		raw, err := config.Manifests.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var given apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(raw, &given); err != nil {
			t.Fatal(err)
		}
		apiextensionsv1.SetDefaults_CustomResourceDefinition(&given)
		apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&given.Spec)
		given.Status.StoredVersions = []string{given.Spec.Versions[0].Name} // as the API server's strategy has it
		var internal apiextensions.CustomResourceDefinition
		if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&given, &internal, nil); err != nil {
			t.Fatal(err)
		}
		for _, fault := range apivalidation.ValidateCustomResourceDefinition(t.Context(), &internal) {
			t.Errorf("%s: %v", name, fault)
		}
	}
}
