package lease

import (
	"fmt"
	"slices"

	"hotspare.io/hotspare/internal/condition"
)

// A Verb is what a step does.
type Verb string

// The verbs.
const (
	// AddFinalizer adds hotspare's finalizer to the customization.
	AddFinalizer Verb = "add finalizer"
	// AcquireLease acquires the lease for a cluster.
	AcquireLease Verb = "acquire lease"
	// ReportHolder sets the conditions to the state of the cluster that has the lease.
	ReportHolder Verb = "report cluster"
	// ReleaseLease releases the lease.
	ReleaseLease Verb = "release lease"
	// ReportFree reports that no cluster has the lease of a new customization.
	ReportFree Verb = "report free"
	// ReportStatus sets observedGeneration, and the condition Reconciling or Stalled.
	ReportStatus Verb = "report status"
	// RemoveClusterFinalizer removes hotspare's finalizer from a cluster.
	RemoveClusterFinalizer Verb = "remove finalizer of cluster"
	// RemoveFinalizer removes hotspare's finalizer from the customization.
	RemoveFinalizer Verb = "remove finalizer"
)

// A Reason is why a lease is released, from a closed list.
type Reason string

// The reasons why a lease is released.
const (
	// ClusterNotFound: the cluster that has the lease does not exist, and is not about to be
	// created.
	ClusterNotFound Reason = "ClusterNotFound"
	// ClusterUsesOther: the cluster that has the lease does not name the customization.
	ClusterUsesOther Reason = "ClusterUsesOther"
	// ClusterDestroyed: the cluster that has the lease is destroyed.
	ClusterDestroyed Reason = "ClusterDestroyed"
	// NoHolder: the customization is reported as in use, and names no cluster.
	NoHolder Reason = "NoHolder"
)

// A Step is one write.
type Step struct {
	Verb Verb
	// Cluster is set for AcquireLease and RemoveClusterFinalizer.
	Cluster Cluster
	// Reason is set for ReleaseLease, Message explains it.
	Reason  Reason
	Message string
	// ApplySucceeded is the condition to set for ReportHolder; the zero value leaves it unchanged.
	ApplySucceeded condition.Value
}

// String returns the step as text, such as "release lease: cluster x does not exist".
func (s Step) String() string {
	switch {
	case s.Verb == AcquireLease:
		return fmt.Sprintf("%s for cluster %s", s.Verb, s.Cluster.Key.Name)
	case s.Verb == RemoveClusterFinalizer:
		return fmt.Sprintf("%s %s", s.Verb, s.Cluster.Key.Name)
	case s.Verb == ReleaseLease:
		return fmt.Sprintf("%s: %s", s.Verb, s.Message)
	case s.ApplySucceeded.Reason != "":
		return fmt.Sprintf("%s: %s", s.Verb, s.ApplySucceeded.Reason)
	default:
		return string(s.Verb)
	}
}

// writesStatus reports whether the step writes the customization's status.
func (s Step) writesStatus() bool {
	return slices.Contains([]Verb{AcquireLease, ReportHolder, ReleaseLease, ReportFree, ReportStatus}, s.Verb)
}

// A Plan is what to do about a customization and its lease.
type Plan struct {
	// Steps are executed in order. At most one of them writes the customization's status.
	Steps []Step
}
