package dataplane

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/facts"
)

// planRemoval releases what a data plane has, in at least three passes: when nothing is on it any
// more, it writes the phase Cleanup; then it releases everything; and when that is gone, it deletes
// the object. The phase cannot be left: no instance can be placed any more, because a placement
// writes the DataPlane at the resource version that it has observed.
func (s Snapshot) planRemoval(p *Plan) {
	if s.Plane.DeletionTimestamp != nil && !slices.Contains(s.Plane.Finalizers, v1alpha1.FinalizerDataPlane) {
		return // finalizers of others keep it
	}
	switch s.currentPhase() {
	case v1alpha1.PhaseCleanup:
		s.releaseResources(p)
		return
	case v1alpha1.PhaseFailed:
		s.planFailedRemoval(p)
		return
	}
	reason, why := s.keepReason()
	if why == "" {
		s.enterPhase(p, v1alpha1.PhaseCleanup)
		return
	}
	switch {
	case s.hasBeenReady():
		s.planRunning(p) // otherwise nothing would ever be deleted
	case s.hasAgentReported():
		s.inquireAgent(p)
	}
	s.setNotReady(p, reason, "%s", why)
}

// planFailedRemoval releases what a data plane has that failed before it was Ready, as far as the
// hub knows. The hub may have been restored from a backup that was taken while the data plane was
// on its way, and may have lost the placements since then. If the agent has ever reported, the
// cluster is therefore kept until the agent reports that nothing is on it. The condition Ready
// keeps the reason of the failure; InstancesListed says why the cluster is kept.
func (s Snapshot) planFailedRemoval(p *Plan) {
	const kept = " Its cluster is kept: see condition " + v1alpha1.DataPlaneInstancesListed + "."
	reason, message := "", ""
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.DataPlaneReady); c != nil {
		reason, message = c.Reason, strings.TrimSuffix(c.Message, kept)
	}
	why := ""
	switch since, _ := s.inquiryTime(); {
	case s.isClusterGone(), s.keepsCluster(), s.Plane.Spec.DiscardUnlisted && len(s.remainingInstances()) == 0:
	case s.hasAgentReported():
		_, why = s.keepReason()
	case s.ownsAgent() && s.isClusterRunning() && s.Now.Before(since.Add(facts.AgentSilenceTimeout)):
		why = "Its agent still has time to report."
	}
	if why != "" {
		s.inquireAgent(p)
		message += kept
	}
	if reason != "" {
		s.setNotReady(p, reason, "%s", message)
	}
	if why == "" {
		s.releaseResources(p)
	}
}

// inquireAgent asks the agent what is on the data plane, and records its answer.
func (s Snapshot) inquireAgent(p *Plan) {
	s.recordAgentReport(p)
	if taken := s.ensureAgent(p, nil); taken == "" && s.isClusterRunning() {
		s.installAgent(p, silentRetryInterval)
	}
	p.requeueAfter(silentRetryInterval)
}

// hasAgentReported reports whether the agent has ever reported. If it has not, the data plane was
// never Ready, and nothing was placed on it.
func (s Snapshot) hasAgentReported() bool {
	return s.Plane.Status.Agent != nil || s.ownsAgent() && s.Agent.Status.Report != nil && s.Agent.Status.Report.DataPlaneUID == string(s.Plane.UID)
}

// keepReason returns why the cluster cannot be released yet: instances are on it, or reserved
// instances are on a cluster that is kept. If the cluster is gone, so are its instances.
//
// The cluster is also kept until its agent has reported, after the removal began, that nothing else
// is there: the hub may have lost a ServiceInstance, or a person may have force-deleted one.
func (s Snapshot) keepReason() (reason, why string) {
	if s.isClusterGone() {
		return "", ""
	}
	if names := s.remainingInstances(); len(names) > 0 {
		return v1alpha1.ReasonInstancesLeft,
			fmt.Sprintf("Deletion is waiting for %s (%d): delete these ServiceInstances to continue.", listFirst(names), len(names))
	}
	live := facts.AgentLiveCondition(s.Plane, s.Now).Status == metav1.ConditionTrue
	if !s.keepsCluster() {
		return s.occupiedReason(live)
	}
	if !live || !s.ownsAgent() || s.Agent.Status.Report == nil {
		return "", ""
	}
	if slices.ContainsFunc(s.Agent.Status.Report.Instances, func(i v1alpha1.InstanceReport) bool { return i.Reserved }) {
		return v1alpha1.ReasonInstancesLeft, "Its cluster is kept: deletion is waiting until the reserved instances are removed from it."
	}
	return "", ""
}

// occupiedReason returns why a cluster that would be destroyed is kept, although no known instance
// is on it.
func (s Snapshot) occupiedReason(live bool) (reason, why string) {
	if !s.hasBeenReady() && !s.hasAgentReported() {
		return "", ""
	}
	c := facts.CompareContents(s.Plane, s.Agent, s.Instances, s.Moved)
	since, _ := s.inquiryTime()
	why = facts.OccupiedReason(s.Plane, c, live, since)
	switch {
	case why == "":
		return "", ""
	case len(c.Unlisted) > 0 || c.Excess != "":
		return v1alpha1.ReasonUnlistedInstances, "Deletion is waiting. " + why
	}
	return v1alpha1.ReasonContentsUnknown, "Deletion is waiting. " + why
}

// releaseResources releases everything, and then the object: first the agent's rights on the hub,
// then the cluster, or the agent on a cluster that is kept.
func (s Snapshot) releaseResources(p *Plan) {
	if s.currentPhase() == v1alpha1.PhaseCleanup {
		s.enterPhase(p, v1alpha1.PhaseCleanup)
	}
	if !s.Revoked {
		p.addSteps(Step{Verb: RevokeRights})
	}
	if s.ownsAgent() {
		p.addSteps(Step{Verb: DeleteAgent, Agent: s.Agent})
	}
	s.unprotectCluster(p)
	if s.keepsCluster() {
		if _, ok := s.KubeconfigSecret(); ok && !s.Removed {
			p.addSteps(Step{Verb: RemoveAgent})
		}
	} else if s.releaseCluster(p) {
		return
	}
	switch {
	case s.Plane.DeletionTimestamp != nil:
		p.addSteps(Step{Verb: RemoveFinalizer})
	case s.currentPhase() == v1alpha1.PhaseCleanup:
		p.addSteps(Step{Verb: DeletePlane})
	}
}

// releaseCluster releases the cluster, and reports whether it still exists.
func (s Snapshot) releaseCluster(p *Plan) bool {
	ref := s.clusterRef()
	switch {
	case ref.Claim != nil && s.Claim != nil && OwnsObject(s.Plane, s.Claim):
		if s.Claim.DeletionTimestamp == nil {
			p.addSteps(Step{Verb: DeleteClaim, Claim: s.Claim})
		}
		return true // its finalizer keeps it until its cluster is gone
	case ref.Deployment != nil && s.Cluster != nil && OwnsObject(s.Plane, s.Cluster):
		if s.Cluster.DeletionTimestamp == nil {
			p.addSteps(Step{Verb: DeleteCluster, Cluster: s.Cluster})
		}
		return true
	}
	return false
}
