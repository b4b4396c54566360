package pool

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Decide makes the plan. The order of its parts matters: a cluster is retired
// before anything is counted, claims are served before power is set, so that
// only claims that still wait ask for more, and clusters are added before any
// is replaced.
func Decide(s Snapshot) Plan {
	d := newDraft(s)
	d.retireClusters()
	d.completeBindings()
	if d.Settings.Deleting {
		d.deleteUnclaimed()
		return d.finishPlan()
	}
	d.bindWaitingClaims()
	d.setPowerStates()
	d.createMissing()
	d.replaceBroken()
	d.deleteSurplus()
	d.replaceStale()
	return d.finishPlan()
}

// draft is a plan in the making: the snapshot sorted into buckets, and what is
// left of the limits. Members are sorted and passed on by reference: there may be
// thousands, and a pool in demand is looked at fifty times a second.
type draft struct {
	Snapshot
	steps []Step
	// all are the members, oldest first; each is in one of the buckets.
	all     []*Member
	buckets map[Phase][]*Member
	waiting []Claim
	claims  map[string]Claim
	// unawareOfClaim are the claimed members that do not know of their claim.
	unawareOfClaim map[string]bool
	// deferredDeletions are the members that would be deleted, were there room for it.
	deferredDeletions []string
	// plannedDeletions are the members that this plan deletes, promised those that waiting claims will get.
	plannedDeletions, reservedForClaims map[string]bool
	// orphans are the claimed members whose claim does not exist, and that are kept for now.
	orphans []*Member
	// room is how many more clusters may exist, budget how many more may be
	// installed or destroyed at a time; both may be below zero.
	room, budget int
	// deletions is how many more clusters may be destroyed at a time because a user asked for it.
	deletions int
	// underWay is how many clusters are being installed or destroyed, or are about to be.
	underWay int
	// roomLimit is what limits room, full says it in words.
	roomLimit  Limit
	roomReason string
}

// unlimited is more than any pool has.
const unlimited = 1 << 30

func newDraft(s Snapshot) *draft {
	d := &draft{
		Snapshot: s, all: sortByAge(s.Members), buckets: map[Phase][]*Member{},
		claims: make(map[string]Claim, len(s.Claims)), unawareOfClaim: map[string]bool{}, plannedDeletions: map[string]bool{},
	}
	for _, c := range s.Claims {
		d.claims[c.Name] = c
	}
	given, half := make(map[string]bool, len(s.Claims)), d.claimsByCluster()
	for i, m := range d.all {
		if claim := half[m.Name]; m.Claim == "" && claim != "" {
			whole := *m
			whole.Claim, d.unawareOfClaim[m.Name] = claim, true
			m, d.all[i] = &whole, &whole
		}
		p := m.Phase(s.Settings, s.Now)
		d.buckets[p] = append(d.buckets[p], m)
		if m.Deleting || m.isBeingInstalled() {
			d.underWay++
		}
		if m.Claim != "" {
			given[m.Claim] = true
		}
	}
	for _, c := range s.Claims {
		if c.Cluster == "" && !c.Deleting && !c.Unreadable && !given[c.Name] {
			d.waiting = append(d.waiting, c)
		}
	}
	slices.SortFunc(d.waiting, claimsOldestFirst)
	d.room, d.roomLimit, d.roomReason = d.remainingRoom()
	d.underWay += len(s.Pending)
	d.budget = limitOrUnlimited(s.Settings.MaxConcurrent) - d.underWay
	d.deletions = limitOrUnlimited(s.Settings.MaxConcurrent) - len(d.buckets[Deleting])
	return d
}

// claimsByCluster maps clusters to the claims that name them, to the oldest if several do. A
// cluster may not know of its claim: after a restore of a backup, or because a cache
// shows the second of the two writes before the first. It is that claim's all the same.
func (d *draft) claimsByCluster() map[string]string {
	out := make(map[string]string, len(d.Claims))
	for _, c := range d.Claims {
		if c.Cluster == "" || c.Deleting {
			continue
		}
		if other, again := out[c.Cluster]; !again || claimsOldestFirst(c, d.claims[other]) < 0 {
			out[c.Cluster] = c.Name
		}
	}
	return out
}

func limitOrUnlimited(n *int) int {
	if n == nil {
		return unlimited
	}
	return *n
}

