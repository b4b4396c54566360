package claim

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	rbacv1 "k8s.io/api/rbac/v1"
)

// subjectOptions are the flags that name who gets access to the clusters of a claim, as in "kubectl create rolebinding".
type subjectOptions struct {
	users, groups, serviceAccounts []string
}

func (o *subjectOptions) addFlags(f *pflag.FlagSet) {
	f.StringArrayVar(&o.users, "user", nil, "give this user access to the cluster, such as yourself: see \"kubectl auth whoami\" (repeatable)")
	f.StringArrayVar(&o.groups, "group", nil, "give this group access to the cluster (repeatable)")
	f.StringArrayVar(&o.serviceAccounts, "serviceaccount", nil, "give the service account NAMESPACE:NAME access to the cluster (repeatable)")
}

// parseSubjects returns the subjects of a claim.
func (o *subjectOptions) parseSubjects() ([]rbacv1.Subject, error) {
	var out []rbacv1.Subject
	for _, kind := range []struct {
		kind, flag string
		names      []string
	}{{rbacv1.UserKind, "user", o.users}, {rbacv1.GroupKind, "group", o.groups}} {
		for _, name := range kind.names {
			if name == "" {
				return nil, fmt.Errorf("--%s must not be empty", kind.flag)
			}
			out = append(out, rbacv1.Subject{Kind: kind.kind, APIGroup: rbacv1.GroupName, Name: name})
		}
	}
	for _, account := range o.serviceAccounts {
		namespace, name, found := strings.Cut(account, ":")
		if !found || namespace == "" || name == "" || strings.Contains(name, ":") {
			return nil, fmt.Errorf("--serviceaccount %q is not of the form NAMESPACE:NAME", account)
		}
		out = append(out, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name})
	}
	return out, nil
}
