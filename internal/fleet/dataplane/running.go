package dataplane

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/facts"
	"hotspare.io/hotspare/internal/fleet/scaling"
)

// planProvisioned gives the cluster its nodes and its agent. It records the maximum number of nodes
// before it creates any.
func (s Snapshot) planProvisioned(p *Plan) {
	s.enterPhase(p, v1alpha1.PhaseProvisioned)
	if s.reportClusterProblem(p) {
		return
	}
	added, why := s.recordMaxNodes(p)
	switch {
	case why != "":
		s.setNotReady(p, v1alpha1.ReasonNoNodes, "%s", why)
		return
	case added:
		return
	}
	s.ensureMachinePools(p)
	if why := s.ensureAgent(p, nil); why != "" {
		s.setNotReady(p, v1alpha1.ReasonNameTaken, "%s", why)
		p.requeueAfter(retryInterval)
		return
	}
	p.addSteps(Step{Verb: GrantRights}, Step{Verb: InstallAgent})
	s.enterPhase(p, v1alpha1.PhaseWaitingForAgent)
}

// planWaitingForAgent waits for a valid report.
func (s Snapshot) planWaitingForAgent(p *Plan) {
	s.enterPhase(p, v1alpha1.PhaseWaitingForAgent)
	if s.reportClusterProblem(p) {
		return
	}
	valid := s.recordAgentReport(p)
	s.ensureMachinePools(p)
	if why := s.ensureAgent(p, nil); why != "" {
		s.setNotReady(p, v1alpha1.ReasonNameTaken, "%s", why)
		p.requeueAfter(retryInterval)
		return
	}
	if !valid {
		s.installAgent(p, silentRetryInterval)
		if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.DataPlaneReportValid); c != nil {
			s.setNotReady(p, c.Reason, "The agent's report is rejected: %s", c.Message)
		}
		return
	}
	s.enterPhase(p, v1alpha1.PhaseReady)
	s.recordEmptySince(p)
	s.setReadiness(p, "")
}

// reportClusterProblem reports whether the cluster cannot be used, and sets the condition if so. A
// managed data plane that loses its cluster before it is Ready fails.
func (s Snapshot) reportClusterProblem(p *Plan) bool {
	reason, why, over := s.clusterProblem()
	switch {
	case why == "":
		return false
	case over:
		s.failIfManaged(p, reason, "%s", why)
	default:
		s.setNotReady(p, reason, "%s", why)
	}
	p.requeueAfter(retryInterval)
	return true
}

// clusterProblem returns what is wrong with the cluster, and whether the cluster is permanently
// gone.
func (s Snapshot) clusterProblem() (reason, why string, over bool) {
	ref := s.clusterRef()
	name := clusterRefName(ref)
	switch {
	case ref.KubeconfigSecret != nil && !s.Kubeconfig:
		return v1alpha1.ReasonClusterGone, fmt.Sprintf("Secret %s with key kubeconfig does not exist in namespace %s: create it.", name, s.Plane.Namespace), true
	case ref.KubeconfigSecret != nil:
		return "", "", false
	case ref.Claim != nil && s.Claim == nil:
		return v1alpha1.ReasonClusterGone, fmt.Sprintf("ClusterClaim %s does not exist any more, and neither does its cluster.", name), true
	case ref.Claim != nil && s.Claim.DeletionTimestamp != nil:
		return v1alpha1.ReasonClusterDeleting, fmt.Sprintf(
			"ClusterClaim %s was deleted, and its cluster is deleted with it: delete the instances on this data plane, and create others.", name), true
	case s.Cluster == nil:
		return v1alpha1.ReasonClusterGone, "Its ClusterDeployment does not exist any more.", true
	case s.Cluster.DeletionTimestamp != nil:
		return v1alpha1.ReasonClusterDeleting, fmt.Sprintf("ClusterDeployment %s was deleted: delete the instances on this data plane, and create others.", s.Cluster.Name), true
	case !s.isClusterRunning():
		return v1alpha1.ReasonClusterDown, fmt.Sprintf("Cluster %s is not running: see its ClusterDeployment.", s.Cluster.Name), false
	}
	return "", "", false
}

