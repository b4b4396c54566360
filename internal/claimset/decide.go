package claimset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/heartbeat"
)

// Decide returns the plan for a set. Before the set has a cluster, Decide keeps its claims complete, in one pool. From
// then on it creates none: a claim that is deleted is released. A set whose heartbeat is missing is released.
func Decide(s Snapshot) Plan {
	d := &draft{Snapshot: s}
	slices.SortFunc(d.Claims, compareClaims)
	switch {
	case s.Deleting:
		d.release()
	case d.countAssigned() == 0 && !s.Served:
		d.completeClaims()
	default:
		d.finish()
	}
	if s.Heartbeat != nil && !s.Deleting && s.Unreadable == "" {
		d.addHeartbeat(heartbeat.Decide(heartbeat.Snapshot{Now: s.Now, Object: "set", Observation: *s.Heartbeat}))
	}
	return d.plan
}

type draft struct {
	Snapshot
	plan Plan
}

func compareClaims(a, b Claim) int {
	return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
}

// addHeartbeat adds the plan for the heartbeat of the set. A set that ends takes no other steps.
func (d *draft) addHeartbeat(h heartbeat.Plan) {
	d.plan.HeartbeatMissing, d.plan.InvalidHeartbeat = h.Missing, h.Invalid
	d.plan.Next = fault.SoonerDelay(d.plan.Next, h.Next)
	if h.End {
		d.plan.Steps = []Step{{Verb: ReleaseSet, Reason: "its heartbeat was missing for " + string(d.Heartbeat.Timeout)}}
	}
}

// addStep adds a step of the set itself.
func (d *draft) addStep(v Verb, reason string) {
	d.plan.Steps = append(d.plan.Steps, Step{Verb: v, Reason: reason})
}

// wait reports that the set waits for something that happens without a person's action.
func (d *draft) wait(reason, message string) { d.plan.Pending = condition.True(reason, message) }

// stall reports that a person must act before the set gets its clusters.
func (d *draft) stall(reason, message string) {
	d.wait(reason, message)
	d.plan.Stalled = true
}

// liveClaims returns the claims that are not being deleted.
func (d *draft) liveClaims() []Claim {
	return slices.DeleteFunc(slices.Clone(d.Claims), func(c Claim) bool { return c.Deleting })
}

// countAssigned returns the number of claims that have a cluster and are not being deleted.
func (d *draft) countAssigned() int {
	n := 0
	for _, c := range d.liveClaims() {
		if c.Cluster != "" {
			n++
		}
	}
	return n
}

// releasedClaims returns the claims that have a cluster and are being deleted.
func (d *draft) releasedClaims() []Claim {
	return slices.DeleteFunc(slices.Clone(d.Claims), func(c Claim) bool { return !c.Deleting || c.Cluster == "" })
}

// release deletes the claims of a deleted set, and then lets the set go.
func (d *draft) release() {
	for _, c := range d.liveClaims() {
		d.plan.Steps = append(d.plan.Steps, Step{Verb: DeleteClaim, Claim: c.Name, Reason: "the set is being deleted"})
	}
	if len(d.Claims) == 0 {
		if !d.FinalizerMissing {
			d.addStep(RemoveFinalizer, "the set is being deleted and has no claims")
		}
		return
	}
	d.plan.Pool = d.Claims[0].Pool
	text := "The set is being deleted, and waits until the clusters of its claims are destroyed: " + listClaims(d.Claims)
	if d.Refusal != "" {
		text += "; the hub does not let hotspare release the claims: " + d.Refusal
	}
	d.wait(v1alpha1.ReasonSetReleasing, text)
}

// completeClaims keeps the claims of a set that has no cluster complete, in the pool that serves it.
func (d *draft) completeClaims() {
	if d.Unreadable != "" {
		d.stall(hivev1.ReasonUnreadable, "The set cannot be served: "+d.Unreadable+": correct it, or delete the set and create another")
		return
	}
	current := d.currentPool()
	target := d.choosePool(current)
	d.plan.Pool = cmp.Or(target, current)
	if target == "" {
		return // choosePool has set the condition
	}
	if released := d.releasedClaims(); len(released) > 0 {
		// The other claims may be about to get their clusters, and the names are in use.
		d.plan.Pool = cmp.Or(current, target)
		d.wait(v1alpha1.ReasonSetWaiting, "The set waits until the clusters of released claims are destroyed: "+listClaims(released))
		return
	}
	if len(d.Taken) > 0 {
		slices.Sort(d.Taken)
		d.stall(v1alpha1.ReasonClaimNameTaken, fmt.Sprintf("ClusterClaim %s exists and does not belong to this set: delete it, or delete the set and create it under another name",
			strings.Join(d.Taken, ", ")))
		return
	}
	if d.FinalizerMissing {
		d.addStep(AddFinalizer, "the set must exist until its claims are deleted")
	}
	if d.moveClaims(target) {
		return
	}
	d.createClaims(target)
	d.reportWait(target)
}