// remainingRoom is how many clusters may be added, and what stands in the way of more.
func (d *draft) remainingRoom() (room int, by Limit, full string) {
	exist := len(d.Members) + len(d.Pending)
	room, by = limitOrUnlimited(d.Settings.MaxSize)-exist, ByMaxSize
	full = fmt.Sprintf("maxSize is %d", limitOrUnlimited(d.Settings.MaxSize))
	if theirs := limitOrUnlimited(d.Settings.Room) - len(d.Pending); theirs < room {
		room, by, full = theirs, ByPlatform, d.Settings.NoRoom
	}
	if free := len(d.Settings.Free); d.Settings.Inventory && free < room {
		room, by, full = free, ByInventory, "no customization of the inventory is free"
	}
	return room, by, full
}

func (d *draft) addStep(v Verb, cluster string, cause Cause, reason string, args ...any) {
	d.steps = append(d.steps, Step{Verb: v, Cluster: cluster, Cause: cause, Reason: fmt.Sprintf(reason, args...)})
}

// deleteIfBudgetAllows plans the deletion of m that the pool itself chooses, within what may be under
// way at a time. An install that is deleted gives back what its deletion takes.
func (d *draft) deleteIfBudgetAllows(m *Member, cause Cause, reason string, args ...any) bool {
	if m.Unreadable != "" {
		return false
	}
	if d.isFrozen() || d.budget <= 0 && !m.isBeingInstalled() {
		d.deferredDeletions = append(d.deferredDeletions, m.Name)
		return false
	}
	d.addDeletion(m, cause, reason, args...)
	return true
}

// deleteOnRequest plans the deletion of m that a user asked for. It waits for no install, only
// for other deletions: maxConcurrent clusters are destroyed at a time.
func (d *draft) deleteOnRequest(m *Member, cause Cause, reason string, args ...any) {
	if m.Unreadable != "" {
		return
	}
	if !d.Settings.Deleting && (d.isFrozen() || d.deletions <= 0 && !m.isBeingInstalled()) {
		d.deferredDeletions = append(d.deferredDeletions, m.Name)
		return
	}
	d.addDeletion(m, cause, reason, args...)
}

// isFrozen reports whether nothing may be installed or destroyed.
func (d *draft) isFrozen() bool { return limitOrUnlimited(d.Settings.MaxConcurrent) <= 0 }

func (d *draft) addDeletion(m *Member, cause Cause, reason string, args ...any) {
	d.deletions--
	if !m.isBeingInstalled() {
		d.budget--
	}
	d.plannedDeletions[m.Name] = true
	d.addStep(Delete, m.Name, cause, reason, args...)
}

// retireClusters destroys clusters that are marked for removal, and claimed ones whose claim is
// being deleted, was given another cluster, or does not exist.
func (d *draft) retireClusters() {
	for _, m := range d.buckets[Removed] {
		d.deleteOnRequest(m, MarkedForRemoval, "it is marked for removal")
	}
	for _, m := range d.buckets[Claimed] {
		c, exists := d.claims[m.Claim]
		switch {
		case !exists && m.ClaimUnaware:
			d.deleteOnRequest(m, ClaimReleased, "its claim %s was deleted before it was told of it", m.Claim)
		case !exists && hasElapsed(m.ClaimMissingSince, missingClaimDelay, d.Now):
			d.deleteOnRequest(m, ClaimMissing, "its claim %s has not existed for ten minutes", m.Claim)
		case !exists:
			d.orphans = append(d.orphans, m)
		case c.Deleting:
			d.deleteOnRequest(m, ClaimReleased, "its claim %s is being deleted", m.Claim)
		case c.Cluster != "" && c.Cluster != m.Name:
			d.deleteOnRequest(m, ClaimServed, "its claim %s has %s", m.Claim, c.Cluster)
		}
	}
}

// deleteUnclaimed destroys every unclaimed cluster of a pool that is being deleted, all at
// once, as Hive does: maxConcurrent paces a pool's work, and this is the end of it.
func (d *draft) deleteUnclaimed() {
	for _, m := range d.unclaimedMembers(Installing, Standby, Assignable, Broken) {
		d.deleteOnRequest(m, PoolDeleted, "the pool is being deleted")
	}
}

