package claim

import (
	"reflect"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

func TestSubjectsOfFlags(t *testing.T) {
	for name, c := range map[string]struct {
		given subjectOptions
		want  []rbacv1.Subject
		err   string
	}{
		"none": {},
		"one of each kind": {
			given: subjectOptions{users: []string{"github:acme/shop"}, groups: []string{"qa, night"}, serviceAccounts: []string{"ci:bot"}},
			want: []rbacv1.Subject{
				{Kind: "User", APIGroup: "rbac.authorization.k8s.io", Name: "github:acme/shop"},
				{Kind: "Group", APIGroup: "rbac.authorization.k8s.io", Name: "qa, night"},
				{Kind: "ServiceAccount", Namespace: "ci", Name: "bot"},
			},
		},
		"an empty user":                         {given: subjectOptions{users: []string{""}}, err: "--user must not be empty"},
		"an account without its namespace":      {given: subjectOptions{serviceAccounts: []string{"bot"}}, err: `--serviceaccount "bot" is not of the form NAMESPACE:NAME`},
		"an account without a name":             {given: subjectOptions{serviceAccounts: []string{"ci:"}}, err: "NAMESPACE:NAME"},
		"the user name of an account, by habit": {given: subjectOptions{serviceAccounts: []string{"system:serviceaccount:ci:bot"}}, err: "NAMESPACE:NAME"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.given.parseSubjects()
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want %q", err, c.err)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}