// currentPool returns the pool of the claims; while these move, or are being deleted, the one that the status names; empty
// for a new set.
func (d *draft) currentPool() string {
	if live := d.liveClaims(); len(live) > 0 {
		return live[0].Pool
	}
	if d.LastPool == "" && len(d.Claims) > 0 {
		return d.Claims[0].Pool
	}
	return d.LastPool
}

// moveClaims deletes the claims on other pools, and reports whether any is left there. A set has claims in one pool at
// a time, so that no two sets each keep clusters that the other one needs.
func (d *draft) moveClaims(target string) bool {
	left := false
	for _, c := range d.Claims {
		if c.Pool == target {
			continue
		}
		left = true
		if !c.Deleting {
			d.plan.Steps = append(d.plan.Steps, Step{
				Verb: DeleteClaim, Claim: c.Name, Waiting: true, Reason: "ClusterPool " + target + " can serve the set sooner than ClusterPool " + c.Pool,
			})
		}
	}
	if left {
		d.wait(v1alpha1.ReasonSetWaiting, d.describeWait(target))
	}
	return left
}

// createClaims creates the claims that the set lacks. The name of a claim that is being deleted is not free yet.
func (d *draft) createClaims(target string) {
	names := map[string]bool{}
	for _, c := range d.Claims {
		names[c.Name] = true
	}
	for i := range d.Size {
		if name := ClaimName(d.Name, i); !names[name] {
			d.plan.Steps = append(d.plan.Steps, Step{Verb: CreateClaim, Claim: name, Pool: target, Reason: fmt.Sprintf("the set needs %s", formatCount(d.Size, "claim"))})
		}
	}
}

// reportWait reports what a set with claims waits for.
func (d *draft) reportWait(target string) {
	if d.Refusal != "" {
		d.stall(v1alpha1.ReasonClaimsRefused, "The hub does not let hotspare create the claims of this set: "+d.Refusal)
		return
	}
	for _, c := range d.liveClaims() {
		if c.Refused != "" {
			d.stall(hivev1.ReasonAssignmentRefused, c.Refused)
			return
		}
		if c.Held != (condition.Value{}) {
			d.wait(c.Held.Reason, c.Held.Message)
			// The claims of a set are created one after the other: until all exist, its policies hold them.
			d.plan.Stalled = c.Held.Reason != hivev1.ReasonLimitReached && c.Held.Reason != hivev1.ReasonSetIncomplete
			return
		}
	}
	d.wait(v1alpha1.ReasonSetWaiting, d.describeWait(target))
	d.reportPosition(d.liveClaims())
}

func (d *draft) describeWait(target string) string {
	text := fmt.Sprintf("The set waits until ClusterPool %s has %s for it at once", target, formatCount(d.Size, "running cluster"))
	if p := d.findPool(target); p != nil && p.Blocked+p.NoRoom != "" {
		text += "; the pool creates no more clusters now: " + cmp.Or(p.Blocked, p.NoRoom)
	}
	return text
}

// reportPosition reports the place of the set in the queue, which is that of the first of some claims.
func (d *draft) reportPosition(claims []Claim) {
	for _, c := range claims {
		if c.Position > 0 && (d.plan.Position == 0 || c.Position < d.plan.Position) {
			d.plan.Position, d.plan.Ready = c.Position, c.Ready
		}
	}
}

