package power

import (
	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

// State is what users are told of a cluster's power: the two conditions and the
// word in status.powerState. The three are only ever made together, by the
// functions below, so they cannot contradict each other (Hive D2).
type State struct {
	Word               string
	Hibernating, Ready condition.Value
}

// Messages of the condition that has less to tell.
const (
	seeHibernating = "The cluster is stopping or hibernating: see condition Hibernating."
	seeReady       = "The cluster is resuming: see condition Ready."
)

// notInstalledState is a cluster that is not installed yet.
func notInstalledState() State {
	v := condition.Unknown(hivev1.ReasonInitialized, "The cluster is not installed yet.")
	return State{Hibernating: v, Ready: v}
}

// unknownState is a cluster at whose machines nobody looks.
func unknownState(reason, message string) State {
	v := condition.Unknown(reason, message)
	return State{hivev1.StatusUnknown, v, v}
}

func hibernatingState(message string) State {
	return State{hivev1.StatusHibernating, condition.True(hivev1.ReasonHibernating, message), condition.False(hivev1.ReasonStoppingOrHibernating, seeHibernating)}
}

// stoppingState is a cluster that has not stopped yet; word tells how far it is.
func stoppingState(word, message string) State {
	return State{word, condition.False(hivev1.ReasonStopping, message), condition.False(hivev1.ReasonStoppingOrHibernating, seeHibernating)}
}

func failedToStopState(message string) State {
	return State{hivev1.ReasonFailedToStop, condition.False(hivev1.ReasonFailedToStop, message), condition.False(hivev1.ReasonStoppingOrHibernating, seeHibernating)}
}

// resumingState is a cluster on its way up, for want of what the gap says.
func resumingState(g gap) State {
	return State{g.reason, condition.False(hivev1.ReasonResuming, seeReady), condition.False(g.reason, g.message)}
}

func failedToStartState(g gap, message string) State {
	return State{hivev1.ReasonFailedToStart, condition.False(hivev1.ReasonFailedToStart, message), condition.False(g.reason, g.message)}
}

func runningState(message string) State {
	return State{hivev1.StatusRunning, condition.False(hivev1.ReasonRunning, message), condition.True(hivev1.ReasonRunning, message)}
}

// degradedState is a cluster that has been running and is not ready now; its power is not the cause.
func degradedState(g gap) State {
	return State{g.reason, condition.False(hivev1.ReasonRunning, "The cluster has resumed: see condition Ready."), condition.False(g.reason, g.message)}
}

// withUnsupported says of a state that the cluster cannot hibernate. Whether it is ready does not depend on that.
func (s State) withUnsupported(message string) State {
	s.Word = s.Ready.Reason
	s.Hibernating = condition.False(hivev1.ReasonUnsupported, message)
	return s
}
