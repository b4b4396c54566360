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

// bootstrapOlder lets spares that predate the steps of the pool take them: one spare at first, and the next ones after it
// has taken every step, as many at a time as have. So steps that fail cost the pool one spare, and the others serve
// claims. It begins with those that serve nobody, because a gate fails. It comes after everything that creates, stops or
// deletes clusters.
func (d *draft) bootstrapOlder() {
	if s := &d.Settings; s.Steps == "" || s.StepsUnknown || s.GatesFromRecords || s.Blocked != "" {
		return
	}
	n := d.bootstrapLimit()
	for _, usable := range []bool{false, true} {
		for _, m := range d.unclaimedMembers(Standby, Assignable) {
			if n <= 0 {
				return
			}
			if m.PredatesSteps && m.Running == usable && (usable || m.AwaitsGates) && m.Paused == "" && !d.isChanged(m) {
				d.addStep(Bootstrap, m.Name, StepsAdded, "it was installed before the bootstrap of the pool had steps")
				n--
			}
		}
	}
}

// isChanged reports whether the plan has a step for m.
func (d *draft) isChanged(m *Member) bool {
	return slices.ContainsFunc(d.steps, func(s Step) bool { return s.Cluster == m.Name })
}

// bootstrapLimit returns how many spares that predate the steps of the pool may begin them now. Until a cluster has taken
// every step, nothing shows that they work: then one that is being installed, or that replaces a failed one, is the
// one that tries them.
func (d *draft) bootstrapLimit() int {
	steps := d.Settings.Steps
	done, taking, coming := 0, 0, len(d.Pending)+d.countPlanned(Create)+d.countPlanned(Delete)
	for _, m := range d.all {
		switch {
		case m.Deleting && m.DeletionError == "":
			coming++
		case m.StepsDone && m.Steps == steps:
			done++
		case !m.mayTakeSteps():
		case m.AwaitsSteps || m.Steps == steps:
			taking++
		case !m.isStruggling(&d.Settings, d.Now):
			coming++
		}
	}
	if done == 0 && taking+coming > 0 {
		return 0
	}
	return max(done, 1) - taking
}

// mayTakeSteps reports whether m takes the steps of the pool, or will when it runs, without a decision of the pool, and is replaced
// if they fail.
func (m *Member) mayTakeSteps() bool {
	return !m.Deleting && m.Claim == "" && !m.Adopted && m.Paused == "" && !m.PredatesSteps && !m.StepsDone && m.Wanted != Hibernating
}

// keepsForSteps reports whether m is not broken although a gate fails: it has not taken the steps of the pool as they are
// now, and the gates may check what these install.
func (m *Member) keepsForSteps(s *Settings) bool {
	return m.PredatesSteps || m.StepsDone && !m.Adopted && m.hasOtherSteps(s)
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
