package history

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/crashtest/chaos"
)

// creator is who created a claim or a set.
type creator struct {
	user   string
	groups []string
}

func creatorOf(annotations map[string]string) creator {
	return creator{annotations[hivev1.AnnotationCreator], strings.Split(annotations[hivev1.AnnotationCreatorGroups], "\n")}
}

// applies reports whether a policy applies to claims of a creator on a pool. No policy of these histories has a
// ServiceAccount.
func applies(p *v1alpha1.ClaimPolicy, who creator, pool string) bool {
	if who.user == "" || len(p.Spec.Pools) > 0 && !slices.Contains(p.Spec.Pools, pool) {
		return false
	}
	for _, s := range p.Spec.Subjects {
		if s.Kind == "User" && s.Name == who.user || s.Kind == "Group" && slices.Contains(who.groups, s.Name) {
			return true
		}
	}
	return false
}

// limitPriority returns the priority in effect: the lowest limit of the policies that apply and set one, and 0 if there are
// policies and none of them sets one (ADR 0037).
func limitPriority(policies []*v1alpha1.ClaimPolicy, who creator, pool string, own int) int {
	if len(policies) == 0 {
		return own
	}
	var most *int32
	for _, p := range policies {
		if m := p.Spec.MaxPriority; m != nil && applies(p, who, pool) && (most == nil || *m < *most) {
			most = m
		}
	}
	if most == nil {
		return min(own, 0)
	}
	return min(own, int(*most))
}

// place is a limit of a policy: of all its subjects, or of one user.
type place struct {
	policy *v1alpha1.ClaimPolicy
	user   string
	most   int
}

// placesOf returns the limits that a claim of a creator on a pool needs a place of.
func placesOf(policies []*v1alpha1.ClaimPolicy, who creator, pool string) []place {
	var out []place
	for _, p := range policies {
		if !applies(p, who, pool) {
			continue
		}
		if n := p.Spec.MaxClaims; n != nil {
			out = append(out, place{p, "", int(*n)})
		}
		if n := p.Spec.MaxClaimsPerUser; n != nil {
			out = append(out, place{p, who.user, int(*n)})
		}
	}
	return out
}

// boundOrAdmitted reports whether the policies have admitted a claim, or it had its cluster when the pass read it.
func (r *reads) boundOrAdmitted(c *hivev1.ClusterClaim) bool {
	return isAdmittedByPolicy(c) || slices.ContainsFunc(r.bound, func(b hivev1.ClusterClaim) bool { return b.UID == c.UID })
}

// countHolders returns how many claims of those that counts selects have a place of a limit.
func (j *judge) countHolders(l place, counts func(*hivev1.ClusterClaim) bool) int {
	sets := list[*v1alpha1.ClaimSet](j)
	return count(list[*hivev1.ClusterClaim](j), func(c *hivev1.ClusterClaim) bool {
		who := creatorOfClaim(sets, c)
		return hasPlace(c) && counts(c) && applies(l.policy, who, c.Spec.ClusterPoolName) && (l.user == "" || l.user == who.user)
	})
}

// hasPlace reports whether a claim counts against limits.
func hasPlace(c *hivev1.ClusterClaim) bool {
	return c.DeletionTimestamp == nil && (c.Spec.Namespace != "" || condition.IsTrue(c.Status.Conditions, hivev1.ClaimAdmitted))
}

// creatorOfClaim returns the creator of the claim's set, or that of the claim.
func creatorOfClaim(sets []*v1alpha1.ClaimSet, c *hivev1.ClusterClaim) creator {
	if set := findSet(sets, c); set != nil {
		return creatorOf(set.Annotations)
	}
	return creatorOf(c.Annotations)
}

// policiesOf returns the policies that are not being deleted, as a list that a task has read.
func policiesOf(items []v1alpha1.ClaimPolicy) []*v1alpha1.ClaimPolicy {
	var out []*v1alpha1.ClaimPolicy
	for i := range items {
		if items[i].DeletionTimestamp == nil {
			out = append(out, &items[i])
		}
	}
	return out
}

