package pool

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Decide returns the plan for a snapshot. The order of its parts matters: it retires clusters
// before it counts anything, serves claims before it sets power, so that only claims that still
// wait ask for more, and creates clusters before it sets power, which it sets for new ones, too, and
// before it replaces any.
func Decide(s Snapshot) Plan {
	if s.Unreadable != "" {
		return Plan{Report: Report{Unreadable: s.Unreadable, Words: "not reconciled: " + s.Unreadable}}
	}
	d := newDraft(s)
	if d.isReleasable() {
		d.removeFinalizer()
		return d.finishPlan()
	}
	d.addFinalizer()
	d.reportInvalidCustomizations()
	d.dropUnusableNames()
	d.retireClusters()
	d.completeBindings()
	if !d.Settings.Deleting {
		d.bindWaitingClaims()
		d.completeCreations()
		d.createMissing()
		d.setPowerStates()
		d.replaceBroken()
		d.deleteSurplus()
		d.bootstrapOlder()
		d.replaceStale()
	}
	return d.finishPlan()
}

// verbOrder is the order of the steps in a plan.
var verbOrder = []Verb{
	AddFinalizer, RemoveFinalizer, Bind, Start, Hibernate, Bootstrap, SetPosition, ReportInvalid, DropName, CompleteCreation, Create, Delete,
}

// Verbs returns all verbs, in the order of the steps in a plan.
func Verbs() []Verb { return slices.Clone(verbOrder) }

// isReleasable reports whether nothing is left of a pool that is being deleted.
func (d *draft) isReleasable() bool {
	return d.Settings.Deleting && !d.Settings.FinalizerMissing && len(d.all) == 0
}

func (d *draft) removeFinalizer() {
	d.addStep(RemoveFinalizer, "", PoolDeleted, "the pool is being deleted and has no clusters")
}

// addFinalizer plans to add the finalizer: without it, the clusters would outlive the pool.
func (d *draft) addFinalizer() {
	if d.Settings.FinalizerMissing && !d.Settings.Deleting {
		d.addStep(AddFinalizer, "", FinalizerMissing, "the pool must exist until its clusters are deleted")
	}
}

// reportInvalidCustomizations plans to report the customizations that do not apply to the pool. If
// another pool has reported one, it stays as reported: two pools with different messages would
// overwrite each other forever. An exception is a customization that is reserved for a recorded
// name: a process that has not seen its error, and is about to acquire it, must get a conflict.
func (d *draft) reportInvalidCustomizations() {
	for _, c := range d.Invalid {
		byAnother := c.Reported != "" && !c.ReportedByPool && !c.ReservedForName
		if c.Reported == c.Message || byAnother {
			continue
		}
		d.steps = append(d.steps, Step{Verb: ReportInvalid, Customization: c.Name, Cause: CustomizationInvalid, Reason: c.Message})
	}
}

// unusableReasons explain the causes in Snapshot.Unusable to people.
var unusableReasons = map[Cause]string{
	CustomizationExhausted: "no customization of the inventory is left for it",
	NamespaceForeign:       "its namespace was not created for this pool",
	SecretsOutdated:        "its Secrets are outdated: the pool, or a Secret that the pool refers to, was edited after they were created",
}

// dropUnusableNames plans to drop the recorded names under which no cluster can be created. They
// still count as pending in this plan: a name that turns out to be in use is kept.
func (d *draft) dropUnusableNames() {
	for _, name := range d.Pending {
		if cause := d.Unusable[name]; cause != "" {
			d.addStep(DropName, name, cause, "%s", unusableReasons[cause])
		}
	}
}

