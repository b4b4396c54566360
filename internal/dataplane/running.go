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
	"hotspare.io/hotspare/internal/capacity"
	"hotspare.io/hotspare/internal/capacity/facts"
)

// provisioned gives the cluster its nodes and the agent. How many nodes there can be is
// recorded before there are any.
func (s Seen) provisioned(p *Plan) {
	s.enter(p, v1alpha1.PhaseProvisioned)
	if s.stopped(p) {
		return
	}
	added, why := s.sized(p)
	switch {
	case why != "":
		s.not(p, v1alpha1.ReasonNoNodes, "%s", why)
		return
	case added:
		return
	}
	s.nodes(p)
	if why := s.agent(p, nil); why != "" {
		s.not(p, v1alpha1.ReasonNameTaken, "%s", why)
		p.again(soon)
		return
	}
	p.do(Step{Verb: GrantRights}, Step{Verb: InstallAgent})
	s.enter(p, v1alpha1.PhaseWaitingForAgent)
}

// waiting waits for a report that can be believed.
func (s Seen) waiting(p *Plan) {
	s.enter(p, v1alpha1.PhaseWaitingForAgent)
	if s.stopped(p) {
		return
	}
	valid := s.believe(p)
	s.nodes(p)
	if why := s.agent(p, nil); why != "" {
		s.not(p, v1alpha1.ReasonNameTaken, "%s", why)
		p.again(soon)
		return
	}
	if !valid {
		s.install(p, silent)
		if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.DataPlaneReportValid); c != nil {
			s.not(p, c.Reason, "The agent's report is not believed: %s", c.Message)
		}
		return
	}
	s.enter(p, v1alpha1.PhaseReady)
	s.empty(p)
	s.tell(p, "")
}

// stopped says that a cluster that was there is not to be used, and whether that is so.
// One that is gone before it was Ready will not come.
func (s Seen) stopped(p *Plan) bool {
	reason, why, over := s.trouble()
	switch {
	case why == "":
		return false
	case over:
		s.lost(p, reason, "%s", why)
	default:
		s.not(p, reason, "%s", why)
	}
	p.again(soon)
	return true
}

// trouble is what is wrong with the cluster, and whether it is gone for good.
func (s Seen) trouble() (reason, why string, over bool) {
	ref := s.ref()
	name := named(ref)
	switch {
	case ref.KubeconfigSecret != nil && !s.Kubeconfig:
		return v1alpha1.ReasonClusterGone, fmt.Sprintf("There is no Secret %s with key kubeconfig in namespace %s: make it.", name, s.Plane.Namespace), true
	case ref.KubeconfigSecret != nil:
		return "", "", false
	case ref.Claim != nil && s.Claim == nil:
		return v1alpha1.ReasonClusterGone, fmt.Sprintf("ClusterClaim %s is gone, and its cluster with it.", name), true
	case ref.Claim != nil && s.Claim.DeletionTimestamp != nil:
		return v1alpha1.ReasonClusterDeleting, fmt.Sprintf(
			"ClusterClaim %s was deleted, and its cluster goes with it: delete the instances on this data plane, and order others.", name), true
	case s.Cluster == nil:
		return v1alpha1.ReasonClusterGone, "Its ClusterDeployment is gone.", true
	case s.Cluster.DeletionTimestamp != nil:
		return v1alpha1.ReasonClusterDeleting, fmt.Sprintf("ClusterDeployment %s was deleted: delete the instances on this data plane, and order others.", s.Cluster.Name), true
	case !s.up():
		return v1alpha1.ReasonClusterDown, fmt.Sprintf("Cluster %s does not run: see its ClusterDeployment.", s.Cluster.Name), false
	}
	return "", "", false
}

// running keeps a data plane that takes instances, or has taken some.
func (s Seen) running(p *Plan) {
	s.enter(p, s.phase())
	s.believe(p)
	s.empty(p)
	reserve := s.prewarm(p)
	_, unsized := s.sized(p)
	_, down, _ := s.trouble()
	if down == "" {
		s.nodes(p)
	}
	s.protect(p)
	taken := s.agent(p, reserve)
	if down == "" && taken == "" {
		every := recheck
		if !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.DataPlaneAgentLive) {
			every = silent
		}
		s.install(p, every)
	}
	switch reason, why, _ := s.trouble(); {
	case s.phase() == v1alpha1.PhaseReady:
		s.tell(p, strings.TrimSpace(unsized+" "+taken))
	case why != "":
		s.not(p, reason, "%s", why)
	}
}

