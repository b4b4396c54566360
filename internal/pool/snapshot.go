// Package pool decides what a ClusterPool does next.
//
// Decide is one pure function from a Snapshot to a Plan: it reads no cluster,
// no clock, no random source, and gives the same plan whatever the order of
// the lists. The controller gathers the snapshot and carries out the plan;
// hotspare pool plan does the first half offline.
package pool

import (
	"cmp"
	"slices"
	"time"
)

// Snapshot is everything that a pool's next steps depend on.
type Snapshot struct {
	Settings Settings
	// Members are all clusters of the pool that exist, claimed and dying ones too.
	Members []Member
	// Pending are names of clusters that were recorded for creation and are not among Members.
	Pending []string
	// Claims are all claims on the pool that exist, served and dying ones too.
	Claims []Claim
	// PositionsSetAt is when the positions of waiting claims were last set; zero if they were
	// not, or nobody knows.
	PositionsSetAt time.Time
	Now            time.Time
}

// Settings are the pool's wishes and limits.
type Settings struct {
	Size         int
	RunningCount int
	// MaxSize limits members, MaxConcurrent those being installed or destroyed; nil is no limit.
	MaxSize       *int
	MaxConcurrent *int
	// Room is how many more clusters the platform says fit; nil is no limit. NoRoom says why, in words.
	Room   *int
	NoRoom string
	// Inventory is set when each cluster takes a customization. Free are those that can be
	// taken, in this order; those of Pending are not among them.
	Inventory bool
	Free      []string
	// Version is the pool's version; a member of another is stale.
	Version string
	// Sources identifies the versions of the objects that new clusters are made from beside
	// the pool itself; empty when nobody knows.
	Sources string
	// Blocked says why no cluster may be created now, in words; empty when it may.
	Blocked string
	// Deleting is set while the pool is being deleted.
	Deleting bool
	// Fake is set when the clusters exist as objects only.
	Fake bool
	// ResumeTimeout is how long a resume may take before the cluster is broken; 0 is for ever.
	ResumeTimeout time.Duration
}

// Member is one cluster of the pool, as observed.
type Member struct {
	Name    string
	Created time.Time
	// Version is the pool version that it was made from; empty when it does not say.
	Version string
	// Sources is what Settings.Sources was when it was made; empty when it does not say.
	Sources string
	// Claim names the claim that it is given to; a cluster is given once.
	Claim string
	// ClaimedAt is when it was given to that claim, to the second; zero when unknown.
	ClaimedAt time.Time
	// ClaimMissingSince is since when that claim has not existed, as far as this process has
	// seen; zero while it exists.
	ClaimMissingSince time.Time
	// ClaimUnaware is set when that claim was deleted before it was told of the cluster, so
	// that nobody can be using the cluster.
	ClaimUnaware bool
	// Deleting is set while it is being destroyed; Marked when it has been marked for removal.
	Deleting, Marked bool
	// Installed is set when the install is done; GaveUp when it will never be; Failing while its last attempt failed.
	Installed, GaveUp, Failing bool
	// Begun is set once it is known whether its install can begin: somebody has taken it up.
	Begun bool
	// RequirementsUnmet says what its install misses, so that it cannot begin; empty when nothing.
	RequirementsUnmet string
	// Paused is the annotation by which a user has paused it, so that nobody starts or stops
	// it, or works on it at all; empty when nobody has.
	Paused string
	// DeletionError says why its deletion does not get on; empty when it does.
	DeletionError string
	// Wanted is the power state it is told to have.
	Wanted Power
	// Running is set while it can be used.
	Running bool
	// PowerFailed is set while starting or stopping it fails, PowerTimedOut when that took longer than it may.
	PowerFailed, PowerTimedOut bool
	// MachinesFailed is set when its machines themselves failed in the resume that goes on.
	MachinesFailed bool
	// ResumingSince is when its current resume began; zero when it does not resume.
	ResumingSince time.Time
	// InstallTook and ResumeTook are how long its install and its last resume took; 0 when unknown.
	InstallTook, ResumeTook time.Duration
	// UnreachableSince is since when it cannot be reached although it should run; zero when it can.
	UnreachableSince time.Time
	// UnreadySince is since when it is not ready although it had come up and should run; zero when it is.
	UnreadySince time.Time
	// Outdated says why its customization makes it stale; empty when it does not.
	Outdated string
	// Withdrawn says why its customization is no longer the pool's to use: it was taken off
	// the inventory, or is being deleted. Empty when it is.
	Withdrawn string
	// Displaced says which other cluster has its customization; empty when none has.
	Displaced string
	// Unreadable says what of it could not be read; empty when all could. Then what
	// else is said here may not be the whole truth, and it is left alone.
	Unreadable string
}