// completeBindings completes what was given where one of the two writes is missing: it
// tells claims of their clusters, or clusters of their claims. Were two given to
// a claim that knows of none, the oldest counts. A pool that is being deleted does
// so too: nobody else would, and it cannot go before the claim does.
func (d *draft) completeBindings() {
	told := map[string]bool{}
	for _, m := range d.buckets[Claimed] {
		c, exists := d.claims[m.Claim]
		untold := c.Cluster == "" || c.Cluster == m.Name && d.unawareOfClaim[m.Name]
		readable := m.Unreadable == "" && !c.Unreadable
		if exists && readable && untold && !c.Deleting && !told[c.Name] {
			told[c.Name] = true
			d.addBinding(c, m, BindingIncomplete, "it was given to it before")
		}
	}
}

// bindWaitingClaims gives the oldest running clusters to the oldest waiting claims.
func (d *draft) bindWaitingClaims() {
	n := min(len(d.waiting), len(d.buckets[Assignable]))
	for i := range n {
		d.addBinding(d.waiting[i], d.buckets[Assignable][i], ClaimWaiting, "oldest claim, oldest running cluster")
	}
	given := d.buckets[Assignable][:n]
	d.buckets[Claimed] = append(slices.Clip(d.buckets[Claimed]), given...)
	d.buckets[Assignable] = d.buckets[Assignable][n:]
	d.waiting = d.waiting[n:]
}

func (d *draft) addBinding(c Claim, m *Member, cause Cause, reason string) {
	d.steps = append(d.steps, Step{Verb: Bind, Cluster: m.Name, Claim: c.Name, Cause: cause, Reason: reason})
}

// setPowerStates keeps a cluster running for each waiting claim, and of the others the oldest, as
// many as runningCount says, and lets the rest sleep.
func (d *draft) setPowerStates() {
	list := d.unclaimedMembers(Installing, Standby, Assignable)
	d.reserveForClaims(list)
	spares := d.chooseSpares(list)
	// late is how many of the places of spares are held by clusters that do not run yet.
	late := min(d.Settings.RunningCount, d.Settings.Size)
	for _, m := range list {
		if m.Running && spares[m.Name] {
			late--
		}
	}
	for _, m := range list {
		switch {
		case d.reservedForClaims[m.Name]:
			d.setPower(m, Running, ClaimWaiting, "claims are waiting")
		case spares[m.Name]:
			d.setPower(m, Running, BelowRunningCount, "runningCount")
		case m.isComingUp():
			// Put to sleep, it would never be known to hang, and the next claim would find out again.
		case late > 0 && m.Running && m.Wanted == Running:
			late-- // it stands in until the one that holds the place runs
		default:
			d.setPower(m, Hibernating, AboveRunningCount, "%d of the pool's clusters are to run, and older ones do", d.Settings.RunningCount)
		}
	}
}

// reserveForClaims chooses the clusters that waiting claims will get: those that are coming up
// keep their places, then come those that sleep, then installs, each oldest first
// (enhancement: replace broken clusters). One that struggles is chosen only when there is
// nothing else.
func (d *draft) reserveForClaims(list []*Member) {
	left := len(d.waiting)
	if left == 0 {
		return
	}
	d.reservedForClaims = map[string]bool{}
	choose := func(fits func(*Member) bool) {
		for _, m := range list {
			if left > 0 && !d.reservedForClaims[m.Name] && fits(m) {
				d.reservedForClaims[m.Name] = true
				left--
			}
		}
	}
	healthy := func(m *Member) bool { return !m.isStruggling(d.Settings, d.Now) }
	choose(func(m *Member) bool { return healthy(m) && m.Installed && m.Wanted != Hibernating })
	choose(func(m *Member) bool { return healthy(m) && m.Installed })
	choose(healthy)
	choose(func(*Member) bool { return true })
}

// chooseSpares chooses the clusters that run without a claim: the oldest, whether they are
// installed or not (enhancement: running clusters). One that struggles uses up no place:
// the next one is woken beside it.
func (d *draft) chooseSpares(list []*Member) map[string]bool {
	out := map[string]bool{}
	places := min(d.Settings.RunningCount, d.Settings.Size)
	for _, m := range list {
		if places <= 0 {
			break
		}
		if d.reservedForClaims[m.Name] {
			continue
		}
		out[m.Name] = true
		if !m.isStruggling(d.Settings, d.Now) {
			places--
		}
	}
	return out
}

