package power

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
)

// Snapshot is one observation of one cluster: the whole input of Decide.
type Snapshot struct {
	// Seed spreads clusters over time. It is the cluster's UID.
	Seed string
	// DesiredState is spec.powerState; empty means Running.
	DesiredState hivev1.PowerState
	// The machines are managed only if the cluster is installed, not being deleted and not
	// paused.
	Deleted, Installed, Paused bool
	// Fake clusters have no machines and change state at once.
	Fake bool
	// SpecProblem says which field of the specification cannot be parsed. It is reported to users.
	SpecProblem string

	// Platform is the key in spec.platform. Actuator reports whether an actuator can start and
	// stop its machines.
	Platform string
	Actuator bool
	// PlatformObstacle says, as a sentence, why the actuator cannot stop the machines of this cluster,
	// if it can stop those of other clusters. Actuator is then false.
	PlatformObstacle string
	// InstallVersion is the version that was installed, and Version the last one that the cluster
	// reported. Either may be empty.
	InstallVersion, Version string
	// InfraID marks the cluster's machines at the platform.
	InfraID string

	// Machines are all machines of the cluster. MachinesFault is set if they could not be
	// observed.
	Machines        cloud.Machines
	MachinesFailure *Failure
	// StopDeletesMachines reports whether stopping deletes some of the platform's machines permanently.
	// SpotFailure says why the platform could not be asked which ones.
	StopDeletesMachines bool
	SpotFailure         *Failure
	// StopSuspendsControllers reports whether stopping suspends controllers of the platform, which a
	// resume must resume at its end.
	StopSuspendsControllers bool
	// WantedDepth is the depth at which a user wants the cluster to sleep, and Depths are the depths that the
	// platform has in addition to cloud.DepthStop.
	WantedDepth cloud.Depth
	Depths      []cloud.DepthSupport
	// Spoke is what the cluster's own API reports.
	Spoke Spoke
	// HoldsAddresses reports whether the platform keeps the address of a sleeping cluster, and WaitingConnections how
	// many clients wait there.
	HoldsAddresses     bool
	WaitingConnections int
	// Inactivity is what was recorded about the inactivity of the cluster.
	Inactivity InactivityRecord
	// IgnoredNamespaces are the namespaces whose service accounts do not use the cluster.
	IgnoredNamespaces []string
	// LeaveRequests disables the approval of nodes' certificate requests.
	LeaveRequests bool
	// SkipOperators makes readiness independent of the cluster operators.
	SkipOperators bool

	// Record is status.powerTransition; nil before the first one.
	Record *hivev1.PowerTransition
	Limits Limits
	// InstalledAt and ClaimedAt are zero when unknown.
	InstalledAt, ClaimedAt time.Time
	// Pooled clusters ignore hibernateAfter until they are claimed.
	Pooled bool
}

// Limits are the durations that a user has set; zero means none.
type Limits struct {
	ToRunning, ToHibernating, HibernateAfter time.Duration
	// Inactivity is how long nobody uses a claimed cluster before it hibernates.
	Inactivity time.Duration
}

// Spoke is what a cluster's own API reports.
type Spoke struct {
	// Queried reports whether the API was asked at all.
	Queried bool
	// Reachable reports whether the API answered. If not, Trouble says why in a few stable words.
	Reachable         bool
	UnreachableReason string
	Nodes             []Node
	// OpenShift reports whether the API has the cluster operator kind.
	OpenShift bool
	Operators []Operator
	// Version is zero unless it was requested and the cluster reports one.
	Version Version
	// ResumeProbe is the resume probe; zero unless it was requested.
	ResumeProbe ResumeProbe
	// SpotMachines is nil unless the spot machines were requested.
	SpotMachines []SpotMachine
	// Activity is nil unless it was requested and the cluster reports it.
	Activity *Activity
	// ActivityFailure says in a few stable words why the activity was requested and could not be read; "" if the cluster
	// does not report it.
	ActivityFailure string
	// Requests is nil unless the certificate requests were requested and listed.
	Requests *CertificateRequests
}

// Node is a node's readiness and the age of that report.
type Node struct {
	Name  string
	UID   types.UID
	Ready bool
	// ReadySince is when its Ready condition last changed.
	ReadySince time.Time
	// Renewed is the node's last sign of life: the renewal of its lease, or its heartbeat.
	Renewed time.Time
	// Problem is what the node reports of a container runtime that does not run, in one line, or "".
	Problem string
}

// Operator is an OpenShift cluster operator.
type Operator struct {
	Name string
	// Settled reports whether the operator is available, not progressing and not degraded; or
	// disabled.
	Settled bool
}

// ManagesMachines reports whether hotspare manages the cluster's machines now. If not, they need
// not be observed.
func (s Snapshot) ManagesMachines() bool { return s.Installed && !s.Deleted && !s.Paused && !s.Fake }

// WantsRunning reports whether the cluster should run.
func (s Snapshot) WantsRunning() bool { return s.DesiredState != hivev1.PowerHibernating }

// NeedsSpoke reports whether to ask the spoke's API. It returns false while the cluster
// hibernates or is stopping, and before a machine runs that could answer. It returns true for a
// cluster whose power is paused, because its power state is unknown.
func (s Snapshot) NeedsSpoke() bool {
	if s.Paused && s.Installed && !s.Deleted && !s.Fake {
		return true
	}
	if !s.ManagesMachines() || (!s.WantsRunning() && s.canHibernate()) {
		return false
	}
	return !s.Actuator || s.MachinesFailure != nil || s.hasMachineIn(cloud.Running)
}

// NeedsOperators reports whether cluster operators count: during a resume, but not once the
// cluster has come up, when every upgrade keeps them progressing for an hour.
func (s Snapshot) NeedsOperators() bool {
	return s.ManagesMachines() && !s.SkipOperators && !s.HasComeUp()
}

// HasComeUp reports whether the cluster has completed its transition to Running and should still
// run.
func (s Snapshot) HasComeUp() bool {
	return s.WantsRunning() && s.Record != nil && s.Record.Target == hivev1.PowerRunning && s.Record.FinishedAt != nil
}

// hasMachineIn reports whether at least one machine is in one of the states.
func (s Snapshot) hasMachineIn(states ...cloud.State) bool {
	for _, m := range s.Machines {
		for _, state := range states {
			if m.State == state {
				return true
			}
		}
	}
	return false
}