// Power is what a member is told to be.
type Power string

// Unset is a member that was never told.
const (
	Unset       Power = ""
	Running     Power = "Running"
	Hibernating Power = "Hibernating"
)

// Claim is one claim on the pool.
type Claim struct {
	Name    string
	Created time.Time
	// Cluster names the cluster it has been told of; empty while it waits.
	Cluster  string
	Deleting bool
	// Position and Ready are what its status says of its place and of when a cluster is likely
	// to run; zero when it says nothing.
	Position int
	Ready    time.Time
	// Unreadable is set when not all of it could be read. It keeps what it has, and gets nothing.
	Unreadable bool
}

// Phase is the one bucket that a member is in.
type Phase string

// Every member is in exactly one of these. Stale is a mark beside it.
const (
	Deleting   Phase = "deleting"
	Removed    Phase = "marked"
	Claimed    Phase = "claimed"
	Broken     Phase = "broken"
	Installing Phase = "installing"
	Standby    Phase = "standby"
	Assignable Phase = "assignable"
	// Unreadable ones are unclaimed as far as is known; they count as spares, so that none is made in their place.
	Unreadable Phase = "unreadable"
)

// Phase is the bucket that m is in at the given time.
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

func (m Member) isBroken(s Settings, now time.Time) bool { return m.DefectCause(s, now) != "" }

// defaultSlowResume is how long a resume may take before the next stand-by is woken
// beside it, when the pool has no resume timeout. Resumes take three to five
// minutes where Hive's users measured them.
const defaultSlowResume = 10 * time.Minute

// isStruggling reports whether m should not be counted on to run soon: it then uses
// up no slot, and the next one is woken beside it.
func (m Member) isStruggling(s Settings, now time.Time) bool {
	if !m.Installed {
		return !m.isProgressing()
	}
	patience := s.slowResumeAfter()
	return m.Paused != "" && !m.Running || m.PowerFailed || m.MachinesFailed ||
		hasElapsed(m.ResumingSince, patience, now) || hasElapsed(m.UnreachableSince, patience, now) || hasElapsed(m.UnreadySince, patience, now)
}

// isBeingInstalled reports whether an install of m is under way, or may begin at any time.
func (m Member) isBeingInstalled() bool {
	return !m.Installed && !m.GaveUp && !m.Deleting && m.Unreadable == ""
}

// isProgressing reports whether m's install gets on, as far as is known.
func (m Member) isProgressing() bool {
	return m.RequirementsUnmet == "" && !m.Failing && m.Paused == ""
}

// isComingUp reports whether m was told to run, has begun to, and neither runs nor has been given up.
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

func (m Member) isStale(s Settings) bool {
	return m.Version != s.Version || m.Outdated != "" || m.Withdrawn != ""
}

// couldSucceedNow reports whether m's install, which does not get on, would be made from other
// objects by now: somebody may have mended the Secret that it fails for.
func (m Member) couldSucceedNow(s Settings) bool {
	return m.isBeingInstalled() && !m.isProgressing() && m.Paused == "" && m.Sources != "" && s.Sources != "" && m.Sources != s.Sources
}

// missingClaimDelay is how long a cluster whose claim does not exist is kept. A claim that is
// released waits for its cluster to go, so this one's was lost: its finalizer was removed by
// hand, or a backup of the cluster was restored without it. Somebody may be using the cluster.
const missingClaimDelay = 10 * time.Minute

func hasElapsed(since time.Time, span time.Duration, now time.Time) bool {
	return !since.IsZero() && !now.Before(since.Add(span))
}

// sortByAge refers to all of list, oldest first.
func sortByAge(list []Member) []*Member {
	out := make([]*Member, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	slices.SortFunc(out, oldestFirst)
	return out
}

// oldestFirst orders members by age; the name settles ties.
func oldestFirst(a, b *Member) int {
	if c := a.Created.Compare(b.Created); c != 0 {
		return c
	}
	return cmp.Compare(a.Name, b.Name)
}

func claimsOldestFirst(a, b Claim) int {
	if c := a.Created.Compare(b.Created); c != 0 {
		return c
	}
	return cmp.Compare(a.Name, b.Name)
}
