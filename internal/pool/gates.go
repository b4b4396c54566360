package pool

import "time"

// MarkUnpassedGates changes m to what a pool with settings s sees: a spare that runs and has not passed the gates of the
// pool in its current run is not usable. A claim keeps the cluster that it has.
func (m *Member) MarkUnpassedGates(s *Settings) {
	if m.Claim != "" || !m.Running {
		return
	}
	missing := s.Gates != "" && m.GatesPassed != s.Gates
	if s.GatesFromRecords {
		missing = m.HasGates && m.GatesPassed == ""
	}
	if !missing {
		return
	}
	m.Running, m.AwaitsGates = false, true
	if !s.GatesFromRecords && m.GatesFailing != s.Gates {
		m.GatesFailingSince, m.GatesDeadline, m.GatesFailure = time.Time{}, time.Time{}, "" // of other gates
	}
	m.GatesDeadline = s.extendDeadline(m.GatesFailingSince, m.GatesDeadline)
}

// needsFirstCheck reports whether m has never passed the gates of the pool and is awake: it must run until it
// has, so that no claim wakes a cluster that was never good. A cluster that sleeps already is not woken.
func (m *Member) needsFirstCheck(s *Settings) bool {
	gated := s.Gates != "" || s.GatesFromRecords && m.HasGates
	return gated && !m.GatesEverPassed && !m.PredatesSteps && (!m.Installed || m.Wanted != Hibernating)
}

// gatesOverdueTime returns when a gate has failed for so long that the next standby is started in addition; zero if
// no gate fails.
func (m *Member) gatesOverdueTime() time.Time {
	if !m.AwaitsGates || m.GatesFailingSince.IsZero() {
		return time.Time{}
	}
	return m.GatesFailingSince.Add(m.GatesDeadline.Sub(m.GatesFailingSince) / 2)
}