// finish reports on a set of which claims have clusters. It creates no claims.
func (d *draft) finish() {
	live := d.liveClaims()
	var waiting, idle, lost []Claim
	for _, c := range live {
		switch {
		case c.Cluster == "":
			waiting = append(waiting, c)
		case c.Lost:
			lost = append(lost, c)
		case !c.Running:
			idle = append(idle, c)
		}
	}
	if len(d.Claims) > 0 {
		d.plan.Pool = d.Claims[0].Pool
	}
	if len(waiting) > 0 {
		d.reportIncomplete(waiting)
		return
	}
	d.plan.Served = true
	d.plan.Pending = condition.False(v1alpha1.ReasonSetServed, "Every claim of the set has a cluster")
	switch released := d.Size - len(live); {
	case len(live) == 0:
		d.plan.ClustersRunning = condition.False(v1alpha1.ReasonClaimsReleased, "All claims of the set have been released")
		if len(d.Claims) == 0 {
			d.addStep(DeleteSet, "all its claims have been released")
		}
	case len(lost) > 0:
		d.plan.ClustersRunning = condition.False(hivev1.ReasonClusterDeleted, "The clusters of these claims were deleted: "+listClaims(lost)+": release the claims, or delete the set")
	case len(idle) > 0:
		d.plan.ClustersRunning = condition.False(v1alpha1.ReasonClustersNotRunning, "The clusters of these claims are not running: "+listClaims(idle))
	case released > 0:
		d.plan.ClustersRunning = condition.True(v1alpha1.ReasonClaimsReleased, fmt.Sprintf(
			"All clusters are running; %s of the set %s been released and not replaced", formatCount(released, "claim"), hasOrHave(released)))
	default:
		d.plan.ClustersRunning = condition.True(v1alpha1.ReasonClustersRunning, "All clusters are running")
	}
}

// reportIncomplete reports on a set that was served in part.
func (d *draft) reportIncomplete(waiting []Claim) {
	for _, c := range waiting {
		if c.Refused != "" {
			d.stall(hivev1.ReasonAssignmentRefused, c.Refused)
			return
		}
	}
	d.wait(v1alpha1.ReasonSetIncomplete, "Some claims of the set have clusters; the next running clusters of the pool are for "+listClaims(waiting))
	d.reportPosition(waiting)
}

func (d *draft) findPool(name string) *Pool {
	for i := range d.Pools {
		if d.Pools[i].Name == name {
			return &d.Pools[i]
		}
	}
	return nil
}

// choosePool returns the pool that serves a set that has no cluster; "" if none can: the condition Pending then says
// why. current is the pool of its claims, or, while they move, the one to which they move: it could serve the set when that
// began, and to choose another one would let the claims go back and forth. It is empty for a new set.
func (d *draft) choosePool(current string) string {
	if d.PoolName != "" {
		return d.checkPool(d.PoolName)
	}
	if d.SelectorProblem != "" {
		d.stall(v1alpha1.ReasonInvalidSelector, d.SelectorProblem)
		return ""
	}
	chosen := d.chooseByPreference(current)
	if chosen == "" {
		d.reportNoPool()
	}
	return chosen
}

// A promptness is how soon a pool can serve a set. A higher one is sooner.
type promptness int

const (
	// never: the pool cannot serve the set, or is not one that it prefers.
	never promptness = iota
	// blocked: clusters are missing, and the pool creates none until a person acts.
	blocked
	// occupied: other claims have so many clusters that the pool can create too few before some of them are released.
	occupied
	// creating: the pool creates clusters for the set, or does so once it has room.
	creating
	// resuming: enough clusters are installed, and some of them hibernate.
	resuming
	// running: enough clusters run.
	running
)

// promptnessOf returns how soon the pool serves the set with these free clusters.
func (p *Pool) promptnessOf(size int, free FreeClusters) promptness {
	switch {
	case free.Running >= size:
		return running
	case free.Installed >= size:
		return resuming
	case p.Blocked != "":
		return blocked
	case p.Most != nil && *p.Most-p.Occupied < size:
		return occupied
	default:
		return creating
	}
}

// chooseByPreference returns the first pool of those that serve the set the soonest; the current one, if none is sooner. So
// claims move only if that serves the set sooner.
func (d *draft) chooseByPreference(current string) string {
	now := d.currentPromptness(current)
	best, soonest := "", never
	wait := d.Created
	for _, p := range d.Preferences {
		if left := wait.Sub(d.Now); left > 0 && best != "" {
			d.plan.Next = left // the clock alone makes this preference count
			break
		}
		pools := d.fittingPools(p)
		for _, q := range pools {
			free := q.Free
			if now > never {
				free = free.limitTo(q.Kept)
			}
			if how := q.promptnessOf(d.Size, free); how > soonest {
				best, soonest = q.Name, how
			}
		}
		if len(pools) > 0 {
			wait = wait.Add(p.FallbackAfter)
		}
	}
	if now > never && now >= soonest {
		return current
	}
	return best
}

// currentPromptness returns how soon the pool of the claims serves the set; never, if it has none that fits. The time of the
// preference does not matter: the claims may be there because no pool that is preferred was sooner then.
func (d *draft) currentPromptness(pool string) promptness {
	for _, p := range d.Preferences {
		for _, q := range d.fittingPools(p) {
			if q.Name == pool {
				return q.promptnessOf(d.Size, q.Free)
			}
		}
	}
	return never
}

