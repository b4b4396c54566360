package pool

import (
	"slices"
	"time"
)

// isStale reports whether a new cluster of the pool would differ from m. An adopted cluster is not made
// from the pool's spec.
func (m *Member) isStale(s *Settings) bool {
	return !m.Adopted && (m.Version != s.Version || m.hasOldRecipe(s) || m.hasOtherSteps(s) || m.Outdated != "" || m.Withdrawn != "")
}

// isStaleBySteps reports whether m is stale for no other reason than its steps.
func (m *Member) isStaleBySteps(s *Settings) bool {
	return m.hasOtherSteps(s) && m.Version == s.Version && !m.hasOldRecipe(s) && m.Outdated == "" && m.Withdrawn == ""
}

// hasOldRecipe reports whether m was created with another version of its recipe, as far as both are
// known.
func (m *Member) hasOldRecipe(s *Settings) bool {
	return m.Recipe != "" && s.Recipe != "" && m.Recipe != s.Recipe
}

// hasOtherSteps reports whether m has begun other steps than those of the pool, or sleeps and has begun none. A
// cluster that is awake and has begun none takes those of the pool.
func (m *Member) hasOtherSteps(s *Settings) bool {
	switch {
	case s.StepsUnknown || s.GatesFromRecords:
		return false
	case m.Steps == "":
		return s.Steps != "" && m.Installed && m.Wanted == Hibernating
	default:
		return m.Steps != s.Steps
	}
}

// StaleReason returns why a stale member is replaced; "" if m is not stale. poolChanged is the reason if neither its
// customization nor its recipe is outdated.
func (m *Member) StaleReason(s *Settings, poolChanged string) string {
	switch {
	case !m.isStale(s):
		return ""
	case m.Outdated != "":
		return m.Outdated
	case m.Version == s.Version && m.hasOldRecipe(s):
		return "its recipe, ClusterClass or template has changed"
	case m.Version == s.Version && m.hasOtherSteps(s):
		return "it has not taken the steps of the pool's bootstrap as they are now"
	default:
		return poolChanged
	}
}

// canNeverFinish reports whether m has begun steps that it cannot take to their end, because the bootstrap of the
// pool has changed. It serves nobody, like a stale install.
func (m *Member) canNeverFinish(s *Settings) bool {
	return !m.Adopted && m.Installed && m.Steps != "" && !m.StepsDone && m.hasOtherSteps(s)
}

// couldSucceedNow reports whether the install of m makes no progress and a new one would use other
// objects: a user may have fixed the Secret that it fails for.
func (m *Member) couldSucceedNow(s *Settings) bool {
	return m.isBeingInstalled() && !m.isProgressing() && m.Paused == "" && m.Sources != "" && s.Sources != "" && m.Sources != s.Sources
}

