package pool

import "time"

// MarkUntakenSteps changes m to what a pool with settings s sees: a spare that has not taken every step of the pool's
// bootstrap is not usable. A claim keeps the cluster that it has.
func (m *Member) MarkUntakenSteps(s *Settings) {
	if m.Claim != "" || !m.Running || m.StepsDone {
		return
	}
	required := s.Steps != "" && !s.GatesFromRecords
	if required || m.Steps != "" { // one that has begun is not as any version wants it
		m.Running, m.AwaitsSteps = false, true
		m.StepDeadline = s.extendDeadline(m.StepSince, m.StepDeadline)
	}
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
	return (s.Steps != "" || m.Steps != "") && !m.StepsDone && (!m.Installed || m.Wanted != Hibernating)
}

// stepOverdueTime returns when a step has taken so long that the next standby is started in addition; zero if none is
// in progress.
func (m *Member) stepOverdueTime() time.Time {
	if !m.AwaitsSteps || m.StepSince.IsZero() {
		return time.Time{}
	}
	return m.StepSince.Add(m.StepDeadline.Sub(m.StepSince) / 2)
}
