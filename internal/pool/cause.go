package pool

import "time"

// Cause is why a step is in a plan, in one word of a closed list: programs compare causes,
// people read Step.Reason.
type Cause string

// Causes of steps that bind, start, stop and create clusters, and of deletions after which
// no cluster is created in place of the deleted one.
const (
	// ClaimWaiting: a claim waits for a cluster.
	ClaimWaiting Cause = "claim_waiting"
	// BindingIncomplete: the first of the two writes of a binding was made, the second was not.
	BindingIncomplete Cause = "binding_incomplete"
	// BelowRunningCount: fewer clusters are to run without a claim than spec.runningCount.
	BelowRunningCount Cause = "below_running_count"
	// AboveRunningCount: spec.runningCount clusters run, or are about to, without this one.
	AboveRunningCount Cause = "above_running_count"
	// BelowSize: the pool has fewer unclaimed clusters than spec.size.
	BelowSize Cause = "below_size"
	// AboveSize: the pool has more unclaimed clusters than spec.size.
	AboveSize Cause = "above_size"
	// MarkedForRemoval: the cluster has the annotation that removes it from its pool.
	MarkedForRemoval Cause = "marked_for_removal"
	// ClaimReleased: the claim that the cluster was given to is being deleted, or was.
	ClaimReleased Cause = "claim_released"
	// ClaimMissing: the claim that the cluster was given to has not existed for ten minutes.
	ClaimMissing Cause = "claim_missing"
	// ClaimServed: the claim that the cluster was given to has another cluster.
	ClaimServed Cause = "claim_served"
	// PoolDeleted: the pool is being deleted.
	PoolDeleted Cause = "pool_deleted"
)

// Causes of deletions after which another cluster is created: why a member is broken, and
// that it is stale.
const (
	// InstallFailed: its install has been given up.
	InstallFailed Cause = "install_failed"
	// PowerFailed: starting or stopping it failed until its time was up, or its
	// machines failed when it was to run.
	PowerFailed Cause = "power_failed"
	// ResumeTimedOut: it has taken longer to run than a resume may.
	ResumeTimedOut Cause = "resume_timed_out"
	// Unreachable: it cannot be reached for longer than a resume may take.
	Unreachable Cause = "unreachable"
	// Unready: it had come up, and has not been ready for longer than a resume may take.
	Unready Cause = "unready"
	// Displaced: another cluster has its customization.
	Displaced Cause = "displaced"
	// Withdrawn: its customization was taken off the inventory, or is being deleted.
	Withdrawn Cause = "withdrawn"
	// Stale: it was made from another version of the pool or of its customization, or
	// does not say from which.
	Stale Cause = "stale"
)

// IsDefect reports whether a cluster is deleted for c because it is broken.
func (c Cause) IsDefect() bool {
	switch c {
	case InstallFailed, PowerFailed, ResumeTimedOut, Unreachable, Unready, Displaced, Withdrawn:
		return true
	default:
		return false
	}
}

// machineFailureTimeout is how long machines may fail in a resume before they are given up: a
// second try or two, no more.
const machineFailureTimeout = 30 * time.Second

// DefectCause is why m is broken; "" when it is not (enhancement: replace broken clusters).
func (m Member) DefectCause(s Settings, now time.Time) Cause {
	switch {
	case m.Displaced != "":
		return Displaced
	case m.Withdrawn != "":
		return Withdrawn
	case m.GaveUp:
		return InstallFailed
	case m.PowerTimedOut, m.MachinesFailed && hasElapsed(m.ResumingSince, machineFailureTimeout, now):
		return PowerFailed
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

// GiveUpTime is when m will be broken by the clock alone if nothing changes; zero when it
// will not, or is already.
func (m Member) GiveUpTime(s Settings, now time.Time) time.Time {
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
	if s.ResumeTimeout > 0 && m.Installed {
		consider(m.ResumingSince, s.ResumeTimeout)
		consider(m.UnreachableSince, s.ResumeTimeout)
		consider(m.UnreadySince, s.ResumeTimeout)
	}
	return at
}

// replaceMember plans the deletion of a member in whose place another will be made.
func (d *draft) replaceMember(m *Member, why Cause, reason string) {
	d.deleteIfBudgetAllows(m, why, "%s", reason)
}
