package dataplane_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/dataplane"
)

var histories = flag.Int("dataplane.histories", 2000, "how many random histories to try")

// order is the order of the phases. A data plane never goes back, except that a region restores one
// that it was about to remove.
var order = []v1alpha1.DataPlanePhase{"", "Accepted", "Provisioning", "Provisioned", "WaitingForAgent", "Ready", "Deprovisioning", "Failed", "Cleanup"}

// life is a data plane, with everything that it has, among others who act at random times.
type life struct {
	*testing.T
	r *rand.Rand
	s dataplane.Snapshot
	// rights and installed are the results of steps; over is set when the object is deleted.
	rights, installed, over bool
	// on are the UIDs of the instances on the cluster, whatever the hub knows.
	on  []string
	log []string
}

// A random history never goes back a phase, destroys nothing that was not released or that an
// instance is on, and leaves nothing behind in the end.
func TestRandomHistories(t *testing.T) {
	for seed := range uint64(*histories) {
		l := &life{T: t, r: rand.New(rand.NewPCG(seed, 7)), s: seen(unfinished)}
		for range 60 {
			l.others()
			l.pass(l.r.IntN(4) == 0)
			if t.Failed() {
				t.Fatalf("seed %d: %v", seed, l.log)
			}
		}
		l.end()
		if t.Failed() {
			t.Fatalf("seed %d: %v", seed, l.log)
		}
	}
}

// pass decides and acts; cut stops it after a random step, as a crash would.
func (l *life) pass(cut bool) {
	if l.over {
		return
	}
	before := l.s.Plane.Status.Phase
	p := dataplane.Decide(l.s)
	stop := len(p.Steps) + 1
	if cut {
		stop = l.r.IntN(len(p.Steps) + 1)
		l.s.Installed, l.s.Revoked, l.s.Removed = time.Time{}, false, false
	}
	for i, st := range p.Steps {
		if i == stop {
			return
		}
		l.log = append(l.log, st.String())
		l.do(st)
		if l.over {
			return
		}
	}
	if stop == len(p.Steps) {
		return
	}
	l.s.Plane = l.s.Plane.DeepCopy()
	l.s.Plane.Status = p.Status
	if from, to := slices.Index(order, before), slices.Index(order, p.Status.Phase); to < from {
		l.Errorf("from %s back to %s", before, p.Status.Phase)
	} else if to != from {
		l.log = append(l.log, "→"+string(p.Status.Phase))
	}
	if p.Status.Phase == v1alpha1.PhaseCleanup && before != v1alpha1.PhaseCleanup && len(l.s.Instances) > 0 && l.s.Claim != nil {
		l.Error("it is given back with an instance on it")
	}
}

func (l *life) do(st dataplane.Step) {
	s := &l.s
	s.Plane = s.Plane.DeepCopy()
	switch st.Verb {
	case dataplane.AddFinalizer:
		s.Plane.Finalizers = []string{v1alpha1.FinalizerDataPlane}
	case dataplane.RecordClusterRef:
		s.Plane.Spec.ClusterRef = st.Ref
	case dataplane.CreateClaim:
		if s.Claim != nil || s.Plane.Spec.ClusterRef == nil || len(s.Plane.Finalizers) == 0 {
			l.Error("a claim is made twice, or before it is recorded and held")
		}
		s.Claim = st.Claim.DeepCopy()
		s.Claim.UID = "c"
	case dataplane.CreateMachinePool:
		s.Nodes = append(s.Nodes, st.Nodes)
	case dataplane.CreateAgent, dataplane.UpdateAgent:
		was := s.Agent
		s.Agent = st.Agent.DeepCopy()
		if was != nil {
			s.Agent.Status = was.Status
		}
		s.Agent.Generation++
	case dataplane.ProtectCluster, dataplane.UnprotectCluster:
		s.Cluster = st.Cluster
	case dataplane.GrantRights:
		l.rights, s.Revoked = true, false
	case dataplane.InstallAgent:
		if !l.rights {
			l.Error("the agent is installed before it has rights")
		}
		l.installed, s.Installed = true, s.Now
	case dataplane.RevokeRights:
		l.rights, s.Revoked = false, true
	case dataplane.DeleteAgent:
		s.Agent = nil
	case dataplane.DeleteClaim:
		if ph := s.Plane.Status.Phase; ph != v1alpha1.PhaseCleanup && ph != v1alpha1.PhaseFailed {
			l.Errorf("the claim is deleted in phase %s", ph)
		}
		if s.Claim.Annotations == nil {
			l.Error("another's claim is deleted")
		}
		if len(l.on) > 0 && !s.Plane.Spec.DiscardUnlisted && s.Cluster != nil {
			l.Errorf("the cluster is given back with %v on it", l.on)
		}
		if s.Cluster != nil && s.Cluster.Annotations[hivev1.AnnotationProtectedDelete] != "" {
			l.Error("the cluster is given back and protected: it is never destroyed")
		}
		s.Claim.DeletionTimestamp = ago(0)
	case dataplane.DeletePlane:
		s.Plane.DeletionTimestamp = ago(0)
	case dataplane.RemoveFinalizer:
		l.over = true
		if s.Claim != nil && s.Claim.Annotations != nil || s.Agent != nil || l.rights {
			l.Errorf("it leaves behind: claim %t, agent %t, rights %t", s.Claim != nil, s.Agent != nil, l.rights)
		}
	}
}

