// Package claimpolicy decides which claims of a namespace are admitted: permitted by a ClaimPolicy and
// within its limits. It is pure.
//
// Packages pool and claim decide which cluster an admitted claim gets, and when it ends.
package claimpolicy

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/condition"
)

// A Snapshot is everything that the plan for a namespace depends on.
type Snapshot struct {
	// Policies and Claims are all existing ones of the namespace, in any order.
	Policies []Policy
	Claims   []Claim
	// Pools are the names of the pools of the namespace that serve claims: those that are not being
	// deleted.
	Pools []string
}

// A Claim is a claim in the namespace.
type Claim struct {
	Name    string
	Created time.Time
	Creator Creator
	Pool    string
	// Priority is its own priority, without regard to the policies.
	Priority int
	// Set is the ClaimSet that it belongs to: it is admitted together with the other claims of the set. Its creator
	// and its priority are those of the set.
	Set Set
	// Missing is set if the set does not have the claim yet: see MissingClaims.
	Missing bool
	// Orphaned is set if it names a ClaimSet that does not have it. It gets no cluster.
	Orphaned bool
	// HasCluster is set if the claim has a cluster. It keeps the cluster whatever the policies say.
	HasCluster bool
	Deleting   bool
	// Unreadable is set if some of the claim could not be read. It gets no cluster until it can be read.
	Unreadable bool
	// Admitted is its condition of that type; the zero value if it has none.
	Admitted condition.Value
}

// A Set is the ClaimSet of a claim; the zero value means that it belongs to none.
type Set struct {
	Name    string
	Created time.Time
	Size    int
	// Deleting is set while the set is being deleted.
	Deleting bool
}

// InSet returns the claim as a claim of a set; nil means that it belongs to none. Whoever changes the annotations of
// the claim changes neither the creator nor the priority of the set.
func (c Claim) InSet(set *v1alpha1.ClaimSet) Claim {
	if set == nil {
		return c
	}
	c.Set = Set{Name: set.Name, Created: set.CreationTimestamp.Time, Size: int(set.Spec.Size), Deleting: set.DeletionTimestamp != nil}
	c.Creator, c.Priority = readCreator(set.Annotations), int(set.Spec.Priority)
	return c
}

// MissingClaims returns the claims that a set does not have yet, and that hotspare is about to create; none if the set is served or
// being deleted, or if a person must act before it gets its claims. It returns none while a claim of the set is being
// deleted, because that may last: its cluster must be destroyed, or somebody else's finalizer removed. claims are those that it
// has.
//
// They keep the place of the set in line: its claims are created one after the other, and again if the set moves to
// another pool, and later claims would take the places of those that are created last.
func MissingClaims(set *v1alpha1.ClaimSet, claims []Claim) []Claim {
	missing, pool := int(set.Spec.Size), set.Status.ClusterPoolName
	for _, c := range claims {
		if c.Deleting || c.HasCluster { // once one has a cluster, no claim of the set is created any more
			return nil
		}
		missing, pool = missing-1, c.Pool
	}
	if pool == "" || set.DeletionTimestamp != nil || set.Unreadable != "" || set.Status.ServedTime != nil ||
		meta.IsStatusConditionTrue(set.Status.Conditions, hivev1.ConditionStalled) {
		return nil
	}
	var out []Claim
	for i := range missing {
		// No claim can have such a name.
		c := Claim{Name: fmt.Sprintf("claim %d of ClaimSet %s", i+1, set.Name), Created: set.CreationTimestamp.Time, Pool: pool, Missing: true}
		out = append(out, c.InSet(set))
	}
	return out
}

// A Creator is the user who created a claim, as the API server authenticated the user.
type Creator struct {
	// User is empty if the creator is unknown.
	User   string
	Groups []string
}

// ReadPools returns the names of the pools that serve claims.
func ReadPools(list []hivev1.ClusterPool) []string {
	var out []string
	for i := range list {
		if list[i].DeletionTimestamp == nil {
			out = append(out, list[i].Name)
		}
	}
	return out
}

// ReadClaim returns what the policies need to know of a claim.
func ReadClaim(c *hivev1.ClusterClaim) Claim {
	out := Claim{
		Name: c.Name, Created: c.CreationTimestamp.Time, Creator: ReadCreator(c), Pool: c.Spec.ClusterPoolName,
		HasCluster: c.Spec.Namespace != "", Deleting: c.DeletionTimestamp != nil, Unreadable: c.Unreadable != "",
	}
	out.Priority, _ = hivev1.ParsePriority(c.Annotations[hivev1.AnnotationPriority]) // 0 if it is not valid: package claim reports that
	if found := condition.Find(c.Status.Conditions, hivev1.ClaimAdmitted); found != nil {
		out.Admitted = condition.Value{Status: found.Status, Reason: found.Reason, Message: found.Message}
	}
	return out
}

// ReadCreator returns the creator of a claim. An admission policy of the hub guarantees that the
// annotations are true.
func ReadCreator(c *hivev1.ClusterClaim) Creator { return readCreator(c.Annotations) }

func readCreator(annotations map[string]string) Creator {
	out := Creator{User: annotations[hivev1.AnnotationCreator]}
	if groups := annotations[hivev1.AnnotationCreatorGroups]; groups != "" {
		out.Groups = strings.Split(groups, "\n")
	}
	return out
}
