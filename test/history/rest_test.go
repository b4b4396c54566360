package history

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

const (
	// rounds is when a history counts as one that never settles.
	rounds = 200
	// quiet is the number of rounds without a write after which the history counts as settled, and roundTime the time that
	// each takes: longer than any fallbackAfter, and than a pool keeps a cluster whose claim is missing.
	quiet, roundTime = 4, 5 * time.Minute
	// releases is how often all claims are released, at most, until nothing that can be served waits.
	releases = 60
)

// converge lets everything succeed from here on, within the limits that there are. Then whoever has a cluster releases
// it, until everybody who can be served has been served.
func (h *history) converge() {
	h.judge.converging = true
	h.log.Addf("from here on all goes well")
	clear(h.red)
	h.removeFinalizers()
	h.correctPools()
	h.rest()
	h.judge.checkRest()
	for range releases {
		if h.judge.broken != nil {
			return
		}
		waiting := h.judge.listServable()
		if len(waiting) == 0 {
			return
		}
		before := h.counts["claims served"]
		h.releaseServed()
		h.rest()
		h.judge.checkRest()
		if h.counts["claims served"] == before && len(h.judge.listServable()) == len(waiting) {
			h.judge.report("everybody has released their clusters, and nobody of %v gets one", waiting)
		}
	}
	h.judge.report("after %d releases of all clusters, %v still wait", releases, h.judge.listServable())
}

// correctPools mends what keeps pools from working, and not their other limits: gates that are not known, and a
// maxConcurrent of 0. In a restless history without ClaimPolicies, pools get small limits. Where there are ClaimPolicies, a
// pool must be able to serve what they admit: otherwise its claims keep places from those of other pools (ADR 0035).
func (h *history) correctPools() {
	if h.mood.gates {
		h.create(h.newBootstrap())
	}
	for _, p := range list[*hivev1.ClusterPool](h.judge) {
		p = p.DeepCopy()
		h.edit("user", p, "may work", func() {
			if most := p.Spec.MaxConcurrent; most != nil && *most == 0 {
				p.Spec.MaxConcurrent = nil
			}
			switch most := p.Spec.MaxSize; {
			case most != nil && *most < 4 && h.mood.policies:
				p.Spec.MaxSize = new(int32(4))
			case h.mood.restless && !h.mood.policies: // sets that are too large now let others pass
				p.Spec.MaxSize = new(int32(1 + h.rand.IntN(3)))
			}
		})
	}
}

// rest runs the controllers and the world in turn until neither writes any more.
func (h *history) rest() {
	still := 0
	for range rounds {
		before := h.store.CountWrites()
		for _, c := range h.process.controllers {
			h.process.view.ShowAllWrites()
			for _, key := range c.keys() {
				h.reconcile(c, key)
				h.drain()
			}
		}
		h.moveAll()
		h.pass(roundTime)
		if still++; h.store.CountWrites() != before {
			still = 0
		}
		if still == quiet || h.judge.broken != nil {
			return
		}
	}
	h.judge.report("it does not come to rest")
}

// drain lets all calls go on, one after the other, until no task is left.
func (h *history) drain() {
	for h.settle(); len(h.calls) > 0; {
		h.steps++
		h.log.Add(h.calls[0])
		h.release(h.calls[0])
	}
}

// releaseServed releases all claims that have clusters, and their sets.
func (h *history) releaseServed() {
	sets := list[*v1alpha1.ClaimSet](h.judge)
	for _, c := range list[*hivev1.ClusterClaim](h.judge) {
		if c.Spec.Namespace == "" {
			continue
		}
		if set := findSet(sets, c); set != nil {
			h.delete(set.DeepCopy())
			continue
		}
		h.delete(c.DeepCopy())
	}
}

// listServable names the claims and the sets that wait, and that can be served once all clusters are released.
func (j *judge) listServable() []string {
	policies := slices.DeleteFunc(list[*v1alpha1.ClaimPolicy](j), func(p *v1alpha1.ClaimPolicy) bool { return p.DeletionTimestamp != nil })
	var out []string
	for _, c := range list[*hivev1.ClusterClaim](j) {
		if c.DeletionTimestamp == nil && c.Spec.Namespace == "" && ownerOf(c) == "" && j.isServable(policies, creatorOf(c.Annotations), c.Spec.ClusterPoolName, 1) {
			out = append(out, c.Name)
		}
	}
	for _, s := range list[*v1alpha1.ClaimSet](j) {
		if s.DeletionTimestamp == nil && !j.begun[s.UID] && j.isSetServable(policies, s) {
			out = append(out, s.Name)
		}
	}
	return out
}

// isSetServable reports whether a pool that a set may have can serve it.
func (j *judge) isSetServable(policies []*v1alpha1.ClaimPolicy, s *v1alpha1.ClaimSet) bool {
	return slices.ContainsFunc(poolsOf(s), func(pool string) bool {
		return j.isServable(policies, creatorOf(s.Annotations), pool, int(s.Spec.Size))
	})
}