// checkAdmission checks that a claim that has just been admitted is permitted, and that no limit is passed.
func (j *judge) checkAdmission(c *hivev1.ClusterClaim, by *chaos.Task) {
	j.h.counts["admissions"]++
	r := j.readsOf(by)
	policies := r.policies
	switch set := findSet(r.sets, c); {
	case ownerOf(c) == "":
	case set == nil || set.DeletionTimestamp != nil:
		j.report("%s admits claim %s, whose set does not exist or is being deleted", by.Name, c.Name)
	case r.claims[set.UID] < int(set.Spec.Size) && !r.assigned[set.UID]:
		j.report("%s admits claim %s, and its set of %d has %d claims", by.Name, c.Name, set.Spec.Size, r.claims[set.UID])
	}
	who := creatorOfClaim(list[*v1alpha1.ClaimSet](j), c)
	if !slices.ContainsFunc(policies, func(p *v1alpha1.ClaimPolicy) bool { return applies(p, who, c.Spec.ClusterPoolName) }) {
		j.report("%s admits claim %s, which no policy permits", by.Name, c.Name)
	}
	for _, l := range placesOf(policies, who, c.Spec.ClusterPoolName) {
		// A claim may have got its cluster since the pass has read it, without regard to a policy that it did not know.
		if n := j.countHolders(l, r.boundOrAdmitted); n > l.most {
			j.report("%s admits claim %s: ClaimPolicy %s then has %d claims of %q, and admits at most %d", by.Name, c.Name, l.policy.Name, n, l.user, l.most)
		}
	}
	j.checkReservation(c, by)
}

// firstAwaited returns the first of the sets that may be admitted and whose claims are missing and about to be created; nil if
// there is none.
func (p *picture) firstAwaited(pools []*hivev1.ClusterPool) *unit {
	var first *unit
	for _, s := range p.sets {
		if !p.awaitsClaims(s) {
			continue
		}
		c := &hivev1.ClusterClaim{Spec: hivev1.ClusterClaimSpec{ClusterPoolName: p.poolOf(s)}}
		c.OwnerReferences = []metav1.OwnerReference{{Kind: "ClaimSet", UID: s.UID}}
		if u := p.unitOf(c, s); p.canWaitInLine(c, pools) && (first == nil || p.comesBefore(u, *first)) {
			first = &u
		}
	}
	return first
}

// comesBefore reports whether u is admitted before v: the rest of a set that is admitted in part comes before all that wait.
func (p *picture) comesBefore(u, v unit) bool {
	if a, b := p.isAdmittedInPart(u), p.isAdmittedInPart(v); a != b {
		return a
	}
	return u.isBefore(v)
}

// awaitsClaims reports whether claims of a set are missing and about to be created. None is while one of them has a cluster or is
// being deleted.
func (p *picture) awaitsClaims(s *v1alpha1.ClaimSet) bool {
	if s.DeletionTimestamp != nil || s.Status.ServedTime != nil || meta.IsStatusConditionTrue(s.Status.Conditions, hivev1.ConditionStalled) || p.poolOf(s) == "" {
		return false
	}
	isOwn := func(c *hivev1.ClusterClaim) bool { return ownerOf(c) == s.UID }
	isBusy := func(c *hivev1.ClusterClaim) bool {
		return isOwn(c) && (c.Spec.Namespace != "" || c.DeletionTimestamp != nil)
	}
	return count(p.claims, isOwn) < int(s.Spec.Size) && !slices.ContainsFunc(p.claims, isBusy)
}

// poolOf returns the pool of the claims of a set: that of its last claim or, without claims, the one that its status names.
func (p *picture) poolOf(s *v1alpha1.ClaimSet) string {
	pool := s.Status.ClusterPoolName
	for _, c := range p.claims {
		if ownerOf(c) == s.UID {
			pool = c.Spec.ClusterPoolName
		}
	}
	return pool
}