// protect keeps the cluster of its claim from being destroyed when somebody deletes the
// claim: instances run on it. The mark says that this data plane has protected it.
func (s Seen) protect(p *Plan) {
	if s.stays() || s.ref().Claim == nil || s.Cluster == nil || s.Claim == nil || !Owned(s.Plane, s.Claim) || s.Cluster.DeletionTimestamp != nil {
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
	p.do(Step{Verb: ProtectCluster, Cluster: want})
}

// unprotect takes back what protect has done.
func (s Seen) unprotect(p *Plan) {
	if s.ref().Claim == nil || s.Cluster == nil || !Owned(s.Plane, s.Cluster) {
		return
	}
	want := s.Cluster.DeepCopy()
	delete(want.Annotations, hivev1.AnnotationProtectedDelete)
	delete(want.Annotations, v1alpha1.AnnotationDataPlane)
	p.do(Step{Verb: UnprotectCluster, Cluster: want})
}

// install sees to the agent again, if the last time is so long ago.
func (s Seen) install(p *Plan, every time.Duration) {
	left := s.Installed.Add(every).Sub(s.Now)
	if s.Installed.IsZero() || left <= 0 {
		p.do(Step{Verb: GrantRights}, Step{Verb: InstallAgent})
		left = every
	}
	p.again(left)
}

// believe notes what the agent has said, as far as that can be believed, and whether it
// is heard of at all. The time of that is the hub's: clocks of data planes are not
// believed. It reports whether the last report is.
func (s Seen) believe(p *Plan) bool {
	st := &p.Status
	var r *v1alpha1.DataPlaneReport
	if s.ours() {
		r = s.Agent.Status.Report
	}
	if r != nil && r.DataPlaneUID == string(s.Plane.UID) && (st.Agent == nil || st.Agent.ReportAt == nil || !st.Agent.ReportAt.Equal(&r.At)) {
		now, at := metav1.NewTime(s.Now), metav1.NewTime(r.At.Truncate(time.Second))
		st.Agent = &v1alpha1.AgentStatus{LastHeartbeat: &now, ReportAt: &at, Version: r.AgentVersion}
	}
	dp := s.as(*st)
	j, told := facts.Judge(dp, r)
	if told {
		st.Capacity, st.Versions = j.Capacity, j.Versions
		if j.Valid {
			s.known(st.Capacity, r)
		}
		set(st, j.Condition, s.Now)
	}
	if told || s.phase() == v1alpha1.PhaseReady {
		set(st, facts.AgentLive(dp, s.Now), s.Now)
	}
	s.contents(p)
	if a := st.Agent; a != nil && a.LastHeartbeat != nil {
		p.again(a.LastHeartbeat.Add(facts.Silence).Sub(s.Now))
	}
	return told && j.Valid
}

// known notes how many units of a believed report are of known instances.
func (s Seen) known(all map[string]v1alpha1.TypeCapacity, r *v1alpha1.DataPlaneReport) {
	for name := range r.Capacity {
		c := all[name]
		c.KnownUnits = facts.KnownUnits(r, name, s.Instances)
		all[name] = c
	}
}

// contents notes which instances on it have no ServiceInstance, and whether the agent has
// answered the last inquiry.
func (s Seen) contents(p *Plan) {
	st := &p.Status
	c := s.compare(*st)
	st.Unlisted = c.Unlisted
	if st.Agent != nil && c.AnsweredAt != nil {
		st.Agent.AnsweredAt = c.AnsweredAt.DeepCopy()
	}
	if s.served() || Leaving(s.Plane) {
		set(st, facts.InstancesListed(s.Plane, c), s.Now)
	}
}

// compare compares what the agent reports with what is known, with that status.
func (s Seen) compare(st v1alpha1.DataPlaneStatus) facts.Contents {
	c := facts.ContentsOf(s.as(st), s.Agent, s.Instances, s.Moved)
	if c.Unknown == "" && !meta.IsStatusConditionTrue(st.Conditions, v1alpha1.DataPlaneAgentLive) {
		c.Unknown = "The agent is silent, so nobody knows what is on the data plane."
	}
	return c
}

// served reports whether it has been Ready: instances may be on it.
func (s Seen) served() bool {
	return s.phase() == v1alpha1.PhaseReady || s.phase() == v1alpha1.PhaseDeprovisioning
}

// inquiry is when it was last to be removed: since then its agent has to have reported
// what is on it. false while it stays.
func (s Seen) inquiry() (time.Time, bool) {
	switch since := s.Plane.Status.PhaseSince; {
	case s.Plane.DeletionTimestamp != nil:
		return facts.Inquiry(s.Plane.DeletionTimestamp.Time, s.Started), true
	case (s.phase() == v1alpha1.PhaseDeprovisioning || s.phase() == v1alpha1.PhaseFailed) && since != nil:
		return facts.Inquiry(since.Time, s.Started), true
	case s.Plane.Status.ReleasedAt != nil || s.phase() == v1alpha1.PhaseDeprovisioning:
		return facts.Inquiry(s.Plane.CreationTimestamp.Time, s.Started), true
	}
	return time.Time{}, false
}

// as is the data plane with another status.
func (s Seen) as(st v1alpha1.DataPlaneStatus) *v1alpha1.DataPlane {
	dp := *s.Plane
	dp.Status = st
	return &dp
}

// prewarm says which reserved instances are to be there.
func (s Seen) prewarm(p *Plan) []capacity.Reserve {
	if s.Region == nil {
		set(&p.Status, facts.PrewarmBlocked(s.Plane, false, "", "No region reserves anything here."), s.Now)
		return nil
	}
	snapshot, err := facts.Objects{Region: s.Region, Types: s.Types, Planes: []*v1alpha1.DataPlane{s.as(p.Status)}, PoolsAssumed: true}.Snapshot(s.Now)
	if err != nil || len(snapshot.Planes) == 0 {
		return s.reserved() // the region cannot be read: all stays as it is
	}
	w := snapshot.Region.Reserve(snapshot.Planes[0])
	set(&p.Status, facts.PrewarmBlocked(s.Plane, w.Blocked, string(w.Reason), w.Message), s.Now)
	return w.Want
}

// reserved are the reserved instances that the agent was told of.
func (s Seen) reserved() []capacity.Reserve {
	if !s.ours() {
		return nil
	}
	var out []capacity.Reserve
	for _, i := range s.Agent.Spec.Instances {
		if i.Reserved {
			out = append(out, capacity.Reserve{
				Name: i.Name, Type: i.Type, Size: i.Size, Units: int(i.Units),
				Strimzi: i.Versions.Strimzi, Kafka: i.Versions.Kafka, KafkaIBP: i.Versions.KafkaIBP,
			})
		}
	}
	return out
}

// empty notes since when no instance is on it, or is about to be.
func (s Seen) empty(p *Plan) {
	switch {
	case len(s.Instances) > 0 || len(s.Plane.Status.Bookings) > 0:
		p.Status.EmptySince = nil
	case p.Status.EmptySince == nil:
		now := metav1.NewTime(s.Now)
		p.Status.EmptySince = &now
	}
}

// tell says whether it takes instances: but is what is wrong beside that.
func (s Seen) tell(p *Plan, but string) {
	live := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.DataPlaneAgentLive)
	reason, why, _ := s.trouble()
	switch {
	case why != "":
		s.not(p, reason, "%s", why)
		p.again(silent) // Secrets are not watched
	case live == nil || live.Status != metav1.ConditionTrue:
		s.not(p, v1alpha1.ReasonSilent, "The agent is silent: see condition %s.", v1alpha1.DataPlaneAgentLive)
	case s.ours() && s.Agent.Status.Report != nil && !s.Agent.Status.Report.Ready:
		reason, message := agentWords(s.Agent.Status.Report)
		s.not(p, reason, "Its agent says: %s", message)
	case s.Plane.Spec.Schedulable != nil && !*s.Plane.Spec.Schedulable:
		s.not(p, v1alpha1.ReasonUnschedulable, "spec.schedulable is false: it gets no more instances.")
	default:
		s.ready(&p.Status, metav1.ConditionTrue, string(v1alpha1.PhaseReady), strings.TrimSpace(words[v1alpha1.PhaseReady]+s.crowd()+s.unlisted(p.Status)+" "+but))
	}
}

// agentWords are why an agent is not ready. Its reason is none unless we know it.
func agentWords(r *v1alpha1.DataPlaneReport) (reason, message string) {
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

// unlisted says that there are instances without a ServiceInstance.
func (s Seen) unlisted(st v1alpha1.DataPlaneStatus) string {
	if len(st.Unlisted) == 0 {
		return ""
	}
	return fmt.Sprintf(" Instances without a ServiceInstance are on it, and take their units: see condition %s.", v1alpha1.DataPlaneInstancesListed)
}