// fittingPools returns the pools of a preference that can serve the set now or later, those with most free clusters
// that run first. If ClaimPolicies permit none of all preferences, it ignores the policies: the claims of the set then say why they
// are held.
func (d *draft) fittingPools(p Preference) []Pool {
	var out []Pool
	nonePermitted := !d.permitsAnyPool()
	for _, name := range p.Pools {
		if q := d.findPool(name); q != nil && q.isLargeEnough(d.Size) && (!q.NotPermitted || nonePermitted) {
			out = append(out, *q)
		}
	}
	slices.SortFunc(out, func(a, b Pool) int {
		return cmp.Or(cmp.Compare(b.Free.Running, a.Free.Running), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// permitsAnyPool reports whether ClaimPolicies permit a pool of the preferences that can serve the set.
func (d *draft) permitsAnyPool() bool {
	return slices.ContainsFunc(d.Preferences, func(p Preference) bool {
		return slices.ContainsFunc(p.Pools, func(name string) bool {
			q := d.findPool(name)
			return q != nil && q.isLargeEnough(d.Size) && !q.NotPermitted
		})
	})
}

// isLargeEnough reports whether the pool stays, and may have that many clusters.
func (p *Pool) isLargeEnough(size int) bool {
	return !p.Deleting && (p.Most == nil || *p.Most >= size)
}

// checkPool returns the name of the pool if it can serve the set now or later.
func (d *draft) checkPool(name string) string {
	p := d.findPool(name)
	switch {
	case p == nil:
		d.stall(hivev1.ReasonPoolNotFound, fmt.Sprintf("ClusterPool %s does not exist in this namespace: create it, or delete the set", name))
	case p.Deleting:
		d.stall(hivev1.ReasonPoolDeleting, fmt.Sprintf("ClusterPool %s is being deleted and serves no more claims: delete the set, and create one for another pool", name))
	case p.Most != nil && *p.Most < d.Size:
		d.stall(v1alpha1.ReasonSetTooLarge, d.describeTooLarge(*p)+": raise the limit, or delete the set and create a smaller one")
	default:
		return name
	}
	return ""
}

func (d *draft) describeTooLarge(p Pool) string {
	return fmt.Sprintf("The set needs %s at once, and ClusterPool %s has at most %d: %s", formatCount(d.Size, "cluster"), p.Name, *p.Most, p.MostReason)
}

// reportNoPool reports why no pool of a selector can serve the set.
func (d *draft) reportNoPool() {
	var tooLarge []string
	deleting := false
	for _, preference := range d.Preferences {
		for _, name := range preference.Pools {
			if p := d.findPool(name); p != nil && p.Deleting {
				deleting = true
			} else if p != nil {
				tooLarge = append(tooLarge, fmt.Sprintf("%s (%d: %s)", p.Name, *p.Most, p.MostReason))
			}
		}
	}
	slices.Sort(tooLarge)
	tooLarge = slices.Compact(tooLarge)
	switch {
	case len(tooLarge) > 0:
		d.stall(v1alpha1.ReasonSetTooLarge, fmt.Sprintf("The set needs %s at once, and no pool that spec.poolSelector selects can have so many: %s: "+
			"raise a limit, or delete the set and create a smaller one",
			formatCount(d.Size, "cluster"), strings.Join(tooLarge, ", ")))
	case deleting:
		d.stall(hivev1.ReasonPoolDeleting, "The ClusterPools that spec.poolSelector selects are being deleted: label another pool, or delete the set")
	default:
		d.stall(v1alpha1.ReasonNoPoolMatches, "spec.poolSelector selects no ClusterPool in this namespace: label a pool, or delete the set and create one with another selector")
	}
}

// maxListedNames limits the names in a message.
const maxListedNames = 10

func listClaims(claims []Claim) string {
	var names []string
	for _, c := range claims {
		names = append(names, c.Name)
	}
	if more := len(names) - maxListedNames; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxListedNames], ", "), more)
	}
	return strings.Join(names, ", ")
}

func formatCount(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func hasOrHave(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}

// FallbackOf parses fallbackAfter of a preference.
func FallbackOf(p v1alpha1.PoolPreference) (time.Duration, error) {
	if p.FallbackAfter == nil {
		return 0, nil
	}
	return p.FallbackAfter.Parse()
}
