package power

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
)

// Snapshot is one observation of one cluster: everything that Next goes by.
type Snapshot struct {
	// Seed spreads clusters over time; the cluster's UID.
	Seed string
	// Wanted is spec.powerState; empty is Running.
	Wanted hivev1.PowerState
	// What stands in the way of acting.
	Deleted, Installed, Paused bool
	// Fake clusters have no machines and change at once.
	Fake bool
	// Complaint says what in the specification cannot be read; users are told.
	Complaint string

	// Platform is the key in spec.platform, and Actuator whether something can handle it.
	Platform string
	Actuator bool
	// InstallVersion is the version that was installed, and Version the one that the
	// cluster reported last; each may be empty.
	InstallVersion, Version string
	// InfraID marks the cluster's machines at the platform.
	InfraID string

	// Machines are all machines of the cluster, unless looking failed.
	Machines      cloud.Machines
	MachinesFault *Failure
	// Ends is whether stopping ends some of the platform's machines for good; SpotFault
	// is why it could not be asked which.
	Ends      bool
	SpotFault *Failure
	// Spoke is what the cluster's own API says.
	Spoke Spoke
	// LeaveRequests leaves the certificate requests of nodes to others.
	LeaveRequests bool
	// SkipOperators leaves the cluster operators out of being ready.
	SkipOperators bool

	// Record is status.powerTransition; nil before the first one.
	Record *hivev1.PowerTransition
	Limits Limits
	// InstalledAt and ClaimedAt are zero when unknown.
	InstalledAt, ClaimedAt time.Time
	// Pooled clusters ignore hibernateAfter until they are claimed.
	Pooled bool
}

// Limits are the spans that a user has set; zero is none.
type Limits struct {
	ToRunning, ToHibernating, HibernateAfter time.Duration
}

// Spoke is what a cluster's own API says.
type Spoke struct {
	// Asked is whether it was tried at all.
	Asked bool
	// Answers is whether it did. If not, Trouble says why in a few stable words.
	Answers bool
	Trouble string
	Nodes   []Node
	// OpenShift is whether the API knows cluster operators at all.
	OpenShift bool
	Operators []Operator
	// Version is zero unless it was asked for and the cluster reports one.
	Version Version
	// Errand is zero unless it was asked for.
	Errand ResumeProbe
	// Spots are nil unless they were asked for.
	Spots []SpotMachine
	// Requests are nil unless they were asked for and listed.
	Requests *CertificateRequests
}

// Node is a node's readiness with the age of that news.
type Node struct {
	Name  string
	UID   types.UID
	Ready bool
	// ReadySince is when its Ready condition last changed.
	ReadySince time.Time
	// Renewed is the node's last sign of life: its lease, or its heartbeat.
	Renewed time.Time
}

// Operator is an OpenShift cluster operator.
type Operator struct {
	Name string
	// Settled is available, not progressing and not degraded; or disabled.
	Settled bool
}

// ManagesMachines reports whether the machines of the cluster are any of our business
// now. If not, nobody need look at them.
func (s Snapshot) ManagesMachines() bool { return s.Installed && !s.Deleted && !s.Paused && !s.Fake }

// WantsRunning reports whether the cluster should run.
func (s Snapshot) WantsRunning() bool { return s.Wanted != hivev1.PowerHibernating }

// NeedsSpoke reports whether the spoke's API is worth asking: not while it
// sleeps or goes to sleep, nor before there is a machine that could answer. Of one
// whose power is paused nobody knows which.
func (s Snapshot) NeedsSpoke() bool {
	if s.Paused && s.Installed && !s.Deleted && !s.Fake {
		return true
	}
	if !s.ManagesMachines() || (!s.WantsRunning() && s.canHibernate()) {
		return false
	}
	return !s.Actuator || s.MachinesFault != nil || s.hasMachineIn(cloud.Running)
}

// NeedsOperators reports whether cluster operators count: on the way up, not in
// a cluster that has arrived, where every upgrade keeps them busy for an hour.
func (s Snapshot) NeedsOperators() bool {
	return s.ManagesMachines() && !s.SkipOperators && !s.HasComeUp()
}

// HasComeUp reports whether the cluster has come up, and was not told otherwise since.
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