// others do something, or nothing.
func (l *life) others() {
	s := &l.s
	s.Plane = s.Plane.DeepCopy()
	st := &s.Plane.Status
	coming := slices.Index(order, st.Phase) < slices.Index(order, v1alpha1.PhaseReady)
	switch n := l.r.IntN(100); {
	case n < 30:
		l.cluster()
	case n < 45:
		l.report()
	case n < 55:
		s.Now = s.Now.Add(time.Duration(l.r.IntN(200)) * time.Second)
	case n < 60 && st.Phase == v1alpha1.PhaseReady && s.Plane.DeletionTimestamp == nil:
		instance(fmt.Sprintf("i%d", l.r.IntN(3)))(s)
	case n < 65 && len(s.Instances) > 0: // its data plane has deleted it
		uid := string(s.Instances[0].UID)
		l.on = slices.DeleteFunc(l.on, func(o string) bool { return o == uid })
		s.Instances = s.Instances[1:]
	case n < 68 && len(s.Instances) > 0: // the hub loses it
		l.log = append(l.log, "lost "+string(s.Instances[0].UID))
		s.Instances = s.Instances[1:]
	case n < 70 && coming: // the region's time is over
		st.Phase = v1alpha1.PhaseFailed
	case n < 73 && st.Phase == v1alpha1.PhaseReady && len(s.Instances) == 0:
		at := metav1.NewTime(s.Now)
		st.Phase, st.PhaseSince = v1alpha1.PhaseDeprovisioning, &at
	case n < 76 && st.Phase == v1alpha1.PhaseDeprovisioning && st.ReleasedAt == nil:
		st.Phase = v1alpha1.PhaseReady
	case n < 79 && st.Phase == v1alpha1.PhaseDeprovisioning:
		st.ReleasedAt = ago(0)
	case n < 81:
		s.Plane.DeletionTimestamp = ago(0)
	case n < 83 && s.Claim != nil: // somebody deletes it
		s.Claim.DeletionTimestamp = ago(0)
	case n < 85 && len(s.Nodes) > 0:
		s.Nodes = s.Nodes[1:]
	case n < 86 && s.Plane.Status.Phase == "" && s.Claim == nil && s.Plane.Spec.ClusterRef != nil: // somebody takes its name
		s.Claim = &hivev1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	case n >= 88 && len(l.on) > 0 && st.Phase == v1alpha1.PhaseReady && s.Plane.DeletionTimestamp == nil && st.Agent != nil:
		// the hub is restored from a backup of when it was on its way
		st.Phase, st.EmptySince, s.Instances = v1alpha1.PhaseWaitingForAgent, nil, nil
		l.log = append(l.log, "restored")
		if l.r.IntN(2) == 0 {
			st.Phase, st.PhaseSince = v1alpha1.PhaseFailed, ago(0) // and the region's time was over
		}
	case n < 88: // a person deletes unknown instances, or gives them up
		if s.Plane.Spec.DiscardUnlisted = l.r.IntN(2) == 0; !s.Plane.Spec.DiscardUnlisted {
			l.on = slices.DeleteFunc(l.on, func(uid string) bool { return !l.known(uid) })
		}
	}
}

