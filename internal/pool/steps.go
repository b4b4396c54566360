package pool

import (
	"slices"
	"time"
)

// MarkUntakenSteps changes m to what a pool with settings s sees: a spare that has not taken every step of the pool's
// bootstrap is not usable, unless it predates them. A claim keeps the cluster that it has.
func (m *Member) MarkUntakenSteps(s *Settings) {
	if m.Claim != "" || m.StepsDone {
		return
	}
	required := s.Steps != "" && !s.GatesFromRecords
	if m.PredatesSteps = required && m.IsOlderThanSteps(s.StepsSince); m.PredatesSteps || !m.Running {
		return
	}
	if required || m.Steps != "" { // one that has begun is not as any version wants it
		m.Running, m.AwaitsSteps = false, true
		m.StepDeadline = s.extendDeadline(m.StepSince, m.StepDeadline)
	}
}

// IsOlderThanSteps reports whether the pool has installed m before it had steps, at a time, and m has begun none. A cluster
// that was adopted takes steps at once: it is never replaced, so a step that fails costs nothing that a correction of the
// step does not bring back.
func (m *Member) IsOlderThanSteps(since time.Time) bool {
	return m.Steps == "" && m.Installed && !m.Adopted && m.Version != "" &&
		!since.IsZero() && !m.InstalledAt.IsZero() && m.InstalledAt.Before(since)
}

// bootstrapOlder lets spares that predate the steps of the pool take them: one spare at first, and the next ones after a
// cluster has taken every step and passed the gates, as many at a time as have. After steps that have failed, only new
// clusters try the same version. So such steps cost the pool one spare, and the others serve claims. It begins with
// those that serve nobody, because a gate fails. It comes after everything that creates, stops or deletes clusters.
func (d *draft) bootstrapOlder() {
	if s := &d.Settings; s.Steps == "" || s.StepsUnknown || s.GatesFromRecords || s.Blocked != "" {
		return
	}
	n := d.countTrials().limit(&d.Settings)
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
	isKept := m.Running && d.reservedForClaims[m.Name]
	return m.PredatesSteps && (m.Running || m.AwaitsGates) && m.Paused == "" && !m.isStale(&d.Settings) && !isKept && !d.isChanged(m)
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
		t.add(m, s, d.Now)
	}
	return t
}

func (t *trials) add(m *Member, s *Settings, now time.Time) {
	switch {
	case m.Deleting || m.Unreadable != "":
	case m.hasCompletedSteps(s, now):
		if !m.StepsDoneAt.Before(s.StepsSince) && m.StepsDoneAt.After(t.failure.At) {
			t.done++
		}
	case m.Claim != "" || m.Adopted || m.StepsDone && m.Wanted == Hibernating:
	case m.Steps != "" && (!m.StepsDone || m.Steps == s.Steps):
		t.taking++
	case m.begins(s, now):
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

// begins reports whether m begins the steps of the pool as soon as it runs, and is likely to run.
func (m *Member) begins(s *Settings, now time.Time) bool {
	return m.Steps == "" && !m.PredatesSteps && m.Paused == "" && !(m.Installed && m.Wanted == Hibernating) && !m.isStruggling(s, now) && !m.isBroken(s, now)
}

// limit returns how many spares that predate the steps of the pool may begin them now.
func (t trials) limit(s *Settings) int {
	switch {
	case t.done > 0:
		return t.done - t.taking
	case t.areUndecided() || t.fail(s):
		return 0
	default:
		return 1
	}
}

// areUndecided reports whether clusters try the steps, and none has completed them.
func (t trials) areUndecided() bool { return t.done == 0 && t.taking+t.coming > 0 }

// fail reports whether the steps of the pool have failed, and no cluster has completed them since.
func (t trials) fail(s *Settings) bool {
	return s.Steps != "" && t.failure.Version == s.Steps && t.done == 0
}

// keepsForSteps reports whether m is not broken although a gate fails: it takes the steps of the pool later, and the gates may
// check what these install.
func (m *Member) keepsForSteps(s *Settings) bool { return m.PredatesSteps && !m.isStale(s) }

// stepsRecordDelay is the delay of the pass after one that has recorded since when the pool has steps. A hub whose CRD has no
// such field never shows it.
const stepsRecordDelay = time.Second

// stepsDelay returns the delay before the next pass if the time since when the pool has steps is not recorded yet; 0 if it
// is. This pass records it, and nothing else causes another one.
func (d *draft) stepsDelay() time.Duration {
	if s := &d.Settings; s.Steps == "" || s.GatesFromRecords || s.Deleting || !s.StepsSince.IsZero() {
		return 0
	}
	return stepsRecordDelay
}

// restartGrace is the time that steps and gates have after a start of the process, as far as they had as much: a Job may
// have ended, and a gate may pass again, while the hub was away.
const restartGrace = 2 * time.Minute

// extendDeadline returns the deadline of what began at a time, or a later one if it passed before this process could
// look.
func (s *Settings) extendDeadline(since, deadline time.Time) time.Time {
	if deadline.IsZero() || s.WatchedSince.IsZero() {
		return deadline
	}
	if earliest := s.WatchedSince.Add(min(restartGrace, deadline.Sub(since))); earliest.After(deadline) {
		return earliest
	}
	return deadline
}

// awaitsBootstrap reports whether m runs and is not usable yet.
func (m *Member) awaitsBootstrap() bool { return m.AwaitsSteps || m.AwaitsGates }

// needsSteps reports whether m is awake and has steps to take: it must run until every step is done. A cluster that
// sleeps already is not woken.
func (m *Member) needsSteps(s *Settings) bool {
	return (s.Steps != "" || m.Steps != "") && !m.StepsDone && !m.PredatesSteps && (!m.Installed || m.Wanted != Hibernating)
}

// stepOverdueTime returns when a step has taken so long that the next standby is started in addition; zero if none is
// in progress.
func (m *Member) stepOverdueTime() time.Time {
	if !m.AwaitsSteps || m.StepSince.IsZero() {
		return time.Time{}
	}
	return m.StepSince.Add(m.StepDeadline.Sub(m.StepSince) / 2)
}
