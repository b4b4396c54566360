package claimpolicy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/claimqueue"
	"hotspare.io/hotspare/internal/condition"
)

// A Step sets the condition Admitted of a claim; a zero value removes it.
type Step struct {
	Claim    string
	Admitted condition.Value
}

// String returns the step as text, such as "admit x" or "hold x: …".
func (s Step) String() string {
	switch s.Admitted.Status {
	case "":
		return "remove condition Admitted of " + s.Claim
	case corev1.ConditionTrue:
		return "admit " + s.Claim
	default:
		return "hold " + s.Claim + ": " + s.Admitted.Message
	}
}

// Counts are the claims to which a policy applies.
type Counts struct {
	// Admitted is the number of admitted claims, Waiting that of claims that wait because of a limit of
	// this policy.
	Admitted, Waiting int
}

// A Plan is what to write. Steps that change nothing are left out.
type Plan struct {
	Steps  []Step
	Counts map[string]Counts
}

// Admits reports whether a step admits a claim. Decide such a plan on what the API server confirms: a
// cache may lack an admission.
func (p Plan) Admits() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Admitted.Status == corev1.ConditionTrue })
}

// String returns one line per step.
func (p Plan) String() string {
	lines := make([]string, len(p.Steps))
	for i, s := range p.Steps {
		lines[i] = s.String()
	}
	return strings.Join(lines, "\n")
}

// Decide returns the plan for a namespace. Claims are admitted in the order of package claimqueue, with the
// priorities that the policies permit: in the order of their creation if none has a priority. A claim
// that waits because of a limit lets claims that do not need that limit pass; so that these cannot keep it
// waiting for ever, the first claim in line for its limits reserves a place in the limits of other
// policies that it needs as well.
//
// Therefore the first claim that waits is admitted at the latest when the claims that were admitted before
// it became the first are gone: a place that becomes free is reserved for it, or no other claim can take it.
// So a claim waits at most as long as it and the claims before it would take one after the other; and
// claims that come later are before it only for a limited time, which claimqueue.Compare says.
func Decide(s Snapshot) Plan {
	d := newDraft(s)
	decided := map[string]bool{}
	for _, c := range d.claims {
		switch {
		case c.Set.Name == "" || c.keepsAdmission() || len(d.policies) == 0:
			d.admitted[c.Name] = d.decideClaim(c)
		case !decided[c.setOnPool()]:
			decided[c.setOnPool()] = true
			d.decideSet(c)
		}
	}
	for _, c := range d.claims {
		d.addStep(c, d.admitted[c.Name])
	}
	return d.plan
}

// A limit is the number of claims that a policy admits: of all its subjects, or of one user.
type limit struct {
	policy, user string
	most         int
}

type draft struct {
	policies []Policy
	pools    []string
	// claims are those that keep their admission, then those of their sets, and then the others in the order of the
	// queue. Their priorities are those in effect.
	claims []Claim
	// begunSets names the sets of which a claim keeps its admission.
	begunSets map[string]bool
	// admitted has the conditions of the claims that are decided.
	admitted map[string]condition.Value
	plan     Plan
	// holders has the admitted claims that count against a limit, reserved the claims that have reserved
	// a place, and first the first claim that waits because of it.
	holders  map[limit][]Claim
	reserved map[limit][]Claim
	first    map[limit]string
}

func newDraft(s Snapshot) *draft {
	d := &draft{
		policies: slices.Clone(s.Policies), pools: s.Pools, claims: slices.Clone(s.Claims), plan: Plan{Counts: map[string]Counts{}}, admitted: map[string]condition.Value{},
		holders: map[limit][]Claim{}, reserved: map[limit][]Claim{}, first: map[limit]string{},
	}
	slices.SortFunc(d.policies, func(a, b Policy) int { return strings.Compare(a.Name, b.Name) })
	for i, c := range d.claims {
		d.claims[i].Priority = LimitPriority(s.Policies, c)
	}
	d.claims = slices.DeleteFunc(d.claims, func(c Claim) bool { return c.Deleting }) // they get no cluster any more, and their places are free
	d.begunSets = findBegunSets(d.claims)
	slices.SortFunc(d.claims, func(a, b Claim) int {
		return cmp.Or(cmp.Compare(d.rank(a), d.rank(b)), claimqueue.Compare(a.entry(), b.entry()), cmp.Compare(a.Set.Name, b.Set.Name), cmp.Compare(a.Name, b.Name))
	})
	for _, p := range d.policies {
		d.plan.Counts[p.Name] = Counts{}
	}
	return d
}

