package power

import (
	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

// State is a cluster's power as reported to users: the two conditions and status.powerState. Only
// the functions below construct it, so the three cannot contradict each other (Hive D2).
type State struct {
	PowerState         string
	Hibernating, Ready condition.Value
}

// Messages of the less detailed of the two conditions.
const (
	seeHibernating = "The cluster is stopping or hibernating: see condition Hibernating."
	seeReady       = "The cluster is resuming: see condition Ready."
)

// notInstalledState returns the state of a cluster that is not installed yet.
func notInstalledState() State {
	v := condition.Unknown(hivev1.ReasonInitialized, "The cluster is not installed yet.")
	return State{Hibernating: v, Ready: v}
}

// unknownState returns the state of a cluster whose machines are not observed.
func unknownState(reason, message string) State {
	v := condition.Unknown(reason, message)
	return State{hivev1.StatusUnknown, v, v}
}

func hibernatingState(message string) State {
	return State{hivev1.StatusHibernating, condition.True(hivev1.ReasonHibernating, message), condition.False(hivev1.ReasonStoppingOrHibernating, seeHibernating)}
}

// stoppingState returns the state of a cluster that has not stopped yet; powerState is its
// status.powerState.
func stoppingState(powerState, message string) State {
	return State{powerState, condition.False(hivev1.ReasonStopping, message), condition.False(hivev1.ReasonStoppingOrHibernating, seeHibernating)}
}

func failedToStopState(message string) State {
	return State{hivev1.ReasonFailedToStop, condition.False(hivev1.ReasonFailedToStop, message), condition.False(hivev1.ReasonStoppingOrHibernating, seeHibernating)}
}

// resumingState returns the state of a cluster that is resuming and has gap g.
func resumingState(g gap) State {
	return State{g.reason, condition.False(hivev1.ReasonResuming, seeReady), condition.False(g.reason, g.message)}
}

func failedToStartState(g gap, message string) State {
	return State{hivev1.ReasonFailedToStart, condition.False(hivev1.ReasonFailedToStart, message), condition.False(g.reason, g.message)}
}

func runningState(message string) State {
	return State{hivev1.StatusRunning, condition.False(hivev1.ReasonRunning, message), condition.True(hivev1.ReasonRunning, message)}
}

// degradedState returns the state of a cluster that has come up and is not ready now. Its power is not
// the cause.
func degradedState(g gap) State {
	return State{g.reason, condition.False(hivev1.ReasonRunning, "The cluster has resumed: see condition Ready."), condition.False(g.reason, g.message)}
}

// withUnsupported adds to a state that the cluster cannot hibernate. This does not affect
// readiness.
func (s State) withUnsupported(message string) State {
	s.PowerState = s.Ready.Reason
	s.Hibernating = condition.False(hivev1.ReasonUnsupported, message)
	return s
}
