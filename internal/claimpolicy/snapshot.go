// Package claimpolicy decides which claims of a namespace are admitted: permitted by a ClaimPolicy and
// within its limits. It is pure.
//
// Packages pool and claim decide which cluster an admitted claim gets, and when it ends.
package claimpolicy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

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

// A Policy is a ClaimPolicy.
type Policy struct {
	Namespace, Name string
	Spec            v1alpha1.ClaimPolicySpec
	// Unreadable describes what could not be read. Such a policy applies to nobody, and no claim is
	// admitted while it exists: it may limit any of them.
	Unreadable string
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

// A Creator is the user who created a claim, as the API server authenticated the user.
type Creator struct {
	// User is empty if the creator is unknown.
	User   string
	Groups []string
}

// ReadPolicies returns the policies that are not being deleted.
func ReadPolicies(list []v1alpha1.ClaimPolicy) []Policy {
	var out []Policy
	for _, p := range list {
		if p.DeletionTimestamp == nil {
			out = append(out, Policy{p.Namespace, p.Name, p.Spec, p.Unreadable})
		}
	}
	return out
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

// Applies reports whether a policy applies to the claims of a creator on a pool.
func (p Policy) Applies(who Creator, pool string) bool {
	if p.Unreadable != "" || len(p.Spec.Pools) > 0 && !slices.Contains(p.Spec.Pools, pool) {
		return false
	}
	return who.User != "" && slices.ContainsFunc(p.Spec.Subjects, func(s v1alpha1.ClaimSubject) bool { return p.matchesSubject(s, who) })
}

func (p Policy) matchesSubject(s v1alpha1.ClaimSubject, who Creator) bool {
	switch s.Kind {
	case "User":
		return s.Name == who.User
	case "Group":
		return slices.Contains(who.Groups, s.Name)
	case "ServiceAccount":
		namespace := s.Namespace
		if namespace == "" {
			namespace = p.Namespace
		}
		return who.User == "system:serviceaccount:"+namespace+":"+s.Name
	default:
		return false
	}
}

// A PriorityLimit is the highest priority that counts for a claim.
type PriorityLimit struct {
	Most int
	// Policy is the policy that sets it; empty if none of those that apply does.
	Policy string
}

// FindPriorityLimit returns the limit on the priority of a claim; nil if the namespace has no policies. It
// is the lowest of the policies that apply, and 0 if none of them sets one. A policy that cannot be read may
// have any limit, so the limit is then at most 0.
func FindPriorityLimit(policies []Policy, c Claim) *PriorityLimit {
	if len(policies) == 0 {
		return nil
	}
	var lowest *PriorityLimit
	consider := func(name string, most int) {
		if lowest == nil || most < lowest.Most || most == lowest.Most && name < lowest.Policy {
			lowest = &PriorityLimit{most, name}
		}
	}
	for _, p := range policies {
		switch {
		case p.Unreadable != "":
			consider(p.Name, 0)
		case p.Spec.MaxPriority != nil && p.Applies(c.Creator, c.Pool):
			consider(p.Name, int(*p.Spec.MaxPriority))
		}
	}
	if lowest == nil {
		return &PriorityLimit{}
	}
	return lowest
}

// LimitPriority returns the priority in effect of a claim.
func LimitPriority(policies []Policy, c Claim) int {
	if limit := FindPriorityLimit(policies, c); limit != nil {
		return min(c.Priority, limit.Most)
	}
	return c.Priority
}

// Explain says who may have which priority, and by which policy. It is the end of a sentence.
func (l PriorityLimit) Explain(c Claim) string {
	if l.Policy == "" {
		return fmt.Sprintf("no ClaimPolicy permits %s a higher one on pool %s", cmp.Or(c.Creator.User, "its unknown creator"), c.Pool)
	}
	return fmt.Sprintf("ClaimPolicy %s permits %s at most %d on pool %s", l.Policy, cmp.Or(c.Creator.User, "its unknown creator"), l.Most, c.Pool)
}

// LimitLifetime returns the default and the longest lifetime of a claim, given those of its pool; nil
// means none. It ignores durations that are not valid.
func LimitLifetime(policies []Policy, who Creator, pool string, fallback, maximum *hivev1.Duration) (*hivev1.Duration, *hivev1.Duration) {
	var own *hivev1.Duration
	for _, p := range policies {
		if p.Spec.Lifetime == nil || !p.Applies(who, pool) {
			continue
		}
		own = shorter(own, p.Spec.Lifetime.Default)
		maximum = shorter(maximum, p.Spec.Lifetime.Maximum)
	}
	if own != nil {
		fallback = own
	}
	return fallback, maximum
}

// shorter returns the shorter of two durations above zero. nil, zero and what is not a duration limit
// nothing.
func shorter(a, b *hivev1.Duration) *hivev1.Duration {
	switch {
	case !limits(b):
		return a
	case !limits(a):
		return b
	}
	x, _ := a.Parse() // it limits, so it is valid
	y, _ := b.Parse() // it limits, so it is valid
	if y < x {
		return b
	}
	return a
}

func limits(d *hivev1.Duration) bool {
	if d == nil {
		return false
	}
	span, err := d.Parse()
	return err == nil && span > 0
}
