package crd

import (
	"fmt"
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

func TestClaimSetsWithBadInput(t *testing.T) {
	s, err := LoadSchema("ClaimSet")
	if err != nil {
		t.Fatal(err)
	}
	const dev = `"clusterPoolName":"dev"`
	for name, tc := range map[string]struct{ spec, want string }{
		"a pool":                     {`{"size":2,` + dev + `}`, ""},
		"a selector":                 {`{"size":2,"poolSelector":{"preferences":[{"matchLabels":{"a":"b"},"fallbackAfter":"5m"},{}]}}`, ""},
		"all fields":                 {`{"size":2,` + dev + `,"lifetime":"8h","priority":-1000,"subjects":[{"kind":"User","name":"alice"}]}`, ""},
		"no pool":                    {`{"size":2}`, "set either clusterPoolName or poolSelector"},
		"a pool and a selector":      {`{"size":2,` + dev + `,"poolSelector":{"preferences":[{}]}}`, "set either clusterPoolName or poolSelector"},
		"no size":                    {`{` + dev + `}`, "spec.size: Required value"},
		"no clusters":                {`{"size":0,` + dev + `}`, "should be greater than or equal to 1"},
		"too many clusters":          {`{"size":101,` + dev + `}`, "should be less than or equal to 100"},
		"a size that is text":        {`{"size":"two",` + dev + `}`, "spec.size"},
		"no preferences":             {`{"size":1,"poolSelector":{"preferences":[]}}`, "should have at least 1 items"},
		"a wait that is no duration": {`{"size":1,"poolSelector":{"preferences":[{"fallbackAfter":"soon"}]}}`, `"soon" is not a duration`},
		"a lifetime in days":         {`{"size":1,` + dev + `,"lifetime":"1d"}`, `"1d" is not a duration`},
		"a priority out of range":    {`{"size":1,` + dev + `,"priority":1001}`, "should be less than or equal to 1000"},
		"a label that is not text":   {`{"size":1,"poolSelector":{"preferences":[{"matchLabels":{"a":1}}]}}`, "matchLabels"},
		"a pool without a name":      {`{"size":1,"clusterPoolName":""}`, "should be at least 1 chars long"},
	} {
		t.Run(name, func(t *testing.T) {
			var object map[string]any
			raw := fmt.Sprintf(`{"apiVersion":"hotspare.io/v1alpha1","kind":"ClaimSet","metadata":{"name":"n","namespace":"d"},"spec":%s}`, tc.spec)
			if err := utiljson.Unmarshal([]byte(raw), &object); err != nil {
				t.Fatal(err)
			}
			v, err := s.Admit(t.Context(), object)
			if err != nil {
				t.Fatal(err)
			}
			said := ""
			if len(v.Faults) > 0 {
				said = v.Faults.ToAggregate().Error()
			}
			if !strings.Contains(said, tc.want) || (said == "") != (tc.want == "") {
				t.Errorf("got %q, want %q", said, tc.want)
			}
		})
	}
}
