package provision

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// ConditionTypes are all that this package ever reports on a cluster, so that
// those nothing is known about yet can be shown as such.
func ConditionTypes() []string {
	return []string{
		hivev1.ClusterProvisioned,
		hivev1.ClusterProvisionStopped,
		hivev1.ClusterProvisionFailed,
		hivev1.ClusterAuthenticationFailure,
		hivev1.ClusterInstallLaunchError,
		hivev1.ClusterRequirementsMet,
		hivev1.ClusterDeprovisionLaunchError,
	}
}

// Decide plans one round of a pass: what can be done at once, given what was
// seen and what executors have said. Where the plan Asks, do its steps, put the
// answers into the snapshot and decide again; nothing is asked twice in a pass.
//
// A cluster that names another installer (clusterInstallRef) is marked and let
// go again, no more: Mirror tells of it, and whoever made it destroys it.
func Decide(s Snapshot) Plan {
	c := s.Cluster
	switch {
	case c.Paused:
		return Plan{}
	case c.Deleting:
		return remove(s)
	}
	var p Plan
	if !c.Marked {
		p.do(Step{Do: Mark})
	}
	open := s.open()
	switch {
	case c.Foreign:
	case c.Installed:
		settle(&p, s, open)
	case open != nil:
		carryOn(&p, s, *open)
	default:
		startNext(&p, s)
	}
	return p
}

// settle reports an installed cluster. If the attempt that made it was not
// completed, its result may not have been stored: then it is asked for again.
func settle(p *Plan, s Snapshot, open *Attempt) {
	reportInstalled(p)
	if s.Cluster.Stopped {
		// Somebody has set it, to have the cluster's pool replace the cluster (Hive's
		// e2e-pool-test.sh does): it was False when the cluster became installed.
		p.keep(hivev1.ClusterProvisionStopped)
	}
	if open == nil {
		return
	}
	if _, _, unmet := s.unmet(); unmet {
		return
	}
	if s.Install == nil {
		p.do(Step{Do: Install, Attempt: open.Number, InfraID: open.InfraID})
		return
	}
	if s.Install.Outcome == Succeeded {
		p.Last = append(p.Last, Step{Do: Complete, Attempt: open.Number, Name: open.Name})
	}
}

// carryOn goes on with an attempt that has been recorded.
func carryOn(p *Plan, s Snapshot, a Attempt) {
	reportUnderWay(p, fmt.Sprintf("Attempt %d is under way; ClusterProvision %s tells more.", a.Number, a.Name))
	if !reportNeeds(p, s) {
		return
	}
	step := Step{Attempt: a.Number, Name: a.Name, InfraID: a.InfraID}
	as := func(v Verb) Step { step.Do = v; return step }
	answer := s.Install
	if answer == nil {
		if s.Cluster.InfraID != a.InfraID {
			p.do(as(Publish))
		}
		p.do(as(Install))
		return
	}
	switch answer.Outcome {
	case Running:
		p.Next = poll
	case Succeeded:
		p.do(as(Deliver))
		// Installed is said last: whoever sees it finds the Secrets and the status.
		p.Last = append(p.Last, as(Finish), as(Complete))
		reportInstalled(p)
	case Failed:
		// What it left is destroyed in a later pass, one that has seen it
		// failed: asking to install what is being destroyed would revive it.
		p.do(as(Fail))
	default:
		hold(p, *answer)
	}
}

// startNext leads from nothing, or from an attempt that failed, to the next one.
func startNext(p *Plan, s Snapshot) {
	last := s.latest()
	reportFailure(p, last)
	number := 0
	if last != nil {
		number = last.Number + 1
	}
	stopped := s.Cluster.Limit != nil && number >= *s.Cluster.Limit
	if stopped {
		reportStopped(p, *s.Cluster.Limit)
	}
	if !clearAway(p, s, last) || stopped || !reportNeeds(p, s) {
		return
	}
	if wait := backoffLeft(s.Now, last); wait > 0 {
		p.Next = wait
		return
	}
	if s.Prepare != nil {
		refuse(p, *s.Prepare)
		return
	}
	for _, old := range s.forgettable() {
		p.do(Step{Do: Forget, Attempt: old.Number, Name: old.Name})
	}
	p.do(Step{Do: Record, Attempt: number, Name: AttemptName(s.Cluster.Name, s.Cluster.UID, number)})
}

// clearAway destroys what earlier attempts left, and reports whether nothing of it is there.
func clearAway(p *Plan, s Snapshot, last *Attempt) bool {
	left := s.remains()
	if len(left) == 0 {
		return true
	}
	since := s.Now
	if last != nil {
		since = last.FailedAt
	}
	if !demolish(p, s, left, since) {
		return false
	}
	for _, a := range s.Attempts {
		if !a.Destroyed {
			p.do(Step{Do: Bury, Attempt: a.Number, Name: a.Name, InfraID: a.InfraID})
		}
	}
	return true
}

// backoffLeft is how much of the wait after a failed attempt is left.
func backoffLeft(now time.Time, last *Attempt) time.Duration {
	if last == nil {
		return 0
	}
	return max(0, last.FailedAt.Add(backoff(last.Number)).Sub(now))
}

// refuse reports that an attempt could not be prepared.
func refuse(p *Plan, a Answer) {
	if a.Outcome == Refused {
		p.report(hivev1.ClusterRequirementsMet, corev1.ConditionFalse, hivev1.ReasonInstallConfigValidationFailed, a.Message)
		return
	}
	hold(p, a)
}

// hold reports why an attempt does not get on, and looks again later.
func hold(p *Plan, a Answer) {
	p.report(hivev1.ClusterProvisioned, corev1.ConditionFalse, hivev1.ReasonProvisioning, a.Message)
	if a.NotLaunched {
		p.report(hivev1.ClusterInstallLaunchError, corev1.ConditionTrue, hivev1.ReasonPodPending, a.Message)
	}
	if a.Unauthorized {
		p.report(hivev1.ClusterAuthenticationFailure, corev1.ConditionTrue, hivev1.ReasonPlatformAuthError, a.Message)
	}
	p.Next = reconsider
	if a.Outcome == Waiting {
		p.Next = a.After
	}
}
