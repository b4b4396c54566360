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

// Only hotspare makes a claim part of a set. Everybody may take it out, as the garbage collector does.
func TestNobodyMakesAClaimPartOfASet(t *testing.T) {
	p := policyNamed(t, "ClusterClaim", "clusterclaim-set.hotspare.io")
	claim := func(refs ...map[string]any) map[string]any {
		metadata := map[string]any{"name": "s-0"}
		if refs != nil {
			var list []any
			for _, r := range refs {
				list = append(list, r)
			}
			metadata["ownerReferences"] = list
		}
		return map[string]any{"metadata": metadata, "spec": map[string]any{"clusterPoolName": "dev"}}
	}
	ref := func(kind, uid string) map[string]any {
		return map[string]any{"apiVersion": "hotspare.io/v1alpha1", "kind": kind, "name": "s", "uid": uid}
	}
	for name, tc := range map[string]struct {
		object, old map[string]any
		may         bool
	}{
		"a new claim":                       {claim(), nil, true},
		"a new claim of another owner":      {claim(ref("Team", "u")), nil, true},
		"a new claim of a set":              {claim(ref("ClaimSet", "u")), nil, false},
		"a claim that is put into a set":    {claim(ref("ClaimSet", "u")), claim(), false},
		"a claim that stays in its set":     {claim(ref("ClaimSet", "u")), claim(ref("ClaimSet", "u")), true},
		"a claim that gets another owner":   {claim(ref("ClaimSet", "u"), ref("Team", "v")), claim(ref("ClaimSet", "u")), true},
		"a claim that changes its set":      {claim(ref("ClaimSet", "v")), claim(ref("ClaimSet", "u")), false},
		"a claim that gets a second set":    {claim(ref("ClaimSet", "u"), ref("ClaimSet", "v")), claim(ref("ClaimSet", "u")), false},
		"a claim that is taken out of one":  {claim(), claim(ref("ClaimSet", "u")), true},
		"a claim whose owner becomes a set": {claim(ref("ClaimSet", "u")), claim(ref("Team", "u")), false},
	} {
		if said := p.judge(t, tc.object, tc.old); (len(said) == 0) != tc.may {
			t.Errorf("%s: %q", name, said)
		}
	}
}