// isAdmittedInPart reports whether a claim of the set of a unit has a place.
func (p *picture) isAdmittedInPart(u unit) bool {
	return u.set != nil && slices.ContainsFunc(p.claims, func(o *hivev1.ClusterClaim) bool { return ownerOf(o) == u.set.UID && hasPlace(o) })
}

// canWaitInLine reports whether a claim may get a place of every limit sometime: until then, it waits for one, and may keep others.
func (p *picture) canWaitInLine(c *hivev1.ClusterClaim, pools []*hivev1.ClusterPool) bool {
	who, pool, need := creatorOfClaim(p.sets, c), c.Spec.ClusterPoolName, 1
	if set := findSet(p.sets, c); set != nil {
		need = int(set.Spec.Size)
	}
	serves := slices.ContainsFunc(pools, func(p *hivev1.ClusterPool) bool { return p.Name == pool && p.DeletionTimestamp == nil })
	return serves && c.DeletionTimestamp == nil &&
		slices.ContainsFunc(p.policies, func(p *v1alpha1.ClaimPolicy) bool { return applies(p, who, pool) }) &&
		!slices.ContainsFunc(placesOf(p.policies, who, pool), func(l place) bool { return l.most < need })
}

// checkReservation checks that a pass which has just admitted a claim has not taken a place that the first set needs whose claims
// are missing: the set is before the claim in line, nothing that waits is before the set, and all its limits had enough places. It
// judges by what the pass has read, and by what the pass has admitted since.
func (j *judge) checkReservation(c *hivev1.ClusterClaim, by *chaos.Task) {
	r := j.readsOf(by)
	r.admitted[c.UID] = true
	all, pools := &picture{claims: r.listed, sets: r.sets, policies: r.policies}, pointersTo(r.pools)
	first, u := all.firstAwaited(pools), all.unitOf(c, findSet(r.sets, c))
	if first == nil || u.id == first.id || !all.comesBefore(*first, u) {
		return
	}
	hasPlaceNow := func(o *hivev1.ClusterClaim) bool {
		return o.DeletionTimestamp == nil && (hasPlace(o) || r.admitted[o.UID])
	}
	isEarlier := func(o *hivev1.ClusterClaim) bool {
		v := all.unitOf(o, findSet(r.sets, o))
		return !hasPlaceNow(o) && v.id != first.id && all.comesBefore(v, *first) && all.canWaitInLine(o, pools)
	}
	if slices.ContainsFunc(all.claims, isEarlier) {
		return // it may have reserved the places
	}
	who, size, taken := creatorOf(first.set.Annotations), int(first.set.Spec.Size), ""
	for _, l := range placesOf(r.policies, who, first.claims[0].Spec.ClusterPoolName) {
		uses := func(o *hivev1.ClusterClaim) bool {
			who := creatorOfClaim(r.sets, o)
			return applies(l.policy, who, o.Spec.ClusterPoolName) && (l.user == "" || l.user == who.user)
		}
		left := l.most - count(all.claims, func(o *hivev1.ClusterClaim) bool { return ownerOf(o) != first.set.UID && hasPlaceNow(o) && uses(o) })
		if uses(c) {
			if left < size {
				taken = l.policy.Name
			}
			left++
		}
		if left < size {
			return // it had to wait before
		}
	}
	j.h.counts["admissions beside a set without claims"]++
	if taken != "" {
		j.report("%s admits claim %s, which takes a place of ClaimPolicy %s that set %s needs", by.Name, c.Name, taken, first.name)
	}
}

func pointersTo[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}

// line is the first claim, or set, that waits for a place of a limit, and the claims that had places when it became the
// first.
type line struct {
	head, policies string
	holders        []string
	// cleared counts the passes after which no holder was left.
	cleared int
}