// retireClusters deletes clusters that are marked for removal, claimed clusters whose claim is being deleted, has
// another cluster, or does not exist, and the unclaimed clusters of a pool that is being deleted.
func (d *draft) retireClusters() {
	for _, m := range d.buckets[Removed] {
		d.deleteOnRequest(m, MarkedForRemoval, "it is marked for removal")
	}
	for _, m := range d.buckets[Claimed] {
		c, exists := d.claims[m.Claim]
		switch {
		case !exists && m.ClaimUnaware:
			d.deleteOnRequest(m, ClaimReleased, "its claim %s was deleted before the cluster was written into it", m.Claim)
		case !exists && hasElapsed(m.ClaimMissingSince, missingClaimDelay, d.Now):
			d.deleteOnRequest(m, ClaimMissing, "its claim %s has not existed for ten minutes", m.Claim)
		case !exists:
			d.orphans = append(d.orphans, m)
		case c.Deleting:
			d.deleteOnRequest(m, ClaimReleased, "its claim %s is being deleted", m.Claim)
		case c.Cluster != "" && c.Cluster != m.Name:
			d.deleteOnRequest(m, ClaimServed, "its claim %s has cluster %s", m.Claim, c.Cluster)
		}
	}
	if d.Settings.Deleting {
		d.deleteUnclaimed()
	}
}

// deleteUnclaimed deletes every unclaimed cluster of a pool that is being deleted, all at once, as
// Hive does: maxConcurrent paces the work of a pool that stays.
func (d *draft) deleteUnclaimed() {
	for _, m := range d.unclaimedMembers(Installing, Standby, Assignable, Broken) {
		d.deleteOnRequest(m, PoolDeleted, "the pool is being deleted")
	}
}

// setPowerStates starts one cluster for each waiting claim and keeps the oldest runningCount of the
// others running. It hibernates the rest. New clusters are created with the power state that the next pass
// would set, because that costs no write.
func (d *draft) setPowerStates() {
	list := d.unclaimedMembers(Installing, Standby, Assignable)
	d.reservedForClaims = d.reserveForClaims(list)
	spares := d.chooseRunningSpares(list, d.reservedForClaims)
	// notRunning is the number of spares that do not run yet.
	notRunning := min(d.Settings.RunningCount, d.Settings.Size)
	for i, m := range list {
		if m.Running && spares[i] {
			notRunning--
		}
	}
	var asleep []*Member
	isSpare := fmt.Sprintf("runningCount is %d", d.Settings.RunningCount)
	for i, m := range list {
		switch {
		case d.reservedForClaims[m]:
			d.setPower(m, Running, ClaimWaiting, "claims are waiting")
		case spares[i]:
			d.setPower(m, Running, BelowRunningCount, isSpare)
		case m.needsSteps(&d.Settings):
			d.setPower(m, Running, StepsNotTaken, "it takes the steps of the bootstrap before it hibernates for the first time")
		case m.needsFirstCheck(&d.Settings):
			d.setPower(m, Running, GatesNotChecked, "its gates are checked before it hibernates for the first time")
		case m.isComingUp():
			// If it hibernated now, its hang would never be detected, and the next claim would run
			// into it.
		case notRunning > 0 && m.Running && m.Wanted == Running:
			notRunning-- // it stands in until the chosen spare runs
		default:
			asleep = append(asleep, m)
		}
	}
	d.hibernateMembers(append(asleep, d.startNewMembers(list)...))
}

// startNewMembers sets the power state of the new clusters that run, and returns the others. They are the youngest
// of all members.
func (d *draft) startNewMembers(existing []*Member) (asleep []*Member) {
	list := d.newMembers()
	if len(list) == 0 {
		return nil
	}
	all := append(slices.Clip(existing), list...)
	reserved := d.reserveForClaims(all)
	spares := d.chooseRunningSpares(all, reserved)[len(existing):]
	for i, m := range list {
		if reserved[m] || spares[i] || m.needsSteps(&d.Settings) || m.needsFirstCheck(&d.Settings) {
			d.setPower(m, Running, BelowRunningCount, "")
		} else {
			asleep = append(asleep, m)
		}
	}
	return asleep
}

// newMembers returns a member for each cluster that this plan creates, and records its step. It leaves out new clusters beyond
// batchSize, which no pass creates.
func (d *draft) newMembers() []*Member {
	var out []*Member
	left := batchSize
	for i := range d.steps {
		switch d.steps[i].Verb {
		case CompleteCreation:
		case Create:
			if left--; left < 0 {
				return out
			}
		default:
			continue
		}
		m := &Member{Created: d.Now}
		out, d.creations[m] = append(out, m), i
	}
	return out
}