// planRunning maintains a data plane that takes instances, or has taken some.
func (s Snapshot) planRunning(p *Plan) {
	s.enterPhase(p, s.currentPhase())
	s.recordAgentReport(p)
	s.recordEmptySince(p)
	reserve := s.planPrewarm(p)
	_, unsized := s.recordMaxNodes(p)
	_, down, _ := s.clusterProblem()
	if down == "" {
		s.ensureMachinePools(p)
	}
	s.protectCluster(p)
	taken := s.ensureAgent(p, reserve)
	if down == "" && taken == "" {
		every := reinstallInterval
		if !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.DataPlaneAgentLive) {
			every = silentRetryInterval
		}
		s.installAgent(p, every)
	}
	switch reason, why, _ := s.clusterProblem(); {
	case s.currentPhase() == v1alpha1.PhaseReady:
		s.setReadiness(p, strings.TrimSpace(unsized+" "+taken))
	case why != "":
		s.setNotReady(p, reason, "%s", why)
	}
}

// protectCluster prevents that deleting the claim destroys its cluster, because instances run on
// it. The annotation records that this data plane has protected the cluster.
func (s Snapshot) protectCluster(p *Plan) {
	if s.keepsCluster() || s.clusterRef().Claim == nil || s.Cluster == nil || s.Claim == nil || !OwnsObject(s.Plane, s.Claim) || s.Cluster.DeletionTimestamp != nil {
		return
	}
	if _, set := s.Cluster.Annotations[hivev1.AnnotationProtectedDelete]; set {
		return
	}
	want := s.Cluster.DeepCopy()
	if want.Annotations == nil {
		want.Annotations = map[string]string{}
	}
	want.Annotations[hivev1.AnnotationProtectedDelete] = "true"
	want.Annotations[v1alpha1.AnnotationDataPlane] = string(s.Plane.UID)
	p.addSteps(Step{Verb: ProtectCluster, Cluster: want})
}

// unprotectCluster reverts protectCluster.
func (s Snapshot) unprotectCluster(p *Plan) {
	if s.clusterRef().Claim == nil || s.Cluster == nil || !OwnsObject(s.Plane, s.Cluster) {
		return
	}
	want := s.Cluster.DeepCopy()
	delete(want.Annotations, hivev1.AnnotationProtectedDelete)
	delete(want.Annotations, v1alpha1.AnnotationDataPlane)
	p.addSteps(Step{Verb: UnprotectCluster, Cluster: want})
}

// installAgent plans to install the agent again if the last time was at least every ago.
func (s Snapshot) installAgent(p *Plan, every time.Duration) {
	left := s.Installed.Add(every).Sub(s.Now)
	if s.Installed.IsZero() || left <= 0 {
		p.addSteps(Step{Verb: GrantRights}, Step{Verb: InstallAgent})
		left = every
	}
	p.requeueAfter(left)
}

// recordAgentReport records the agent's report, as far as it is valid, and whether the agent
// reports at all. The heartbeat has the hub's time: the clocks of data planes are not trusted. It
// returns whether the last report is valid.
func (s Snapshot) recordAgentReport(p *Plan) bool {
	st := &p.Status
	var r *v1alpha1.DataPlaneReport
	if s.ownsAgent() {
		r = s.Agent.Status.Report
	}
	if r != nil && r.DataPlaneUID == string(s.Plane.UID) && (st.Agent == nil || st.Agent.ReportAt == nil || !st.Agent.ReportAt.Equal(&r.At)) {
		now, at := metav1.NewTime(s.Now), metav1.NewTime(r.At.Truncate(time.Second))
		st.Agent = &v1alpha1.AgentStatus{LastHeartbeat: &now, ReportAt: &at, Version: r.AgentVersion}
	}
	dp := s.withStatus(*st)
	j, reported := facts.ValidateReport(dp, r)
	if reported {
		st.Capacity, st.Versions = j.Capacity, j.Versions
		if j.Valid {
			s.recordKnownUnits(st.Capacity, r)
		}
		setCondition(st, j.Condition, s.Now)
	}
	if reported || s.currentPhase() == v1alpha1.PhaseReady {
		setCondition(st, facts.AgentLiveCondition(dp, s.Now), s.Now)
	}
	s.recordContents(p)
	if a := st.Agent; a != nil && a.LastHeartbeat != nil {
		p.requeueAfter(a.LastHeartbeat.Add(facts.AgentSilenceTimeout).Sub(s.Now))
	}
	return reported && j.Valid
}

