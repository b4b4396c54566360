package dataplane

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// phaseMessages are the messages of the phases, unless there is something more specific to report.
var phaseMessages = map[v1alpha1.DataPlanePhase]string{
	v1alpha1.PhaseAccepted:        "The data plane was planned, and is about to get a cluster.",
	v1alpha1.PhaseProvisioning:    "The data plane is waiting for a running cluster.",
	v1alpha1.PhaseProvisioned:     "The cluster is running; its nodes are being added and the agent is being installed.",
	v1alpha1.PhaseWaitingForAgent: "The agent is installed, and has not reported yet.",
	v1alpha1.PhaseReady:           "The data plane accepts instances.",
	v1alpha1.PhaseDeprovisioning:  "The data plane is empty and not needed; its agent is checking it once more.",
	v1alpha1.PhaseCleanup:         "Its cluster is being released.",
}

// maxMessageLength is the maximum length of a message in the schema of conditions.
const maxMessageLength = 32768

// setCondition sets a condition in a status. now is its transition time if the status of the
// condition changes.
func setCondition(st *v1alpha1.DataPlaneStatus, c metav1.Condition, now time.Time) {
	c.LastTransitionTime = metav1.NewTime(now)
	if len(c.Message) > maxMessageLength {
		c.Message = c.Message[:maxMessageLength]
	}
	meta.SetStatusCondition(&st.Conditions, c)
}

// setReady sets the condition Ready.
func (s Snapshot) setReady(st *v1alpha1.DataPlaneStatus, status metav1.ConditionStatus, reason, message string) {
	setCondition(st, metav1.Condition{
		Type: v1alpha1.DataPlaneReady, Status: status, Reason: reason, Message: message, ObservedGeneration: s.Plane.Generation,
	}, s.Now)
}

// setNotReady sets the condition Ready to False, with the reason why the data plane takes no
// instances.
func (s Snapshot) setNotReady(p *Plan, reason, format string, args ...any) {
	s.setReady(&p.Status, metav1.ConditionFalse, reason, fmt.Sprintf(format, args...))
}

// enterPhase sets the phase, and the message of that phase.
func (s Snapshot) enterPhase(p *Plan, phase v1alpha1.DataPlanePhase) {
	if p.Status.Phase != phase {
		at := metav1.NewTime(s.Now)
		p.Status.Phase, p.Status.PhaseSince = phase, &at
	}
	if text, ok := phaseMessages[phase]; ok && phase != v1alpha1.PhaseReady {
		s.setNotReady(p, string(phase), "%s", text)
	}
}

// failPlane sets the phase Failed: the data plane cannot become Ready. The next pass releases what
// it has.
func (s Snapshot) failPlane(p *Plan, reason, format string, args ...any) {
	s.enterPhase(p, v1alpha1.PhaseFailed)
	s.setNotReady(p, reason, format, args...)
}

// RefusedStatus returns the status after a step has failed for a reason that a person must fix. The
// phase does not change, and the data plane keeps what it had.
func (s Snapshot) RefusedStatus(p Plan, reason, message string) v1alpha1.DataPlaneStatus {
	st := p.Status
	if phase := s.currentPhase(); st.Phase != phase {
		st.Phase, st.PhaseSince = s.Plane.Status.Phase, s.Plane.Status.PhaseSince
	}
	if now := meta.FindStatusCondition(st.Conditions, v1alpha1.DataPlaneReady); s.currentPhase() == v1alpha1.PhaseReady && now != nil && now.Status == metav1.ConditionTrue {
		// It continues as before: its agent reports whether it can be used.
		s.setReady(&st, metav1.ConditionTrue, now.Reason, now.Message+" But: "+message)
		return st
	}
	s.setReady(&st, metav1.ConditionFalse, reason, message)
	return st
}
