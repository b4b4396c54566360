package power

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// spotJoinTimeout is how long a resume waits for the node of a spot machine that was made
// anew. A platform that is out of spot machines may take for ever. Hive waits as long
// after a replacement.
const spotJoinTimeout = 4 * time.Minute

// SpotMachine is a Machine in a cluster whose machine is interruptible, which a MachineSet
// makes anew if it is deleted. Stopping such a machine may end it for good.
type SpotMachine struct {
	Name       string
	UID        types.UID
	ProviderID string
	Created    time.Time
	// Joined is whether it has a node; Failed whether it never will.
	Joined, Failed bool
	// Gone is whether the platform says that its machine is gone for good.
	Gone bool
}

// NeedsSpotMachines reports whether the cluster's spot machines count: in a resume, and not in
// a cluster that has arrived. What happens to those of a running cluster is the
// business of its own health checks.
func (s Snapshot) NeedsSpotMachines() bool { return s.Ends && s.NeedsResumeProbe() }

// SuspectSpotMachines are the spot machines that may have ended with the last stop: those that
// are older than this resume. A newer one may not be known to the platform yet.
func (s Snapshot) SuspectSpotMachines() []SpotMachine {
	return slices.DeleteFunc(slices.Clone(s.Spoke.Spots), func(m SpotMachine) bool {
		return m.ProviderID == "" || !m.Created.Before(s.Record.StartedAt.Time)
	})
}

// spotsToReplace are the spot machines whose Machines are to be deleted, so that others are made.
func (s Snapshot) spotsToReplace() []SpotMachine {
	if !s.NeedsSpotMachines() || !s.Spoke.Answers {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.Spoke.Spots), func(m SpotMachine) bool { return !m.Gone })
}

// spotGap is what the cluster lacks until its spot machines have been made anew.
func (s Snapshot) spotGap(now time.Time) *gap {
	if !s.NeedsSpotMachines() {
		return nil
	}
	if s.SpotFault != nil {
		return newGap(hivev1.ReasonWaitingForNodes, "Whether spot machines are gone cannot be told: %s.", s.SpotFault.Message)
	}
	if gone := s.spotsToReplace(); len(gone) > 0 {
		return newGap(hivev1.ReasonWaitingForNodes, "Spot machines ended when the cluster stopped and are made anew: %s.", spotNames(gone))
	}
	young := slices.DeleteFunc(slices.Clone(s.Spoke.Spots), func(m SpotMachine) bool {
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

// AfterReplaceFailure is the decision after deleting Machines has failed, for these reasons.
func (d Plan) AfterReplaceFailure(troubles []string) Plan {
	if len(troubles) == 0 || d.Ready.Reason != hivev1.ReasonWaitingForNodes {
		return d
	}
	slices.Sort(troubles)
	d.Ready.Message += " Machines cannot be deleted: " + strings.Join(slices.Compact(troubles), ", ") + "."
	return d
}
