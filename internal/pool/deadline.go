package pool

import (
	"slices"
	"time"
)

// sourcesRecheck is how often the pool reads the objects that clusters are made from while an
// install makes no progress: Secrets are not watched.
const sourcesRecheck = 30 * time.Second

// nextDeadline returns the time until the first member becomes overdue or broken by the clock
// alone; 0 if none will.
func (d *draft) nextDeadline() time.Duration {
	var soonest time.Duration
	for _, m := range d.unclaimedMembers(Standby, Assignable) {
		for _, at := range m.timeoutDeadlines(d.Settings) {
			if wait := at.Sub(d.Now); wait > 0 && (soonest == 0 || wait < soonest) {
				soonest = wait
			}
		}
	}
	if slices.ContainsFunc(d.buckets[Installing], func(m *Member) bool { return !m.isProgressing() }) && (soonest == 0 || soonest > sourcesRecheck) {
		soonest = sourcesRecheck
	}
	for _, m := range d.orphans {
		wait := missingClaimDelay
		if !m.ClaimMissingSince.IsZero() {
			wait = m.ClaimMissingSince.Add(missingClaimDelay).Sub(d.Now)
		}
		if soonest == 0 || wait < soonest {
			soonest = wait
		}
	}
	return soonest
}

func (m Member) timeoutDeadlines(s Settings) []time.Time {
	var out []time.Time
	for _, since := range []time.Time{m.ResumingSince, m.UnreachableSince, m.UnreadySince} {
		if since.IsZero() {
			continue
		}
		out = append(out, since.Add(s.slowResumeAfter()))
		if s.ResumeTimeout > 0 {
			out = append(out, since.Add(s.ResumeTimeout))
		}
	}
	if m.MachinesFailed && !m.ResumingSince.IsZero() {
		out = append(out, m.ResumingSince.Add(machineFailureTimeout))
	}
	return out
}
