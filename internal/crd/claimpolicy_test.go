package crd

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/cel-go/common/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/library"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

func TestClaimPoliciesWithBadInput(t *testing.T) {
	s, err := LoadSchema("ClaimPolicy")
	if err != nil {
		t.Fatal(err)
	}
	const alice = `"subjects":[{"kind":"User","name":"alice"}]`
	for name, tc := range map[string]struct{ spec, want string }{
		"a user":                         {`{` + alice + `}`, ""},
		"nobody":                         {`{"subjects":[]}`, "should have at least 1 items"},
		"no subjects":                    {`{}`, "spec.subjects: Required value"},
		"another kind":                   {`{"subjects":[{"kind":"Robot","name":"x"}]}`, "Unsupported value"},
		"no name":                        {`{"subjects":[{"kind":"User","name":""}]}`, "should be at least 1 chars long"},
		"a service account":              {`{"subjects":[{"kind":"ServiceAccount","name":"bot","namespace":"ci"}]}`, ""},
		"a group with a namespace":       {`{"subjects":[{"kind":"Group","name":"x","namespace":"ci"}]}`, "only a ServiceAccount has a namespace"},
		"all limits":                     {`{` + alice + `,"pools":["dev"],"maxClaims":3,"maxClaimsPerUser":0,"lifetime":{"default":"1h","maximum":"4h"}}`, ""},
		"a negative limit":               {`{` + alice + `,"maxClaims":-1}`, "should be greater than or equal to 0"},
		"a limit beyond all numbers":     {`{` + alice + `,"maxClaims":99999999999}`, "spec.maxClaims"},
		"a pool twice":                   {`{` + alice + `,"pools":["dev","dev"]}`, "Duplicate value"},
		"a lifetime in days":             {`{` + alice + `,"lifetime":{"maximum":"1d"}}`, `"1d" is not a duration`},
		"a lifetime that is no duration": {`{` + alice + `,"lifetime":{"default":"soon"}}`, `"soon" is not a duration`},
	} {
		t.Run(name, func(t *testing.T) {
			var object map[string]any
			raw := fmt.Sprintf(`{"apiVersion":"hotspare.io/v1alpha1","kind":"ClaimPolicy","metadata":{"name":"n","namespace":"d"},"spec":%s}`, tc.spec)
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
			if said != "" {
				return
			}
			stored, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			var read v1alpha1.ClaimPolicy
			if err := json.Unmarshal(stored, &read); err != nil || read.Unreadable != "" || read.Status.ObservedGeneration != -1 {
				t.Errorf("it was accepted and cannot be read: %v %s %+v", err, read.Unreadable, read.Status)
			}
		})
	}
}

// The creator of a claim is the user who creates it. Only users who may impersonate everybody may restore
// what is recorded.
func TestWhoMayWriteTheCreatorOfAClaim(t *testing.T) {
	p := policyNamed(t, "ClusterClaim", "clusterclaim-creator.hotspare.io")
	for name, tc := range map[string]struct {
		impersonates []string
		may          bool
	}{
		"a user without rights":                          {nil, false},
		"a user who may impersonate users":               {[]string{"users"}, false},
		"a user who may impersonate users and groups":    {[]string{"users", "groups"}, false},
		"a user who may impersonate one user":            {[]string{"users/bob", "groups", "serviceaccounts"}, false},
		"a user who may impersonate everybody":           {[]string{"users", "groups", "serviceaccounts"}, true},
		"a user who may impersonate service accounts":    {[]string{"serviceaccounts"}, false},
		"a user who may impersonate all but the groups":  {[]string{"users", "serviceaccounts"}, false},
		"a user who may impersonate all but other users": {[]string{"groups", "serviceaccounts"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			rights := func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
				what := a.GetResource()
				if a.GetName() != "" {
					what += "/" + a.GetName()
				}
				for _, granted := range tc.impersonates {
					if a.GetVerb() == "impersonate" && a.GetAPIGroup() == "" && what == granted {
						return authorizer.DecisionAllow, "", nil
					}
				}
				return authorizer.DecisionNoOpinion, "", nil
			}
			may, given := true, map[string]any{
				"authorizer": library.NewAuthorizerVal(&user.DefaultInfo{Name: "somebody"}, authorizer.AuthorizerFunc(rights)),
			}
			for _, v := range p.Spec.Variables {
				if !strings.HasPrefix(v.Name, "impersonates") {
					continue
				}
				has, err := evaluate(t, v.Expression, given)
				if err != nil {
					t.Fatal(err)
				}
				may = may && has == types.True
			}
			if may != tc.may {
				t.Errorf("may write: %t, want %t", may, tc.may)
			}
		})
	}
}

func TestNobodyForgesTheCreatorOfAClaim(t *testing.T) {
	p := policyNamed(t, "ClusterClaim", "clusterclaim-creator.hotspare.io")
	claim := func(annotations map[string]any) map[string]any {
		metadata := map[string]any{"name": "x"}
		if annotations != nil {
			metadata["annotations"] = annotations
		}
		return map[string]any{"metadata": metadata, "spec": map[string]any{"clusterPoolName": "dev"}}
	}
	const creator, groups = "hotspare.io/creator", "hotspare.io/creator-groups"
	mine := map[string]any{creator: "somebody"}
	for name, tc := range map[string]struct {
		object, old map[string]any
		may         bool
	}{
		"a new claim without annotations":      {claim(nil), nil, true},
		"a new claim with another annotation":  {claim(map[string]any{"a": "b"}), nil, true},
		"a new claim of its creator":           {claim(mine), nil, true},
		"a new claim of somebody else":         {claim(map[string]any{creator: "alice"}), nil, false},
		"a new claim of a group":               {claim(map[string]any{creator: "somebody", groups: "admins"}), nil, false},
		"a new claim of a group and of nobody": {claim(map[string]any{groups: "admins"}), nil, false},
		"a claim that stays":                   {claim(map[string]any{creator: "alice", groups: "ci"}), claim(map[string]any{creator: "alice", groups: "ci"}), true},
		"a claim that gets another creator":    {claim(mine), claim(map[string]any{creator: "alice"}), false},
		"a claim that gets a creator":          {claim(mine), claim(nil), false},
		"a claim that loses its creator":       {claim(nil), claim(mine), false},
		"a claim that gets a group":            {claim(map[string]any{creator: "somebody", groups: "ci\nadmins"}), claim(map[string]any{creator: "somebody", groups: "ci"}), false},
	} {
		if said := p.judge(t, tc.object, tc.old); (len(said) == 0) != tc.may {
			t.Errorf("%s: %q", name, said)
		}
	}
}
