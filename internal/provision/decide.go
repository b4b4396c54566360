package provision

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// ConditionTypes returns all condition types that this package reports on a cluster, so that
// those with an unknown status can be listed as such.
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

// Decide plans one round of a pass: what can be done now, given the observed state and the
// executors' answers. If the plan NeedsAnswers, carry out its steps, add the answers to the
// snapshot and decide again; nothing is asked twice in a pass.
//
// A cluster that names another installer (clusterInstallRef) only gets its finalizer and labels,
// and loses the finalizer on deletion: DecideClusterInstall reports on it, and its own installer
// destroys it.
func Decide(s Snapshot) Plan {
	c := s.Cluster
	switch {
	case c.Paused:
		return Plan{}
	case c.Deleting:
		return decideDeletion(s)
	}
	var p Plan
	if !c.Marked {
		p.addSteps(Step{Do: EnsureFinalizer})
	}
	open := s.openAttempt()
	switch {
	case c.Foreign:
	case c.Installed:
		decideInstalled(&p, s, open)
	case open != nil:
		continueAttempt(&p, s, *open)
	default:
		startNextAttempt(&p, s)
	}
	return p
}

// decideInstalled reports an installed cluster. If its attempt was not completed, the attempt's
// result may not have been stored: then the executor is asked for it again.
func decideInstalled(p *Plan, s Snapshot, open *Attempt) {
	reportInstalled(p)
	if s.Cluster.Stopped {
		// Somebody has set it to make the cluster's pool replace the cluster (Hive's
		// e2e-pool-test.sh does): it was False when the cluster became installed.
		p.dropCondition(hivev1.ClusterProvisionStopped)
	}
	if open == nil {
		return
	}
	if _, _, unmet := s.firstUnmetNeed(); unmet {
		p.Next = deniedRetryInterval // nothing that an install needs wakes an installed cluster
		return
	}
	if s.Install == nil {
		p.addSteps(Step{Do: Install, Attempt: open.Number, InfraID: open.InfraID})
		return
	}
	switch s.Install.Outcome {
	case Succeeded:
		p.Last = append(p.Last, Step{Do: CompleteAttempt, Attempt: open.Number, Name: open.Name})
	case Running:
		p.Next = pollInterval
	case Waiting:
		p.Next = s.Install.After
	default:
		p.Next = deniedRetryInterval
	}
}

// continueAttempt continues an attempt that has been recorded.
func continueAttempt(p *Plan, s Snapshot, a Attempt) {
	reportUnderWay(p, fmt.Sprintf("Attempt %d is in progress; ClusterProvision %s has the details.", a.Number, a.Name))
	if !reportNeeds(p, s) {
		return
	}
	step := Step{Attempt: a.Number, Name: a.Name, InfraID: a.InfraID}
	as := func(v Verb) Step { step.Do = v; return step }
	answer := s.Install
	if answer == nil {
		// The cluster records the attempt before the install begins: then the cluster alone is enough to destroy what the
		// attempt creates. A fake attempt creates nothing, and MarkInstalled publishes its metadata with the same write.
		if s.Cluster.InfraID != a.InfraID && !s.Cluster.Fake {
			p.addSteps(as(PublishMetadata))
		}
		p.addSteps(as(Install))
		return
	}
	switch answer.Outcome {
	case Running:
		p.Next = pollInterval
	case Succeeded:
		p.addSteps(as(StoreCredentials))
		// Installed is set last, so that a client that sees it finds the Secrets and the status.
		p.Last = append(p.Last, as(MarkInstalled), as(CompleteAttempt))
		reportInstalled(p)
	case Failed:
		// A later pass, one that has seen the attempt failed, destroys its leftovers: asking to
		// install what is being destroyed would revive it.
		p.addSteps(as(FailAttempt))
	default:
		reportWaiting(p, *answer)
	}
}

// startNextAttempt starts the first attempt, or the next one after a failed attempt.
func startNextAttempt(p *Plan, s Snapshot) {
	last := s.latestAttempt()
	reportFailure(p, last)
	number := 0
	if last != nil {
		number = last.Number + 1
	}
	stopped := s.Cluster.Limit != nil && number >= *s.Cluster.Limit
	if stopped {
		reportStopped(p, *s.Cluster.Limit)
	}
	if !destroyLeftovers(p, s, last) || stopped || !reportNeeds(p, s) {
		return
	}
	if wait := attemptBackoffLeft(s.Now, last); wait > 0 {
		p.Next = wait
		return
	}
	if s.Prepare != nil {
		reportPrepareFailure(p, *s.Prepare)
		return
	}
	for _, old := range s.attemptsToDelete() {
		p.addSteps(Step{Do: DeleteAttempt, Attempt: old.Number, Name: old.Name})
	}
	p.addSteps(Step{Do: RecordAttempt, Attempt: number, Name: AttemptName(s.Cluster.Name, s.Cluster.UID, number)})
}

// destroyLeftovers destroys what earlier attempts left, and reports whether nothing of it is
// left.
func destroyLeftovers(p *Plan, s Snapshot, last *Attempt) bool {
	left := s.leftoverInfraIDs()
	if len(left) == 0 {
		return true
	}
	since := s.Now
	if last != nil {
		since = last.FailedAt
	}
	if !destroyInfraIDs(p, s, left, since) {
		return false
	}
	for _, a := range s.Attempts {
		if !a.Destroyed {
			p.addSteps(Step{Do: RecordCleanup, Attempt: a.Number, Name: a.Name, InfraID: a.InfraID})
		}
	}
	return true
}

// attemptBackoffLeft returns the remaining backoff after a failed attempt.
func attemptBackoffLeft(now time.Time, last *Attempt) time.Duration {
	if last == nil {
		return 0
	}
	return max(0, NextAttemptTime(last.Number, last.FailedAt).Sub(now))
}

// reportPrepareFailure reports that an attempt could not be prepared.
func reportPrepareFailure(p *Plan, a Answer) {
	if a.Outcome == Refused {
		reportRefused(p, a)
		return
	}
	reportWaiting(p, a)
	if a.PrepareFailed {
		p.setCondition(hivev1.ClusterProvisionFailed, corev1.ConditionTrue, hivev1.ReasonPrepareFailed, a.Message)
	}
}

// reportRefused reports that the request is invalid, where a person looks for what an install lacks.
func reportRefused(p *Plan, a Answer) {
	p.setCondition(hivev1.ClusterRequirementsMet, corev1.ConditionFalse, hivev1.ReasonInstallConfigValidationFailed, a.Message)
}

// reportWaiting reports why an attempt makes no progress, and looks again later.
func reportWaiting(p *Plan, a Answer) {
	p.setCondition(hivev1.ClusterProvisioned, corev1.ConditionFalse, hivev1.ReasonProvisioning, a.Message)
	if a.NotLaunched {
		p.setCondition(hivev1.ClusterInstallLaunchError, corev1.ConditionTrue, hivev1.ReasonPodPending, a.Message)
	}
	if a.Unauthorized {
		p.setCondition(hivev1.ClusterAuthenticationFailure, corev1.ConditionTrue, hivev1.ReasonPlatformAuthError, a.Message)
	}
	if a.Outcome == Waiting {
		p.Next = a.After
		return
	}
	p.Next = deniedRetryInterval
	if !a.Unauthorized { // the platform refused the credentials, not the request
		reportRefused(p, a)
	}
}
