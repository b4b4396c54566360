package pod

import "hotspare.io/hotspare/internal/install/job/state"

// step is the next action of a pod for an attempt.
type step string

const (
	// leave: the attempt has been ended.
	leave step = "leave"
	// claim: record that this process runs `create cluster`, then run it.
	claim step = "claim"
	// watch: another pod has, or had, the attempt. Check whether it is alive.
	watch step = "watch"
	// adopt: record that this process waits for the end of the install, then wait for it.
	adopt step = "adopt"
	// giveUp: record that the attempt has failed.
	giveUp step = "give up"
)

// decideStep decides what a pod that has just started does with an attempt. silent means that the
// holder has sent no heartbeat for so long that it counts as dead.
//
// A pod that finds the attempt Creating must not create: what the holder has created is unknown. If
// the bootstrap machine has done its work, the cluster comes up automatically and the pod can wait
// for it; otherwise the attempt is given up, to be destroyed by its metadata.
func decideStep(s state.State, silent bool) step {
	switch {
	case s.Phase.IsFinal():
		return leave
	case s.Phase == state.Prepared:
		return claim
	case s.Phase != state.Creating:
		return giveUp
	case s.Holder != "" && !silent:
		return watch
	case s.Bootstrapped:
		return adopt
	default:
		return giveUp
	}
}
