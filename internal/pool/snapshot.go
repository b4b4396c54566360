// Package pool decides what a ClusterPool does next.
//
// Decide is one pure function from a Snapshot to a Plan: it reads no cluster, no clock and no
// random source, and returns the same plan whatever the order of the lists. The controller builds
// the snapshot and executes the plan; hotspare pool plan builds a snapshot and its plan offline.
package pool

import (
	"cmp"
	"slices"
	"time"
)

// A Snapshot is everything that a pool's next steps depend on.
type Snapshot struct {
	Settings Settings
	// Members are all existing clusters of the pool, including claimed ones and those being
	// deleted.
	Members []Member
	// Pending are names that are recorded for new clusters and are not among Members.
	Pending []string
	// Reserved maps names in Pending to the customizations that are reserved for them.
	Reserved map[string]string
	// Unusable maps the names in Pending under which no cluster can be created to the cause.
	Unusable map[string]Cause
	// Invalid are the customizations of the inventory that do not apply to the pool.
	Invalid []InvalidCustomization
	// Claims are all existing claims on the pool, including served ones and those being deleted.
	Claims []Claim
	// PositionsSetAt is when the positions of waiting claims were last set; zero if they were not,
	// or if that is unknown.
	PositionsSetAt time.Time
	// RecheckAfter is how long the pool may rely on objects that it refers to and that are not
	// watched; 0 means no limit.
	RecheckAfter time.Duration
	Now          time.Time
}

// An InvalidCustomization is a customization that does not apply to the pool's clusters.
type InvalidCustomization struct {
	Name string
	// Message explains why it does not apply.
	Message string
	// Reported is the message that its status has for its current spec; empty if it has none.
	// ReportedByPool is set if this pool wrote it.
	Reported       string
	ReportedByPool bool
	// ReservedForName is set if the pool's status reserves it for a name in Pending.
	ReservedForName bool
}

// Settings are the pool's desired values and limits.
type Settings struct {
	Size         int
	RunningCount int
	// MaxSize limits the number of members, MaxConcurrent the number being installed or destroyed;
	// nil means no limit.
	MaxSize       *int
	MaxConcurrent *int
	// Room is the number of clusters that still fit on the platform; nil means no limit. NoRoom
	// explains it as text.
	Room   *int
	NoRoom string
	// Inventory is set if each cluster takes a customization. Free are the customizations that
	// clusters can take, in this order, without those of Pending.
	Inventory bool
	Free      []string
	// Version is the pool's version; a member with another version is stale.
	Version string
	// Sources identifies the versions of the objects, other than the pool itself, that new clusters
	// are made from; empty if unknown.
	Sources string
	// Recipe is the version of the recipe, ClusterClass or template that new clusters are created with;
	// empty if it is unknown, or if the platform has none.
	Recipe string
	// Blocked explains why no cluster may be created now; empty if one may.
	Blocked string
	// Deleting is set while the pool is being deleted.
	Deleting bool
	// FinalizerMissing is set if the pool does not have hotspare's finalizer.
	FinalizerMissing bool
	// Fake is set if the clusters exist only as API objects.
	Fake bool
	// ResumeTimeout is the time that a resume may take before the cluster counts as broken; 0 means
	// no limit.
	ResumeTimeout time.Duration
}

// unlimited stands for "no limit": it is larger than any pool.
const unlimited = 1 << 30

func limitOrUnlimited(n *int) int {
	if n == nil {
		return unlimited
	}
	return *n
}