// reserveForClaims chooses the clusters that waiting claims will get: first clusters that are
// resuming, then hibernating ones, those that sleep less deeply first, then those that take steps and installs,
// each oldest first (enhancement: replace broken clusters). It chooses a struggling cluster only if there is no other.
func (d *draft) reserveForClaims(list []*Member) map[*Member]bool {
	left := len(d.waiting)
	if left == 0 {
		return nil
	}
	reserved := make(map[*Member]bool, min(left, len(list)))
	choose := func(list []*Member, fits func(*Member) bool) {
		for _, m := range list {
			if left > 0 && !reserved[m] && fits(m) {
				reserved[m] = true
				left--
			}
		}
	}
	healthy := func(m *Member) bool { return !m.isStruggling(&d.Settings, d.Now) }
	finished := func(m *Member) bool { return healthy(m) && m.Installed && !m.AwaitsSteps }
	choose(list, func(m *Member) bool { return finished(m) && m.Wanted != Hibernating })
	choose(sortByWake(list), finished)
	choose(list, func(m *Member) bool { return healthy(m) && m.AwaitsSteps })
	choose(list, healthy)
	choose(list, func(*Member) bool { return true })
	return reserved
}

// chooseRunningSpares chooses the clusters that run without a claim: the oldest, whether they are
// installed or not (enhancement: running clusters). A struggling cluster takes up no place: the
// next cluster is started in addition to it. With a ladder of depths, the clusters that run already stay, and those
// that sleep less deeply come before older ones: otherwise a pool would wake the slower ones. It reports for each member of
// list, which is sorted by age, whether it is chosen.
func (d *draft) chooseRunningSpares(list []*Member, reserved map[*Member]bool) []bool {
	candidates := list
	if len(d.Settings.Sleep) > 0 {
		candidates = sortByWake(list)
	}
	places := min(d.Settings.RunningCount, d.Settings.Size)
	var chosen []*Member
	for _, m := range candidates {
		if places <= 0 {
			break
		}
		if reserved[m] {
			continue
		}
		chosen = append(chosen, m)
		if !m.isStruggling(&d.Settings, d.Now) {
			places--
		}
	}
	return containsEach(chosen, list, len(d.Settings.Sleep) == 0)
}

// containsEach reports for each member of list whether chosen contains it. inOrder is set if the members of chosen have the order
// of list; then it takes little time.
func containsEach(chosen, list []*Member, inOrder bool) []bool {
	out := make([]bool, len(list))
	if inOrder {
		for i, m := range list {
			if len(chosen) > 0 && chosen[0] == m {
				out[i], chosen = true, chosen[1:]
			}
		}
		return out
	}
	all := make(map[*Member]bool, len(chosen))
	for _, m := range chosen {
		all[m] = true
	}
	for i, m := range list {
		out[i] = all[m]
	}
	return out
}

func (d *draft) setPower(m *Member, want Power, cause Cause, reason string) {
	if m.Wanted == want {
		return
	}
	if i, isNew := d.creations[m]; isNew {
		d.steps[i].Power = want
		return
	}
	verb := Start
	if want == Hibernating {
		verb = Hibernate
	}
	d.addStep(verb, m.Name, cause, "%s", reason)
}

// completeCreations plans the creation of the clusters whose names were recorded by an earlier
// pass. They are within the limits since then. In a pool with an inventory, a name without a
// customization waits for one.
func (d *draft) completeCreations() {
	if d.Settings.Blocked != "" {
		return
	}
	for _, name := range d.Pending {
		if d.Unusable[name] != "" || d.Settings.Inventory && d.Reserved[name] == "" {
			continue
		}
		d.steps = append(d.steps, Step{
			Verb: CompleteCreation, Cluster: name, Customization: d.Reserved[name], Cause: NameRecorded,
			Reason: "its name is recorded, and the cluster does not exist yet",
		})
	}
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
		return ClaimWaiting, fmt.Sprintf("size is %d, %s waiting", d.Settings.Size, formatCount(n, "claim"))
	}
	return BelowSize, fmt.Sprintf("size is %d", d.Settings.Size)
}

// deleteSurplus deletes clusters beyond the wanted number, in the order of cheapestFirst. Those that nobody may delete
// do not keep others from being deleted.
func (d *draft) deleteSurplus() {
	surplus := d.existingCount() - d.wantedCount()
	if surplus <= 0 {
		return
	}
	for _, m := range d.surplusCandidates() {
		if surplus <= 0 {
			return
		}
		if d.skipProtected(m) {
			continue
		}
		if !d.deleteIfBudgetAllows(m, AboveSize, "the pool has more clusters than its size, %d", d.Settings.Size) {
			return
		}
		surplus--
	}
}