// poolsOf returns the names of the pools that may serve a set.
func poolsOf(s *v1alpha1.ClaimSet) []string {
	if s.Spec.PoolSelector == nil {
		return []string{s.Spec.ClusterPoolName}
	}
	var out []string
	for _, p := range s.Spec.PoolSelector.Preferences {
		out = append(out, p.MatchLabels["name"])
	}
	return out
}

// isServable reports whether a pool can have as many clusters, and the limits of policies as many places.
func (j *judge) isServable(policies []*v1alpha1.ClaimPolicy, who creator, pool string, need int) bool {
	p := j.poolNamed(pool)
	if p == nil || p.DeletionTimestamp != nil || p.Spec.MaxSize != nil && int(*p.Spec.MaxSize) < need {
		return false
	}
	return canAdmit(policies, who, pool, need)
}

// canAdmit reports whether policies admit that many claims at once when nobody else has one.
func canAdmit(policies []*v1alpha1.ClaimPolicy, who creator, pool string, need int) bool {
	if len(policies) == 0 {
		return true
	}
	permitted := slices.ContainsFunc(policies, func(p *v1alpha1.ClaimPolicy) bool { return applies(p, who, pool) })
	return permitted && !slices.ContainsFunc(placesOf(policies, who, pool), func(l place) bool { return l.most < need })
}

// checkRest checks what must hold when nothing happens any more.
func (j *judge) checkRest() {
	for _, p := range list[*hivev1.ClusterPool](j) {
		if p.DeletionTimestamp == nil {
			j.checkPoolAtRest(p)
		}
	}
	policies := slices.DeleteFunc(list[*v1alpha1.ClaimPolicy](j), func(p *v1alpha1.ClaimPolicy) bool { return p.DeletionTimestamp != nil })
	for _, c := range list[*hivev1.ClusterClaim](j) {
		j.checkClaimAtRest(policies, c)
	}
	for _, s := range list[*v1alpha1.ClaimSet](j) {
		j.checkSetAtRest(s)
	}
	j.checkHeadAtRest(policies)
	for _, p := range policies {
		n := j.countHolders(place{policy: p}, hasPlace)
		if int(p.Status.Admitted) != n {
			j.report("at rest ClaimPolicy %s says that it has admitted %d claims, and has admitted %d", p.Name, p.Status.Admitted, n)
		}
	}
}

// checkPoolAtRest checks that the first in the queue waits only because the pool is full, and that positions are in the
// order of the queue.
func (j *judge) checkPoolAtRest(p *hivev1.ClusterPool) {
	pic := j.lookAt(p.Name)
	queue := sortedQueue(pic)
	queue = slices.DeleteFunc(queue, func(u unit) bool { return u.letsPass(pic) })
	last := 0
	for _, u := range queue {
		for _, c := range u.claims {
			at := c.Status.Position
			if at == nil || u.set == nil && int(*at) != last+1 {
				j.report("at rest claim %s on pool %s has position %v after %d", c.Name, p.Name, at, last)
				return
			}
		}
		last += u.need()
	}
	if len(queue) == 0 {
		return
	}
	free := count(pic.clusters, func(cd *hivev1.ClusterDeployment) bool {
		return cd.Spec.ClusterPoolRef.ClaimName == "" && cd.DeletionTimestamp == nil && cd.Spec.Installed && cd.Status.PowerState == hivev1.StatusRunning
	})
	full := p.Spec.MaxSize != nil && len(pic.clusters)+len(p.Status.Pending) >= int(*p.Spec.MaxSize)
	if free >= queue[0].need() || !full {
		j.report("at rest %s waits on pool %s, which has %d free clusters, %d in all, and maxSize %v: %s", queue[0], p.Name, free, len(pic.clusters), p.Spec.MaxSize, p.Status.Plan)
	}
	if !strings.Contains(p.Status.Plan, "waiting") {
		j.report("at rest pool %s does not say that %s waits: %q", p.Name, queue[0], p.Status.Plan)
	}
}

func sortedQueue(p *picture) []unit {
	var out []unit
	for _, u := range p.queue() {
		out = append(out, u)
	}
	slices.SortFunc(out, func(a, b unit) int {
		if a.isBefore(b) {
			return -1
		}
		return 1
	})
	return out
}

// checkClaimAtRest checks that a claim without a cluster says what it waits for.
func (j *judge) checkClaimAtRest(policies []*v1alpha1.ClaimPolicy, c *hivev1.ClusterClaim) {
	if c.DeletionTimestamp != nil {
		j.report("at rest claim %s is being deleted", c.Name)
	}
	if c.Spec.Namespace != "" {
		return
	}
	reason, message := pendingOf(c)
	if want, words := j.explainWait(policies, c); !strings.Contains(want, reason) || reason == "" || !strings.Contains(message, words) {
		j.report("at rest claim %s waits with reason %q: %q, want %q that names %q", c.Name, reason, message, want, words)
	}
}

