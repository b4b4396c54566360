// Package claimset decides what a ClaimSet does next: from which pool it gets its clusters, which of its claims are
// created or deleted, and what its status says. It also says which claims belong to a set. It is pure.
//
// Package pool decides when the claims of a set get their clusters, all in one pass.
package claimset

import (
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// kind is the kind of the owners of a set's claims.
const kind = "ClaimSet"

// Sets are the ClaimSets of one namespace, by UID.
type Sets map[types.UID]*v1alpha1.ClaimSet

// ByUID returns sets by their UIDs.
func ByUID(list []v1alpha1.ClaimSet) Sets {
	out := make(Sets, len(list))
	for i := range list {
		out[list[i].UID] = &list[i]
	}
	return out
}

// ClaimName returns the name of the claim of a set with that index; the first has 0.
func ClaimName(set string, index int) string { return set + "-" + strconv.Itoa(index) }

// NewOwnerReference returns the reference by which a claim names the set that it belongs to. It does not block the
// deletion of the set: the finalizer of the set does.
func NewOwnerReference(set *v1alpha1.ClaimSet) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind, Name: set.Name, UID: set.UID, Controller: new(true)}
}

// FindOwner returns the reference by which a claim names a set; nil if it names none. An admission policy of the
// hub lets only hotspare add such a reference.
func FindOwner(c *hivev1.ClusterClaim) *metav1.OwnerReference {
	for i := range c.OwnerReferences {
		ref := &c.OwnerReferences[i]
		group, _, _ := strings.Cut(ref.APIVersion, "/")
		if ref.Kind == kind && group == v1alpha1.GroupVersion.Group {
			return ref
		}
	}
	return nil
}

// Contains reports whether a claim belongs to the set: it names the set by its UID, is in its namespace, and has one
// of the names of its claims. So a set never has more claims than its size, whoever has written them.
func Contains(set *v1alpha1.ClaimSet, c *hivev1.ClusterClaim) bool {
	ref := FindOwner(c)
	return ref != nil && ref.UID == set.UID && set.Namespace == c.Namespace && isClaimName(set, c.Name)
}

// isClaimName reports whether a claim of that name can belong to the set.
func isClaimName(set *v1alpha1.ClaimSet, name string) bool {
	text, ok := strings.CutPrefix(name, set.Name+"-")
	if !ok {
		return false
	}
	index, err := strconv.Atoi(text)
	return err == nil && index >= 0 && index < int(set.Spec.Size) && name == ClaimName(set.Name, index)
}

// FindSet returns the set that a claim belongs to; nil if it belongs to none. orphaned is set if the claim names a
// set that does not exist or does not have it: such a claim gets no cluster, since whoever has written it could
// otherwise get one before the claims that wait.
func (s Sets) FindSet(c *hivev1.ClusterClaim) (set *v1alpha1.ClaimSet, orphaned bool) {
	ref := FindOwner(c)
	if ref == nil {
		return nil, false
	}
	set = s[ref.UID]
	if set == nil || !Contains(set, c) {
		return nil, true
	}
	return set, false
}
