package crd

import (
	"testing"

	"github.com/google/cel-go/common/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/cel/library"
)

// Only hotspare writes spec.namespace of a claim. Checking the name alone is not enough: identity
// providers have users with any name, and owners of a namespace create ServiceAccounts. Checking
// permissions alone is not enough: administrators copy manifests.
func TestWhoMayAssignClusters(t *testing.T) {
	conditions := policyNamed(t, "ClusterClaim", "clusterclaim-namespace.hotspare.io").Spec.MatchConditions
	if len(conditions) != 1 {
		t.Fatalf("%d match conditions", len(conditions))
	}
	all, none := authorizerfactory.NewAlwaysAllowAuthorizer(), authorizerfactory.NewAlwaysDenyAuthorizer()
	for name, tc := range map[string]struct {
		user   string
		rights authorizer.Authorizer
		may    bool
	}{
		"the controllers of hotspare up":               {"hotspare-manager", all, true},
		"the ServiceAccount of the manager":            {"system:serviceaccount:hotspare-system:hotspare-manager", all, true},
		"the ServiceAccount in another namespace":      {"system:serviceaccount:ops:hotspare-manager", all, true},
		"a user of that name without rights":           {"hotspare-manager", none, false},
		"a ServiceAccount of that name without rights": {"system:serviceaccount:team:hotspare-manager", none, false},
		"an administrator":                             {"hotspare-admin", all, false},
		"another ServiceAccount with all rights":       {"system:serviceaccount:hotspare-system:hotspare-manager-2", all, false},
		"a user whose name ends like it":               {"oidc:hotspare-manager", all, false},
	} {
		t.Run(name, func(t *testing.T) {
			refused, err := evaluate(t, conditions[0].Expression, map[string]any{
				"request":    map[string]any{"userInfo": map[string]any{"username": tc.user}},
				"authorizer": library.NewAuthorizerVal(&user.DefaultInfo{Name: tc.user}, tc.rights),
			})
			if err != nil || (refused != types.True) != tc.may {
				t.Errorf("may assign: %t, want %t (%v)", refused != types.True, tc.may, err)
			}
		})
	}
}

func policyNamed(t *testing.T, kind, name string) policy {
	t.Helper()
	for _, p := range policiesOf(t, kind) {
		if p.Name == name {
			return p
		}
	}
	t.Fatalf("there is no policy %s", name)
	return policy{}
}