// explainWait returns the reasons that a claim may wait for, and what the message must name.
func (j *judge) explainWait(policies []*v1alpha1.ClaimPolicy, c *hivev1.ClusterClaim) (reasons, words string) {
	pool, who, need := j.poolNamed(c.Spec.ClusterPoolName), creatorOfClaim(list[*v1alpha1.ClaimSet](j), c), 1
	if set := findSet(list[*v1alpha1.ClaimSet](j), c); set != nil {
		need = int(set.Spec.Size)
	}
	places := placesOf(policies, who, c.Spec.ClusterPoolName)
	permitted := slices.ContainsFunc(policies, func(p *v1alpha1.ClaimPolicy) bool { return applies(p, who, c.Spec.ClusterPoolName) })
	switch {
	case pool == nil:
		return hivev1.ReasonPoolNotFound, "ClusterPool"
	case pool.DeletionTimestamp != nil:
		return hivev1.ReasonPoolDeleting, "ClusterPool"
	case len(policies) > 0 && who.user == "":
		return hivev1.ReasonCreatorUnknown, "who created this claim"
	case len(policies) > 0 && !permitted:
		return hivev1.ReasonNotPermitted, who.user
	case need > 1 && !isAdmittedByPolicy(c) && slices.ContainsFunc(places, func(l place) bool { return l.most < need }):
		return hivev1.ReasonLimitTooLow, "ClaimPolicy"
	case len(policies) > 0 && !isAdmittedByPolicy(c):
		return hivev1.ReasonLimitReached + " " + hivev1.ReasonLimitTooLow + " " + hivev1.ReasonSetIncomplete, "Claim"
	default:
		return hivev1.ReasonNoClusters, "pool"
	}
}

// checkSetAtRest checks that a set has all its clusters or none, and that one that waits says what for. A pool that was
// deleted while it assigned them, when a conflict left one for the next pass, assigns no more.
func (j *judge) checkSetAtRest(s *v1alpha1.ClaimSet) {
	var served, waiting, admitted int
	for _, c := range list[*hivev1.ClusterClaim](j) {
		switch {
		case ownerOf(c) != s.UID:
		case c.Spec.Namespace != "":
			served++
		default:
			waiting++
			if isAdmittedByPolicy(c) {
				admitted++
			}
		}
	}
	pending := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ClaimSetPending)
	switch {
	case s.DeletionTimestamp != nil:
		j.report("at rest set %s is being deleted", s.Name)
	case served > 0 && waiting > 0 && j.isServing(s.Status.ClusterPoolName):
		j.report("at rest set %s has %d clusters, and %d claims wait", s.Name, served, waiting)
	case served > 0 && waiting > 0:
	case admitted != 0 && admitted != int(s.Spec.Size):
		j.report("at rest %d of %d claims of set %s are admitted", admitted, s.Spec.Size, s.Name)
	case pending == nil || (pending.Status == metav1.ConditionTrue) != (served == 0) || pending.Message == "":
		j.report("at rest set %s with %d clusters says %+v", s.Name, served, pending)
	case served == 0:
		j.checkWaitingSet(s)
	}
}

// isServing reports whether there is a pool of that name, and it is not being deleted.
func (j *judge) isServing(name string) bool {
	p := j.poolNamed(name)
	return p != nil && p.DeletionTimestamp == nil
}

// checkWaitingSet checks that no pool can serve a set that waits: each is too small, or has too few clusters that run and
// that nobody is before it for.
func (j *judge) checkWaitingSet(s *v1alpha1.ClaimSet) {
	policies := slices.DeleteFunc(list[*v1alpha1.ClaimPolicy](j), func(p *v1alpha1.ClaimPolicy) bool { return p.DeletionTimestamp != nil })
	for _, name := range poolsOf(s) {
		if !j.isServable(policies, creatorOf(s.Annotations), name, int(s.Spec.Size)) {
			continue
		}
		pic := j.lookAt(name)
		waiting := 0
		for _, u := range pic.queue() {
			waiting += u.need()
		}
		free := int(pic.pool.Status.Ready) - waiting
		if free >= int(s.Spec.Size) && len(policies) == 0 {
			j.report("at rest set %s waits, and pool %s has %d free clusters", s.Name, name, free)
		}
	}
}

// checkHeadAtRest checks that the first that waits for a place of a limit lacks one.
func (j *judge) checkHeadAtRest(policies []*v1alpha1.ClaimPolicy) {
	head := j.findHead(policies)
	if head == nil {
		return
	}
	c := head.claims[0]
	for _, l := range placesOf(policies, creatorOfClaim(list[*v1alpha1.ClaimSet](j), c), c.Spec.ClusterPoolName) {
		if j.countHolders(l, hasPlace)+head.need() > l.most {
			return
		}
	}
	j.report("at rest %s waits for places of limits, and there are enough", *head)
}
