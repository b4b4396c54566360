package pool

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

func (d *draft) buildReport() Report {
	r := Report{Count: map[Phase]int{}, Waiting: len(d.waiting), InDemand: d.isInDemand()}
	for p, members := range d.buckets {
		r.Count[p] = len(members)
		for _, m := range members {
			r.recordStaleness(m, p, &d.Settings)
			if d.Settings.Deleting {
				r.Left = append(r.Left, m.Name)
			}
		}
	}
	slices.Sort(r.Stale)
	slices.Sort(r.Unversioned)
	slices.Sort(r.Left)
	// A used-up inventory does not matter to a pool that needs no more of it.
	r.Full = d.room <= 0 && (d.roomLimit != ByInventory || d.missingCount() > 0)
	if r.Full {
		r.NoRoom, r.By = d.roomReason, d.roomLimit
	}
	if short := d.missingCount(); short > 0 && !d.Settings.Deleting {
		r.Short, r.Hindrance = short, d.shortageReason()
	}
	for _, m := range d.orphans {
		if r.Orphans == nil {
			r.Orphans = map[string]string{}
		}
		r.Orphans[m.Name] = m.Claim
	}
	t := d.countTrials()
	r.FailedSteps, r.StepsFail = t.failure, t.haveFailed(&d.Settings)
	r.Queue, r.UnservableSets = d.estimateWaits(), d.unservableSets
	r.Refused, r.Busy, r.Failing = slices.Sorted(slices.Values(d.deferredDeletions)), d.describeConcurrency(), d.failingDeletions()
	r.Progress = d.computeProgress(r)
	r.Words = d.summarizePlan(r)
	if r.Progress == Held {
		r.Blocked = strings.Join(d.listObstacles(r), "; ")
	}
	return r
}

