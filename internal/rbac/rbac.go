// Package rbac decides who has which access to the namespace of a pool's cluster: the subjects
// of its claim, and the admins of its pool.
//
// It builds the Roles and RoleBindings that should exist, and writes nothing. Access is given
// only in a namespace that a pool has created for a cluster (IsPoolNamespace). A
// ClusterDeployment alone is no proof: otherwise, a user who can create one in a namespace could
// make hotspare grant access to the Secrets there.
package rbac

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// OwnerAccess is the access that the subjects of a claim should have. Role and Binding are either
// both set or both nil; nil means no access.
type OwnerAccess struct {
	Role    *rbacv1.Role
	Binding *rbacv1.RoleBinding
	// Refused says, for each subject that RBAC does not accept, what is wrong with it.
	Refused []string
}

// DecideOwnerAccess returns the access that the subjects of claim should have in the namespace of
// cd: none unless cd belongs to the claim and the claim is not being deleted. cd may be nil.
func DecideOwnerAccess(claim *hivev1.ClusterClaim, cd *hivev1.ClusterDeployment) OwnerAccess {
	if !HasCluster(claim, cd) || claim.DeletionTimestamp != nil {
		return OwnerAccess{}
	}
	who, refused := validSubjects(claim.Spec.Subjects)
	if len(who) == 0 {
		return OwnerAccess{Refused: refused}
	}
	about := metav1.ObjectMeta{
		Namespace: cd.Namespace, Name: hivev1.ClaimOwnerRole,
		Labels:      map[string]string{hivev1.LabelAccess: hivev1.AccessClaimOwner},
		Annotations: map[string]string{hivev1.AnnotationClaim: claim.Namespace + "/" + claim.Name},
	}
	return OwnerAccess{
		Role: &rbacv1.Role{ObjectMeta: about, Rules: ownerRules(cd)},
		Binding: &rbacv1.RoleBinding{
			ObjectMeta: *about.DeepCopy(),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: hivev1.ClaimOwnerRole},
			Subjects:   normalizeSubjects(who, claim.Namespace),
		},
		Refused: refused,
	}
}

// HasCluster reports whether cd was assigned to claim, and not to a claim of the same name in
// another namespace. cd may be nil, or in no pool.
func HasCluster(claim *hivev1.ClusterClaim, cd *hivev1.ClusterDeployment) bool {
	if cd == nil || cd.Spec.ClusterPoolRef == nil {
		return false
	}
	ref := cd.Spec.ClusterPoolRef
	return ref.ClaimName == claim.Name && ref.Namespace == claim.Namespace
}

// IsMadeForClaim reports whether o, a Role or a RoleBinding, was created for the subjects of
// claim.
func IsMadeForClaim(claim *hivev1.ClusterClaim, o metav1.Object) bool {
	return o.GetAnnotations()[hivev1.AnnotationClaim] == claim.Namespace+"/"+claim.Name
}

// IsPoolNamespace reports whether the namespace was created for a cluster of the pool that ref
// names. Only a user who can edit the namespace can forge this. The name of the pool alone would
// not suffice, because every namespace may have a pool of that name.
func IsPoolNamespace(ns *corev1.Namespace, ref hivev1.ClusterPoolReference) bool {
	return ref.PoolName != "" && ns.Labels[hivev1.LabelPoolName] == ref.PoolName &&
		ref.Namespace != "" && ns.Labels[hivev1.LabelPoolNamespace] == ref.Namespace
}

// ReadableSecrets returns the sorted names of the Secrets that the owner of a cluster may read:
// those that spec.clusterMetadata names now.
func ReadableSecrets(cd *hivev1.ClusterDeployment) []string {
	md := cd.Spec.ClusterMetadata
	if md == nil {
		return nil
	}
	var out []string
	for _, ref := range []*corev1.LocalObjectReference{&md.AdminKubeconfigSecretRef, md.AdminPasswordSecretRef, md.MetadataJSONSecretRef} {
		if ref != nil && ref.Name != "" {
			out = append(out, ref.Name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func ownerRules(cd *hivev1.ClusterDeployment) []rbacv1.PolicyRule {
	out := []rbacv1.PolicyRule{{
		APIGroups: []string{hivev1.GroupVersion.Group},
		Resources: []string{rbacv1.ResourceAll},
		Verbs:     []string{rbacv1.VerbAll},
	}}
	// A rule without Secret names would apply to every Secret.
	if names := ReadableSecrets(cd); len(names) > 0 {
		out = append(out, rbacv1.PolicyRule{
			APIGroups: []string{corev1.GroupName}, Resources: []string{"secrets"}, ResourceNames: names,
			Verbs: []string{"get"},
		})
	}
	return out
}

// validSubjects separates the subjects that an API server would refuse, so that one invalid
// subject does not exclude the others.
func validSubjects(in []rbacv1.Subject) (good []rbacv1.Subject, refused []string) {
	for i, s := range in {
		group := rbacv1.GroupName
		switch s.Kind {
		case rbacv1.UserKind, rbacv1.GroupKind:
		case rbacv1.ServiceAccountKind:
			group = ""
		default:
			refused = append(refused, fmt.Sprintf("spec.subjects[%d] has no access: its kind %q is not User, Group or ServiceAccount", i, s.Kind))
			continue
		}
		switch {
		case s.Name == "":
			refused = append(refused, fmt.Sprintf("spec.subjects[%d] has no access: it has no name", i))
		case s.APIGroup != "" && s.APIGroup != group:
			refused = append(refused, fmt.Sprintf("spec.subjects[%d] has no access: its apiGroup %q should be %q", i, s.APIGroup, group))
		default:
			good = append(good, s)
		}
	}
	return good, refused
}

// normalizeSubjects returns sorted subjects in the form in which an API server stores them, so
// that they can be compared. A service account without a namespace would be taken from the
// namespace of the binding; here its namespace is set to home.
func normalizeSubjects(in []rbacv1.Subject, home string) []rbacv1.Subject {
	out := slices.Clone(in)
	for i := range out {
		switch s := &out[i]; s.Kind {
		case rbacv1.ServiceAccountKind:
			s.Namespace = cmp.Or(s.Namespace, home)
		case rbacv1.UserKind, rbacv1.GroupKind:
			s.APIGroup = cmp.Or(s.APIGroup, rbacv1.GroupName)
		}
	}
	slices.SortFunc(out, func(a, b rbacv1.Subject) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.APIGroup, b.APIGroup))
	})
	return slices.Compact(out)
}
