// Package provision decides what to do next about a cluster that is to be
// made, or destroyed.
//
// It is pure: Decide turns a Snapshot into a Plan, and that is all. The order
// of its steps is what keeps clusters from leaking: an attempt is recorded
// before it is named in the cluster, and named before anything is made; what a
// failed attempt left is destroyed before the next attempt is recorded; and a
// cluster goes only when everything that was recorded is destroyed. Each step
// may be the last before a crash: the next pass sees what was written and
// carries on.
package provision

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// Snapshot is all that a decision depends on.
type Snapshot struct {
	Now     time.Time
	Cluster Cluster
	// Needs are those of an install; they count only while there is something to install.
	Needs Needs
	// Attempts are the recorded ones that have an infraID, in any order.
	Attempts []Attempt
	// Deprovision is the record of the cluster's destruction.
	Deprovision Deprovision

	// What follows is what executors have said in this pass; absent what they were not asked.

	// Prepare is said of the attempt that is to be recorded, if that did not work.
	Prepare *Answer
	// Install is said of the attempt that is under way.
	Install *Answer
	// Destroy is said of what an infraID marks.
	Destroy map[string]Answer
}

// Cluster is a ClusterDeployment, as facts.
type Cluster struct {
	Name string
	UID  types.UID
	// Paused: it is to be left alone.
	Paused bool
	// Marked: it carries the finalizer and the labels that describe it.
	Marked bool
	// Held: it carries the finalizer.
	Held bool
	// Foreign: another installer makes it, by clusterInstallRef.
	Foreign bool
	// Installed: spec.installed.
	Installed bool
	// Stopped: condition ProvisionStopped is True.
	Stopped bool
	// InfraID is the recorded one; empty before anything was made.
	InfraID string
	// Limit is how many attempts may be made; nil: any number.
	Limit *int
	// Executor: there is one for its platform.
	Executor bool
	// Fake: nothing is installed, so nothing is needed for it.
	Fake bool

	// Deleting since DeletedAt.
	Deleting  bool
	DeletedAt time.Time
	// Preserved: what was made is kept when it is deleted.
	Preserved bool
	// Protected: it must not be destroyed.
	Protected bool
	// DestroyFailedAt is when destroying began to fail; zero while it does not.
	DestroyFailedAt time.Time
}

// Attempt is a ClusterProvision, as facts.
type Attempt struct {
	Number  int
	Name    string
	InfraID string
	Stage   hivev1.ProvisionStage
	// FailedAt, Reason and Message tell of the failure of one that failed.
	FailedAt time.Time
	Reason   string
	Message  string
	// Destroyed: nothing is left of it.
	Destroyed bool
}

// Deprovision is a ClusterDeprovision, as facts.
type Deprovision struct {
	Exists    bool
	Completed bool
}

// Outcome is what an executor's answer amounts to.
type Outcome string

// Waiting is not the cluster's fault and passes by itself; Refused needs a person.
const (
	Running   Outcome = "Running"
	Succeeded Outcome = "Succeeded"
	Failed    Outcome = "Failed"
	Waiting   Outcome = "Waiting"
	Refused   Outcome = "Refused"
)

// Answer is what an executor said when it was asked.
type Answer struct {
	Outcome Outcome
	// Reason is one word, Message a sentence, for conditions. No secrets.
	Reason  string
	Message string
	// NotLaunched: what is waited for is a pod of the installer that cannot begin.
	NotLaunched bool
	// Unauthorized: the platform refused the credentials.
	Unauthorized bool
	// After is when to ask again, for Waiting.
	After time.Duration
}

// latestAttempt is the attempt with the highest number, or nil.
func (s Snapshot) latestAttempt() *Attempt {
	if len(s.Attempts) == 0 {
		return nil
	}
	last := slices.MaxFunc(s.Attempts, func(a, b Attempt) int { return cmp.Compare(a.Number, b.Number) })
	return &last
}

// openAttempt is the attempt that is under way, or nil. One that is complete while the
// cluster is not installed is open too: nobody but hotspare completes attempts,
// so either the cluster was seen too early, or its mark has to be set again.
func (s Snapshot) openAttempt() *Attempt {
	last := s.latestAttempt()
	switch {
	case last == nil, last.Stage == hivev1.StageFailed:
		return nil
	case last.Stage == hivev1.StageComplete && s.Cluster.Installed:
		return nil
	}
	return last
}

// leftoverInfraIDs are the infraIDs that were recorded and are not known to be
// destroyed, sorted. What the cluster names counts even when its attempt's
// object is gone: objects in a namespace that is being deleted go first.
func (s Snapshot) leftoverInfraIDs() []string {
	var ids []string
	known := s.Cluster.InfraID == ""
	for _, a := range s.Attempts {
		known = known || a.InfraID == s.Cluster.InfraID
		if !a.Destroyed {
			ids = append(ids, a.InfraID)
		}
	}
	if !known {
		ids = append(ids, s.Cluster.InfraID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// attemptsToDelete are the failed attempts that need not be kept any longer, oldest first.
func (s Snapshot) attemptsToDelete() []Attempt {
	failed := slices.DeleteFunc(slices.Clone(s.Attempts), func(a Attempt) bool {
		return a.Stage != hivev1.StageFailed || !a.Destroyed
	})
	slices.SortFunc(failed, func(a, b Attempt) int { return cmp.Compare(a.Number, b.Number) })
	return failed[:max(0, len(failed)-maxKeptFailures)]
}