// failingDeletions maps the members whose deletion makes no progress to the reason.
func (d *draft) failingDeletions() map[string]string {
	out := map[string]string{}
	for _, m := range d.buckets[Deleting] {
		if m.DeletionError != "" {
			out[m.Name] = m.DeletionError
		}
	}
	for _, name := range d.protectedMembers {
		out[name] = "it is protected: remove its annotation " + hivev1.AnnotationProtectedDelete
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// describeConcurrency describes what uses maxConcurrent up; "" if it is not used up.
func (d *draft) describeConcurrency() string {
	if d.isFrozen() || limitOrUnlimited(d.Settings.MaxConcurrent)-d.underWay > 0 {
		return ""
	}
	var installing, deleting []string
	for _, m := range d.all {
		switch {
		case m.Deleting || d.plannedDeletions[m.Name]:
			deleting = append(deleting, m.Name)
		case m.isBeingInstalled():
			installing = append(installing, m.Name)
		}
	}
	installing = append(installing, d.Pending...)
	var parts []string
	if len(installing) > 0 {
		parts = append(parts, "being installed: "+listFirst(installing))
	}
	if len(deleting) > 0 {
		parts = append(parts, "being deleted: "+listFirst(deleting))
	}
	return strings.Join(parts, "; ")
}

// listFirst returns the first three names, and how many more there are, as text.
func listFirst(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// computeProgress returns Advancing if anything is in progress that ends automatically, otherwise
// whether the pool is Settled or Held.
func (d *draft) computeProgress(r Report) Progress {
	underWay := d.hibernatingCount() + d.resumingCount() + d.awaitingCount((*Member).awaitsBootstrap) - len(d.hangingResumes())
	for _, m := range d.buckets[Deleting] {
		if m.DeletionError == "" {
			underWay++
		}
	}
	if d.RefusedWrite == "" {
		underWay += d.countPlanned(Create) + d.countPlanned(Delete)
	}
	if d.Settings.Blocked == "" && d.RefusedWrite == "" && !d.Settings.Deleting {
		underWay += len(d.Pending)
	}
	for _, m := range d.buckets[Installing] {
		if m.RequirementsUnmet == "" && m.Paused == "" {
			underWay++
		}
	}
	switch {
	case underWay > 0:
		return Advancing
	case len(d.listObstacles(r)) > 0:
		return Held
	case d.Settings.Deleting:
		return Advancing
	default:
		return Settled
	}
}

// listObstacles describes what the pool waits for, and what removes each obstacle.
func (d *draft) listObstacles(r Report) []string {
	var out []string
	if held := d.claimedClusters(); len(held) > 0 {
		out = append(out, "still claimed: "+listFirst(held)+": release the claims")
	}
	for _, name := range slices.Sorted(maps.Keys(r.Orphans)) {
		out = append(out, fmt.Sprintf("%s is deleted ten minutes after its claim %s was found missing: create the claim again to keep it", name, r.Orphans[name]))
	}
	if r.Short > 0 {
		out = append(out, fmt.Sprintf("%d short: %s", r.Short, r.Hindrance))
	}
	out = append(out, d.refusedWrites()...)
	out = append(out, d.unmetRequirements()...)
	if n := len(d.Pending); n > 0 && d.Settings.Blocked != "" && r.Short == 0 && !d.Settings.Deleting {
		out = append(out, fmt.Sprintf("%d to be created: %s", n, d.Settings.Blocked))
	}
	out = append(out, d.pausedObstacles()...)
	if n := len(r.Refused); n > 0 {
		out = append(out, fmt.Sprintf("postponed deletions: %s: %s", listFirst(r.Refused), d.concurrencyReason()))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Failing)) {
		out = append(out, fmt.Sprintf("the deletion of %s makes no progress: %s", name, strings.TrimRight(r.Failing[name], ".")))
		break // one is reported here; the others are in DeletionPossible and in the clusters' own conditions
	}
	if hanging := d.hangingResumes(); len(hanging) > 0 {
		out = append(out, formatMembers(hanging, "does not resume", "do not resume")+": see why with hotspare cluster describe "+hanging[0]+
			"; hotspare replaces such clusters if you delete them, or set spec.powerstateTransitionToRunningTimeout")
	}
	if failing := d.failingStops(); len(failing) > 0 {
		out = append(out, formatMembers(failing, "does not stop", "do not stop")+": see why with hotspare cluster describe "+failing[0])
	}
	if stale := len(r.Stale) + len(r.Unversioned); stale > 0 && d.Settings.Blocked != "" && r.Short == 0 {
		out = append(out, fmt.Sprintf("%d stale: %s", stale, d.Settings.Blocked))
	}
	return append(out, d.unreadableObstacles()...)
}

// refusedWrites describes what the hub refuses, and who can change that.
func (d *draft) refusedWrites() []string {
	if d.RefusedWrite == "" || d.countPlanned(Create)+d.countPlanned(CompleteCreation)+d.countPlanned(Delete) == 0 {
		return nil // the pool no longer needs it
	}
	return []string{fmt.Sprintf("the hub refuses what the pool needs: %s: its administrator can change the policy, webhook or right that refuses it",
		strings.TrimRight(d.RefusedWrite, "."))}
}

// pausedObstacles names the clusters that users have paused, and how to resume them.
func (d *draft) pausedObstacles() []string {
	var out []string
	for _, annotation := range []string{hivev1.AnnotationReconcilePause, hivev1.AnnotationPowerPause} {
		if paused := d.pausedMembers(annotation); len(paused) > 0 {
			out = append(out, fmt.Sprintf("%s is paused: remove its annotation %s", listFirst(paused), annotation))
		}
	}
	return out
}

// claimedClusters names the clusters that block the deletion of the pool because claims have them.
func (d *draft) claimedClusters() []string {
	var out []string
	if !d.Settings.Deleting {
		return nil
	}
	for _, m := range d.buckets[Claimed] {
		if c, exists := d.claims[m.Claim]; exists && !c.Deleting && !d.plannedDeletions[m.Name] {
			out = append(out, m.Name)
		}
	}
	return out
}

// hangingResumes names the members that have tried to resume for a long time, and that no timeout
// stops.
func (d *draft) hangingResumes() []string {
	var out []string
	for _, m := range d.buckets[Standby] {
		isResuming := m.Paused == "" && m.isComingUp() && !m.awaitsBootstrap() && !m.MachinesFailed
		if d.Settings.ResumeTimeout == 0 && isResuming && m.isStruggling(&d.Settings, d.Now) && !d.plannedDeletions[m.Name] {
			out = append(out, m.Name)
		}
	}
	return out
}

// failingStops names the members that should hibernate, and that hotspare fails to stop. They may run, and cost
// money.
func (d *draft) failingStops() []string {
	var out []string
	for _, m := range d.unclaimedMembers(Standby, Assignable) {
		if m.PowerFailed && m.Wanted == Hibernating && m.Paused == "" && !d.plannedDeletions[m.Name] {
			out = append(out, m.Name)
		}
	}
	return out
}

// formatMembers returns the first names with a predicate in singular or plural.
func formatMembers(names []string, singular, plural string) string {
	if len(names) == 1 {
		return names[0] + " " + singular
	}
	return listFirst(names) + " " + plural
}

// pausedMembers names the members that would be installed or resumed if they were not paused by
// that annotation.
func (d *draft) pausedMembers(annotation string) []string {
	var out []string
	for _, m := range d.unclaimedMembers(Installing, Standby) {
		if m.Paused == annotation && !d.plannedDeletions[m.Name] && (!m.Installed || m.Wanted == Running) {
			out = append(out, m.Name)
		}
	}
	return out
}

// unmetRequirements describes the installs that cannot begin.
func (d *draft) unmetRequirements() []string {
	var stuck []*Member
	for _, m := range d.buckets[Installing] {
		if m.RequirementsUnmet != "" && m.Paused == "" && !d.plannedDeletions[m.Name] {
			stuck = append(stuck, m)
		}
	}
	if len(stuck) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s cannot begin: %s: %s", formatCount(len(stuck), "install"), stuck[0].Name, strings.TrimRight(stuck[0].RequirementsUnmet, "."))}
}

func (r *Report) recordStaleness(m *Member, p Phase, s *Settings) {
	switch p {
	case Installing, Standby, Assignable, Broken:
	default:
		return
	}
	switch {
	case m.Adopted:
	case m.Version == "":
		r.Unversioned = append(r.Unversioned, m.Name)
	case m.isStale(s) || m.PredatesSteps:
		r.Stale = append(r.Stale, m.Name)
	}
}

// describeFailedSteps says why spares that predate the steps of the pool do not take them.
func (d *draft) describeFailedSteps(r Report) []string {
	waits := func(m *Member) bool { return m.PredatesSteps }
	if !r.StepsFail || !slices.ContainsFunc(d.unclaimedMembers(Standby, Assignable), waits) {
		return nil
	}
	return []string{"the steps of the bootstrap have failed, and older spares wait until a new cluster has taken them: correct the ClusterBootstrap"}
}

// summarizePlan returns one sentence: the activity of the pool, and what hinders it.
func (d *draft) summarizePlan(r Report) string {
	parts := []string{d.describeActivity(r)}
	if n := len(d.waiting); n > 0 {
		parts = append(parts, formatCount(n, "claim")+" waiting")
	}
	parts = slices.Concat(parts, d.describeKept(), d.describeUnservableSets(), d.describeFailedSteps(r))
	if d.Settings.RunningCount > d.Settings.Size {
		parts = append(parts, fmt.Sprintf("runningCount %d is above size: at most %d will run", d.Settings.RunningCount, d.Settings.Size))
	}
	return strings.Join(append(parts, d.listObstacles(r)...), "; ")
}

// unreadableObstacles describes the first unreadable member, and how many more there are.
func (d *draft) unreadableObstacles() []string {
	var first *Member
	more := -1
	for _, m := range d.all {
		if m.Unreadable == "" {
			continue
		}
		if first == nil {
			first = m
		}
		more++
	}
	if first == nil {
		return nil
	}
	words := fmt.Sprintf("ClusterDeployment %s is not reconciled until it can be read: %s", first.Name, first.Unreadable)
	if more > 0 {
		words += fmt.Sprintf("; the same is true of %d more", more)
	}
	return []string{words}
}

// missingCount returns the number of wanted clusters beyond those that exist or are about to be
// created.
func (d *draft) missingCount() int {
	return d.wantedCount() - d.existingCount() - d.countPlanned(Create)
}

func (d *draft) shortageReason() string {
	switch {
	case d.Settings.Blocked != "":
		return d.Settings.Blocked
	case d.room <= 0:
		return d.roomReason
	case d.countPlanned(Create) == maxCreationsPerPlan:
		return fmt.Sprintf("%d are created at a time", maxCreationsPerPlan)
	default:
		return d.concurrencyReason()
	}
}

// concurrencyReason describes the value of maxConcurrent, and what uses it up.
func (d *draft) concurrencyReason() string {
	if d.isFrozen() {
		return "maxConcurrent is 0: raise it"
	}
	words := fmt.Sprintf("maxConcurrent is %d", limitOrUnlimited(d.Settings.MaxConcurrent))
	if busy := d.describeConcurrency(); busy != "" {
		words += " (" + busy + ")"
	}
	return words
}

func (d *draft) describeActivity(r Report) string {
	if d.Settings.Deleting {
		return "deleting the pool"
	}
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{
		{len(d.buckets[Installing]) + len(d.Pending) + d.countPlanned(Create), "installing"},
		{d.countPlanned(Delete) + len(d.buckets[Deleting]), "deleting"},
		{d.resumingCount(), "resuming"},
		{d.awaitingCount(func(m *Member) bool { return m.AwaitsSteps }), "bootstrapping"},
		{d.awaitingCount(func(m *Member) bool { return m.AwaitsGates }), "checking gates of"},
		{d.hibernatingCount(), "hibernating"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", p.what, p.n))
		}
	}
	switch {
	case r.Progress == Held:
		return "blocked"
	case len(parts) > 0:
		return strings.Join(parts, ", ")
	default:
		return "settled"
	}
}

// hibernatingCount returns the number of installed members that this plan hibernates.
func (d *draft) hibernatingCount() int { return d.countPlannedForInstalled(Hibernate) }

// resumingCount returns the number of installed members that resume, or that this plan starts.
func (d *draft) resumingCount() int {
	n := d.countPlannedForInstalled(Start)
	for _, m := range d.buckets[Standby] {
		if m.Wanted == Running && m.Paused == "" && !m.awaitsBootstrap() {
			n++
		}
	}
	return n
}

// awaitingCount returns the number of members that run and are not usable yet, for the reason that is tested.
func (d *draft) awaitingCount(awaits func(*Member) bool) int {
	n := 0
	for _, m := range d.buckets[Standby] {
		if awaits(m) && !d.plannedDeletions[m.Name] {
			n++
		}
	}
	return n
}

func (d *draft) countPlannedForInstalled(v Verb) int {
	installing := map[string]bool{}
	for _, m := range d.buckets[Installing] {
		installing[m.Name] = true
	}
	n := 0
	for _, s := range d.steps {
		if s.Verb == v && !installing[s.Cluster] {
			n++
		}
	}
	return n
}

func (d *draft) countPlanned(v Verb) int { return Plan{Steps: d.steps}.CountSteps(v) }
