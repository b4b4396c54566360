package pod

import "hotspare.io/hotspare/internal/install/job/state"

// step is what a pod does next about an attempt.
type step string

const (
	// leave: somebody has ended it.
	leave step = "leave"
	// claim: write that `create cluster` is run here, then run it.
	claim step = "claim"
	// watch: another pod is, or was, at it. Look whether it lives.
	watch step = "watch"
	// adopt: write that the end is waited for here, then wait for it.
	adopt step = "adopt"
	// giveUp: write that the attempt has failed.
	giveUp step = "give up"
)

// decideStep decides what a pod that has just begun does about an attempt. silent: the
// holder has not been heard of for as long as it takes to count as dead.
//
// Whoever finds the attempt Creating may not create: what the holder has made is
// known to nobody. If the bootstrap machine has done its work, the cluster comes up
// by itself and can be waited for; else the attempt is given up, to be destroyed by
// its metadata.
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
