package crd

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/openapi"
	explain "k8s.io/kubectl/pkg/explain/v2"
	"sigs.k8s.io/yaml"

	"hotspare.io/hotspare/config"
)

// TestExplainShowsTheFieldsOfAnInventory compares the output of kubectl explain.
func TestExplainShowsTheFieldsOfAnInventory(t *testing.T) {
	document := published(t, "crd/hive.openshift.io_clusterpools.yaml")
	for path, want := range map[string][]string{
		"spec.inventory": {
			"FIELD: inventory <[]Object>", "ClusterDeploymentCustomizations\t<[]Object>", "kind\t<string>", "name\t<string> -required-",
			"Name is the name of a ClusterDeploymentCustomization in the namespace of the pool.",
		},
		"spec.inventory.name": {"FIELD: name <string>"},
		"spec.inventory.ClusterDeploymentCustomizations.name": {"FIELD: name <string>"},
	} {
		var out bytes.Buffer
		resource := schema.GroupVersionResource{Group: "hive.openshift.io", Version: "v1", Resource: "clusterpools"}
		if err := explain.PrintModelDescription(strings.Split(path, "."), &out, document, resource, false, "plaintext"); err != nil {
			t.Errorf("explaining %s: %v", path, err)
		}
		text := out.String()
		for _, part := range want {
			if !strings.Contains(strings.Join(strings.Fields(text), " "), strings.Join(strings.Fields(part), " ")) {
				t.Errorf("%s: %q is missing in\n%s", path, part, text)
			}
		}
	}
}

// openAPI is the document of one version of a group, as an API server publishes it.
type openAPI []byte

func (o openAPI) Paths() (map[string]openapi.GroupVersion, error) {
	return map[string]openapi.GroupVersion{"apis/hive.openshift.io/v1": o}, nil
}
func (o openAPI) Schema(string) ([]byte, error) { return o, nil }
func (o openAPI) ServerRelativeURL() string     { return "" }

// published returns what an API server publishes of a CRD.
func published(t *testing.T, name string) openAPI {
	t.Helper()
	raw, err := config.Manifests.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(raw, &crd); err != nil {
		t.Fatal(err)
	}
	document, err := builder.BuildOpenAPIV3(&crd, "v1", builder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if raw, err = json.Marshal(document); err != nil {
		t.Fatal(err)
	}
	return raw
}
