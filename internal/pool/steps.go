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
	return m.PredatesSteps && (m.Running || m.AwaitsGates) && m.Paused == "" && !m.isStale(&d.Settings) && !d.reservedForClaims[m.Name] && !d.isChanged(m)
}

// isChanged reports whether the plan has a step for m.
func (d *draft) isChanged(m *Member) bool {
	return slices.ContainsFunc(d.steps, func(s Step) bool { return s.Cluster == m.Name })
}

// trials counts the clusters that show whether the steps of the pool work.
type trials struct {
	// done is the number of clusters that have taken every step and passed the gates, taking the number of those that
	// have begun, and coming the number of those that will when they run.
	done, taking, coming int
	// failed is set if a cluster that has begun is broken.
	failed bool
}

func (d *draft) countTrials() trials {
	t := trials{coming: len(d.Pending) + d.countPlanned(Create)}
	if d.Settings.Steps == "" {
		return t
	}
	for _, m := range d.all {
		t.add(m, &d.Settings, d.Now)
	}
	return t
}

func (t *trials) add(m *Member, s *Settings, now time.Time) {
	begun, broken := m.Steps == s.Steps, m.isBroken(s, now)
	switch {
	case m.hasCompletedSteps(s):
		t.done++
	case !m.mayTakeSteps(s):
	case begun && broken:
		t.failed = true
		if !m.Protected {
			t.taking++ // until it is deleted
		}
	case begun && (m.awaitsBootstrap() || !m.isStruggling(s, now)):
		t.taking++
	case !begun && !broken && !m.isStruggling(s, now):
		t.coming++
	}
}

// hasCompletedSteps reports whether m has taken every step of the pool, and has passed the gates after them.
func (m *Member) hasCompletedSteps(s *Settings) bool {
	return !m.Deleting && m.StepsDone && m.Steps == s.Steps && (m.Claim != "" || !m.AwaitsGates)
}

// mayTakeSteps reports whether m takes the steps of the pool, or will when it runs, without a decision of the pool.
func (m *Member) mayTakeSteps(s *Settings) bool {
	isSpare := !m.Deleting && m.Claim == "" && m.Unreadable == "" && !m.Adopted && m.Paused == ""
	sleeps := m.Installed && m.Wanted == Hibernating
	return isSpare && !sleeps && !m.PredatesSteps && (m.Steps == "" || m.Steps == s.Steps)
}

// limit returns how many spares that predate the steps of the pool may begin them now.
func (t trials) limit(s *Settings) int {
	switch {
	case t.done > 0:
		return t.done - t.taking
	case t.taking+t.coming > 0 || t.failedSteps(s) != "":
		return 0
	default:
		return 1
	}
}

// failedSteps returns the steps of the pool if they have failed, and no cluster has taken them.
func (t trials) failedSteps(s *Settings) string {
	if s.Steps != "" && t.done == 0 && (t.failed || s.FailedSteps == s.Steps) {
		return s.Steps
	}
	return ""
}

// keepsForSteps reports whether m is not broken although a gate fails: it takes the steps of the pool later, and the gates may
// check what these install.
func (m *Member) keepsForSteps(s *Settings) bool { return m.PredatesSteps && !m.isStale(s) }

// stepsDelay returns the delay before the next pass if the time since when the pool has steps is not recorded yet; 0 if it
// is. This pass records it, and nothing else causes another one.
func (d *draft) stepsDelay() time.Duration {
	if s := &d.Settings; s.Steps == "" || s.GatesFromRecords || s.Deleting || !s.StepsSince.IsZero() {
		return 0
	}
	return nextStepDelay
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
