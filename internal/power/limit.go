package power

import (
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// limited asks for hibernation when the cluster has run as long as it may, and
// otherwise wakes when it will have.
func (s Seen) limited(d Decision, now time.Time) Decision {
	if s.Limits.HibernateAfter == 0 || !s.limitable() {
		return d
	}
	left := s.ranSince(d.Record).Add(s.Limits.HibernateAfter).Sub(now)
	switch {
	case left <= 0:
		d.Act = Hibernate
	case d.Next == 0 || left < d.Next:
		d.Next = left
	}
	return d
}

// limitable reports whether hibernateAfter applies. In a pool, unclaimed
// clusters run for as long as the pool wants (HIVE-1576).
func (s Seen) limitable() bool {
	if !s.WantsRunning() || s.Deleted || !s.Installed || s.Paused {
		return false
	}
	if s.Pooled && s.ClaimedAt.IsZero() {
		return false
	}
	return s.Fake || s.supported()
}

// ranSince is from when hibernateAfter counts: the last of the install, the
// claim, and becoming Running. A cluster that never gets there counts from when
// it set out: it costs as much as another (Hive D7).
func (s Seen) ranSince(rec *hivev1.PowerTransition) time.Time {
	became := rec.StartedAt
	if rec.FinishedAt != nil {
		became = *rec.FinishedAt
	}
	return later(later(s.InstalledAt, s.ClaimedAt), became.Time)
}