func (d *draft) setPower(m *Member, want Power, cause Cause, reason string, args ...any) {
	if m.Wanted == want {
		return
	}
	verb := Start
	if want == Hibernating {
		verb = Sleep
	}
	d.addStep(verb, m.Name, cause, reason, args...)
}

// wantedCount is how many unclaimed clusters there should be.
func (d *draft) wantedCount() int { return d.Settings.Size + len(d.waiting) }

// existingCount is how many unclaimed clusters there are or are about to be, broken ones
// not counted. Unreadable ones are not replaced, but claims do not wait for them.
func (d *draft) existingCount() int {
	return len(d.buckets[Installing]) + len(d.buckets[Standby]) + len(d.buckets[Assignable]) +
		min(len(d.buckets[Unreadable]), d.Settings.Size) + len(d.Pending)
}

// createMissing creates clusters until there are enough, within the limits.
func (d *draft) createMissing() {
	short := d.wantedCount() - d.existingCount()
	if short <= 0 || d.Settings.Blocked != "" {
		return
	}
	n := max(0, min(short, d.room, d.budget, maxCreationsPerPlan))
	cause, reason := d.creationReason()
	d.steps = slices.Grow(d.steps, n)
	for i := range n {
		st := Step{Verb: Create, Cause: cause, Reason: reason}
		if d.Settings.Inventory {
			st.Customization = d.Settings.Free[i]
		}
		d.steps = append(d.steps, st)
	}
	d.room -= n
	d.budget -= n
}

// maxCreationsPerPlan is how many creations a plan has at most: any size may be asked for, and
// the plan must fit into memory. The next plan goes on.
const maxCreationsPerPlan = 10_000

func (d *draft) creationReason() (cause Cause, reason string) {
	if n := len(d.waiting); n > 0 {
		return ClaimWaiting, fmt.Sprintf("size is %d, %s wait", d.Settings.Size, formatCount(n, "claim"))
	}
	return BelowSize, fmt.Sprintf("size is %d", d.Settings.Size)
}

func (d *draft) replaceBroken() {
	for _, m := range d.buckets[Broken] {
		d.replaceMember(m, m.DefectCause(d.Settings, d.Now), cmp.Or(m.Displaced, m.Withdrawn, "it is broken"))
	}
}

// deleteSurplus destroys what is too many, cheapest to lose first.
func (d *draft) deleteSurplus() {
	surplus := d.existingCount() - d.wantedCount()
	for _, p := range []Phase{Installing, Standby, Assignable} {
		for _, m := range d.cheapestFirst(d.buckets[p]) {
			if surplus <= 0 || !d.deleteIfBudgetAllows(m, AboveSize, "the pool has more clusters than its size, %d", d.Settings.Size) {
				return
			}
			surplus--
		}
	}
}

// cheapestFirst orders members by what is lost with them: first those that struggle, last
// those that a waiting claim will get; else newest first.
func (d *draft) cheapestFirst(members []*Member) []*Member {
	rank := func(m *Member) int {
		switch {
		case m.isStruggling(d.Settings, d.Now) && m.Paused == "": // somebody may be looking at one that is paused
			return 0
		case !d.reservedForClaims[m.Name]:
			return 1
		default:
			return 2
		}
	}
	out := slices.Clone(members)
	slices.Reverse(out)
	slices.SortStableFunc(out, func(a, b *Member) int { return cmp.Compare(rank(a), rank(b)) })
	return out
}

// replaceStale destroys what is stale: installs first, then, in a settled pool on which no
// claim waits, one installed cluster at a time.
func (d *draft) replaceStale() {
	if d.Settings.Blocked != "" {
		return
	}
	d.replaceStaleInstalls()
	if len(d.waiting) > 0 || !d.hasEnoughClusters() {
		return
	}
	if len(d.buckets[Installing])+len(d.buckets[Deleting])+len(d.Pending)+len(d.buckets[Broken]) > 0 {
		return
	}
	for _, m := range d.unclaimedMembers(Standby, Assignable) {
		if m.isStale(d.Settings) {
			d.replaceMember(m, Stale, cmp.Or(m.Outdated, "it was made from an older version of the pool"))
			return
		}
	}
}

