package dataplane

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// phaseMessages are what is said of a data plane in a phase, unless something else must be.
var phaseMessages = map[v1alpha1.DataPlanePhase]string{
	v1alpha1.PhaseAccepted:        "It was decided on, and is about to get a cluster.",
	v1alpha1.PhaseProvisioning:    "It waits for a running cluster.",
	v1alpha1.PhaseProvisioned:     "It has a running cluster, which gets its nodes and the agent.",
	v1alpha1.PhaseWaitingForAgent: "The agent is installed, and has not reported yet.",
	v1alpha1.PhaseReady:           "It takes instances.",
	v1alpha1.PhaseDeprovisioning:  "It is empty and not needed, and is looked at once more.",
	v1alpha1.PhaseCleanup:         "Its cluster is given back.",
}

// maxMessageLength bounds a message, as the schema of conditions does.
const maxMessageLength = 32768

// setCondition puts a condition into a status, at a time. The time is that of the last change.
func setCondition(st *v1alpha1.DataPlaneStatus, c metav1.Condition, now time.Time) {
	c.LastTransitionTime = metav1.NewTime(now)
	if len(c.Message) > maxMessageLength {
		c.Message = c.Message[:maxMessageLength]
	}
	meta.SetStatusCondition(&st.Conditions, c)
}

// setReady sets condition Ready.
func (s Snapshot) setReady(st *v1alpha1.DataPlaneStatus, status metav1.ConditionStatus, reason, message string) {
	setCondition(st, metav1.Condition{
		Type: v1alpha1.DataPlaneReady, Status: status, Reason: reason, Message: message, ObservedGeneration: s.Plane.Generation,
	}, s.Now)
}

// setNotReady says why it takes no instances.
func (s Snapshot) setNotReady(p *Plan, reason, format string, args ...any) {
	s.setReady(&p.Status, metav1.ConditionFalse, reason, fmt.Sprintf(format, args...))
}

// enterPhase takes it into a phase, with the words of that phase.
func (s Snapshot) enterPhase(p *Plan, phase v1alpha1.DataPlanePhase) {
	if p.Status.Phase != phase {
		at := metav1.NewTime(s.Now)
		p.Status.Phase, p.Status.PhaseSince = phase, &at
	}
	if text, ok := phaseMessages[phase]; ok && phase != v1alpha1.PhaseReady {
		s.setNotReady(p, string(phase), "%s", text)
	}
}

// failPlane ends it: it cannot come. What it holds is given back in the next pass.
func (s Snapshot) failPlane(p *Plan, reason, format string, args ...any) {
	s.enterPhase(p, v1alpha1.PhaseFailed)
	s.setNotReady(p, reason, format, args...)
}

// RefusedStatus is the status of a data plane of which a step did not succeed, for a cause
// that a person has to know. Its phase stays, and so does what it had.
func (s Snapshot) RefusedStatus(p Plan, reason, message string) v1alpha1.DataPlaneStatus {
	st := p.Status
	if phase := s.currentPhase(); st.Phase != phase {
		st.Phase, st.PhaseSince = s.Plane.Status.Phase, s.Plane.Status.PhaseSince
	}
	if now := meta.FindStatusCondition(st.Conditions, v1alpha1.DataPlaneReady); s.currentPhase() == v1alpha1.PhaseReady && now != nil && now.Status == metav1.ConditionTrue {
		// It goes on as it was: whether it can be used, its agent says.
		s.setReady(&st, metav1.ConditionTrue, now.Reason, now.Message+" But: "+message)
		return st
	}
	s.setReady(&st, metav1.ConditionFalse, reason, message)
	return st
}
