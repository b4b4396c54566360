package clusterclaim

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/kstatus/kstatustest"
)

// TestHowToolsThatWaitJudgeAClaim reports what is decided of a claim, as the API server
// makes it: with the status that the schema defaults.
func TestHowToolsThatWaitJudgeAClaim(t *testing.T) {
	for name, tc := range map[string]struct {
		in   snapshot
		want string
	}{
		"a claim of which nothing is reported yet":   {waiting(func(f *snapshot) { f.created, f.poolHasReady = noon, true }), "InProgress LatestGenerationNotObserved"},
		"a claim that waits for a cluster":           {waiting(nil), "InProgress NoClusters"},
		"a claim without a pool":                     {waiting(func(f *snapshot) { f.poolExists = false }), "Failed PoolNotFound"},
		"a claim whose pool is being deleted":        {waiting(func(f *snapshot) { f.poolDeleting = true }), "Failed PoolDeleting"},
		"a claim that cannot be read":                {waiting(func(f *snapshot) { f.unreadable = "x" }), "Failed Unreadable"},
		"a claim with a running cluster":             {served(nil), "Current"},
		"a claim whose cluster resumes":              {served(func(f *snapshot) { f.assigned.running, f.assigned.power = false, "WaitingForNodes" }), "InProgress Resuming"},
		"a claim whose cluster hibernates":           {served(func(f *snapshot) { f.assigned.running, f.assigned.power = false, "Hibernating" }), "Current"},
		"a claim whose cluster is being deleted":     {served(func(f *snapshot) { f.assigned.deleting = true }), "Failed ClusterDeleting"},
		"a claim whose cluster is gone":              {served(func(f *snapshot) { f.assigned = nil }), "Failed ClusterDeleted"},
		"a claim whose cluster is another's":         {served(func(f *snapshot) { f.assigned.claim = "y" }), "Failed AssignmentConflict"},
		"a claim whose lifetime is none":             {served(func(f *snapshot) { f.lifetime = span("1w") }), "Failed InvalidLifetime"},
		"a claim with a cluster, that is unreadable": {served(func(f *snapshot) { f.unreadable = "x" }), "Failed Unreadable"},
		"a deleted claim":                            {served(func(f *snapshot) { f.deleting, f.assigned.deleting = true, true }), "Terminating"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{Clock: clocktesting.NewFakePassiveClock(noon)}
			claim := &hivev1.ClusterClaim{
				ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "n", Generation: 2},
				Spec:       hivev1.ClusterClaimSpec{ClusterPoolName: "p"},
				Status:     hivev1.ClusterClaimStatus{ObservedGeneration: -1},
			}
			if tc.in.deleting {
				now := metav1.NewTime(noon)
				claim.DeletionTimestamp = &now
			}
			r.setClaimStatus(claim, decide("x", tc.in, noon))
			kstatustest.ExpectStatus(t, claim, tc.want)
		})
	}
}

// TestAClaimLeavesWhatItWaitedFor has one claim wait, be served and resumed.
func TestAClaimLeavesWhatItWaitedFor(t *testing.T) {
	r := &Reconciler{Clock: clocktesting.NewFakePassiveClock(noon)}
	claim := &hivev1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "n", Generation: 1}}
	for _, step := range []struct {
		in   snapshot
		want string
	}{
		{waiting(func(f *snapshot) { f.poolExists = false }), "Failed PoolNotFound"},
		{waiting(nil), "InProgress NoClusters"},
		{served(func(f *snapshot) { f.assigned.running, f.assigned.power = false, "StartingMachines" }), "InProgress Resuming"},
		{served(nil), "Current"},
	} {
		r.setClaimStatus(claim, decide("x", step.in, noon))
		kstatustest.ExpectStatus(t, claim, step.want)
	}
	if len(claim.Status.Conditions) != 2 {
		t.Errorf("a settled claim has conditions %+v", claim.Status.Conditions)
	}
}
