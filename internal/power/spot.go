package power

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// spotJoinTimeout is how long a resume waits for the node of a re-created spot machine. A
// platform without spot capacity may never create it. Hive waits equally long after a
// replacement.
const spotJoinTimeout = 4 * time.Minute

// SpotMachine is a Machine in a cluster that runs on an interruptible instance, and that its
// MachineSet re-creates if it is deleted. Stopping such an instance may delete it permanently.
type SpotMachine struct {
	Name       string
	UID        types.UID
	ProviderID string
	Created    time.Time
	// Joined reports whether the machine has a node, Failed whether it never will.
	Joined, Failed bool
	// InstanceLost reports whether the platform says that the instance no longer exists.
	InstanceLost bool
}

// NeedsSpotMachines reports whether the cluster's spot machines count: during a resume, but not
// once the cluster has come up. The health checks of a running cluster handle its own spot
// machines.
func (s Snapshot) NeedsSpotMachines() bool { return s.StopDeletesMachines && s.NeedsResumeProbe() }

// SuspectSpotMachines returns the spot machines that the last stop may have deleted: those older
// than this resume. The platform may not know newer ones yet.
func (s Snapshot) SuspectSpotMachines() []SpotMachine {
	return slices.DeleteFunc(slices.Clone(s.Spoke.SpotMachines), func(m SpotMachine) bool {
		return m.ProviderID == "" || !m.Created.Before(s.Record.StartedAt.Time)
	})
}

// spotsToReplace returns the spot machines whose Machines must be deleted so that they are
// re-created.
func (s Snapshot) spotsToReplace() []SpotMachine {
	if !s.NeedsSpotMachines() || !s.Spoke.Reachable {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.Spoke.SpotMachines), func(m SpotMachine) bool { return !m.InstanceLost })
}

// spotGap returns the gap that lasts until the spot machines have been re-created.
func (s Snapshot) spotGap(now time.Time) *gap {
	if !s.NeedsSpotMachines() {
		return nil
	}
	if s.SpotFailure != nil {
		return newGap(hivev1.ReasonWaitingForNodes, "Cannot determine which spot machines no longer exist: %s.", s.SpotFailure.Message)
	}
	if gone := s.spotsToReplace(); len(gone) > 0 {
		return newGap(hivev1.ReasonWaitingForNodes, "Replacing spot machines that ended when the cluster stopped: %s.", spotNames(gone))
	}
	young := slices.DeleteFunc(slices.Clone(s.Spoke.SpotMachines), func(m SpotMachine) bool {
		return m.Joined || m.Failed || m.Created.Before(s.Record.StartedAt.Time) || !now.Before(m.Created.Add(spotJoinTimeout))
	})
	if len(young) > 0 {
		return newGap(hivev1.ReasonWaitingForNodes, "Waiting for new spot machines to join: %s.", spotNames(young))
	}
	return nil
}

func spotNames(ms []SpotMachine) string {
	var names []string
	for _, m := range ms {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// AfterReplaceFailure returns the plan after deleting Machines has failed for the given reasons.
func (p Plan) AfterReplaceFailure(troubles []string) Plan {
	if len(troubles) == 0 || p.Ready.Reason != hivev1.ReasonWaitingForNodes {
		return p
	}
	slices.Sort(troubles)
	p.Ready.Message += " Machines cannot be deleted: " + strings.Join(slices.Compact(troubles), ", ") + "."
	return p
}