// checkLine checks the bound of ADR 0035: the first that waits is admitted once the claims are gone that were admitted
// before it became the first. It is called at the end of a pass with a cache that is not behind.
func (j *judge) checkLine() {
	policies := slices.DeleteFunc(list[*v1alpha1.ClaimPolicy](j), func(p *v1alpha1.ClaimPolicy) bool { return p.DeletionTimestamp != nil })
	head := j.findHead(policies)
	holders := j.listHolders()
	signature := ""
	for _, p := range policies {
		signature += fmt.Sprint(p.UID, "/", p.Generation, " ")
	}
	if head == nil || head.id != j.line.head || signature != j.line.policies {
		j.line = line{policies: signature, holders: holders}
		if head != nil {
			j.line.head = head.id
		}
		return
	}
	if j.keepsWaiting(policies, *head, holders) {
		j.line.cleared = 0
		return
	}
	if j.line.cleared++; j.line.cleared > 2 {
		j.report("%s is the first that waits for places of limits, all claims that had places before are gone, and it is not admitted", *head)
	}
}

// keepsWaiting reports whether a claim has a place that was admitted before the head became the first, or that is before the
// head in line: a set that was not complete yet, for example. A set that is before the head and awaits its claims keeps it waiting,
// too.
func (j *judge) keepsWaiting(policies []*v1alpha1.ClaimPolicy, head unit, holders []string) bool {
	all := &picture{claims: list[*hivev1.ClusterClaim](j), sets: list[*v1alpha1.ClaimSet](j), policies: policies}
	awaited := all.firstAwaited(list[*hivev1.ClusterPool](j))
	if awaited != nil && all.comesBefore(*awaited, head) {
		return true
	}
	return slices.ContainsFunc(all.claims, func(c *hivev1.ClusterClaim) bool {
		u := all.unitOf(c, findSet(all.sets, c))
		return slices.Contains(holders, string(c.UID)) && (slices.Contains(j.line.holders, string(c.UID)) || u.isBefore(head))
	})
}

// listHolders returns the UIDs of the claims that have places.
func (j *judge) listHolders() []string {
	var out []string
	for _, c := range list[*hivev1.ClusterClaim](j) {
		if hasPlace(c) {
			out = append(out, string(c.UID))
		}
	}
	return out
}

// findHead returns the first unit that waits for a limit which is large enough for it; nil if none does.
func (j *judge) findHead(policies []*v1alpha1.ClaimPolicy) *unit {
	var head *unit
	for _, u := range j.heldUnits(policies) {
		if j.isLimitLargeEnough(policies, u) && (head == nil || u.isBefore(*head)) {
			head = &u
		}
	}
	return head
}

// heldUnits returns the units that wait because a limit is reached.
func (j *judge) heldUnits(policies []*v1alpha1.ClaimPolicy) map[string]unit {
	all := &picture{claims: list[*hivev1.ClusterClaim](j), sets: list[*v1alpha1.ClaimSet](j), policies: policies}
	out := map[string]unit{}
	for _, c := range all.claims {
		admitted := condition.Find(c.Status.Conditions, hivev1.ClaimAdmitted)
		if admitted == nil || admitted.Status != corev1.ConditionFalse || admitted.Reason != hivev1.ReasonLimitReached || c.DeletionTimestamp != nil || c.Spec.Namespace != "" {
			continue
		}
		u := all.unitOf(c, findSet(all.sets, c))
		if known, ok := out[u.id]; ok {
			u.claims = slices.Concat(known.claims, u.claims)
		}
		out[u.id] = u
	}
	return out
}

// isLimitLargeEnough reports whether every limit that applies to a unit is large enough for it, if nobody else has a place.
func (j *judge) isLimitLargeEnough(policies []*v1alpha1.ClaimPolicy, u unit) bool {
	c := u.claims[0]
	need := 1
	if u.set != nil {
		need = int(u.set.Spec.Size)
	}
	return !slices.ContainsFunc(placesOf(policies, creatorOfClaim(list[*v1alpha1.ClaimSet](j), c), c.Spec.ClusterPoolName), func(l place) bool { return l.most < need })
}
