package power

import (
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// Errand is an object in the cluster to which its controller manager has to react.
// Nodes say that they are ready by their own clock, and an API answers, while
// nothing that is asked of the cluster is done: a controller manager that does not
// get its lease, or no certificate, goes unnoticed. Whether it has reacted since
// the resume began shows that it acts.
type Errand struct {
	// Mark tells the resume that it was sent in; empty when there is none.
	Mark string
	// Done is whether the controller manager has reacted to it.
	Done bool
	// Refused says in a few stable words why the cluster takes no errand; empty when it does.
	Refused string
}

// AsksErrand reports whether to look for the errand: in a resume, and not in a
// cluster that has arrived.
func (s Seen) AsksErrand() bool {
	return s.Acting() && s.Record != nil && s.Record.Target == hivev1.PowerRunning && s.sends(record{PowerTransition: *s.Record})
}

// sends reports whether the transition needs an errand. Coming up after the
// install is no resume: the installer has seen the cluster act.
func (s Seen) sends(rec record) bool {
	return rec.FinishedAt == nil && s.supported() && !rec.poweredOn(s.InstalledAt).IsZero()
}

// mark is the name of a resume.
func (r record) mark() string { return r.StartedAt.UTC().Format(time.RFC3339) }

// errand is the mark of the errand to be sent now: as soon as the API answers, so
// that it is done by the time the nodes are ready.
func (s Seen) errand(rec record) string {
	e := s.Spoke.Errand
	if !s.sends(rec) || !s.Spoke.Answers || e.Refused != "" || e.Mark == rec.mark() {
		return ""
	}
	return rec.mark()
}

// errandGap is what the cluster lacks until its controller manager has acted. One
// that takes no errand is not held up: it says so when it runs.
func (s Seen) errandGap(rec record) *gap {
	e := s.Spoke.Errand
	if !s.sends(rec) || e.Refused != "" || e.Mark == rec.mark() && e.Done {
		return nil
	}
	return missing(hivev1.ReasonWaitingForControllers,
		"Waiting for the cluster's controller manager to act: it has not looked at PodDisruptionBudget hotspare-resume in namespace kube-system yet.")
}

// Sent is the decision after its errand has been sent: a controller manager that
// acts takes no longer than this.
func (d Decision) Sent() Decision {
	d.Next = min(d.Next, fastest)
	return d
}

// unproven says that nobody knows whether the controller manager acts.
func (s Seen) unproven() string {
	if s.Spoke.Errand.Refused == "" {
		return ""
	}
	return " Whether its controller manager acts is not known: " + s.Spoke.Errand.Refused + "."
}
