package claim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func span(d string) *hivev1.Duration { out := hivev1.Duration(d); return &out }

// served are the facts of claim x with a running cluster since an hour.
func served(change func(*Snapshot)) Snapshot {
	f := Snapshot{
		Now: noon, Name: "x", Created: noon.Add(-2 * time.Hour), ClusterName: "a", PoolExists: true, HasConditions: true,
		Cluster: &Cluster{Claim: "x", ClaimedAt: noon.Add(-time.Hour), Running: true, PowerState: "Running"},
	}
	if change != nil {
		change(&f)
	}
	return f
}

func waiting(change func(*Snapshot)) Snapshot {
	f := Snapshot{Now: noon, Name: "x", Created: noon.Add(-time.Minute), PoolExists: true}
	if change != nil {
		change(&f)
	}
	return f
}

// formatPlan returns a plan as one line.
func formatPlan(v Plan) string {
	var out []string
	add := func(cond bool, format string, args ...any) {
		if cond {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	add(v.Pending.Status != "", "Pending=%s/%s", v.Pending.Status, v.Pending.Reason)
	add(v.ClusterRunning.Status != "", "ClusterRunning=%s/%s", v.ClusterRunning.Status, v.ClusterRunning.Reason)
	add(v.HeartbeatMissing.Status != "", "HeartbeatMissing=%s/%s", v.HeartbeatMissing.Status, v.HeartbeatMissing.Reason)
	add(v.Stalled.IsTrue(), "Stalled/%s", v.Stalled.Reason)
	add(v.Lifetime != nil, "lifetime")
	for _, s := range v.Steps {
		out = append(out, s.String())
	}
	add(v.Next > 0, "next %s", v.Next)
	return strings.Join(out, " ")
}

func TestDecide(t *testing.T) {
	tests := map[string]struct {
		in   Snapshot
		want string
	}{
		"a claim that is about to be served is let be":       {waiting(func(f *Snapshot) { f.Created, f.PoolHasReady = noon, true }), "next 5s"},
		"a new claim on an empty pool is pending at once":    {waiting(func(f *Snapshot) { f.Created = noon }), "Pending=True/NoClusters"},
		"a claim that is not served soon is pending":         {waiting(func(f *Snapshot) { f.PoolHasReady = true }), "Pending=True/NoClusters"},
		"a claim that waits is pending":                      {waiting(nil), "Pending=True/NoClusters"},
		"a claim keeps what the hub said of a refusal":       {waiting(func(f *Snapshot) { f.AssignmentRefused, f.HasConditions = true, true }), ""},
		"a refusal of a pool that is gone is stale":          {waiting(func(f *Snapshot) { f.AssignmentRefused, f.PoolExists = true, false }), "Pending=True/PoolNotFound"},
		"a claim that no policy admits says so":              {waiting(func(f *Snapshot) { f.Held = condition.False("LimitReached", "why") }), "Pending=True/LimitReached"},
		"a claim on no pool is pending":                      {waiting(func(f *Snapshot) { f.PoolExists, f.Created = false, noon }), "Pending=True/PoolNotFound"}, // B13
		"a claim on a pool that is being deleted is pending": {waiting(func(f *Snapshot) { f.PoolDeleting = true }), "Pending=True/PoolDeleting"},                 // B13
		"a claim that waits and is deleted goes":             {waiting(func(f *Snapshot) { f.Deleting = true }), "remove finalizer: NoCluster"},
		"a served claim":                                     {served(nil), "Pending=False/ClusterClaimed ClusterRunning=True/Running"},
		"its cluster resumes":                                {served(func(f *Snapshot) { f.Cluster.Running, f.Cluster.PowerState = false, "WaitingForNodes" }), "Pending=False/ClusterClaimed ClusterRunning=False/Resuming"},
		"its cluster cannot be started":                      {served(func(f *Snapshot) { f.Cluster.Running, f.Cluster.PowerState = false, "FailedToStart" }), "Pending=False/ClusterClaimed ClusterRunning=False/Resuming"},
		"its cluster is about to stop":                       {served(func(f *Snapshot) { f.Cluster.Running, f.Cluster.Hibernates = false, true }), "Pending=False/ClusterClaimed ClusterRunning=False/Stopping"},
		"its cluster stops": {served(func(f *Snapshot) {
			f.Cluster.Running, f.Cluster.Hibernates, f.Cluster.PowerState = false, true, "WaitingForMachinesToStop"
		}), "Pending=False/ClusterClaimed ClusterRunning=False/Stopping"},
		"its cluster cannot be stopped": {served(func(f *Snapshot) {
			f.Cluster.Running, f.Cluster.Hibernates, f.Cluster.PowerState = false, true, "FailedToStop"
		}), "Pending=False/ClusterClaimed ClusterRunning=False/FailedToStop"},
		"it could not be stopped, and is woken":         {served(func(f *Snapshot) { f.Cluster.Running, f.Cluster.PowerState = false, "FailedToStop" }), "Pending=False/ClusterClaimed ClusterRunning=False/Resuming"},
		"its cluster sleeps":                            {served(func(f *Snapshot) { f.Cluster.Running, f.Cluster.PowerState = false, "Hibernating" }), "Pending=False/ClusterClaimed ClusterRunning=False/Hibernating"},
		"its cluster is being destroyed":                {served(func(f *Snapshot) { f.Cluster.Deleting = true }), "Pending=False/ClusterClaimed ClusterRunning=False/ClusterDeleting"},
		"its cluster is gone":                           {served(func(f *Snapshot) { f.Cluster = nil }), "Pending=False/ClusterClaimed ClusterRunning=False/ClusterDeleted"},
		"its cluster does not show it yet":              {served(func(f *Snapshot) { f.Cluster.Claim, f.Cluster.InPool = "", true }), ""},
		"its cluster is no pool's":                      {served(func(f *Snapshot) { f.Cluster.Claim = "" }), "Pending=True/AssignmentConflict"},
		"its cluster is another's":                      {served(func(f *Snapshot) { f.Cluster.Claim = "y" }), "Pending=True/AssignmentConflict"}, // B17
		"deleted, it waits for its cluster to go":       {served(func(f *Snapshot) { f.Deleting = true }), "ClusterRunning=False/ClusterDeleting"},
		"deleted without a pool, it destroys it":        {served(func(f *Snapshot) { f.Deleting, f.PoolExists = true, false }), "ClusterRunning=False/ClusterDeleting delete ClusterDeployment: PoolNotFound"},
		"deleted, its cluster gone, it goes":            {served(func(f *Snapshot) { f.Deleting, f.Cluster = true, nil }), "remove finalizer: NoCluster"},
		"deleted, its cluster another's, it goes":       {served(func(f *Snapshot) { f.Deleting, f.Cluster.Claim = true, "y" }), "remove finalizer: NoCluster"},
		"a lifetime wakes it at its end":                {served(func(f *Snapshot) { f.Lifetime = span("90m") }), "Pending=False/ClusterClaimed ClusterRunning=True/Running lifetime next 30m0s"},
		"a lifetime ends the claim":                     {served(func(f *Snapshot) { f.Lifetime = span("1h") }), "Pending=False/ClusterClaimed ClusterRunning=True/Running lifetime delete ClusterClaim: LifetimeElapsed"},
		"the pool's default counts without one":         {served(func(f *Snapshot) { f.DefaultLifetime = span("2h") }), "Pending=False/ClusterClaimed ClusterRunning=True/Running lifetime next 1h0m0s"},
		"the claim's own counts before the default":     {served(func(f *Snapshot) { f.Lifetime, f.DefaultLifetime = span("3h"), span("1h") }), "Pending=False/ClusterClaimed ClusterRunning=True/Running lifetime next 2h0m0s"},
		"the pool's maximum caps it":                    {served(func(f *Snapshot) { f.Lifetime, f.MaximumLifetime = span("9h"), span("2h") }), "Pending=False/ClusterClaimed ClusterRunning=True/Running lifetime next 1h0m0s"},
		"the pool's maximum counts without any other":   {served(func(f *Snapshot) { f.MaximumLifetime = span("2h") }), "Pending=False/ClusterClaimed ClusterRunning=True/Running lifetime next 1h0m0s"},
		"a lifetime that is none ends no claim":         {served(func(f *Snapshot) { f.Lifetime = span("1w") }), "Pending=False/ClusterClaimed ClusterRunning=True/Running Stalled/InvalidLifetime"},                             // B14
		"a maximum that is none neither ends nor frees": {served(func(f *Snapshot) { f.Lifetime, f.MaximumLifetime = span("2h"), span("1d") }), "Pending=False/ClusterClaimed ClusterRunning=True/Running lifetime next 1h0m0s"}, // B14
		"the lifetime counts while the cluster sleeps": {served(func(f *Snapshot) {
			f.Lifetime, f.Cluster.Running, f.Cluster.PowerState = span("2h"), false, "Hibernating"
		}), "Pending=False/ClusterClaimed ClusterRunning=False/Hibernating lifetime next 1h0m0s"},
		"unreadable, it waits and says so":          {waiting(func(f *Snapshot) { f.Unreadable = "x" }), "Pending=True/Unreadable"},
		"unreadable, it keeps its cluster for ever": {served(func(f *Snapshot) { f.Unreadable, f.DefaultLifetime, f.MaximumLifetime = "x", span("1m"), span("1m") }), "Pending=False/ClusterClaimed ClusterRunning=True/Running Stalled/Unreadable"},
		"unreadable and deleted, it goes its way":   {served(func(f *Snapshot) { f.Unreadable, f.Deleting = "x", true }), "ClusterRunning=False/ClusterDeleting"},
		"an unreadable cluster may be its": {served(func(f *Snapshot) {
			f.Unreadable, f.Cluster.Unreadable, f.Cluster.Claim, f.Lifetime = "x", true, "", span("1m")
		}), "Pending=False/ClusterClaimed Stalled/Unreadable"},
		"an unreadable cluster ends no claim": {served(func(f *Snapshot) { f.Unreadable, f.Cluster.Unreadable, f.Lifetime = "x", true, span("1m") }), "Pending=False/ClusterClaimed Stalled/Unreadable"},
		"deleted, it waits for an unreadable cluster": {served(func(f *Snapshot) {
			f.Deleting, f.PoolExists, f.Cluster.Unreadable, f.Cluster.Claim = true, false, true, ""
		}), "ClusterRunning=False/Unreadable"},
		"without a time to count from it has no end":     {served(func(f *Snapshot) { f.Cluster.ClaimedAt, f.Lifetime = time.Time{}, span("1m") }), "Pending=False/ClusterClaimed ClusterRunning=True/Running"},
		"waiting claims have no lifetime that could end": {waiting(func(f *Snapshot) { f.Lifetime = span("1s") }), "Pending=True/NoClusters"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := formatPlan(Decide(tc.in)); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

func TestAClaimThatWaitsReportsItsPriority(t *testing.T) {
	ten := int32(10)
	prioritized := func(f *Snapshot) { f.Priority, f.PriorityProblem = &ten, "its priority 20 counts as 10: why" }
	for name, c := range map[string]struct {
		in      Snapshot
		message string
		want    *int32
	}{
		"one that has none":           {waiting(nil), "No clusters in pool are ready to be claimed", nil},
		"one that has one":            {waiting(func(f *Snapshot) { f.Priority = &ten }), "No clusters in pool are ready to be claimed", &ten},
		"one that is limited":         {waiting(prioritized), "No clusters in pool are ready to be claimed; its priority 20 counts as 10: why", &ten},
		"one that a policy holds":     {waiting(func(f *Snapshot) { prioritized(f); f.Held = condition.False("LimitReached", "It waits") }), "It waits; its priority 20 counts as 10: why", &ten},
		"a claim that has a cluster":  {served(prioritized), "Cluster claimed", nil},
		"a claim without a pool":      {waiting(func(f *Snapshot) { prioritized(f); f.PoolExists = false }), "The ClusterPool that spec.clusterPoolName names does not exist in this namespace: create it, or delete the claim", nil},
		"a new claim that is served":  {waiting(func(f *Snapshot) { prioritized(f); f.Created, f.PoolHasReady = noon, true }), "", nil},
		"a claim that cannot be read": {waiting(func(f *Snapshot) { prioritized(f); f.Unreadable = "x" }), "The claim cannot be served: x: correct it, or delete the claim and create another", nil},
	} {
		if p := Decide(c.in); p.Pending.Message != c.message || p.Priority != c.want {
			t.Errorf("%s: %q, priority %v; want %q, priority %v", name, p.Pending.Message, p.Priority, c.message, c.want)
		}
	}
}

// A claim does not say that its cluster is being deleted while the pool makes it wait.
func TestAReleasedClaimSaysThatItsClusterWaits(t *testing.T) {
	const goes, waits = "Assigned cluster has been marked for deletion", "Assigned cluster waits to be deleted: "
	for name, tc := range map[string]struct {
		ago      time.Duration
		deleting bool
		want     string
		next     time.Duration
	}{
		"just released":                {time.Second, false, "", 4 * time.Second},
		"its cluster is just deleted":  {time.Second, true, "", 4 * time.Second},
		"the clock was set back":       {-time.Hour, true, goes, 0},
		"released a while ago":         {GracePeriod, false, waits, 0},
		"its cluster is being deleted": {GracePeriod, true, goes, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := served(func(f *Snapshot) { f.Deleting, f.DeletedAt, f.Cluster.Deleting = true, noon.Add(-tc.ago), tc.deleting })
			v := Decide(f)
			if !strings.HasPrefix(v.ClusterRunning.Message, tc.want) || (v.ClusterRunning.Status == "") != (tc.want == "") || v.Next != tc.next {
				t.Errorf("it says %q and looks again in %v", v.ClusterRunning.Message, v.Next)
			}
		})
	}
}

func TestAReleasedClaimSaysThatItsClusterAwaitsABundle(t *testing.T) {
	f := served(func(f *Snapshot) {
		f.Deleting, f.DeletedAt, f.Cluster.Deleting, f.Cluster.AwaitsBundle = true, noon.Add(-time.Minute), true, true
	})
	if v := Decide(f); !strings.Contains(v.ClusterRunning.Message, "is destroyed when a bundle of diagnostics is stored") || len(v.Steps) > 0 {
		t.Errorf("it says %q and takes steps %v", v.ClusterRunning.Message, v.Steps)
	}
}

func TestAReleasedClaimSaysThatItsClusterIsProtected(t *testing.T) {
	for name, poolExists := range map[string]bool{"with its pool": true, "without a pool, the claim itself deletes its cluster": false} {
		t.Run(name, func(t *testing.T) {
			v := Decide(served(func(f *Snapshot) {
				f.Deleting, f.DeletedAt, f.Cluster.Protected, f.PoolExists = true, noon.Add(-time.Minute), true, poolExists
			}))
			if !strings.Contains(v.ClusterRunning.Message, "remove its annotation hive.openshift.io/protected-delete") || len(v.Steps) > 0 {
				t.Errorf("it says %q and takes steps %v", v.ClusterRunning.Message, v.Steps)
			}
		})
	}
}

func TestALifetimeThatIsNoneIsExplained(t *testing.T) {
	v := Decide(served(func(f *Snapshot) { f.Lifetime = span("1w") }))
	if !strings.Contains(v.Pending.Message, `"1w"`) {
		t.Errorf("the message does not name the value: %q", v.Pending.Message)
	}
}
