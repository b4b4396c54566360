package pool

import (
	"fmt"
	"time"
)

// machineFailureTimeout is how long machines may fail during a resume before the cluster counts as
// broken: enough for one or two retries.
const machineFailureTimeout = 30 * time.Second

// defaultSlowResume is the time that a resume may take before the next standby is started in
// addition, if the pool has no resume timeout. Hive's users measured resumes of three to five
// minutes.
const defaultSlowResume = 10 * time.Minute

// DefectCause returns the reason why m is broken; "" if it is not (enhancement: replace broken
// clusters).
func (m *Member) DefectCause(s *Settings, now time.Time) Cause {
	switch {
	case m.Displaced != "":
		return Displaced
	case m.Withdrawn != "":
		return Withdrawn
	case m.GaveUp:
		return InstallFailed
	case m.PowerTimedOut, m.MachinesFailed && hasElapsed(m.ResumingSince, machineFailureTimeout, now):
		return PowerFailed
	case m.bootstrapDefect(now) != "":
		return m.bootstrapDefect(now)
	case s.ResumeTimeout == 0 || !m.Installed:
		return ""
	case hasElapsed(m.ResumingSince, s.ResumeTimeout, now):
		return ResumeTimedOut
	case hasElapsed(m.UnreachableSince, s.ResumeTimeout, now):
		return Unreachable
	case hasElapsed(m.UnreadySince, s.ResumeTimeout, now):
		return Unready
	default:
		return ""
	}
}

// bootstrapDefect returns why m is broken although it runs: a step or a gate has taken too long; "" if none has.
func (m *Member) bootstrapDefect(now time.Time) Cause {
	switch {
	case m.AwaitsSteps && hasPassed(m.StepDeadline, now):
		return StepFailed
	case m.AwaitsGates && hasPassed(m.GatesDeadline, now) && !m.AwaitsTurn:
		return GateFailed
	default:
		return ""
	}
}

func (m *Member) isBroken(s *Settings, now time.Time) bool { return m.DefectCause(s, now) != "" }

// GiveUpTime returns when m will count as broken by the clock alone if nothing changes; zero if it
// will not, or if it already is broken.
func (m *Member) GiveUpTime(s *Settings, now time.Time) time.Time {
	var at time.Time
	if m.DefectCause(s, now) != "" {
		return at
	}
	consider := func(since time.Time, limit time.Duration) {
		if end := since.Add(limit); !since.IsZero() && (at.IsZero() || end.Before(at)) {
			at = end
		}
	}
	if m.MachinesFailed {
		consider(m.ResumingSince, machineFailureTimeout)
	}
	if m.AwaitsSteps {
		consider(m.StepDeadline, 0)
	}
	if m.AwaitsGates && !m.AwaitsTurn {
		consider(m.GatesDeadline, 0)
	}
	if s.ResumeTimeout > 0 && m.Installed {
		consider(m.ResumingSince, s.ResumeTimeout)
		consider(m.UnreachableSince, s.ResumeTimeout)
		consider(m.UnreadySince, s.ResumeTimeout)
	}
	return at
}

// isStruggling reports whether m is unlikely to run soon. A struggling member takes up no slot: the
// next member is started in addition to it.
func (m *Member) isStruggling(s *Settings, now time.Time) bool {
	if !m.Installed {
		return !m.isProgressing()
	}
	limit := s.slowResumeAfter()
	return m.Paused != "" && !m.Running || m.PowerFailed || m.MachinesFailed || hasPassed(m.gatesOverdueTime(), now) && !m.PredatesSteps || hasPassed(m.stepOverdueTime(), now) ||
		hasElapsed(m.ResumingSince, limit, now) || hasElapsed(m.UnreachableSince, limit, now) || hasElapsed(m.UnreadySince, limit, now)
}

func (s *Settings) slowResumeAfter() time.Duration {
	if s.ResumeTimeout > 0 {
		return s.ResumeTimeout / 2
	}
	return defaultSlowResume
}

// brokenReason explains the deletion of a broken member to people.
func (m *Member) brokenReason(cause Cause) string {
	switch {
	case m.Displaced != "":
		return m.Displaced
	case m.Withdrawn != "":
		return m.Withdrawn
	case cause == StepFailed && m.StepFailure != "":
		return fmt.Sprintf("it is broken: a step of the bootstrap was not done: %s", m.StepFailure)
	case cause == GateFailed && m.GatesFailure != "":
		return fmt.Sprintf("it is broken: %s", m.GatesFailure)
	default:
		return "it is broken"
	}
}

func (d *draft) replaceBroken() {
	for _, m := range d.replaceableMembers(Broken) {
		cause := m.DefectCause(&d.Settings, d.Now)
		reason := m.brokenReason(cause)
		d.replaceMember(m, cause, reason)
	}
}
