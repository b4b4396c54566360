// Package pool decides what a ClusterPool does next.
//
// Decide is one pure function from a Snapshot to a Plan: it reads no cluster, no clock and no
// random source, and returns the same plan whatever the order of the lists. The controller builds
// the snapshot and executes the plan; hotspare pool plan builds a snapshot and its plan offline.
package pool

import (
	"cmp"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/claimqueue"
)

// A Snapshot is everything that a pool's next steps depend on.
type Snapshot struct {
	Settings Settings
	// Unreadable explains why the pool could not be read completely; empty if it could. Its plan then has no
	// steps: what is missing may be a limit.
	Unreadable string
	// Members are all existing clusters of the pool, including claimed ones and those being
	// deleted.
	Members []Member
	// ByAge has the members instead of Members, in the order of CompareByAge, for a caller that keeps them so between two
	// snapshots. Decide does not change them.
	ByAge []*Member
	// Pending are names that are recorded for new clusters and are not among the members.
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
	// RefusedWrite is why the hub refused to create or delete an object in the last pass; empty if it
	// did not. The pool tries again.
	RefusedWrite string
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
	// Sleep is the ladder of depths at which spare clusters sleep; empty if the pool leaves their depths alone.
	Sleep Ladder
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
	// Gates is the version of the gates that a spare must have passed in its current run; empty if the pool has
	// no gates. FromRecords is set if it is unknown: then each cluster's own record says whether it has gates.
	Gates            string
	GatesFromRecords bool
	// Steps is the version of the steps of the pool's bootstrap; empty if it has none. StepsUnknown is set if it
	// is not known which steps these are: then no cluster is stale because of them. GatesFromRecords means the
	// same for steps as for gates.
	Steps        string
	StepsUnknown bool
	// StepsSince is since when the pool has had steps, as its status records it; zero if it has none, or if that is
	// not recorded yet.
	StepsSince time.Time
	// FailedSteps is the last failure of steps, as the pool's status records it; zero if there is none.
	FailedSteps FailedSteps
	// WatchedSince is since when this process takes steps and checks gates; zero if it does not, or if that is
	// unknown. A deadline that passed before counts only after somebody has had the time to look.
	WatchedSince time.Time
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
	// Protected is set if the hub refuses its deletion, because of the annotation protected-delete.
	Protected bool
	// DeletionError explains why its deletion makes no progress; empty if it does.
	DeletionError string
	// Wanted is the power state in its spec.
	Wanted Power
	// WantedDepth is the depth at which it should sleep, and Depth the one at which it sleeps; empty if nobody has
	// said, and if it does not sleep or that is unknown.
	WantedDepth, Depth string
	// Running is set while it is usable: it runs, has taken the steps of the pool's bootstrap, and has passed the
	// gates of the pool.
	Running bool
	// AwaitsGates is set while it runs and has not passed the gates of the pool in its current run.
	AwaitsGates bool
	// HasGates is set if it records a verdict of gates, GatesEverPassed if it has ever passed them.
	HasGates, GatesEverPassed bool
	// GatesPassed is the version of the gates that it has passed in its current run, and GatesFailing the version
	// of the gates of which one fails; empty if there is none. GatesFailure describes the failure.
	GatesPassed, GatesFailing, GatesFailure string
	// GatesFailingSince is since when a gate fails, and GatesDeadline when the cluster is broken if it still does;
	// zero if none fails.
	GatesFailingSince, GatesDeadline time.Time
	// InstalledAt is when its install was done, in whole seconds; zero if unknown.
	InstalledAt time.Time
	// PredatesSteps is set if it serves claims although it has taken none of the steps of the pool's bootstrap, because
	// it was installed before the pool had any.
	PredatesSteps bool
	// AwaitsTurn is set if it predates the steps, and takes them later: it is not replaced for another reason. A gate that
	// fails does not make it broken meanwhile, because it may check what the steps install.
	AwaitsTurn bool
	// AwaitsSteps is set while it runs and has not taken every step of the pool's bootstrap.
	AwaitsSteps bool
	// Steps is the version of the steps that it has begun; empty if it has begun none. StepsDone is set if every
	// step of that version is done.
	Steps     string
	StepsDone bool
	// StepsDoneAt is when they were, in whole seconds; zero if they are not.
	StepsDoneAt time.Time
	// StepFailure describes what the step in progress waits for, or why it fails. StepSince is since when it is
	// in progress in the current run, and StepDeadline when the cluster is broken if it still is; zero if none is.
	StepFailure             string
	StepSince, StepDeadline time.Time
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
	// ResumedFrom is the depth of the sleep from which its current or last resume has woken it; empty if unknown.
	ResumedFrom string
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
	// Priority is its priority in effect: within the limits of the ClaimPolicies of its namespace.
	Priority int
	// Set is the ClaimSet that it belongs to. Its priority is then that of the set.
	Set ClaimSet
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
	// Held is set while the ClaimPolicies of its namespace do not admit it, or if it names a ClaimSet that it does
	// not belong to. The claim keeps its cluster, and gets none.
	Held bool
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
func (m *Member) Phase(s *Settings, now time.Time) Phase {
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

// isUnreconciled reports whether hotspare leaves m alone altogether, because a user has paused it.
func (m *Member) isUnreconciled() bool { return m.Paused == hivev1.AnnotationReconcilePause }

// isBeingInstalled reports whether an install of m is in progress, or may begin at any time.
func (m *Member) isBeingInstalled() bool {
	return !m.Installed && !m.GaveUp && !m.Deleting && m.Unreadable == ""
}

// isProgressing reports whether the install of m makes progress, as far as is known.
func (m *Member) isProgressing() bool {
	return m.RequirementsUnmet == "" && !m.Failing && m.Paused == ""
}

// isComingUp reports whether m should run, has begun to start, and neither runs nor counts as
// broken.
func (m *Member) isComingUp() bool {
	return m.awaitsBootstrap() && !m.PredatesSteps || m.Installed && !m.Running && m.Wanted == Running &&
		(m.PowerFailed || m.MachinesFailed || !m.ResumingSince.IsZero() || !m.UnreachableSince.IsZero() || !m.UnreadySince.IsZero())
}

// missingClaimDelay is how long the pool keeps a cluster whose claim does not exist. A claim that
// is released waits until its cluster is deleted, so this claim was lost: its finalizer was removed
// by hand, or a backup of the cluster was restored without it. Somebody may be using the cluster.
const missingClaimDelay = 10 * time.Minute

// hasPassed reports whether a time that is not zero has come.
func hasPassed(at, now time.Time) bool { return hasElapsed(at, 0, now) }

func hasElapsed(since time.Time, span time.Duration, now time.Time) bool {
	return !since.IsZero() && !now.Before(since.Add(span))
}

// CompareByAge compares members by age, the oldest first, then by name. Of those that were created in the same second, the ones that should
// run come first: otherwise a new cluster could take the place of one that has just been started, because of its name.
func CompareByAge(a, b *Member) int {
	if c := a.Created.Compare(b.Created); c != 0 {
		return c
	}
	if first := a.Wanted == Running; first != (b.Wanted == Running) {
		if first {
			return -1
		}
		return 1
	}
	return cmp.Compare(a.Name, b.Name)
}

// compareWaitingClaims compares claims by their place in the queue.
func compareWaitingClaims(a, b Claim) int { return claimqueue.Compare(a.entry(), b.entry()) }

func (c Claim) entry() claimqueue.Entry {
	return claimqueue.Entry{Name: c.Name, Created: c.Created, Priority: c.Priority}
}

// compareClaimAge compares claims by age, then by name.
func compareClaimAge(a, b Claim) int {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
}
