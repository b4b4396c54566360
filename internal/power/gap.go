package power

import (
	"fmt"
	"slices"
	"strings"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
)

// operatorSettleTime is how long cluster operators are given, after the nodes, to notice
// that they slept: until then they show what they said before.
const operatorSettleTime = 2 * time.Minute

// gap is the first thing that a cluster lacks for the state it should be in.
type gap struct {
	reason, message string
	// permanent gaps do not close by waiting: users are told that it failed.
	permanent bool
	// machines: it is due to the machines themselves, not to a platform that
	// refuses, or cannot be asked.
	machines bool
}

func newGap(reason, format string, args ...any) *gap {
	return &gap{reason: reason, message: fmt.Sprintf(format, args...)}
}

// firstGap is the first thing the cluster lacks for being ready, in the order in
// which a cluster comes up: machines, API, spot machines, nodes, controllers, operators. nil: it is ready.
func (s Snapshot) firstGap(rec record, now time.Time) *gap {
	if g := s.machinesDownGap(rec); g != nil {
		return g
	}
	if !s.Spoke.Answers {
		return newGap(hivev1.ReasonWaitingForNodes, "The cluster's API does not answer: %s.", s.Spoke.Trouble)
	}
	if g := s.spotGap(now); g != nil {
		return g
	}
	if g := s.nodeGap(rec); g != nil {
		return g
	}
	if g := s.controllerGap(rec); g != nil {
		return g
	}
	if s.Spoke.OpenShift && s.NeedsOperators() {
		return s.operatorGap(rec, now)
	}
	return nil
}

// machinesDownGap is the machines' part of gap. Once a cluster has come up, machines
// that can't be looked at do not bring it down: its nodes are evidence enough.
func (s Snapshot) machinesDownGap(rec record) *gap {
	if !s.Actuator || (s.MachinesFault != nil && rec.FinishedAt != nil) {
		return nil
	}
	g := s.machineStateGap(cloud.Running)
	if g == nil {
		return nil
	}
	g.reason = hivev1.ReasonWaitingForMachines
	if s.startAction() == Start {
		g.reason = hivev1.ReasonStartingMachines
	}
	return g
}

// machineStateGap is what the machines lack for all being in state want. No machine
// at all is neither running nor stopped (Hive D12), and a state that nobody
// knows blocks both (Hive D13).
func (s Snapshot) machineStateGap(want cloud.State) *gap {
	switch {
	case s.MachinesFault != nil:
		return &gap{message: s.MachinesFault.unobservedMessage(), permanent: s.MachinesFault.Kind != fault.Wait}
	case len(s.Machines) == 0:
		return &gap{message: fmt.Sprintf("The platform %s knows no machine with infrastructure ID %q.", s.Platform, s.InfraID), permanent: true, machines: true}
	case s.Machines.AllIn(want):
		return nil
	}
	return &gap{
		message:   fmt.Sprintf("Waiting for machines to be %s: %s.", strings.ToLower(string(want)), s.machinesNotIn(want)),
		permanent: s.hasMachineIn(cloud.Failed), machines: s.hasMachineIn(cloud.Failed),
	}
}

// machinesNotIn names the machines not in state want, sorted, and tells what is odd about any.
func (s Snapshot) machinesNotIn(want cloud.State) string {
	var names []string
	for _, m := range s.Machines {
		switch m.State {
		case want:
		case cloud.Failed, cloud.Unknown:
			names = append(names, fmt.Sprintf("%s (%s: %s)", m.Name, m.State, m.Reason))
		default:
			names = append(names, m.Name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// nodeGap wants every node ready, and to have said so since the power came on:
// a node that slept goes on looking Ready for some time after (Hive D18).
func (s Snapshot) nodeGap(rec record) *gap {
	if len(s.Spoke.Nodes) == 0 {
		return newGap(hivev1.ReasonWaitingForNodes, "Waiting for nodes: the cluster has none.")
	}
	since := rec.poweredOnAt(s.InstalledAt)
	var names []string
	for _, n := range s.Spoke.Nodes {
		if !n.Ready || !n.Renewed.After(since) {
			names = append(names, n.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return newGap(hivev1.ReasonWaitingForNodes, "Waiting for nodes to be ready: %s.", strings.Join(names, ", "))
}

// operatorGap lets the operators come to their senses, then wants them settled.
// An OpenShift cluster without any has not come to its senses.
func (s Snapshot) operatorGap(rec record, now time.Time) *gap {
	if on := rec.poweredOnAt(s.InstalledAt); !on.IsZero() && now.Before(s.nodesReadySince(on).Add(operatorSettleTime)) {
		return newGap(hivev1.ReasonPausingForOperators, "Pausing %s for cluster operators to settle.", operatorSettleTime)
	}
	if len(s.Spoke.Operators) == 0 {
		return newGap(hivev1.ReasonWaitingForOperators, "Waiting for cluster operators: the cluster shows none.")
	}
	var names []string
	for _, o := range s.Spoke.Operators {
		if !o.Settled {
			names = append(names, o.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return newGap(hivev1.ReasonWaitingForOperators, "Waiting for cluster operators to settle: %s.", strings.Join(names, ", "))
}

// nodesReadySince is when the last node became ready, but not before the power came on.
func (s Snapshot) nodesReadySince(on time.Time) time.Time {
	for _, n := range s.Spoke.Nodes {
		on = laterTime(on, n.ReadySince)
	}
	return on
}

func laterTime(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
