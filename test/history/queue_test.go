package history

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/crashtest/chaos"
)

// picture is what one observer knows of a pool and its claims: a pass, by its cache, or the judge, by the store.
type picture struct {
	pool     *hivev1.ClusterPool
	claims   []*hivev1.ClusterClaim
	clusters []*hivev1.ClusterDeployment
	sets     []*v1alpha1.ClaimSet
	policies []*v1alpha1.ClaimPolicy
}

func typed[T client.Object](objects []client.Object) []T {
	out := make([]T, 0, len(objects))
	for _, o := range objects {
		out = append(out, o.(T))
	}
	return out
}

// lookAt returns the picture that the store gives of a pool; nil if the pool does not exist.
func (j *judge) lookAt(pool string) *picture {
	p := picture{
		claims: list[*hivev1.ClusterClaim](j), sets: list[*v1alpha1.ClaimSet](j), policies: list[*v1alpha1.ClaimPolicy](j),
		clusters: list[*hivev1.ClusterDeployment](j),
	}
	if p.pool = j.poolNamed(pool); p.pool == nil {
		return nil
	}
	p.restrict()
	return &p
}

// lookWith returns the picture that a pass has, without what its process remembers of its own writes.
func (j *judge) lookWith(task *chaos.Task) *picture {
	p := picture{
		pool: j.readsOf(task).pool, claims: typed[*hivev1.ClusterClaim](task.Listed["ClusterClaim"]), clusters: typed[*hivev1.ClusterDeployment](task.Listed["ClusterDeployment"]),
		sets: typed[*v1alpha1.ClaimSet](task.Listed["ClaimSet"]), policies: typed[*v1alpha1.ClaimPolicy](task.Listed["ClaimPolicy"]),
	}
	if p.pool == nil {
		return nil
	}
	p.restrict()
	return &p
}

// restrict removes what is of other pools, and policies that are being deleted.
func (p *picture) restrict() {
	p.claims = slices.DeleteFunc(p.claims, func(c *hivev1.ClusterClaim) bool { return c.Spec.ClusterPoolName != p.pool.Name })
	p.clusters = slices.DeleteFunc(p.clusters, func(cd *hivev1.ClusterDeployment) bool { return cd.Spec.ClusterPoolRef.PoolName != p.pool.Name })
	p.policies = slices.DeleteFunc(p.policies, func(p *v1alpha1.ClaimPolicy) bool { return p.DeletionTimestamp != nil })
}

// unit is what has one place in the queue: a claim without a set, or a set.
type unit struct {
	id, name string
	set      *v1alpha1.ClaimSet
	claims   []*hivev1.ClusterClaim // those that wait
	created  time.Time
	priority int
	// begun is set if another claim of the set has a cluster, and locked if no claim knows of its cluster yet: the others get theirs
	// after that claim, which may be later in the same pass.
	begun, locked bool
}

func (u unit) need() int { return len(u.claims) }

// arrival is the time by which the queue is ordered (ADR 0037).
func (u unit) arrival() time.Time { return u.created.Add(-time.Duration(u.priority) * time.Minute) }

// isBefore reports whether u is served before v.
func (u unit) isBefore(v unit) bool {
	if u.begun != v.begun {
		return u.begun
	}
	return cmp.Or(u.arrival().Compare(v.arrival()), u.created.Compare(v.created), strings.Compare(u.name, v.name)) < 0
}

// ownerOf returns the UID of the set that a claim names as its owner; "" if it names none.
func ownerOf(c *hivev1.ClusterClaim) types.UID {
	for _, ref := range c.OwnerReferences {
		if ref.Kind == "ClaimSet" {
			return ref.UID
		}
	}
	return ""
}

func findSet(sets []*v1alpha1.ClaimSet, c *hivev1.ClusterClaim) *v1alpha1.ClaimSet {
	i := slices.IndexFunc(sets, func(s *v1alpha1.ClaimSet) bool { return s.UID == ownerOf(c) && s.UID != "" })
	if i < 0 {
		return nil
	}
	return sets[i]
}

// isServed reports whether a claim has a cluster, or a cluster names it.
func (p *picture) isServed(c *hivev1.ClusterClaim) bool {
	return c.Spec.Namespace != "" || slices.ContainsFunc(p.clusters, func(cd *hivev1.ClusterDeployment) bool {
		return cd.Spec.ClusterPoolRef.ClaimName == c.Name
	})
}

// isAdmitted reports whether ClaimPolicies let a claim have a cluster.
func (p *picture) isAdmitted(c *hivev1.ClusterClaim) bool {
	admitted := condition.Find(c.Status.Conditions, hivev1.ClaimAdmitted)
	if admitted == nil {
		return len(p.policies) == 0
	}
	return admitted.Status == corev1.ConditionTrue
}

