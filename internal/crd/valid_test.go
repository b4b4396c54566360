package crd_test

import (
	"io/fs"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"sigs.k8s.io/yaml"

	"hotspare.io/hotspare/config"
)

// A hub takes every CRD. Among other things it counts what the rules may cost.
func TestEveryCRDWouldBeTaken(t *testing.T) {
	files, err := fs.Glob(config.Manifests, "crd/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d CRDs: %v", len(files), err)
	}
	for _, name := range files {
		t.Run(name, func(t *testing.T) {
			raw, err := config.Manifests.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var in apiextensionsv1.CustomResourceDefinition
			if err := yaml.UnmarshalStrict(raw, &in); err != nil {
				t.Fatal(err)
			}
			apiextensionsv1.SetDefaults_CustomResourceDefinition(&in)
			apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&in.Spec)
			var out apiextensions.CustomResourceDefinition
			if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&in, &out, nil); err != nil {
				t.Fatal(err)
			}
			out.Status.StoredVersions = []string{in.Spec.Versions[0].Name}
			for _, fault := range validation.ValidateCustomResourceDefinition(t.Context(), &out) {
				t.Error(fault)
			}
		})
	}
}