// recordKnownUnits records how many used units of a valid report belong to known instances.
func (s Snapshot) recordKnownUnits(all map[string]v1alpha1.TypeCapacity, r *v1alpha1.DataPlaneReport) {
	for name := range r.Capacity {
		c := all[name]
		c.KnownUnits = facts.CountKnownUnits(r, name, s.Instances)
		all[name] = c
	}
}

// recordContents records the instances on the data plane that have no ServiceInstance, and whether
// the agent has answered the last inquiry.
func (s Snapshot) recordContents(p *Plan) {
	st := &p.Status
	c := s.compareContents(*st)
	st.Unlisted = c.Unlisted
	if st.Agent != nil && c.AnsweredAt != nil {
		st.Agent.AnsweredAt = c.AnsweredAt.DeepCopy()
	}
	if s.hasBeenReady() || IsBeingRemoved(s.Plane) {
		setCondition(st, facts.InstancesListedCondition(s.Plane, c), s.Now)
	}
}

// compareContents compares the agent's report with the known instances, for the status st.
func (s Snapshot) compareContents(st v1alpha1.DataPlaneStatus) facts.Contents {
	c := facts.CompareContents(s.withStatus(st), s.Agent, s.Instances, s.Moved)
	if c.Unknown == "" && !meta.IsStatusConditionTrue(st.Conditions, v1alpha1.DataPlaneAgentLive) {
		c.Unknown = "The agent does not report, so it is unknown what is on the data plane."
	}
	return c
}

// hasBeenReady reports whether the data plane has been Ready, so that instances may be on it.
func (s Snapshot) hasBeenReady() bool {
	return s.currentPhase() == v1alpha1.PhaseReady || s.currentPhase() == v1alpha1.PhaseDeprovisioning
}

// inquiryTime returns when the removal last began: the agent must have reported the contents since
// then. It returns false while the data plane stays.
func (s Snapshot) inquiryTime() (time.Time, bool) {
	switch since := s.Plane.Status.PhaseSince; {
	case s.Plane.DeletionTimestamp != nil:
		return facts.InquiryTime(s.Plane.DeletionTimestamp.Time, s.Started), true
	case (s.currentPhase() == v1alpha1.PhaseDeprovisioning || s.currentPhase() == v1alpha1.PhaseFailed) && since != nil:
		return facts.InquiryTime(since.Time, s.Started), true
	case s.Plane.Status.ReleasedAt != nil || s.currentPhase() == v1alpha1.PhaseDeprovisioning:
		return facts.InquiryTime(s.Plane.CreationTimestamp.Time, s.Started), true
	}
	return time.Time{}, false
}

// withStatus returns the data plane with another status.
func (s Snapshot) withStatus(st v1alpha1.DataPlaneStatus) *v1alpha1.DataPlane {
	dp := *s.Plane
	dp.Status = st
	return &dp
}

// planPrewarm returns the reserved instances that should be there.
func (s Snapshot) planPrewarm(p *Plan) []scaling.ReservedInstance {
	if s.Region == nil {
		setCondition(&p.Status, facts.PrewarmBlockedCondition(s.Plane, false, "", "No FleetRegion reserves instances on this data plane."), s.Now)
		return nil
	}
	snapshot, err := facts.Objects{Region: s.Region, Types: s.Types, Planes: []*v1alpha1.DataPlane{s.withStatus(p.Status)}, PoolsAssumed: true}.BuildSnapshot(s.Now)
	if err != nil || len(snapshot.Planes) == 0 {
		return s.reservedInstances() // the region cannot be decoded: nothing changes
	}
	w := snapshot.Region.PlanPrewarm(snapshot.Planes[0])
	setCondition(&p.Status, facts.PrewarmBlockedCondition(s.Plane, w.Blocked, string(w.Reason), w.Message), s.Now)
	return w.Want
}

