package dataplane_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/dataplane"
)

// told returns the DataPlaneAgent that a plan writes; nil if it writes none.
func told(p dataplane.Plan) *v1alpha1.DataPlaneAgent {
	for _, s := range p.Steps {
		if s.Agent != nil {
			return s.Agent
		}
	}
	return nil
}

func listing(a *v1alpha1.DataPlaneAgent) string {
	if a == nil {
		return "nothing new"
	}
	var out []string
	for _, i := range a.Spec.Instances {
		words := []string{i.Namespace + "/" + i.Name, i.PlacementID, i.Versions.Strimzi}
		if i.Deleted {
			words = append(words, "deleted")
		}
		out = append(out, strings.Join(words, " "))
	}
	return strings.Join(out, ", ")
}

func TestWhatTheAgentIsTold(t *testing.T) {
	known := func(s *dataplane.Snapshot) { instance("i")(s); s.Agent = told(dataplane.Decide(*s)) }
	for name, tt := range map[string]struct {
		seen []edit
		want string
	}{
		"an instance, with the newest version":   {edits(ready, instance("i")), "team/i uid-i-1 s1"},
		"all of them, in one order":              {edits(ready, instance("j"), instance("i")), "team/i uid-i-1 s1, team/j uid-j-1 s1"},
		"one that is being deleted":              {edits(ready, instance("i", dying)), "team/i uid-i-1 s1 deleted"},
		"one without units is not placed yet":    {edits(ready, instance("i", func(i *v1alpha1.ServiceInstance) { i.Status.Units = 0 })), "nothing new"},
		"it is told once":                        {edits(ready, known), "nothing new"},
		"nobody upgrades an instance by listing": {edits(ready, known, func(s *dataplane.Snapshot) { s.Plane.Status.Versions[0].Strimzi = "s2"; s.Agent.Status.Report = nil }), "nothing new"},
		"placed anew":                            {edits(ready, known, func(s *dataplane.Snapshot) { s.Instances[0].Status.Placements = 2 }), "team/i uid-i-2 s1"},
		"one whose object is gone":               {edits(ready, known, func(s *dataplane.Snapshot) { s.Instances = nil }), ""},
		"one that it refused":                    {edits(ready, known, moved(1)), "team/i uid-i-1 s1 deleted"},
		"one that it refused, and is elsewhere":  {edits(ready, known, moved(2)), "team/i uid-i-1 s1 deleted"},
		"one that it refused, and has no more":   {edits(ready, known, moved(1), says("Deleted")), ""},
		"one that another placement has no more": {edits(ready, known, moved(1), says("Deleted"), otherPlacement), "team/i uid-i-1 s1 deleted"},
		"one of which an older version is seen":  {edits(ready, known, moved(0)), "nothing new"},
		"its region is gone: it keeps its own":   {edits(ready, known, noRegion, instance("thief")), "nothing new"},
		"its type is gone: it keeps its figures": {edits(ready, known, func(s *dataplane.Snapshot) { s.Types = nil }), "nothing new"},
		"reserved ones":                          {edits(ready, reserve(2)), "/reserved-kafka-developer-1 reserved-kafka-developer-1 s1, /reserved-kafka-developer-2 reserved-kafka-developer-2 s1"},
		"reserved ones without a version":        {edits(ready, reserve(2), func(s *dataplane.Snapshot) { s.Plane.Status.Versions = nil; s.Agent.Status.Report = nil }), "nothing new"},
		"no reserve while it is to go":           {edits(ready, reserve(2), phase("Deprovisioning"), answered), "nothing new"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := listing(told(dataplane.Decide(seen(tt.seen...)))); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// moved makes the instance lose its place, after that number of placements.
func moved(placements int32) edit {
	return func(s *dataplane.Snapshot) {
		s.Moved, s.Instances = s.Instances, nil
		s.Moved[0].Status.DataPlaneName, s.Moved[0].Status.Placements = "", placements
	}
}

func says(phase v1alpha1.AgentPhase) edit {
	return func(s *dataplane.Snapshot) {
		s.Agent.Status.Report = &v1alpha1.DataPlaneReport{
			DataPlaneUID: string(s.Plane.UID), Instances: []v1alpha1.InstanceReport{{UID: "uid-i", PlacementID: "uid-i-1", Phase: phase}},
		}
	}
}

func otherPlacement(s *dataplane.Snapshot) {
	s.Agent.Status.Report.Instances[0].PlacementID = "uid-i-0"
}

func reserve(n int32) edit {
	return func(s *dataplane.Snapshot) {
		s.Region.Spec.InstanceTypes[0].Reserved = &v1alpha1.Reserved{Count: n, Size: "x1"}
	}
}

func TestPrewarmingIsBlockedWithoutAVersion(t *testing.T) {
	s := seen(ready, reserve(1))
	s.Plane.Status.Versions, s.Agent.Status.Report.Versions = nil, nil
	st := dataplane.Decide(s).Status
	c := meta.FindStatusCondition(st.Conditions, v1alpha1.DataPlanePrewarmBlocked)
	if c == nil || c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonNoVersion {
		t.Errorf("got %+v", c)
	}
	if !meta.IsStatusConditionTrue(st.Conditions, v1alpha1.DataPlaneReady) {
		t.Error("instances of users are affected")
	}
}

func TestTheNodesOfAType(t *testing.T) {
	var got []*hivev1.MachinePool
	for _, st := range dataplane.Decide(seen(up, sized, phase("Provisioned"))).Steps {
		if st.Nodes != nil {
			got = append(got, st.Nodes)
		}
	}
	mp := got[0]
	want := hivev1.MachinePoolSpec{
		ClusterDeploymentRef: corev1.LocalObjectReference{Name: "a-1"}, Name: "kafka-developer",
		Autoscaling: &hivev1.MachinePoolAutoscaling{MinReplicas: 1, MaxReplicas: 3}, Platform: mp.Spec.Platform,
		Labels: map[string]string{v1alpha1.LabelInstanceType: "developer"},
		Taints: []corev1.Taint{{Key: v1alpha1.LabelInstanceType, Value: "developer", Effect: corev1.TaintEffectNoExecute}},
	}
	if diff := cmp.Diff(want, mp.Spec); diff != "" {
		t.Error(diff)
	}
	if string(mp.Spec.Platform.Raw) != `{"aws":{"type":"m5"}}` || mp.Name != "a-1-kafka-developer" || mp.Namespace != "a-1" {
		t.Errorf("got %s %s/%s", mp.Spec.Platform.Raw, mp.Namespace, mp.Name)
	}
	if a := got[1].Spec.Autoscaling; got[1].Spec.Name != "worker" || a.MinReplicas != 6 || a.MaxReplicas != 18 || got[1].Spec.Platform != nil {
		t.Errorf("got %+v", got[1].Spec)
	}
	if n := len(seen(func(s *dataplane.Snapshot) { registered(s) }, equipped).Nodes); n != 0 {
		t.Errorf("a cluster without a ClusterDeployment gets %d machine pools", n)
	}
}

// fleet: recorded capacity stays, whatever happens to the type.
func TestNodesStayAsTheyWereDecided(t *testing.T) {
	s := seen(ready, func(s *dataplane.Snapshot) { s.Types["developer"].Spec.NodePools[0].MaxNodes = 9 })
	if got := outline(dataplane.Decide(s)); got != " | Ready Ready" {
		t.Errorf("got %s", got)
	}
	s.Types["premium"] = s.Types["developer"].DeepCopy()
	s.Plane.Spec.InstanceTypes = append(s.Plane.Spec.InstanceTypes, "premium")
	p := dataplane.Decide(s)
	if got := outline(p); got != "create MachinePool kafka-premium, update DataPlaneAgent | Ready Ready" {
		t.Errorf("got %s", got)
	}
	if c := p.Status.Capacity; c["developer"].MaxNodes != 3 || c["premium"].MaxNodes != 9 {
		t.Errorf("got %v", c)
	}
}

func TestAReportIsASignOfLifeByTheHubsClock(t *testing.T) {
	s := seen(ready)
	if got := s.Plane.Status.Agent; got.LastHeartbeat.Time != noon || got.Version != "v1" {
		t.Errorf("got %+v", got)
	}
	s.Agent.Status.Report.At = metav1.NewTime(noon.Add(time.Hour)) // its clock is wrong
	s.Now = noon.Add(time.Minute)
	p := dataplane.Decide(s)
	if got := p.Status.Agent.LastHeartbeat.Time; got != s.Now {
		t.Errorf("heard of at %s", got)
	}
	if p.Next != 2*time.Minute {
		t.Errorf("looked at again in %s", p.Next)
	}
	s.Plane.Status, s.Now = p.Status, noon.Add(4*time.Minute)
	p = dataplane.Decide(s)
	if meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.DataPlaneAgentLive) || p.Status.Phase != v1alpha1.PhaseReady {
		t.Errorf("got %s", outline(p))
	}
	s.Agent.Status.Report.DataPlaneUID, s.Agent.Status.Report.At = "other", metav1.NewTime(noon.Add(2*time.Hour))
	if got := dataplane.Decide(s).Status.Agent.LastHeartbeat.Time; got != noon.Add(time.Minute) {
		t.Errorf("another's report counts: %s", got)
	}
}

func TestSinceWhenItIsEmpty(t *testing.T) {
	s := seen(ready)
	if got := s.Plane.Status.EmptySince; got == nil || got.Time != noon {
		t.Errorf("got %v", got)
	}
	s.Now = noon.Add(time.Minute)
	if got := dataplane.Decide(s).Status.EmptySince; got.Time != noon {
		t.Errorf("got %v", got)
	}
	for name, e := range map[string]edit{
		"an instance": instance("i"),
		"a booking":   func(s *dataplane.Snapshot) { s.Plane.Status.Bookings = []v1alpha1.Booking{{Name: "i"}} },
	} {
		if got := dataplane.Decide(with(s, e)).Status.EmptySince; got != nil {
			t.Errorf("with %s it is empty since %s", name, got)
		}
	}
}

// One instance more than a DataPlaneAgent can list does not affect the others.
func TestAListIsBounded(t *testing.T) {
	all := edits(ready, reserve(5))
	for n := range 1003 {
		all = append(all, instance(fmt.Sprintf("i%04d", n)))
	}
	a := told(dataplane.Decide(seen(all...)))
	if n := len(a.Spec.Instances); n != 1000 || a.Spec.Instances[999].UID != string(types.UID("uid-i0999")) {
		t.Errorf("%d are listed", n)
	}
	late := seen(append(all, instance("a-late-one"))...)
	late.Agent = a
	p := dataplane.Decide(late)
	if again := told(p); again != nil {
		t.Error("one that came late has taken the place of another")
	}
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.DataPlaneReady); !strings.Contains(c.Message, "a list of 1000 instances, and the data plane has 4 more") {
		t.Errorf("it says %s", c.Message)
	}
}

func TestWhatARefusedStepLeaves(t *testing.T) {
	s := seen(up, sized, phase("Provisioned"))
	st := s.RefusedStatus(dataplane.Decide(s), v1alpha1.ReasonAgentNotInstalled, "It does not answer.")
	if c := meta.FindStatusCondition(st.Conditions, v1alpha1.DataPlaneReady); st.Phase != v1alpha1.PhaseProvisioned || c.Reason != v1alpha1.ReasonAgentNotInstalled {
		t.Errorf("got %+v", st)
	}
	s = seen(ready, later(time.Second))
	for range 2 { // the message does not grow
		s.Plane.Status = s.RefusedStatus(dataplane.Decide(s), v1alpha1.ReasonAgentNotInstalled, "It does not answer.")
	}
	c := meta.FindStatusCondition(s.Plane.Status.Conditions, v1alpha1.DataPlaneReady)
	if c.Status != metav1.ConditionTrue || c.Message != "The data plane accepts instances. But: It does not answer." {
		t.Errorf("a data plane that is ready goes on: %+v", c)
	}
}