// A Member is one observed cluster of the pool.
type Member struct {
	Name    string
	Created time.Time
	// Recipe is the value of Settings.Recipe when it was made; empty if it records none.
	Recipe string
	// Version is the version of the pool that it was made from; empty if it records none.
	Version string
	// Sources is the value of Settings.Sources when it was made; empty if it records none.
	Sources string
	// Adopted is set if the pool has not created it, and its user has not allowed hotspare to destroy
	// it. It is a spare like any other, but the pool never deletes it by its own choice.
	Adopted bool
	// Claim names the claim that it is bound to; a cluster is bound only once.
	Claim string
	// ClaimedAt is when it was bound to that claim, in whole seconds; zero if unknown.
	ClaimedAt time.Time
	// ClaimMissingSince is when this process first saw that the claim does not exist; zero while
	// the claim exists.
	ClaimMissingSince time.Time
	// ClaimUnaware is set if that claim was deleted before the cluster was written into it, so that
	// nobody can be using the cluster.
	ClaimUnaware bool
	// Deleting is set while it is being destroyed, Marked if it is marked for removal.
	Deleting, Marked bool
	// Installed is set when the install is done, GaveUp if the install has failed permanently,
	// Failing while its last attempt is a failed one.
	Installed, GaveUp, Failing bool
	// Begun is set once a controller has picked up the install, so that it is known whether the
	// install can begin.
	Begun bool
	// RequirementsUnmet describes what the install lacks, so that it cannot begin; empty if
	// nothing.
	RequirementsUnmet string
	// Paused is the annotation by which a user has paused it, so that hotspare does not start or
	// stop it, or does not work on it at all; empty if it is not paused.
	Paused string
	// DeletionError explains why its deletion makes no progress; empty if it does.
	DeletionError string
	// Wanted is the power state in its spec.
	Wanted Power
	// Running is set while it is usable.
	Running bool
	// PowerFailed is set while starting or stopping it fails, PowerTimedOut if that took longer
	// than allowed.
	PowerFailed, PowerTimedOut bool
	// MachinesFailed is set if its machines themselves failed during the current resume.
	MachinesFailed bool
	// ResumingSince is when its current resume began; zero if it is not resuming.
	ResumingSince time.Time
	// InstallTook and ResumeTook are the durations of its install and of its last resume; 0 if
	// unknown.
	InstallTook, ResumeTook time.Duration
	// UnreachableSince is when it became unreachable although it should run; zero if it is
	// reachable.
	UnreachableSince time.Time
	// UnreadySince is when it became unready after it had come up and while it should run; zero if
	// it is ready.
	UnreadySince time.Time
	// Outdated explains why its customization makes it stale; empty if it does not.
	Outdated string
	// Withdrawn explains why the pool may no longer use its customization: it was removed from the
	// inventory, or is being deleted. Empty if the pool may.
	Withdrawn string
	// Displaced names the other cluster that has its customization; empty if none has.
	Displaced string
	// Unreadable describes the field that could not be read; empty if all could. If it is set, the
	// other fields may be incomplete, and the pool leaves the member alone.
	Unreadable string
}

// Power is the desired power state of a member.
type Power string

// The power states. Unset means that spec.powerState was never set.
const (
	Unset       Power = ""
	Running     Power = "Running"
	Hibernating Power = "Hibernating"
)

// A Claim is one claim on the pool.
type Claim struct {
	Name    string
	Created time.Time
	// Cluster names the cluster in its spec; empty while it waits.
	Cluster  string
	Deleting bool
	// Position and Ready are the position and the expected time of a running cluster in its status;
	// zero if it has none.
	Position int
	Ready    time.Time
	// Unreadable is set if some of it could not be read. The claim keeps its cluster, and gets
	// none.
	Unreadable bool
}

// A Phase is the one bucket that a member is in.
type Phase string

// The phases. Every member is in exactly one; Stale is independent of the phase.
const (
	Deleting   Phase = "deleting"
	Removed    Phase = "marked"
	Claimed    Phase = "claimed"
	Broken     Phase = "broken"
	Installing Phase = "installing"
	Standby    Phase = "standby"
	Assignable Phase = "assignable"
	// Unreadable members are unclaimed as far as is known; they count as spares, so that the pool
	// does not create others in their place.
	Unreadable Phase = "unreadable"
)

// Phase returns the bucket that m is in at the given time.
func (m Member) Phase(s Settings, now time.Time) Phase {
	switch {
	case m.Deleting:
		return Deleting
	case m.Unreadable != "" && m.Claim == "":
		return Unreadable
	case m.Marked && m.Unreadable == "":
		return Removed
	case m.Claim != "":
		return Claimed
	case m.isBroken(s, now):
		return Broken
	case !m.Installed:
		return Installing
	case m.Running:
		return Assignable
	default:
		return Standby
	}
}