// queue returns the units that may get clusters, in any order. Sets that wait outside the queue because a claim is missing
// or not admitted are left out.
func (p *picture) queue() map[string]unit {
	out := map[string]unit{}
	for _, c := range p.claims {
		set := findSet(p.sets, c)
		orphaned := set == nil && ownerOf(c) != ""
		if c.DeletionTimestamp != nil || p.isServed(c) || !p.isAdmitted(c) || orphaned || set != nil && set.DeletionTimestamp != nil {
			continue
		}
		u := p.unitOf(c, set)
		if known, ok := out[u.id]; ok {
			u.claims = slices.Concat(known.claims, u.claims)
		}
		out[u.id] = u
	}
	for id, u := range out {
		if u.set != nil && !u.begun && u.need() < int(u.set.Spec.Size) {
			delete(out, id)
		}
	}
	return out
}

func (p *picture) unitOf(c *hivev1.ClusterClaim, set *v1alpha1.ClaimSet) unit {
	u := unit{id: string(c.UID), name: c.Name, set: set, claims: []*hivev1.ClusterClaim{c}, created: c.CreationTimestamp.Time}
	who, own := creatorOf(c.Annotations), 0
	if set != nil {
		u.id, u.name, u.created = string(set.UID), set.Name, set.CreationTimestamp.Time
		who, own = creatorOf(set.Annotations), int(set.Spec.Priority)
		u.begun = slices.ContainsFunc(p.claims, func(o *hivev1.ClusterClaim) bool {
			return ownerOf(o) == set.UID && o.DeletionTimestamp == nil && p.isServed(o)
		})
		u.locked = u.begun && !slices.ContainsFunc(p.claims, func(o *hivev1.ClusterClaim) bool {
			return ownerOf(o) == set.UID && o.DeletionTimestamp == nil && o.Spec.Namespace != ""
		})
	} else if n, err := strconv.Atoi(c.Annotations[hivev1.AnnotationPriority]); err == nil {
		own = n
	}
	u.priority = limitPriority(p.policies, who, c.Spec.ClusterPoolName, own)
	return u
}

// letsPass reports whether a set may wait outside the queue of its pool: it is larger than the pool can be now.
func (u unit) letsPass(p *picture) bool {
	if u.set == nil || u.begun {
		return false
	}
	s := p.pool.Spec
	return s.MaxSize != nil && u.need() > int(*s.MaxSize) || s.MaxConcurrent != nil && *s.MaxConcurrent == 0
}

// checkPlans checks the assignments that pool passes are about to write, before the first of them is written.
func (j *judge) checkPlans(calls []*chaos.Call) {
	j.mu.Lock()
	defer j.mu.Unlock()
	plans := map[*chaos.Task]map[string]bool{}
	for _, c := range calls {
		if claim := assignedClaim(c); claim != "" && !j.readsOf(c.Task).planned && !j.isCompletion(c, claim) {
			if plans[c.Task] == nil {
				plans[c.Task] = map[string]bool{}
			}
			plans[c.Task][claim] = true
		}
	}
	for task, plan := range plans {
		j.readsOf(task).planned = true
		if len(plan) < parallelWrites {
			j.checkPlan(task, plan)
		}
	}
}

// parallelWrites is how many assignments a pass writes at a time. Of a plan with more, not all are known.
const parallelWrites = 16

// assignedClaim returns the claim to which a call assigns a cluster; "" if it assigns none.
func assignedClaim(c *chaos.Call) string {
	if c.Verb != "patch" || c.Kind != "ClusterDeployment" || !strings.HasPrefix(c.Task.Name, "pool ") {
		return ""
	}
	var data struct {
		Spec struct {
			ClusterPoolRef struct{ ClaimName string }
		}
	}
	if err := json.Unmarshal(c.Data, &data); err != nil {
		return ""
	}
	return data.Spec.ClusterPoolRef.ClaimName
}

// isCompletion reports whether a call writes a claim into a cluster that the claim names already: the cache shows the second
// of the two writes of an assignment before the first, or the process remembers it. The store refuses such a call.
func (j *judge) isCompletion(c *chaos.Call, claim string) bool {
	known := append(typed[*hivev1.ClusterClaim](c.Task.Listed["ClusterClaim"]), list[*hivev1.ClusterClaim](j)...)
	return slices.ContainsFunc(known, func(known *hivev1.ClusterClaim) bool {
		return known.Name == claim && known.Spec.Namespace == c.Key.Name
	})
}

// checkFirstClaim checks that a set gets all its clusters or none: its first claim gets one alone, while enough run for all.
func (j *judge) checkFirstClaim(task *chaos.Task, u unit, n, running int) {
	switch {
	case n > 1:
		j.report("%s gives %d clusters to set %s, and its first claim has none", task.Name, n, u)
	case n == 1 && running < u.need():
		j.report("%s gives the first cluster to set %s, and %d run", task.Name, u, running)
	}
}