// surplusCandidates returns the members that may be deleted because the pool has too many, in the order in which they
// are. A member that is not reconciled comes last: somebody may be investigating it, and its deletion would wait.
func (d *draft) surplusCandidates() []*Member {
	var out []*Member
	for _, p := range []Phase{Installing, Standby, Assignable} {
		out = append(out, d.cheapestFirst(d.replaceableMembers(p))...)
	}
	return slices.Concat(
		slices.DeleteFunc(slices.Clone(out), (*Member).isUnreconciled),
		slices.DeleteFunc(out, func(m *Member) bool { return !m.isUnreconciled() }),
	)
}

// cheapestFirst orders members by what their deletion costs: struggling members first, members
// reserved for waiting claims last, and newest first among equals.
func (d *draft) cheapestFirst(members []*Member) []*Member {
	rank := func(m *Member) int {
		switch {
		case m.isStruggling(&d.Settings, d.Now) && m.Paused == "": // somebody may be investigating a paused cluster
			return 0
		case !d.reservedForClaims[m]:
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

// replaceableMembers returns the members of a phase that the pool may delete by its own choice: not
// those that it has adopted, which nothing could replace (ADR 0024).
func (d *draft) replaceableMembers(p Phase) []*Member {
	members := d.buckets[p]
	if !slices.ContainsFunc(members, func(m *Member) bool { return m.Adopted }) {
		return members
	}
	return slices.DeleteFunc(slices.Clone(members), func(m *Member) bool { return m.Adopted })
}

// replaceMember plans the deletion of a member that a new one replaces.
func (d *draft) replaceMember(m *Member, why Cause, reason string) {
	d.deleteIfBudgetAllows(m, why, "%s", reason)
}

// deleteIfBudgetAllows plans a deletion that the pool itself chooses, within the limit on
// concurrent work. It returns false if the deletion is not planned. Deleting a cluster that is
// being installed needs no budget: it frees what its deletion takes.
func (d *draft) deleteIfBudgetAllows(m *Member, cause Cause, reason string, args ...any) bool {
	if m.Unreadable != "" || d.skipProtected(m) {
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
	if m.Unreadable != "" || d.skipProtected(m) {
		return
	}
	if !d.Settings.Deleting && (d.isFrozen() || d.deletions <= 0 && !m.isBeingInstalled()) {
		d.deferredDeletions = append(d.deferredDeletions, m.Name)
		return
	}
	d.addDeletion(m, cause, reason, args...)
}

// skipProtected reports whether the hub refuses the deletion of m, and records that the plan leaves it out. A deletion
// that is refused must use up no limit: others would wait for it.
func (d *draft) skipProtected(m *Member) bool {
	if m.Protected {
		d.protectedMembers = append(d.protectedMembers, m.Name)
	}
	return m.Protected
}

func (d *draft) addDeletion(m *Member, cause Cause, reason string, args ...any) {
	d.deletions--
	if !m.isBeingInstalled() {
		d.budget--
	}
	d.plannedDeletions[m.Name] = true
	d.addStep(Delete, m.Name, cause, reason, args...)
}

// finishPlan adds the steps that depend on the others, sorts the steps, and reports on them.
func (d *draft) finishPlan() Plan {
	d.steps = slices.DeleteFunc(d.steps, func(s Step) bool { return (s.Verb == Start || s.Verb == Hibernate) && d.plannedDeletions[s.Cluster] })
	r := d.buildReport()
	next := d.RecheckAfter
	for _, delay := range []time.Duration{d.nextDeadline(), d.postponeSteps(r), d.planPositions(r.Queue), d.dropDelay(), d.stepsDelay()} {
		next = soonerDelay(next, delay)
	}
	slices.SortStableFunc(d.steps, func(a, b Step) int {
		return cmp.Compare(slices.Index(verbOrder, a.Verb), slices.Index(verbOrder, b.Verb))
	})
	return Plan{Steps: d.steps, Report: r, Next: next}
}
