package claimpolicy

import (
	"fmt"
	"slices"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

// setOnPool identifies the set of a claim, on the pool of the claim. Claims of a set that moves to another pool are not
// admitted together with those that it has left.
func (c Claim) setOnPool() string { return c.Set.Name + "/" + c.Pool }

// findBegunSets names the sets of which a claim keeps its admission.
func findBegunSets(claims []Claim) map[string]bool {
	out := map[string]bool{}
	for _, c := range claims {
		if c.Set.Name != "" && c.keepsAdmission() {
			out[c.Set.Name] = true
		}
	}
	return out
}

// decideSet decides on the claims of a set that are not admitted: all of them are admitted, or none. one is one of
// them. If they cannot be admitted, those of the set that are admitted and have no cluster lose their admission, so that
// they keep no places from other claims: the pool gives none of them a cluster before all are admitted.
func (d *draft) decideSet(one Claim) {
	rest, kept, served := d.claimsOfSet(one)
	apply := d.findApplying(one)
	limits := limitsOf(apply, one.Creator.User)
	v := d.findSetObstacle(rest, len(kept), served)
	if v == (condition.Value{}) {
		v = d.findTooLow(one, limits)
	}
	if v == (condition.Value{}) {
		if full := d.fullLimits(limits, len(rest)); len(full) > 0 {
			v = condition.False(hivev1.ReasonLimitReached, d.explain(one, full[0]))
			d.wait(rest, limits, full)
		}
	}
	if v == (condition.Value{}) && slices.ContainsFunc(rest, func(c Claim) bool { return c.Missing }) {
		v = incompleteSet(one.Set)
		for _, l := range limits {
			d.reserved[l] = append(d.reserved[l], rest...)
		}
	}
	if v == (condition.Value{}) {
		for _, c := range rest {
			d.count(c, apply, limits)
			d.admitted[c.Name] = condition.True(hivev1.ReasonAdmitted, "The claim is admitted")
		}
		return
	}
	for _, c := range rest {
		d.admitted[c.Name] = v
	}
	if served || v.Reason == hivev1.ReasonSetIncomplete {
		return
	}
	for _, c := range kept {
		d.admitted[c.Name] = v
	}
}

// claimsOfSet returns the claims of the set of one, on its pool: those that are not admitted, and those that are. served
// is set if one of them has a cluster.
func (d *draft) claimsOfSet(one Claim) (rest, kept []Claim, served bool) {
	for _, c := range d.claims {
		switch {
		case c.Set.Name == "" || c.setOnPool() != one.setOnPool():
		case c.keepsAdmission():
			kept = append(kept, c)
			served = served || c.HasCluster
		default:
			rest = append(rest, c)
		}
	}
	return rest, kept, served
}

// findSetObstacle returns why the claims of a set cannot be admitted, whatever the limits are; the zero value if they
// can. kept is the number of the others, that are admitted.
func (d *draft) findSetObstacle(rest []Claim, kept int, served bool) condition.Value {
	for _, c := range rest {
		if v := d.findObstacle(c, d.findApplying(c)); v != (condition.Value{}) {
			return v
		}
	}
	missing := slices.ContainsFunc(rest, func(c Claim) bool { return c.Missing })
	if set := rest[0].Set; !served && !missing && kept+len(rest) < set.Size {
		return incompleteSet(set)
	}
	return condition.Value{}
}

func incompleteSet(set Set) condition.Value {
	return condition.False(hivev1.ReasonSetIncomplete, "ClaimSet "+set.Name+" does not have all its claims yet: they are admitted together")
}

// findTooLow returns a condition if a limit admits fewer claims than a set has: such a set does not wait in line, so that
// it keeps no places from other claims.
func (d *draft) findTooLow(c Claim, limits []limit) condition.Value {
	for _, l := range limits {
		if l.most < c.Set.Size {
			return condition.False(hivev1.ReasonLimitTooLow, fmt.Sprintf(
				"ClaimPolicy %s admits at most %s at a time%s, and ClaimSet %s needs %d at once: ask somebody who may write ClaimPolicies here, or create a smaller set",
				l.policy, formatClaims(l.most), l.formatUser(), c.Set.Name, c.Set.Size))
		}
	}
	return condition.Value{}
}

// CanAdmitSet reports whether the policies of a namespace can admit a set of that size on a pool, once no other claim has
// a place of their limits. It is true without policies; and if one cannot be read or the creator is unknown, which is
// not for the choice of a pool to decide: the claims say why they are held.
func CanAdmitSet(policies []Policy, who Creator, pool string, size int) bool {
	if len(policies) == 0 || who.User == "" || slices.ContainsFunc(policies, func(p Policy) bool { return p.Unreadable != "" }) {
		return true
	}
	apply := slices.DeleteFunc(slices.Clone(policies), func(p Policy) bool { return !p.Applies(who, pool) })
	return len(apply) > 0 && !slices.ContainsFunc(limitsOf(apply, who.User), func(l limit) bool { return l.most < size })
}

func (l limit) formatUser() string {
	if l.user == "" {
		return " of all its subjects together"
	}
	return " of " + l.user
}