// countRunning returns the number of clusters that run and that no claim has.
func (p *picture) countRunning() int {
	return count(p.clusters, func(cd *hivev1.ClusterDeployment) bool {
		return cd.Spec.ClusterPoolRef.ClaimName == "" && cd.Status.PowerState == hivev1.StatusRunning && cd.DeletionTimestamp == nil
	})
}

// checkPlan checks that no unit that waits, as the pass and the store say, is behind one that gets clusters, and that a
// set gets all its clusters or none. The process may remember writes of its own that its cache does not show, so a
// contradiction counts only if the store agrees with the cache.
func (j *judge) checkPlan(task *chaos.Task, plan map[string]bool) {
	seen, now := j.lookWith(task), j.lookAt(strings.TrimPrefix(task.Name, "pool "))
	if seen == nil || now == nil {
		return
	}
	seenQueue, nowQueue := seen.queue(), now.queue()
	served, unknown := map[string]bool{}, maps.Clone(plan)
	for _, queue := range []map[string]unit{seenQueue, nowQueue} {
		for id, u := range queue {
			n := count(u.claims, func(c *hivev1.ClusterClaim) bool { return plan[c.Name] })
			served[id] = served[id] || n > 0
			for _, c := range u.claims {
				delete(unknown, c.Name)
			}
			if x, both := nowQueue[id]; both && u.set != nil && !u.begun && !x.begun {
				j.checkFirstClaim(task, u, n, max(seen.countRunning(), now.countRunning()))
			}
		}
	}
	for name := range unknown {
		j.report("%s gives a cluster to claim %s, which may not have one, by the cache: %s; by the store: %s", task.Name, name, seen.describe(name), now.describe(name))
	}
	j.checkOrder(task, seenQueue, nowQueue, served, seen, now)
}

// hasUsedName reports whether a claim of a unit has the name of one before it that had a cluster. The process may take the
// claim for that one, of which its cache has the cluster: the store refuses what it writes then.
func (j *judge) hasUsedName(u unit) bool {
	return slices.ContainsFunc(u.claims, func(c *hivev1.ClusterClaim) bool {
		uid, assigned := j.assigned[c.Name]
		return assigned && uid != c.UID
	})
}

// checkOrder checks that no unit is passed by one that is behind it.
func (j *judge) checkOrder(task *chaos.Task, seenQueue, nowQueue map[string]unit, served map[string]bool, seen, now *picture) {
	for id, v := range seenQueue {
		w, waits := nowQueue[id]
		if !waits || served[id] || v.locked || w.locked || v.letsPass(seen) || w.letsPass(now) || j.hasUsedName(v) {
			continue
		}
		for other := range served {
			u, x := seenQueue[other], nowQueue[other]
			if !served[other] || u.id == "" || x.id == "" {
				continue
			}
			if v.isBefore(u) && w.isBefore(x) {
				j.report("%s serves %s before %s, which is before it in the queue, by the cache; by the store, %s before %s", task.Name, u, v, x, w)
			}
			j.checkOvertaking(task, u, v, x.begun)
		}
	}
}

// checkOvertaking checks the bound of ADR 0037: v is passed only by units that were created less than the difference of
// the highest priority and its own later. A set that has begun to get its clusters passes all.
func (j *judge) checkOvertaking(task *chaos.Task, u, v unit, begun bool) {
	if u.begun || begun || !v.created.Before(u.created) {
		return
	}
	j.h.counts["overtakings"]++
	if later := u.created.Sub(v.created); later >= time.Duration(maxPriority-v.priority)*time.Minute {
		j.report("%s serves %s, created %s after %s with priority %d", task.Name, u.name, later, v.name, v.priority)
	}
}

func (u unit) String() string {
	return fmt.Sprintf("%s of %d (begun: %t), created %s, priority %d", u.name, u.need(), u.begun, u.created.Format(time.TimeOnly), u.priority)
}

func count[T any](list []T, is func(T) bool) int {
	n := 0
	for _, x := range list {
		if is(x) {
			n++
		}
	}
	return n
}

// describe describes a claim, and its set.
func (p *picture) describe(claim string) string {
	i := slices.IndexFunc(p.claims, func(c *hivev1.ClusterClaim) bool { return c.Name == claim })
	if i < 0 {
		return "it does not exist"
	}
	c := p.claims[i]
	u := p.unitOf(c, findSet(p.sets, c))
	var siblings []string
	for _, o := range p.claims {
		if ownerOf(o) != "" && ownerOf(o) == ownerOf(c) {
			siblings = append(siblings, fmt.Sprintf("%s served %t deleted %t", o.Name, p.isServed(o), o.DeletionTimestamp != nil))
		}
	}
	return fmt.Sprintf("%s, served %t, admitted %t, deleted %t, owner %q, in a set %t, %v",
		u, p.isServed(c), p.isAdmitted(c), c.DeletionTimestamp != nil, ownerOf(c), u.set != nil, siblings)
}
