package power

import (
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// ResumeProbe is an object in the cluster to which its controller manager must react. During a
// resume, nodes can report that they are ready and the API can answer although the cluster does
// no work: a controller manager without its lease or its certificate goes unnoticed. A reaction
// since the resume began shows that the controller manager works.
type ResumeProbe struct {
	// Mark identifies the resume for which the probe was created; empty if there is no probe.
	Mark string
	// Done reports whether the controller manager has reacted to the probe.
	Done bool
	// Refused says in a few stable words why the cluster does not accept a probe; empty if it
	// does.
	Refused string
}

// NeedsResumeProbe reports whether to read the probe: during a resume, but not once the cluster
// has come up.
func (s Snapshot) NeedsResumeProbe() bool {
	return s.ManagesMachines() && s.Record != nil && s.Record.Target == hivev1.PowerRunning && s.transitionNeedsProbe(record{PowerTransition: *s.Record})
}

// transitionNeedsProbe reports whether the transition needs a probe. The transition after an
// install is not a resume and needs none: the installer has already seen the cluster work.
func (s Snapshot) transitionNeedsProbe(rec record) bool {
	return rec.FinishedAt == nil && s.canHibernate() && !rec.poweredOnAt(s.InstalledAt).IsZero()
}

// probeMark returns the mark that identifies this resume.
func (r record) probeMark() string { return r.StartedAt.UTC().Format(time.RFC3339) }

// probeToCreate returns the mark of the probe to create now, or "". The probe is created as soon
// as the API answers, so that the controller manager has reacted by the time the nodes are ready.
func (s Snapshot) probeToCreate(rec record) string {
	e := s.Spoke.ResumeProbe
	if !s.transitionNeedsProbe(rec) || !s.Spoke.Reachable || e.Refused != "" || e.Mark == rec.probeMark() {
		return ""
	}
	return rec.probeMark()
}

// controllerGap returns the gap that lasts until the controller manager has reacted to the probe.
// A cluster that does not accept a probe is not delayed; its Running message says so.
func (s Snapshot) controllerGap(rec record) *gap {
	e := s.Spoke.ResumeProbe
	if !s.transitionNeedsProbe(rec) || e.Refused != "" || e.Mark == rec.probeMark() && e.Done {
		return nil
	}
	return newGap(hivev1.ReasonWaitingForControllers,
		"Waiting for the cluster's controller manager: it has not updated PodDisruptionBudget hotspare-resume in namespace kube-system yet.")
}

// AfterProbeCreated returns the plan after its probe has been created. It looks again after
// minInterval at the latest: a working controller manager takes no longer to react.
func (p Plan) AfterProbeCreated() Plan {
	p.Next = min(p.Next, minInterval)
	return p
}

// probeRefusedMessage says that it is unknown whether the controller manager works.
func (s Snapshot) probeRefusedMessage() string {
	if s.Spoke.ResumeProbe.Refused == "" {
		return ""
	}
	return " It is unknown whether its controller manager works: " + s.Spoke.ResumeProbe.Refused + "."
}
