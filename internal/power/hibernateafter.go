package power

import (
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// resumeAllowance is how long a resume without a timeout of its own may take before
// hibernateAfter counts the cluster as running. OpenShift's documentation allows 45 minutes for a
// resume.
const resumeAllowance = 2 * time.Hour

// applyHibernateAfter requests hibernation when hibernateAfter has passed, and otherwise
// schedules the pass in which it will have passed. The pass in which a cluster
// becomes Running only reports that, however short hibernateAfter is.
func (s Snapshot) applyHibernateAfter(d Plan, now time.Time) Plan {
	if s.Limits.HibernateAfter == 0 || !s.mayHibernateItself() {
		return d
	}
	left := s.runningSince(d.Record).Add(s.Limits.HibernateAfter).Sub(now)
	if left <= 0 && d.Record.FinishedAt != nil && !s.HasComeUp() {
		left = nextPassDelay
	}
	switch {
	case left <= 0:
		d.Action = Hibernate
	case d.Next == 0 || left < d.Next:
		d.Next = left
	}
	return d
}

// mayHibernateItself reports whether a time limit may end the running of the cluster. In a pool, unclaimed
// clusters run for as long as the pool wants (HIVE-1576).
func (s Snapshot) mayHibernateItself() bool {
	if !s.WantsRunning() || s.Deleted || !s.Installed || s.Paused {
		return false
	}
	if s.Pooled && s.ClaimedAt.IsZero() {
		return false
	}
	return s.Fake || s.canHibernate()
}

// runningSince returns the time from which hibernateAfter counts: the latest of the install, the
// claim and becoming Running (HIVE-1576). A resume in progress does not count; otherwise a
// hibernateAfter shorter than a resume would never let the cluster run again. A resume that has
// timed out does count: the cluster costs as much as a running one (Hive D7).
func (s Snapshot) runningSince(rec *hivev1.PowerTransition) time.Time {
	return laterTime(laterTime(s.InstalledAt, s.ClaimedAt), s.resumeEndedAt(rec))
}

// resumeEndedAt returns when the transition to Running ended, or when it exceeds its time limit.
func (s Snapshot) resumeEndedAt(rec *hivev1.PowerTransition) time.Time {
	if rec.FinishedAt != nil {
		return rec.FinishedAt.Time
	}
	allowed := s.Limits.ToRunning
	if allowed == 0 {
		allowed = resumeAllowance
	}
	return rec.StartedAt.Add(allowed)
}