// entry returns the entry of the queue that the claim is admitted with: its set or, without one, the claim itself.
func (c Claim) entry() claimqueue.Entry {
	if c.Set.Name != "" {
		return claimqueue.Entry{Name: c.Set.Name, Created: c.Set.Created, Priority: c.Priority}
	}
	return claimqueue.Entry{Name: c.Name, Created: c.Created, Priority: c.Priority}
}

// rank puts claims that keep their admission first, and then the other claims of their sets: a process that is killed
// between two admissions leaves a set that is admitted in part, and no other claim may take the places of the rest.
func (d *draft) rank(c Claim) int {
	switch {
	case c.keepsAdmission():
		return 0
	case d.begunSets[c.Set.Name]:
		return 1
	default:
		return 2
	}
}

// keepsAdmission reports whether the claim counts against the limits whatever they are.
func (c Claim) keepsAdmission() bool { return c.HasCluster || c.Admitted.IsTrue() }

// addStep adds a step, unless the claim has the condition.
func (d *draft) addStep(c Claim, v condition.Value) {
	if c.Admitted != v && !c.Missing {
		d.plan.Steps = append(d.plan.Steps, Step{c.Name, v})
	}
}

// decideClaim returns the condition Admitted of a claim, and counts it.
func (d *draft) decideClaim(c Claim) condition.Value {
	if len(d.policies) == 0 {
		return condition.Value{}
	}
	apply := d.findApplying(c)
	obstacle := d.findObstacle(c, apply)
	if obstacle != (condition.Value{}) && !c.keepsAdmission() {
		return obstacle
	}
	limits := limitsOf(apply, c.Creator.User)
	if !c.keepsAdmission() {
		if v := d.findFull(c, limits); v != (condition.Value{}) {
			return v
		}
	}
	// An admission that is withdrawn counts until that is written, so that no two claims have its place.
	d.count(c, apply, limits)
	if obstacle != (condition.Value{}) {
		return obstacle
	}
	return condition.True(hivev1.ReasonAdmitted, "The claim is admitted")
}

// findFull puts a claim in line for the limits that have no place for it, and returns the condition that says so; the zero
// value if all have one. A claim that a limit of 0 never admits is not in line: it would keep places of other policies from
// other claims for ever.
func (d *draft) findFull(c Claim, limits []limit) condition.Value {
	if closed := slices.DeleteFunc(slices.Clone(limits), func(l limit) bool { return l.most > 0 }); len(closed) > 0 {
		d.countWaiting(1, closed)
		return condition.False(hivev1.ReasonLimitReached, d.explain(c, closed[0]))
	}
	full := d.fullLimits(limits, 1)
	if len(full) == 0 {
		return condition.Value{}
	}
	d.wait([]Claim{c}, limits, full)
	return condition.False(hivev1.ReasonLimitReached, d.explain(c, full[0]))
}

// findApplying returns the policies that apply to a claim.
func (d *draft) findApplying(c Claim) []Policy {
	var out []Policy
	for _, p := range d.policies {
		if p.Applies(c.Creator, c.Pool) {
			out = append(out, p)
		}
	}
	return out
}

// findObstacle returns why a claim cannot be admitted, whatever the limits are; the zero value if it can. A
// claim that could not get a cluster anyway is not admitted, so that it has no place that others need.
func (d *draft) findObstacle(c Claim, apply []Policy) condition.Value {
	unreadable := slices.IndexFunc(d.policies, func(p Policy) bool { return p.Unreadable != "" })
	switch {
	case c.HasCluster:
		return condition.Value{}
	case unreadable >= 0 && c.Admitted.IsTrue():
		return condition.Value{}
	case unreadable >= 0:
		p := d.policies[unreadable]
		return condition.False(hivev1.ReasonUnreadable, fmt.Sprintf("ClaimPolicy %s cannot be read, and may limit this claim: %s: correct it", p.Name, p.Unreadable))
	case c.Creator.User == "":
		return condition.False(hivev1.ReasonCreatorUnknown, "The namespace has a ClaimPolicy, and it is not known who created this claim: it has no annotation "+
			hivev1.AnnotationCreator+", which the hub sets: delete the claim and create it again")
	case len(apply) == 0:
		return condition.False(hivev1.ReasonNotPermitted, fmt.Sprintf(
			"No ClaimPolicy in this namespace permits %s to claim from pool %s: ask somebody who may write ClaimPolicies here", c.Creator.User, c.Pool))
	case !slices.Contains(d.pools, c.Pool):
		return condition.False(hivev1.ReasonPoolNotFound, fmt.Sprintf(
			"ClusterPool %s does not exist in this namespace, or is being deleted: the claim is admitted once it can get a cluster", c.Pool))
	case c.Orphaned:
		return condition.False(hivev1.ReasonSetMissing, "The claim names as its owner a ClaimSet that does not exist or does not contain the claim: delete the claim")
	case c.Set.Deleting:
		return condition.False(hivev1.ReasonSetMissing, "ClaimSet "+c.Set.Name+" is being deleted, and its claims get no more clusters")
	case c.Unreadable:
		return condition.False(hivev1.ReasonUnreadable, "The claim cannot be read: it is admitted once it can get a cluster")
	}
	return condition.Value{}
}

