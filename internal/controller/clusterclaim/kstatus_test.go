package clusterclaim

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/claim"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/kstatus/kstatustest"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// waiting returns the snapshot of claim x, which waits for a cluster.
func waiting(change func(*claim.Snapshot)) claim.Snapshot {
	f := claim.Snapshot{Now: noon, Name: "x", Created: noon.Add(-time.Minute), PoolExists: true}
	if change != nil {
		change(&f)
	}
	return f
}

// served returns the snapshot of claim x, which has had a running cluster for an hour.
func served(change func(*claim.Snapshot)) claim.Snapshot {
	f := waiting(nil)
	f.Created, f.ClusterName, f.HasConditions = noon.Add(-2*time.Hour), "a", true
	f.Cluster = &claim.Cluster{Claim: "x", ClaimedAt: noon.Add(-time.Hour), Running: true, PowerState: "Running"}
	if change != nil {
		change(&f)
	}
	return f
}

// TestHowToolsThatWaitJudgeAClaim reports what is decided of a claim, as the API server
// makes it: with the status that the schema defaults.
func TestHowToolsThatWaitJudgeAClaim(t *testing.T) {
	for name, tc := range map[string]struct {
		in   claim.Snapshot
		want string
	}{
		"a claim of which nothing is reported yet": {waiting(func(f *claim.Snapshot) { f.Created, f.PoolHasReady = noon, true }), "InProgress LatestGenerationNotObserved"},
		"a claim that waits for a cluster":         {waiting(nil), "InProgress NoClusters"},
		"a claim without a pool":                   {waiting(func(f *claim.Snapshot) { f.PoolExists = false }), "Failed PoolNotFound"},
		"a claim that waits for a limit":           {waiting(func(f *claim.Snapshot) { f.Held = condition.False(hivev1.ReasonLimitReached, "why") }), "InProgress LimitReached"},
		"a claim that nobody permits":              {waiting(func(f *claim.Snapshot) { f.Held = condition.False(hivev1.ReasonNotPermitted, "why") }), "Failed NotPermitted"},
		"a claim whose pool is being deleted":      {waiting(func(f *claim.Snapshot) { f.PoolDeleting = true }), "Failed PoolDeleting"},
		"a claim that cannot be read":              {waiting(func(f *claim.Snapshot) { f.Unreadable = "x" }), "Failed Unreadable"},
		"a claim with a running cluster":           {served(nil), "Current"},
		"a claim whose cluster resumes":            {served(func(f *claim.Snapshot) { f.Cluster.Running, f.Cluster.PowerState = false, "WaitingForNodes" }), "InProgress Resuming"},
		"a claim whose cluster stops": {served(func(f *claim.Snapshot) {
			f.Cluster.Running, f.Cluster.Hibernates, f.Cluster.PowerState = false, true, "Running"
		}), "InProgress Stopping"},
		"a claim whose cluster does not stop": {served(func(f *claim.Snapshot) {
			f.Cluster.Running, f.Cluster.Hibernates, f.Cluster.PowerState = false, true, "FailedToStop"
		}), "Failed FailedToStop"},
		"a claim whose cluster hibernates":           {served(func(f *claim.Snapshot) { f.Cluster.Running, f.Cluster.PowerState = false, "Hibernating" }), "Current"},
		"a claim whose cluster is being deleted":     {served(func(f *claim.Snapshot) { f.Cluster.Deleting = true }), "Failed ClusterDeleting"},
		"a claim whose cluster is gone":              {served(func(f *claim.Snapshot) { f.Cluster = nil }), "Failed ClusterDeleted"},
		"a claim whose cluster is another's":         {served(func(f *claim.Snapshot) { f.Cluster.Claim = "y" }), "Failed AssignmentConflict"},
		"a claim whose lifetime is none":             {served(func(f *claim.Snapshot) { f.Lifetime = ptr.To(hivev1.Duration("1w")) }), "Failed InvalidLifetime"},
		"a claim with a cluster, that is unreadable": {served(func(f *claim.Snapshot) { f.Unreadable = "x" }), "Failed Unreadable"},
		"a deleted claim":                            {served(func(f *claim.Snapshot) { f.Deleting, f.Cluster.Deleting = true, true }), "Terminating"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{Clock: clocktesting.NewFakePassiveClock(noon)}
			c := &hivev1.ClusterClaim{
				ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "n", Generation: 2},
				Spec:       hivev1.ClusterClaimSpec{ClusterPoolName: "p"},
				Status:     hivev1.ClusterClaimStatus{ObservedGeneration: -1},
			}
			if tc.in.Deleting {
				now := metav1.NewTime(noon)
				c.DeletionTimestamp = &now
			}
			r.setClaimStatus(c, claim.Decide(tc.in))
			kstatustest.ExpectStatus(t, c, tc.want)
		})
	}
}

// TestAClaimLeavesWhatItWaitedFor has one claim wait, be served and resumed.
func TestAClaimLeavesWhatItWaitedFor(t *testing.T) {
	r := &Reconciler{Clock: clocktesting.NewFakePassiveClock(noon)}
	c := &hivev1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "n", Generation: 1}}
	for _, step := range []struct {
		in   claim.Snapshot
		want string
	}{
		{waiting(func(f *claim.Snapshot) { f.PoolExists = false }), "Failed PoolNotFound"},
		{waiting(nil), "InProgress NoClusters"},
		{served(func(f *claim.Snapshot) { f.Cluster.Running, f.Cluster.PowerState = false, "StartingMachines" }), "InProgress Resuming"},
		{served(nil), "Current"},
	} {
		r.setClaimStatus(c, claim.Decide(step.in))
		kstatustest.ExpectStatus(t, c, step.want)
	}
	if len(c.Status.Conditions) != 2 {
		t.Errorf("a settled claim has conditions %+v", c.Status.Conditions)
	}
}