// cluster advances the claim's cluster: it is created, runs, sleeps, or is deleted.
func (l *life) cluster() {
	s := &l.s
	switch {
	case s.Claim == nil:
	case s.Claim.DeletionTimestamp != nil:
		if s.Cluster != nil && s.Cluster.Annotations[hivev1.AnnotationProtectedDelete] == "true" {
			return // it stays until it is released
		}
		if len(l.on) > 0 && s.Plane.Status.Phase == v1alpha1.PhaseReady && s.Cluster != nil {
			l.Errorf("the cluster is destroyed under its instances, %v", l.on)
		}
		s.Claim, s.Cluster, s.Nodes, l.installed, l.on = nil, nil, nil, false, nil
	case s.Cluster == nil:
		claim := s.Claim
		up(s)
		claim.Spec.Namespace, claim.Status = s.Claim.Spec.Namespace, s.Claim.Status
		s.Claim = claim
	case l.r.IntN(5) == 0:
		s.Cluster = s.Cluster.DeepCopy()
		s.Cluster.Status.Conditions[0].Status = []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse}[l.r.IntN(2)]
	}
}

func (l *life) report() {
	if s := &l.s; s.Agent != nil && l.installed {
		s.Agent = s.Agent.DeepCopy()
		report(s)
		s.Agent.Status.Report.At = metav1.NewTime(s.Now)
		l.tell(s.Agent)
		if l.r.IntN(4) == 0 {
			s.Agent.Status.Report.Capacity = nil
		}
	}
}

// tell makes the agent create what is listed, and report what is there.
func (l *life) tell(a *v1alpha1.DataPlaneAgent) {
	for _, i := range a.Spec.Instances {
		if !i.Reserved && !i.Deleted && l.known(i.UID) && !slices.Contains(l.on, i.UID) {
			l.on = append(l.on, i.UID)
		}
	}
	r := a.Status.Report
	r.ObservedGeneration = a.Generation
	r.Capacity["developer"] = v1alpha1.ReportedCapacity{MaxNodes: 3, MaxUnits: 30, RemainingUnits: 30 - int32(len(l.on))}
	for _, uid := range l.on {
		phase := v1alpha1.AgentUnlisted
		if slices.ContainsFunc(a.Spec.Instances, func(i v1alpha1.AgentInstance) bool { return i.UID == uid }) {
			phase = v1alpha1.AgentReady
		}
		r.Instances = append(r.Instances, v1alpha1.InstanceReport{UID: uid, Phase: phase})
	}
}

// known reports whether the hub knows an instance.
func (l *life) known(uid string) bool {
	return slices.ContainsFunc(l.s.Instances, func(i *v1alpha1.ServiceInstance) bool { return string(i.UID) == uid })
}

// end deletes everything, and checks that nothing is left. While the data plane waits, it must
// report what it waits for.
func (l *life) end() {
	s := &l.s
	s.Plane = s.Plane.DeepCopy()
	s.Plane.DeletionTimestamp, s.Instances = ago(0), nil
	if l.r.IntN(2) == 0 {
		l.on = nil
	}
	if len(s.Plane.Finalizers) == 0 {
		return // it has no finalizer and no resources
	}
	for n := range 60 {
		l.report()
		l.pass(false)
		if n == 30 && !l.over {
			l.patient()
		}
		if s.Claim != nil && s.Claim.DeletionTimestamp != nil {
			l.cluster()
		}
	}
	if !l.over {
		l.Errorf("it does not go: %+v", dataplane.Decide(*s))
	}
}

// patient checks that the data plane reports what it waits for, and makes a person give that up.
func (l *life) patient() {
	kind := v1alpha1.DataPlaneReady
	if l.s.Plane.Status.Phase == v1alpha1.PhaseFailed {
		kind = v1alpha1.DataPlaneInstancesListed // the other condition keeps the reason of the failure
	}
	c := meta.FindStatusCondition(l.s.Plane.Status.Conditions, kind)
	why := []string{v1alpha1.ReasonUnlistedInstances, v1alpha1.ReasonContentsUnknown}
	if c == nil || !slices.Contains(why, c.Reason) || !strings.Contains(c.Message, "spec.discardUnlisted") {
		l.Errorf("it waits, and says %+v", c)
	}
	l.s.Plane = l.s.Plane.DeepCopy()
	l.s.Plane.Spec.DiscardUnlisted = true
}