// count counts an admitted claim.
func (d *draft) count(c Claim, apply []Policy, limits []limit) {
	for _, l := range limits {
		d.holders[l] = append(d.holders[l], c)
	}
	for _, p := range apply {
		n := d.plan.Counts[p.Name]
		n.Admitted++
		d.plan.Counts[p.Name] = n
	}
}

// limitsOf returns the limits of policies for a user.
func limitsOf(policies []Policy, user string) []limit {
	var out []limit
	for _, p := range policies {
		if n := p.Spec.MaxClaimsPerUser; n != nil {
			out = append(out, limit{p.Name, user, int(*n)})
		}
		if n := p.Spec.MaxClaims; n != nil {
			out = append(out, limit{p.Name, "", int(*n)})
		}
	}
	return out
}

// fullLimits returns the limits that have not that many places.
func (d *draft) fullLimits(limits []limit, places int) []limit {
	var out []limit
	for _, l := range limits {
		if len(d.holders[l])+len(d.reserved[l])+places > l.most {
			out = append(out, l)
		}
	}
	return out
}

// wait puts a claim, or those of a set, in line for the limits that are full. The first in line for all of them
// reserves places in the other limits that it needs. It reserves none in the other limit of a policy that has a full
// one: a place of a user becomes free with one of the policy. A set reserves places in all limits: one that has too few
// places for the set has some for the claims behind it.
func (d *draft) wait(claims []Claim, limits, full []limit) {
	c, isFirst := claims[0], true
	counted := d.countWaiting(len(claims)-countMissing(claims), full)
	for _, l := range full {
		if d.first[l] == "" {
			d.first[l] = c.Name
		}
		isFirst = isFirst && d.first[l] == c.Name
	}
	if !isFirst {
		return
	}
	for _, l := range limits {
		if !counted[l.policy] || c.Set.Name != "" {
			d.reserved[l] = append(d.reserved[l], claims...)
		}
	}
}

func countMissing(claims []Claim) int {
	n := 0
	for _, c := range claims {
		if c.Missing {
			n++
		}
	}
	return n
}

// countWaiting counts claims that wait because of limits, and returns the policies of these limits.
func (d *draft) countWaiting(claims int, limits []limit) map[string]bool {
	counted := map[string]bool{}
	for _, l := range limits {
		if counted[l.policy] {
			continue
		}
		counted[l.policy] = true
		n := d.plan.Counts[l.policy]
		n.Waiting += claims
		d.plan.Counts[l.policy] = n
	}
	return counted
}

// explain says which limit a claim waits for, and which claims have its places.
func (d *draft) explain(c Claim, l limit) string {
	whose := "of all its subjects together"
	if l.user != "" {
		whose = "of " + l.user
	}
	text := fmt.Sprintf("ClaimPolicy %s admits at most %s %s at a time", l.policy, formatClaims(l.most), whose)
	if l.most == 0 {
		text = fmt.Sprintf("ClaimPolicy %s admits no claims %s", l.policy, whose)
	}
	if holders := d.holders[l]; len(holders) > 0 {
		text += ", and has admitted " + l.listClaims(holders)
	}
	if earlier := d.reserved[l]; len(earlier) > 0 {
		text += "; a place is reserved for " + l.listClaims(earlier)
	}
	if l.most == 0 {
		return text + ": ask somebody who may write ClaimPolicies here"
	}
	if c.Set.Name != "" {
		return text + fmt.Sprintf(": ClaimSet %s of %s gets all its %s at once, and waits until enough of them are released", c.Set.Name, c.Creator.User, formatClaims(c.Set.Size))
	}
	return text + ": this claim of " + c.Creator.User + " waits until one of them is released"
}

func formatClaims(n int) string {
	if n == 1 {
		return "1 claim"
	}
	return fmt.Sprintf("%d claims", n)
}

// maxListedNames limits the names in a message.
const maxListedNames = 10

// listClaims names claims, and their creators unless the limit is that of one user.
func (l limit) listClaims(claims []Claim) string {
	var names []string
	for _, c := range claims {
		name := c.Name
		if l.user == "" && c.Creator.User != "" {
			name += " of " + c.Creator.User
		}
		names = append(names, name)
	}
	slices.Sort(names)
	if more := len(names) - maxListedNames; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxListedNames], ", "), more)
	}
	return strings.Join(names, ", ")
}
