package clusterstate

import (
	"strings"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/pool"
)

// Bootstrap is how far a spare cluster has come in the steps and gates of its pool. The zero value is that of a cluster
// that needs none, or has passed all of them.
type Bootstrap struct {
	// Message says which step the cluster takes or which gates fail, and why. It is a sentence without its first capital
	// letter and without a full stop.
	Message string
	// Failing is set if a step or a gate fails; otherwise it is in progress.
	Failing bool
	// Since is when the step began, or the gates began to fail; zero if that is unknown.
	Since time.Time
}

// BootstrapOf returns the Bootstrap of a cluster that is member m of its pool. cause is the reason why it is broken; empty
// if it is not.
func BootstrapOf(m *pool.Member, cd *hivev1.ClusterDeployment, cause pool.Cause) Bootstrap {
	switch {
	case cause == pool.StepFailed:
		return Bootstrap{Message: "a step of the bootstrap was not done" + reasonSuffix(m.StepFailure), Failing: true, Since: m.StepSince}
	case cause == pool.GateFailed:
		return Bootstrap{Message: "it did not pass the gates of the pool in time" + reasonSuffix(m.GatesFailure), Failing: true, Since: m.GatesFailingSince}
	case cause != "":
		return Bootstrap{}
	case m.AwaitsSteps:
		return Bootstrap{Message: "it runs, and takes the steps of the bootstrap" + reasonSuffix(m.StepFailure), Failing: hasFailingStep(cd), Since: m.StepSince}
	case m.AwaitsGates && m.GatesFailure != "":
		return Bootstrap{Message: "it runs, and no claim gets it" + reasonSuffix(m.GatesFailure), Failing: true, Since: m.GatesFailingSince}
	case m.AwaitsGates:
		return Bootstrap{Message: "it runs, and its gates are being checked"}
	default:
		return Bootstrap{}
	}
}

func hasFailingStep(cd *hivev1.ClusterDeployment) bool {
	c := condition.Find(cd.Status.Conditions, hivev1.ClusterBootstrapped)
	return c != nil && c.Reason == hivev1.ReasonStepFailed
}

// reasonSuffix returns a message after a colon; "" if there is none.
func reasonSuffix(message string) string {
	if message == "" {
		return ""
	}
	return ": " + strings.TrimRight(message, ".")
}
