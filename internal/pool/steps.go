package pool

import "time"

// MarkUntakenSteps changes m to what a pool with settings s sees: a spare that has not taken every step of the pool's
// bootstrap is not usable, unless it predates them. A claim keeps the cluster that it has.
func (m *Member) MarkUntakenSteps(s *Settings) {
	if m.Claim != "" || m.StepsDone {
		return
	}
	required := s.Steps != "" && !s.GatesFromRecords
	m.PredatesSteps = required && m.IsOlderThanSteps(s.StepsSince)
	m.AwaitsTurn = m.PredatesSteps && !m.isStale(s)
	if m.PredatesSteps || !m.Running {
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
