package power

import (
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// ResumeProbe is an object in the cluster to which its controller manager has to react.
// Nodes say that they are ready by their own clock, and an API answers, while
// nothing that is asked of the cluster is done: a controller manager that does not
// get its lease, or no certificate, goes unnoticed. Whether it has reacted since
// the resume began shows that it acts.
type ResumeProbe struct {
	// Mark tells the resume that it was sent in; empty when there is none.
	Mark string
	// Done is whether the controller manager has reacted to it.
	Done bool
	// Refused says in a few stable words why the cluster takes no errand; empty when it does.
	Refused string
}

// NeedsResumeProbe reports whether to look for the errand: in a resume, and not in a
// cluster that has arrived.
func (s Snapshot) NeedsResumeProbe() bool {
	return s.ManagesMachines() && s.Record != nil && s.Record.Target == hivev1.PowerRunning && s.transitionNeedsProbe(record{PowerTransition: *s.Record})
}

// transitionNeedsProbe reports whether the transition needs an errand. Coming up after the
// install is no resume: the installer has seen the cluster act.
func (s Snapshot) transitionNeedsProbe(rec record) bool {
	return rec.FinishedAt == nil && s.canHibernate() && !rec.poweredOnAt(s.InstalledAt).IsZero()
}

// probeMark is the name of a resume.
func (r record) probeMark() string { return r.StartedAt.UTC().Format(time.RFC3339) }

// probeToCreate is the mark of the errand to be sent now: as soon as the API answers, so
// that it is done by the time the nodes are ready.
func (s Snapshot) probeToCreate(rec record) string {
	e := s.Spoke.Errand
	if !s.transitionNeedsProbe(rec) || !s.Spoke.Answers || e.Refused != "" || e.Mark == rec.probeMark() {
		return ""
	}
	return rec.probeMark()
}

// controllerGap is what the cluster lacks until its controller manager has acted. One
// that takes no errand is not held up: it says so when it runs.
func (s Snapshot) controllerGap(rec record) *gap {
	e := s.Spoke.Errand
	if !s.transitionNeedsProbe(rec) || e.Refused != "" || e.Mark == rec.probeMark() && e.Done {
		return nil
	}
	return newGap(hivev1.ReasonWaitingForControllers,
		"Waiting for the cluster's controller manager to act: it has not looked at PodDisruptionBudget hotspare-resume in namespace kube-system yet.")
}

// AfterProbeCreated is the decision after its errand has been sent: a controller manager that
// acts takes no longer than this.
func (d Plan) AfterProbeCreated() Plan {
	d.Next = min(d.Next, minInterval)
	return d
}

// probeRefusedMessage says that nobody knows whether the controller manager acts.
func (s Snapshot) probeRefusedMessage() string {
	if s.Spoke.Errand.Refused == "" {
		return ""
	}
	return " Whether its controller manager acts is not known: " + s.Spoke.Errand.Refused + "."
}