// replaceStale deletes stale clusters: first installs, then, in a settled pool on which no claim
// waits, one installed cluster at a time.
func (d *draft) replaceStale() {
	if d.Settings.Blocked != "" {
		return
	}
	d.replaceStaleInstalls()
	d.replaceUnfinished()
	if len(d.waiting) > 0 || !d.hasEnoughClusters() {
		return
	}
	if len(d.buckets[Installing])+len(d.buckets[Deleting])+len(d.Pending)+len(d.replaceableMembers(Broken)) > 0 {
		return
	}
	if d.countTakingSteps()+d.countPlanned(Bootstrap) > 0 {
		return // it shows whether clusters with the new steps work at all
	}
	t := d.countTrials()
	for _, m := range d.unclaimedMembers(Standby, Assignable) {
		if m.isStaleBySteps(&d.Settings) && (t.areUndecided() || t.haveFailed(&d.Settings)) {
			continue
		}
		reason := m.StaleReason(&d.Settings, "it was created from an older version of the pool")
		if reason != "" && !d.skipProtected(m) {
			d.replaceMember(m, Stale, reason)
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
		if d.plannedDeletions[m.Name] || d.reservedForClaims[m] && m.isProgressing() {
			continue
		}
		reason := m.StaleReason(&d.Settings, "it is being created from an older version of the pool")
		if reason == "" && m.couldSucceedNow(&d.Settings) {
			reason = "its install does not succeed, and a Secret or customization that the pool refers to has changed since it started"
		}
		if reason != "" {
			d.replaceMember(m, Stale, reason)
		}
	}
}

// replaceUnfinished deletes the clusters that can never finish their steps, all at once: none of them is usable.
func (d *draft) replaceUnfinished() {
	for _, m := range d.unclaimedMembers(Standby, Assignable) {
		if !d.plannedDeletions[m.Name] && m.canNeverFinish(&d.Settings) {
			d.replaceMember(m, Stale, "the bootstrap of the pool has changed before it had taken every step")
		}
	}
}

// countTakingSteps returns the number of spares that take steps and may still succeed.
func (d *draft) countTakingSteps() int {
	n := 0
	for _, m := range d.buckets[Standby] {
		if m.AwaitsSteps && m.Paused == "" && !m.Adopted && !d.plannedDeletions[m.Name] {
			n++
		}
	}
	return n
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

// bootstrapOlder lets spares that predate the steps of the pool take them: one spare at first, and the next ones after a
// cluster has taken every step and passed the gates, as many at a time as have. After steps that have failed, only new
// clusters try the same version. So such steps cost the pool one spare, and the others serve claims. It begins with
// those that serve nobody, because a gate fails. It comes after everything that creates, stops or deletes clusters.
func (d *draft) bootstrapOlder() {
	if s := &d.Settings; s.Steps == "" || s.StepsUnknown || s.GatesFromRecords || s.Blocked != "" {
		return
	}
	n := d.countTrials().countAllowed(&d.Settings)
	for _, usable := range []bool{false, true} {
		for _, m := range d.unclaimedMembers(Standby, Assignable) {
			if n <= 0 {
				return
			}
			if m.Running == usable && d.mayBootstrap(m) {
				d.addStep(Bootstrap, m.Name, StepsAdded, "it was installed before the bootstrap of the pool had steps")
				n--
			}
		}
	}
}

// mayBootstrap reports whether m predates the steps, runs, and is needed for nothing else.
func (d *draft) mayBootstrap(m *Member) bool {
	isKept := m.Running && d.reservedForClaims[m]
	return m.AwaitsTurn && (m.Running || m.AwaitsGates) && m.Paused == "" && !isKept && !d.isChanged(m)
}

// isChanged reports whether the plan has a step for m.
func (d *draft) isChanged(m *Member) bool {
	return slices.ContainsFunc(d.steps, func(s Step) bool { return s.Cluster == m.Name })
}

// FailedSteps is a failure of steps: a cluster that had begun a version did not complete it.
type FailedSteps struct {
	Version string
	// At is when the version failed last, in whole seconds.
	At time.Time
}

// trials counts the clusters that show whether the steps of the pool work.
type trials struct {
	// done is the number of clusters that have completed the steps since the pool has had steps, and since they failed last.
	// taking is the number of spares that have begun and not completed them, or steps that the pool no longer has, and coming
	// that of those that begin when they run.
	done, taking, coming int
	// failure is the last failure of the steps.
	failure FailedSteps
}

func (d *draft) countTrials() trials {
	s := &d.Settings
	t := trials{coming: len(d.Pending) + d.countPlanned(Create), failure: s.FailedSteps}
	if s.Steps == "" || s.StepsUnknown {
		return t
	}
	if t.failure.Version != s.Steps {
		t.failure = FailedSteps{}
	}
	for _, m := range d.all {
		if at := m.stepsFailedAt(s, d.Now); at.After(t.failure.At) {
			t.failure = FailedSteps{s.Steps, at}
		}
	}
	for _, m := range d.all {
		t.countMember(m, s, d.Now)
	}
	return t
}

func (t *trials) countMember(m *Member, s *Settings, now time.Time) {
	switch {
	case m.Deleting || m.Unreadable != "":
	case m.hasCompletedSteps(s, now):
		if !m.StepsDoneAt.Before(s.StepsSince) && m.StepsDoneAt.After(t.failure.At) {
			t.done++
		}
	case m.Claim != "" || m.Adopted || m.StepsDone && m.Wanted == Hibernating:
	case m.Steps != "" && (!m.StepsDone || m.Steps == s.Steps):
		t.taking++
	case m.willBeginSteps(s, now):
		t.coming++
	}
}

// hasCompletedSteps reports whether m has taken every step of the pool, and has passed the gates after them.
func (m *Member) hasCompletedSteps(s *Settings, now time.Time) bool {
	return m.StepsDone && m.Steps == s.Steps && (m.Claim != "" || !m.isBroken(s, now) && (s.Gates == "" || m.GatesEverPassed))
}

// stepsFailedAt returns when the steps of the pool failed in m; zero if they did not. A cluster that became unreachable, or did
// not come up again, before it had completed them counts, too: the steps may be why.
func (m *Member) stepsFailedAt(s *Settings, now time.Time) time.Time {
	if m.Deleting || m.Claim != "" || m.Adopted || m.Steps != s.Steps || m.StepsDone && (s.Gates == "" || m.GatesEverPassed) {
		return time.Time{}
	}
	switch m.DefectCause(s, now) {
	case StepFailed:
		return m.StepDeadline
	case GateFailed:
		return m.GatesDeadline
	case PowerFailed, ResumeTimedOut, Unreachable, Unready:
		if s.FailedSteps.Version == s.Steps && !s.FailedSteps.At.Before(m.Created) {
			return s.FailedSteps.At // it is recorded
		}
		return now.Truncate(time.Second)
	default:
		return time.Time{}
	}
}

// willBeginSteps reports whether m begins the steps of the pool as soon as it runs, and is likely to run.
func (m *Member) willBeginSteps(s *Settings, now time.Time) bool {
	return m.Steps == "" && !m.PredatesSteps && m.Paused == "" && !(m.Installed && m.Wanted == Hibernating) && !m.isStruggling(s, now) && !m.isBroken(s, now)
}

// countAllowed returns how many spares that predate the steps of the pool may begin them now.
func (t trials) countAllowed(s *Settings) int {
	switch {
	case t.done > 0:
		return t.done - t.taking
	case t.areUndecided() || t.haveFailed(s):
		return 0
	default:
		return 1
	}
}

// areUndecided reports whether clusters try the steps, and none has completed them.
func (t trials) areUndecided() bool { return t.done == 0 && t.taking+t.coming > 0 }

// haveFailed reports whether the steps of the pool have failed, and no cluster has completed them since.
func (t trials) haveFailed(s *Settings) bool {
	return s.Steps != "" && t.failure.Version == s.Steps && t.done == 0
}
