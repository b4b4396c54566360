package claimpolicy

import (
	"cmp"
	"fmt"
	"slices"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// A Policy is a ClaimPolicy.
type Policy struct {
	Namespace, Name string
	Spec            v1alpha1.ClaimPolicySpec
	// Unreadable describes what could not be read. Such a policy applies to nobody, and no claim is
	// admitted while it exists: it may limit any of them.
	Unreadable string
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

// NarrowLifetimeBounds returns the default and the longest lifetime of a claim, given those of its pool; nil
// means none. It ignores durations that are not valid.
func NarrowLifetimeBounds(policies []Policy, who Creator, pool string, fallback, maximum *hivev1.Duration) (*hivev1.Duration, *hivev1.Duration) {
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
	case !isLimited(b):
		return a
	case !isLimited(a):
		return b
	}
	x, _ := a.Parse() // it limits, so it is valid
	y, _ := b.Parse() // it limits, so it is valid
	if y < x {
		return b
	}
	return a
}

func isLimited(d *hivev1.Duration) bool {
	if d == nil {
		return false
	}
	span, err := d.Parse()
	return err == nil && span > 0
}
