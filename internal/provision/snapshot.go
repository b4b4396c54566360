// Package provision decides what to do next to install or destroy a cluster.
//
// It is pure: Decide turns a Snapshot into a Plan. The order of the steps keeps clusters from
// leaking: an attempt is recorded before it is named in the cluster, and named before any
// resource is created; the leftovers of a failed attempt are destroyed before the next attempt is
// recorded; and a cluster's finalizer is removed only when everything that was recorded is
// destroyed. A crash may follow any step: the next pass sees what was written and continues.
package provision

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// Snapshot is the input of Decide.
type Snapshot struct {
	Now     time.Time
	Cluster Cluster
	// Needs are the prerequisites of an install; they count only while there is something to
	// install.
	Needs Needs
	// Attempts are the recorded attempts that have an infraID, in any order.
	Attempts []Attempt
	// Deprovision is the record of the cluster's destruction.
	Deprovision Deprovision

	// The following fields are the executors' answers in this pass; nil if they were not asked.

	// Prepare is the answer for the attempt to record, if preparing it failed.
	Prepare *Answer
	// Install is the answer for the attempt in progress.
	Install *Answer
	// Destroy contains the answers to destroying, by infraID.
	Destroy map[string]Answer
}

// Cluster is a ClusterDeployment, as facts.
type Cluster struct {
	Name string
	UID  types.UID
	// Paused: it must not be changed.
	Paused bool
	// Marked: it has the finalizer and the labels that describe it.
	Marked bool
	// HasFinalizer: it has the finalizer.
	HasFinalizer bool
	// Foreign: another installer creates it (clusterInstallRef).
	Foreign bool
	// Installed: spec.installed.
	Installed bool
	// Stopped: condition ProvisionStopped is True.
	Stopped bool
	// InfraID is the recorded infraID; empty before any resource was created.
	InfraID string
	// Limit is the maximum number of attempts; nil: unlimited.
	Limit *int
	// Executor: its platform has an executor.
	Executor bool
	// Fake: nothing is installed, so nothing is needed for it.
	Fake bool

	// Deleting: it is being deleted, since DeletedAt.
	Deleting  bool
	DeletedAt time.Time
	// Preserved: its resources are kept when it is deleted.
	Preserved bool
	// Protected: it must not be destroyed.
	Protected bool
	// BundleDue is until when its destruction waits for a bundle of diagnostics; zero if it waits for none.
	BundleDue time.Time
	// BundleRefused: its claim requests a bundle, and the hub stores none.
	BundleRefused bool
	// DestroyFailedAt is when destroying began to fail; zero while it does not.
	DestroyFailedAt time.Time
}

// Attempt is a ClusterProvision, as facts.
type Attempt struct {
	Number  int
	Name    string
	InfraID string
	Stage   hivev1.ProvisionStage
	// FailedAt, Reason and Message describe the failure of a failed attempt.
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

// Outcome classifies an executor's answer.
type Outcome string

// Waiting is not caused by the cluster and ends automatically; Refused requires a person's
// action.
const (
	Running   Outcome = "Running"
	Succeeded Outcome = "Succeeded"
	Failed    Outcome = "Failed"
	Waiting   Outcome = "Waiting"
	Refused   Outcome = "Refused"
)

// Answer is an executor's answer.
type Answer struct {
	Outcome Outcome
	// Reason is one word and Message a sentence, both for conditions. They contain no secrets.
	Reason  string
	Message string
	// PrepareFailed: the installer has failed to prepare the attempt, and will try again.
	PrepareFailed bool
	// NotLaunched: the answer waits for a pod of the installer that cannot start.
	NotLaunched bool
	// Unauthorized: the platform refused the credentials.
	Unauthorized bool
	// After is when to ask again, for Waiting.
	After time.Duration
}

// latestAttempt returns the attempt with the highest number, or nil.
func (s Snapshot) latestAttempt() *Attempt {
	if len(s.Attempts) == 0 {
		return nil
	}
	last := slices.MaxFunc(s.Attempts, func(a, b Attempt) int { return cmp.Compare(a.Number, b.Number) })
	return &last
}

// openAttempt returns the attempt in progress, or nil. A completed attempt is also open while the
// cluster is not installed: only hotspare completes attempts, so either the cluster was read from
// a stale cache, or it must be marked as installed again.
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

// leftoverInfraIDs returns the sorted infraIDs that were recorded and are not known to be
// destroyed. The infraID in the cluster counts even if its attempt's object no longer exists: in
// a namespace that is being deleted, such objects are deleted before the cluster.
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

// attemptsToDelete returns the failed attempts that need not be kept any longer, oldest first.
func (s Snapshot) attemptsToDelete() []Attempt {
	failed := slices.DeleteFunc(slices.Clone(s.Attempts), func(a Attempt) bool {
		return a.Stage != hivev1.StageFailed || !a.Destroyed
	})
	slices.SortFunc(failed, func(a, b Attempt) int { return cmp.Compare(a.Number, b.Number) })
	return failed[:max(0, len(failed)-maxKeptFailures)]
}
