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

// operatorSettleTime is how long after the nodes are ready cluster operators have to update their
// status. Until then they may show the status from before the hibernation.
const operatorSettleTime = 2 * time.Minute

// gap is the first thing that a cluster lacks for its desired state.
type gap struct {
	reason, message string
	// permanent gaps do not close by waiting: the transition is reported as failed.
	permanent bool
	// machines is set if the machines themselves cause the gap, and not a platform that refuses a
	// request or cannot be reached.
	machines bool
}

func newGap(reason, format string, args ...any) *gap {
	return &gap{reason: reason, message: fmt.Sprintf(format, args...)}
}

// firstGap returns the first thing that the cluster lacks for being ready, in the order in which
// a cluster comes up: machines, API, spot machines, nodes, controllers, operators. It returns nil
// if the cluster is ready.
func (s Snapshot) firstGap(rec record, now time.Time) *gap {
	if g := s.machinesDownGap(rec); g != nil {
		return g
	}
	if !s.Spoke.Reachable {
		return newGap(hivev1.ReasonWaitingForNodes, "The cluster's API does not answer: %s.", s.Spoke.UnreachableReason)
	}
	if g := s.spotGap(now); g != nil {
		return g
	}
	if s.isAPIOnly() {
		return nil
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

// isAPIOnly reports whether the cluster consists of an API alone: no machine of it is a node. It then runs
// no pods, and may have no controller manager that would act on them.
func (s Snapshot) isAPIOnly() bool {
	return s.Actuator && s.MachinesFailure == nil && len(s.Spoke.Nodes) == 0 && !s.Machines.ExpectNodes()
}

// machinesDownGap returns the part of firstGap that concerns the machines. Once a cluster has
// come up, machines that cannot be observed do not make it unready: its nodes are evidence
// enough.
func (s Snapshot) machinesDownGap(rec record) *gap {
	if !s.Actuator || (s.MachinesFailure != nil && rec.FinishedAt != nil) {
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

// machineStateGap returns the gap until all machines are in state want. A cluster without any
// machine is neither running nor stopped (Hive D12), and a machine in an unknown state blocks
// both (Hive D13).
func (s Snapshot) machineStateGap(want cloud.State) *gap {
	switch {
	case s.MachinesFailure != nil:
		return &gap{message: s.MachinesFailure.unobservedMessage(), permanent: s.MachinesFailure.Kind != fault.Wait}
	case len(s.Machines) == 0:
		return &gap{message: fmt.Sprintf("The platform %s has no machine with infrastructure ID %q.", s.Platform, s.InfraID), permanent: true, machines: true}
	case s.Machines.AllIn(want):
		return nil
	}
	return &gap{
		message:   fmt.Sprintf("Waiting for machines to be %s: %s.", strings.ToLower(string(want)), s.machinesNotIn(want)),
		permanent: s.hasMachineIn(cloud.Failed), machines: s.hasMachineIn(cloud.Failed),
	}
}

// machinesNotIn returns the sorted names of the machines not in state want, each with what is
// unusual about it.
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

// nodeGap returns the gap until every node is ready and has reported so since the power came on:
// a node that was stopped still looks Ready for some time afterwards (Hive D18).
func (s Snapshot) nodeGap(rec record) *gap {
	if len(s.Spoke.Nodes) == 0 {
		return newGap(hivev1.ReasonWaitingForNodes, "Waiting for nodes: the cluster has no nodes.")
	}
	since := rec.poweredOnAt(s.InstalledAt)
	var names []string
	for _, n := range s.Spoke.Nodes {
		switch {
		case n.Ready && n.Renewed.After(since):
		case n.Problem != "":
			names = append(names, fmt.Sprintf("%s (%s)", n.Name, n.Problem))
		default:
			names = append(names, n.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return newGap(hivev1.ReasonWaitingForNodes, "Waiting for nodes to be ready: %s.", strings.Join(names, ", "))
}

// operatorGap returns the gap until operatorSettleTime has passed and all operators are settled.
// An OpenShift cluster that lists no operators is not ready yet.
func (s Snapshot) operatorGap(rec record, now time.Time) *gap {
	if on := rec.poweredOnAt(s.InstalledAt); !on.IsZero() && now.Before(s.nodesReadySince(on).Add(operatorSettleTime)) {
		return newGap(hivev1.ReasonPausingForOperators, "Pausing %s for cluster operators to settle.", operatorSettleTime)
	}
	if len(s.Spoke.Operators) == 0 {
		return newGap(hivev1.ReasonWaitingForOperators, "Waiting for cluster operators: the cluster lists none.")
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

// nodesReadySince returns when the last node became ready, but no time before the power came on.
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
