package pool

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Decide returns the plan for a snapshot. The order of its parts matters: it retires clusters
// before it counts anything, serves claims before it sets power, so that only claims that still
// wait ask for more, and creates clusters before it replaces any.
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

// A draft is a plan under construction: the snapshot sorted into buckets, and what remains of the
// limits. It sorts and passes members by reference: a pool may have thousands of members, and a
// pool in demand is reconciled fifty times a second.
type draft struct {
	Snapshot
	steps []Step
	// all has every member, oldest first; each is in one of the buckets.
	all     []*Member
	buckets map[Phase][]*Member
	waiting []Claim
	claims  map[string]Claim
	// unawareOfClaim has the claimed members that do not record their claim yet.
	unawareOfClaim map[string]bool
	// deferredDeletions names the members whose deletion waits until the limits allow it.
	deferredDeletions []string
	// plannedDeletions names the members that this plan deletes, reservedForClaims the members that
	// waiting claims will get.
	plannedDeletions, reservedForClaims map[string]bool
	// orphans has the claimed members whose claim does not exist, and which this plan keeps.
	orphans []*Member
	// room is the number of clusters that may still be added, budget the number that may still be
	// installed or destroyed at a time; both may be negative.
	room, budget int
	// deletions is the number of clusters that may still be destroyed at a time at a user's
	// request.
	deletions int
	// underWay is the number of clusters that are being installed or destroyed, or are about to be.
	underWay int
	// roomLimit is the limit that determines room, and roomReason describes it as text.
	roomLimit  Limit
	roomReason string
}

// unlimited stands for "no limit": it is larger than any pool.
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

// claimsByCluster maps each cluster to the claim that names it; if several do, to the oldest. A
// cluster may not record its claim, after a restore of a backup or because a cache shows the second
// of the two writes before the first. It belongs to that claim all the same.
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

// remainingRoom returns the number of clusters that may be added, the limit that determines it, and
// that limit as text.
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

// deleteIfBudgetAllows plans a deletion that the pool itself chooses, within the limit on
// concurrent work. It returns false if the deletion is not planned. Deleting a cluster that is
// being installed needs no budget: it frees what its deletion takes.
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

// deleteOnRequest plans a deletion that a user asked for. The deletion does not wait for installs,
// only for other deletions: at most maxConcurrent clusters are destroyed at a time.
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

// isFrozen reports whether the pool may neither install nor destroy clusters.
func (d *draft) isFrozen() bool { return limitOrUnlimited(d.Settings.MaxConcurrent) <= 0 }

func (d *draft) addDeletion(m *Member, cause Cause, reason string, args ...any) {
	d.deletions--
	if !m.isBeingInstalled() {
		d.budget--
	}
	d.plannedDeletions[m.Name] = true
	d.addStep(Delete, m.Name, cause, reason, args...)
}

// retireClusters deletes clusters that are marked for removal, and claimed clusters whose claim is
// being deleted, has another cluster, or does not exist.
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

// deleteUnclaimed deletes every unclaimed cluster of a pool that is being deleted, all at once, as
// Hive does: maxConcurrent paces the work of a pool that stays.
func (d *draft) deleteUnclaimed() {
	for _, m := range d.unclaimedMembers(Installing, Standby, Assignable, Broken) {
		d.deleteOnRequest(m, PoolDeleted, "the pool is being deleted")
	}
}

// completeBindings completes bindings of which one of the two writes is missing: it writes the
// cluster into the claim, or the claim into the cluster. If two clusters name a claim that names
// none, the claim gets the oldest. A pool that is being deleted completes bindings too: nothing
// else would, and the pool cannot be deleted before the claim is.
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

// bindWaitingClaims binds the oldest running clusters to the oldest waiting claims.
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

// setPowerStates starts one cluster for each waiting claim and keeps the oldest runningCount of the
// others running. It hibernates the rest.
func (d *draft) setPowerStates() {
	list := d.unclaimedMembers(Installing, Standby, Assignable)
	d.reserveForClaims(list)
	spares := d.chooseSpares(list)
	// late is the number of spares that do not run yet.
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
			// If it hibernated now, its hang would never be detected, and the next claim would run
			// into it.
		case late > 0 && m.Running && m.Wanted == Running:
			late-- // it stands in until the chosen spare runs
		default:
			d.setPower(m, Hibernating, AboveRunningCount, "%d of the pool's clusters are to run, and older ones do", d.Settings.RunningCount)
		}
	}
}

// reserveForClaims chooses the clusters that waiting claims will get: first clusters that are
// resuming, then hibernating ones, then installs, each oldest first (enhancement: replace broken
// clusters). It chooses a struggling cluster only if there is no other.
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
// installed or not (enhancement: running clusters). A struggling cluster takes up no place: the
// next cluster is started in addition to it.
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

// wantedCount returns the number of unclaimed clusters that the pool should have.
func (d *draft) wantedCount() int { return d.Settings.Size + len(d.waiting) }

// existingCount returns the number of unclaimed clusters that exist or are about to, without broken
// ones. Unreadable clusters are not replaced, but claims do not wait for them.
func (d *draft) existingCount() int {
	return len(d.buckets[Installing]) + len(d.buckets[Standby]) + len(d.buckets[Assignable]) +
		min(len(d.buckets[Unreadable]), d.Settings.Size) + len(d.Pending)
}

// createMissing plans the creation of the clusters that the pool lacks, within the limits.
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

// maxCreationsPerPlan is the maximum number of creations in a plan: spec.size has no upper bound,
// and the plan must fit into memory. The next plan continues.
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

// deleteSurplus deletes clusters beyond the wanted number, in the order of cheapestFirst.
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

// cheapestFirst orders members by what their deletion costs: struggling members first, members
// reserved for waiting claims last, and newest first among equals.
func (d *draft) cheapestFirst(members []*Member) []*Member {
	rank := func(m *Member) int {
		switch {
		case m.isStruggling(d.Settings, d.Now) && m.Paused == "": // somebody may be investigating a paused cluster
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

// replaceStale deletes stale clusters: first installs, then, in a settled pool on which no claim
// waits, one installed cluster at a time.
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

// replaceStaleInstalls deletes stale installs, and installs without progress that would use other
// Secrets by now. It deletes each at once: none is a spare yet, and waiting for its end would only
// delay its successor (Hive B32). It keeps an install that is reserved for a waiting claim while
// that install makes progress. An install that cannot begin, or whose last attempt failed, serves
// nobody: a user may have fixed its cause in the pool since.
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

// hasEnoughClusters reports whether the pool has the wanted number of clusters, or as many spares
// as it can ever have: limited by the inventory's customizations, or by a maxSize below the size.
// Without the second case, such a pool would keep stale clusters forever. A pool that is short
// because claims have its clusters waits until they are released.
func (d *draft) hasEnoughClusters() bool {
	missing := d.wantedCount() - d.existingCount()
	if missing <= 0 {
		return missing == 0
	}
	ever := d.roomLimit == ByInventory || d.existingCount() >= limitOrUnlimited(d.Settings.MaxSize)
	return ever && d.room <= 0 && d.countPlanned(Create) == 0
}

// unclaimedMembers returns the members of the given phases, oldest first.
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

// sourcesRecheck is how often the pool reads the objects that clusters are made from while an
// install makes no progress: Secrets are not watched.
const sourcesRecheck = 30 * time.Second

// nextDeadline returns the time until the first member becomes overdue or broken by the clock
// alone; 0 if none will.
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

// verbOrder is the order of the steps in a plan.
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
