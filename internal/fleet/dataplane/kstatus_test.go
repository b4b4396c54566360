package dataplane_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/dataplane"
	"hotspare.io/hotspare/internal/kstatus"
	"hotspare.io/hotspare/internal/kstatus/kstatustest"
)

// TestHowToolsThatWaitJudgeADataPlane checks the kstatus conditions of a data plane.
func TestHowToolsThatWaitJudgeADataPlane(t *testing.T) {
	for name, tc := range map[string]struct {
		edits []edit
		want  string
	}{
		"one that was just made":                {nil, "InProgress Provisioning"},
		"one whose claim waits":                 {edits(claimed, phase(v1alpha1.PhaseProvisioning)), "InProgress Provisioning"},
		"one that has a running cluster":        {edits(up, phase(v1alpha1.PhaseProvisioning)), "InProgress Provisioned"},
		"one whose name is taken":               {edits(claimed, phase(v1alpha1.PhaseProvisioning), func(s *dataplane.Snapshot) { s.Claim.Annotations = nil }), "Failed NameTaken"},
		"one whose kubeconfig is not there":     {edits(registered, phase(v1alpha1.PhaseProvisioning), func(s *dataplane.Snapshot) { s.Kubeconfig = false }), "Failed ClusterGone"},
		"one that takes instances":              {edits(ready), "Current"},
		"one whose agent is silent":             {edits(ready, later(24*60*60*1e9)), "Failed Silent"},
		"one that takes no more on purpose":     {edits(ready, func(s *dataplane.Snapshot) { s.Plane.Spec.Schedulable = ptr.To(false) }), "InProgress Unschedulable"},
		"one whose claim says the pool is gone": {edits(claimed, phase(v1alpha1.PhaseProvisioning), pending(hivev1.ReasonPoolNotFound)), "Failed PoolNotFound"},
	} {
		t.Run(name, func(t *testing.T) {
			s := seen(tc.edits...)
			s.Plane.Generation = 2
			dp := s.Plane.DeepCopy()
			dp.Status = dataplane.Decide(s).Status
			kstatus.ReportDataPlane(dp, &dp.Status, s.Now)
			kstatustest.ExpectStatus(t, dp, tc.want)
			dp.DeletionTimestamp = ptr.To(metav1.NewTime(s.Now))
			kstatus.ReportDataPlane(dp, &dp.Status, s.Now)
			kstatustest.ExpectStatus(t, dp, "Terminating")
			for _, c := range dp.Status.Conditions {
				if c.Type == hivev1.ConditionReconciling || c.Type == hivev1.ConditionStalled {
					t.Errorf("one that is being deleted has condition %s", c.Type)
				}
			}
		})
	}
}

// TestHowToolsThatWaitJudgeADataPlaneAgent checks the kstatus conditions of a data plane's agent.
func TestHowToolsThatWaitJudgeADataPlaneAgent(t *testing.T) {
	refused := func(s *dataplane.Snapshot) { s.Agent.Status.Report.Capacity = nil }
	for name, tc := range map[string]struct {
		edits []edit
		want  string
	}{
		"one whose agent is being installed":    {edits(equipped, phase(v1alpha1.PhaseWaitingForAgent)), "InProgress WaitingForAgent"},
		"one whose agent reports first":         {edits(reported, phase(v1alpha1.PhaseWaitingForAgent)), "Current"},
		"one whose first report is refused":     {edits(reported, refused, phase(v1alpha1.PhaseWaitingForAgent)), "Failed Invalid"},
		"one whose data plane takes instances":  {edits(ready), "Current"},
		"one whose data plane takes no more":    {edits(ready, func(s *dataplane.Snapshot) { s.Plane.Spec.Schedulable = ptr.To(false) }), "Current"},
		"one whose agent is silent":             {edits(ready, later(24*60*60*1e9)), "Failed Silent"},
		"one whose report is refused":           {edits(ready, refused), "Failed Invalid"},
		"one whose agent reaches no data plane": {edits(ready, deaf), "Failed DataPlaneSilent"},
		"one whose cluster is gone":             {edits(ready, noClaim), "Failed ClusterGone"},
		"one whose report is of another":        {edits(reported, func(s *dataplane.Snapshot) { s.Agent.Status.Report.DataPlaneUID = "v" }, phase(v1alpha1.PhaseWaitingForAgent)), "Failed Invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			s := seen(tc.edits...)
			a := s.Agent.DeepCopy()
			a.Generation, a.Status.ObservedGeneration = 3, -1
			kstatustest.ExpectStatus(t, a, "InProgress LatestGenerationNotObserved")
			a.Status.ObservedGeneration = 3
			st := dataplane.Decide(s).Status
			kstatus.ReportDataPlaneAgent(a, &st, s.Now)
			kstatustest.ExpectStatus(t, a, tc.want)
			a.DeletionTimestamp = ptr.To(metav1.NewTime(s.Now))
			kstatus.ReportDataPlaneAgent(a, &st, s.Now)
			kstatustest.ExpectStatus(t, a, "Terminating")
			if len(a.Status.Conditions) > 0 {
				t.Errorf("one that is being deleted has conditions %+v", a.Status.Conditions)
			}
		})
	}
}