// machineFailureTimeout is how long machines may fail during a resume before the cluster counts as
// broken: enough for one or two retries.
const machineFailureTimeout = 30 * time.Second

// DefectCause returns the reason why m is broken; "" if it is not (enhancement: replace broken
// clusters).
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

// GiveUpTime returns when m will count as broken by the clock alone if nothing changes; zero if it
// will not, or if it already is broken.
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

func (m Member) isBroken(s Settings, now time.Time) bool { return m.DefectCause(s, now) != "" }

// defaultSlowResume is the time that a resume may take before the next standby is started in
// addition, if the pool has no resume timeout. Hive's users measured resumes of three to five
// minutes.
const defaultSlowResume = 10 * time.Minute

// isStruggling reports whether m is unlikely to run soon. A struggling member takes up no slot: the
// next member is started in addition to it.
func (m Member) isStruggling(s Settings, now time.Time) bool {
	if !m.Installed {
		return !m.isProgressing()
	}
	patience := s.slowResumeAfter()
	return m.Paused != "" && !m.Running || m.PowerFailed || m.MachinesFailed ||
		hasElapsed(m.ResumingSince, patience, now) || hasElapsed(m.UnreachableSince, patience, now) || hasElapsed(m.UnreadySince, patience, now)
}

// isBeingInstalled reports whether an install of m is in progress, or may begin at any time.
func (m Member) isBeingInstalled() bool {
	return !m.Installed && !m.GaveUp && !m.Deleting && m.Unreadable == ""
}

// isProgressing reports whether the install of m makes progress, as far as is known.
func (m Member) isProgressing() bool {
	return m.RequirementsUnmet == "" && !m.Failing && m.Paused == ""
}

// isComingUp reports whether m should run, has begun to start, and neither runs nor counts as
// broken.
func (m Member) isComingUp() bool {
	return m.Installed && !m.Running && m.Wanted == Running &&
		(m.PowerFailed || m.MachinesFailed || !m.ResumingSince.IsZero() || !m.UnreachableSince.IsZero() || !m.UnreadySince.IsZero())
}

func (s Settings) slowResumeAfter() time.Duration {
	if s.ResumeTimeout > 0 {
		return s.ResumeTimeout / 2
	}
	return defaultSlowResume
}

// isStale reports whether a new cluster of the pool would differ from m. An adopted cluster is not made
// from the pool's spec.
func (m Member) isStale(s Settings) bool {
	return !m.Adopted && (m.Version != s.Version || m.hasOldRecipe(s) || m.Outdated != "" || m.Withdrawn != "")
}

// hasOldRecipe reports whether m was created with another version of its recipe, as far as both are
// known.
func (m Member) hasOldRecipe(s Settings) bool {
	return m.Recipe != "" && s.Recipe != "" && m.Recipe != s.Recipe
}

// couldSucceedNow reports whether the install of m makes no progress and a new one would use other
// objects: a user may have fixed the Secret that it fails for.
func (m Member) couldSucceedNow(s Settings) bool {
	return m.isBeingInstalled() && !m.isProgressing() && m.Paused == "" && m.Sources != "" && s.Sources != "" && m.Sources != s.Sources
}

// missingClaimDelay is how long the pool keeps a cluster whose claim does not exist. A claim that
// is released waits until its cluster is deleted, so this claim was lost: its finalizer was removed
// by hand, or a backup of the cluster was restored without it. Somebody may be using the cluster.
const missingClaimDelay = 10 * time.Minute

func hasElapsed(since time.Time, span time.Duration, now time.Time) bool {
	return !since.IsZero() && !now.Before(since.Add(span))
}

// sortByAge returns pointers to all elements of list, oldest first.
func sortByAge(list []Member) []*Member {
	out := make([]*Member, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	slices.SortFunc(out, oldestFirst)
	return out
}

// oldestFirst compares members by age, then by name.
func oldestFirst(a, b *Member) int {
	if c := a.Created.Compare(b.Created); c != 0 {
		return c
	}
	return cmp.Compare(a.Name, b.Name)
}

func compareWaitingClaims(a, b Claim) int {
	if c := a.Created.Compare(b.Created); c != 0 {
		return c
	}
	return cmp.Compare(a.Name, b.Name)
}