// replaceStaleInstalls destroys stale installs, and those that do not get on and would be made from
// other Secrets by now, each at once: none is a spare yet, and waiting for its end would
// only delay its successor (Hive B32). One that a waiting claim will
// get is kept while it makes progress. One that cannot begin, or whose last attempt
// failed, serves nobody: what was wrong with the pool may be what was mended since.
func (d *draft) replaceStaleInstalls() {
	for _, m := range slices.Backward(d.buckets[Installing]) {
		switch {
		case d.plannedDeletions[m.Name], d.reservedForClaims[m.Name] && m.isProgressing():
		case m.isStale(d.Settings):
			d.replaceMember(m, Stale, cmp.Or(m.Outdated, "it is being made from an older version of the pool"))
		case m.couldSucceedNow(d.Settings):
			d.replaceMember(m, Stale, "its install does not succeed, and a Secret or customization that the pool refers to has changed since it began")
		}
	}
}

// hasEnoughClusters reports whether there are as many clusters as there should be, or as many
// spares as there ever will be: as the inventory has customizations for, or as maxSize
// allows where that is below the size. Such a pool would keep what is stale for ever. One
// that is short for the clusters which claims have waits until they are released.
func (d *draft) hasEnoughClusters() bool {
	missing := d.wantedCount() - d.existingCount()
	if missing <= 0 {
		return missing == 0
	}
	ever := d.roomLimit == ByInventory || d.existingCount() >= limitOrUnlimited(d.Settings.MaxSize)
	return ever && d.room <= 0 && d.countPlanned(Create) == 0
}

// unclaimedMembers returns the members of these buckets, oldest first.
func (d *draft) unclaimedMembers(phases ...Phase) []*Member {
	var out []*Member
	parts := 0
	for _, p := range phases {
		if more := d.buckets[p]; len(more) > 0 {
			out = append(out, more...)
			parts++
		}
	}
	if parts > 1 {
		slices.SortFunc(out, oldestFirst)
	}
	return out
}

// sourcesRecheck is how often the objects that clusters are made from are looked at while an
// install does not get on: Secrets are not watched.
const sourcesRecheck = 30 * time.Second

// nextDeadline is when the first member becomes overdue or broken by the clock alone.
func (d *draft) nextDeadline() time.Duration {
	var soonest time.Duration
	for _, m := range d.unclaimedMembers(Standby, Assignable) {
		for _, at := range m.timeoutDeadlines(d.Settings) {
			if wait := at.Sub(d.Now); wait > 0 && (soonest == 0 || wait < soonest) {
				soonest = wait
			}
		}
	}
	if slices.ContainsFunc(d.buckets[Installing], func(m *Member) bool { return !m.isProgressing() }) && (soonest == 0 || soonest > sourcesRecheck) {
		soonest = sourcesRecheck
	}
	for _, m := range d.orphans {
		wait := missingClaimDelay
		if !m.ClaimMissingSince.IsZero() {
			wait = m.ClaimMissingSince.Add(missingClaimDelay).Sub(d.Now)
		}
		if soonest == 0 || wait < soonest {
			soonest = wait
		}
	}
	return soonest
}

func (m Member) timeoutDeadlines(s Settings) []time.Time {
	var out []time.Time
	for _, since := range []time.Time{m.ResumingSince, m.UnreachableSince, m.UnreadySince} {
		if since.IsZero() {
			continue
		}
		out = append(out, since.Add(s.slowResumeAfter()))
		if s.ResumeTimeout > 0 {
			out = append(out, since.Add(s.ResumeTimeout))
		}
	}
	if m.MachinesFailed && !m.ResumingSince.IsZero() {
		out = append(out, m.ResumingSince.Add(machineFailureTimeout))
	}
	return out
}

// verbOrder has the order of the steps in a plan.
var verbOrder = map[Verb]int{Bind: 0, Start: 1, Sleep: 2, SetPosition: 3, Create: 4, Delete: 5}

func (d *draft) finishPlan() Plan {
	d.steps = slices.DeleteFunc(d.steps, func(s Step) bool { return (s.Verb == Start || s.Verb == Sleep) && d.plannedDeletions[s.Cluster] })
	r := d.buildReport()
	next := soonerDelay(d.nextDeadline(), soonerDelay(d.postponeSteps(r), d.planPositions(r.Queue)))
	slices.SortStableFunc(d.steps, func(a, b Step) int { return cmp.Compare(verbOrder[a.Verb], verbOrder[b.Verb]) })
	return Plan{Steps: d.steps, Report: r, Next: next}
}

func formatCount(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
