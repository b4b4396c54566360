package v1_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

func TestAnInventoryIsReadInBothItsForms(t *testing.T) {
	type inventory = hivev1.Inventory
	for name, tt := range map[string]struct {
		spec string
		want inventory
		says string
	}{
		"as shipped":             {`{"inventory":[{"kind":"ClusterDeploymentCustomization","name":"a"},{"name":"b"}]}`, inventory{{Kind: "ClusterDeploymentCustomization", Name: "a"}, {Name: "b"}}, ""},
		"as in the enhancement":  {`{"inventory":{"ClusterDeploymentCustomizations":[{"name":"a"},{"name":"b"}]}}`, inventory{{Name: "a"}, {Name: "b"}}, ""},
		"none":                   {`{"size":1}`, nil, ""},
		"nothing":                {`{"inventory":null}`, nil, ""},
		"empty":                  {`{"inventory":[]}`, inventory{}, ""},
		"empty, the other form":  {`{"inventory":{"ClusterDeploymentCustomizations":[]}}`, inventory{}, ""},
		"another mapping":        {`{"inventory":{"customizations":[]}}`, nil, "spec.inventory: an object is not a list"},
		"two keys":               {`{"inventory":{"ClusterDeploymentCustomizations":[],"x":1}}`, nil, "spec.inventory: an object is not a list"},
		"the name as a label":    {`{"labels":{"a":"ClusterDeploymentCustomizations"},"inventory":[{"name":"a"}]}`, inventory{{Name: "a"}}, ""},
		"no list in the mapping": {`{"inventory":{"ClusterDeploymentCustomizations":{"name":"a"}}}`, nil, "spec.inventory: an object is not a list"},
	} {
		t.Run(name, func(t *testing.T) {
			var p hivev1.ClusterPool
			if err := json.Unmarshal([]byte(`{"metadata":{"name":"p"},"spec":`+tt.spec+`}`), &p); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, p.Spec.Inventory); diff != "" {
				t.Error(diff)
			}
			if p.Unreadable != tt.says {
				t.Errorf("it says %q, want %q", p.Unreadable, tt.says)
			}
			if p.Name != "p" {
				t.Error("the rest was not read")
			}
		})
	}
}