// reservedInstances returns the reserved instances that are listed for the agent.
func (s Snapshot) reservedInstances() []scaling.ReservedInstance {
	if !s.ownsAgent() {
		return nil
	}
	var out []scaling.ReservedInstance
	for _, i := range s.Agent.Spec.Instances {
		if i.Reserved {
			out = append(out, scaling.ReservedInstance{
				Name: i.Name, Type: i.Type, Size: i.Size, Units: int(i.Units),
				Strimzi: i.Versions.Strimzi, Kafka: i.Versions.Kafka, KafkaIBP: i.Versions.KafkaIBP,
			})
		}
	}
	return out
}

// recordEmptySince records since when no instance is on the data plane or booked.
func (s Snapshot) recordEmptySince(p *Plan) {
	switch {
	case len(s.Instances) > 0 || len(s.Plane.Status.Bookings) > 0:
		p.Status.EmptySince = nil
	case p.Status.EmptySince == nil:
		now := metav1.NewTime(s.Now)
		p.Status.EmptySince = &now
	}
}

// setReadiness sets whether the data plane takes instances. but is a problem to add to the message.
func (s Snapshot) setReadiness(p *Plan, but string) {
	live := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.DataPlaneAgentLive)
	reason, why, _ := s.clusterProblem()
	switch {
	case why != "":
		s.setNotReady(p, reason, "%s", why)
		p.requeueAfter(silentRetryInterval) // Secrets are not watched
	case live == nil || live.Status != metav1.ConditionTrue:
		s.setNotReady(p, v1alpha1.ReasonSilent, "The agent does not report: see condition %s.", v1alpha1.DataPlaneAgentLive)
	case s.ownsAgent() && s.Agent.Status.Report != nil && !s.Agent.Status.Report.Ready:
		reason, message := agentNotReadyReason(s.Agent.Status.Report)
		s.setNotReady(p, reason, "Its agent reports: %s", message)
	case s.Plane.Spec.Schedulable != nil && !*s.Plane.Spec.Schedulable:
		s.setNotReady(p, v1alpha1.ReasonUnschedulable, "spec.schedulable is false: no more instances are placed on it.")
	default:
		s.setReady(&p.Status, metav1.ConditionTrue, string(v1alpha1.PhaseReady),
			strings.TrimSpace(phaseMessages[v1alpha1.PhaseReady]+s.overflowMessage()+s.unlistedMessage(p.Status)+" "+but))
	}
}

// agentNotReadyReason returns why an agent is not ready. A reason that the hub does not know
// becomes AgentNotReady.
func agentNotReadyReason(r *v1alpha1.DataPlaneReport) (reason, message string) {
	const most = 1024
	reason, message = v1alpha1.ReasonAgentNotReady, r.Message
	if slices.Contains([]string{v1alpha1.ReasonNoOperator, v1alpha1.ReasonPlaneSilent, v1alpha1.ReasonSpecUnreadable}, r.Reason) {
		reason = r.Reason
	}
	if len(message) > most {
		message = strings.ToValidUTF8(message[:most], "")
	}
	if message == "" {
		message = "nothing."
	}
	return reason, message
}

// unlistedMessage returns a message about instances without a ServiceInstance; "" if there are
// none.
func (s Snapshot) unlistedMessage(st v1alpha1.DataPlaneStatus) string {
	if len(st.Unlisted) == 0 {
		return ""
	}
	return fmt.Sprintf(" Instances without a ServiceInstance are on it, and use its units: see condition %s.", v1alpha1.DataPlaneInstancesListed)
}
