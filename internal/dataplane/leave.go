package dataplane

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/capacity/facts"
)

// leave gives back what a data plane holds, in three passes at least: when nothing is on
// it any more, the phase is written; then all goes; and when it is gone, the object.
// From the phase on there is no way back: nobody places anything on it, since whoever
// does writes the DataPlane on the version that he has seen.
func (s Seen) leave(p *Plan) {
	if s.Plane.DeletionTimestamp != nil && !slices.Contains(s.Plane.Finalizers, v1alpha1.FinalizerDataPlane) {
		return // others hold it
	}
	switch s.phase() {
	case v1alpha1.PhaseCleanup:
		s.release(p)
		return
	case v1alpha1.PhaseFailed:
		s.leaveFailed(p)
		return
	}
	reason, why := s.busy()
	if why == "" {
		s.enter(p, v1alpha1.PhaseCleanup)
		return
	}
	switch {
	case s.served():
		s.running(p) // or nothing would ever go
	case s.reported():
		s.inquire(p)
	}
	s.not(p, reason, "%s", why)
}

// leaveFailed gives back what a data plane holds that failed before it was Ready, as far as
// the hub knows. The hub may have been restored from a backup of a time when it was on its
// way, and have forgotten what was placed on it since. So if its agent has ever reported,
// its cluster is kept until the agent reports that nothing is on it. Condition Ready keeps
// the reason of the failure; InstancesListed says what the cluster is kept for.
func (s Seen) leaveFailed(p *Plan) {
	const kept = " Its cluster is kept: see condition " + v1alpha1.DataPlaneInstancesListed + "."
	reason, message := "", ""
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.DataPlaneReady); c != nil {
		reason, message = c.Reason, strings.TrimSuffix(c.Message, kept)
	}
	why := ""
	switch since, _ := s.inquiry(); {
	case s.gone(), s.stays(), s.Plane.Spec.DiscardUnlisted && len(s.left()) == 0:
	case s.reported():
		_, why = s.busy()
	case s.ours() && s.up() && s.Now.Before(since.Add(facts.Silence)):
		why = "Its agent has time to report."
	}
	if why != "" {
		s.inquire(p)
		message += kept
	}
	if reason != "" {
		s.not(p, reason, "%s", message)
	}
	if why == "" {
		s.release(p)
	}
}

// inquire asks the agent what is on the data plane, and notes what it answers.
func (s Seen) inquire(p *Plan) {
	s.believe(p)
	if taken := s.agent(p, nil); taken == "" && s.up() {
		s.install(p, silent)
	}
	p.again(silent)
}

// reported reports whether its agent has ever reported. Without that it never was Ready,
// and nothing was placed on it.
func (s Seen) reported() bool {
	return s.Plane.Status.Agent != nil || s.ours() && s.Agent.Status.Report != nil && s.Agent.Status.Report.DataPlaneUID == string(s.Plane.UID)
}

// busy says why its cluster cannot be given back yet: instances are on it, or reserved
// ones on a cluster that stays. What was on a cluster that is gone is gone.
//
// Nor is it given back before its agent has reported, since it was to go, that nothing
// else is there: the hub may have lost a ServiceInstance, or a person may have forced one away.
func (s Seen) busy() (reason, why string) {
	if s.gone() {
		return "", ""
	}
	if names := s.left(); len(names) > 0 {
		return v1alpha1.ReasonInstancesLeft,
			fmt.Sprintf("It is to go, and waits for %s (%d): delete these ServiceInstances, and it goes when they have gone.", some(names), len(names))
	}
	live := facts.AgentLive(s.Plane, s.Now).Status == metav1.ConditionTrue
	if !s.stays() {
		return s.occupied(live)
	}
	if !live || !s.ours() || s.Agent.Status.Report == nil {
		return "", ""
	}
	if slices.ContainsFunc(s.Agent.Status.Report.Instances, func(i v1alpha1.InstanceReport) bool { return i.Reserved }) {
		return v1alpha1.ReasonInstancesLeft, "It is to go, and its cluster stays: reserved instances are taken off it first."
	}
	return "", ""
}

// occupied says why a cluster that would be destroyed is kept, though no known instance is on it.
func (s Seen) occupied(live bool) (reason, why string) {
	if !s.served() && !s.reported() {
		return "", ""
	}
	c := facts.ContentsOf(s.Plane, s.Agent, s.Instances, s.Moved)
	since, _ := s.inquiry()
	why = facts.Occupied(s.Plane, c, live, since)
	switch {
	case why == "":
		return "", ""
	case len(c.Unlisted) > 0 || c.Excess != "":
		return v1alpha1.ReasonUnlistedInstances, "Deletion is waiting. " + why
	}
	return v1alpha1.ReasonContentsUnknown, "Deletion is waiting. " + why
}

// release gives everything back, and then the object: what the agent may do at the hub
// first, then the cluster, or the agent on one that stays.
func (s Seen) release(p *Plan) {
	if s.phase() == v1alpha1.PhaseCleanup {
		s.enter(p, v1alpha1.PhaseCleanup)
	}
	if !s.Revoked {
		p.do(Step{Verb: RevokeRights})
	}
	if s.ours() {
		p.do(Step{Verb: DeleteAgent, Agent: s.Agent})
	}
	s.unprotect(p)
	if s.stays() {
		if _, ok := s.Kubeconfigs(); ok && !s.Removed {
			p.do(Step{Verb: RemoveAgent})
		}
	} else if s.returning(p) {
		return
	}
	switch {
	case s.Plane.DeletionTimestamp != nil:
		p.do(Step{Verb: Release})
	case s.phase() == v1alpha1.PhaseCleanup:
		p.do(Step{Verb: DeletePlane})
	}
}

// returning gives the cluster back, and reports whether it is still there.
func (s Seen) returning(p *Plan) bool {
	ref := s.ref()
	switch {
	case ref.Claim != nil && s.Claim != nil && Owned(s.Plane, s.Claim):
		if s.Claim.DeletionTimestamp == nil {
			p.do(Step{Verb: DeleteClaim, Claim: s.Claim})
		}
		return true // it is held until its cluster is gone
	case ref.Deployment != nil && s.Cluster != nil && Owned(s.Plane, s.Cluster):
		if s.Cluster.DeletionTimestamp == nil {
			p.do(Step{Verb: DeleteCluster, Cluster: s.Cluster})
		}
		return true
	}
	return false
}
