package clusterclaim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func span(d string) *hivev1.Duration { out := hivev1.Duration(d); return &out }

// served are the facts of claim x with a running cluster since an hour.
func served(change func(*snapshot)) snapshot {
	f := snapshot{
		created: noon.Add(-2 * time.Hour), cluster: "a", poolExists: true, hasConditions: true,
		assigned: &clusterSnapshot{claim: "x", claimed: noon.Add(-time.Hour), running: true, power: "Running"},
	}
	if change != nil {
		change(&f)
	}
	return f
}

func waiting(change func(*snapshot)) snapshot {
	f := snapshot{created: noon.Add(-time.Minute), poolExists: true}
	if change != nil {
		change(&f)
	}
	return f
}

// brief writes a verdict in one line.
func brief(v plan) string {
	var out []string
	add := func(cond bool, format string, args ...any) {
		if cond {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	add(v.pending.Status != "", "Pending=%s/%s", v.pending.Status, v.pending.Reason)
	add(v.running.Status != "", "ClusterRunning=%s/%s", v.running.Status, v.running.Reason)
	add(v.lifetime != nil, "lifetime")
	add(v.expired, "expired")
	add(v.deleteCluster, "destroy")
	add(v.removeFinalizer, "release")
	add(v.next > 0, "next %s", v.next)
	return strings.Join(out, " ")
}

func TestDecide(t *testing.T) {
	tests := map[string]struct {
		in   snapshot
		want string
	}{
		"a claim that is about to be served is let be":  {waiting(func(f *snapshot) { f.created, f.poolHasReady = noon, true }), "next 5s"},
		"a new claim on an empty pool is told at once":  {waiting(func(f *snapshot) { f.created = noon }), "Pending=True/NoClusters"},
		"a claim that is not served soon is told":       {waiting(func(f *snapshot) { f.poolHasReady = true }), "Pending=True/NoClusters"},
		"a claim that waits is told":                    {waiting(nil), "Pending=True/NoClusters"},
		"a claim keeps what the hub said of a refusal":  {waiting(func(f *snapshot) { f.assignmentRefused, f.hasConditions = true, true }), ""},
		"a refusal of a pool that is gone is stale":     {waiting(func(f *snapshot) { f.assignmentRefused, f.poolExists = true, false }), "Pending=True/PoolNotFound"},
		"a claim on no pool is told":                    {waiting(func(f *snapshot) { f.poolExists, f.created = false, noon }), "Pending=True/PoolNotFound"}, // B13
		"a claim on a pool that goes is told":           {waiting(func(f *snapshot) { f.poolDeleting = true }), "Pending=True/PoolDeleting"},                 // B13
		"a claim that waits and is deleted goes":        {waiting(func(f *snapshot) { f.deleting = true }), "release"},
		"a served claim":                                {served(nil), "Pending=False/ClusterClaimed ClusterRunning=True/Running"},
		"its cluster resumes":                           {served(func(f *snapshot) { f.assigned.running, f.assigned.power = false, "WaitingForNodes" }), "Pending=False/ClusterClaimed ClusterRunning=False/Resuming"},
		"its cluster sleeps":                            {served(func(f *snapshot) { f.assigned.running, f.assigned.power = false, "Hibernating" }), "Pending=False/ClusterClaimed ClusterRunning=False/Hibernating"},
		"its cluster is being destroyed":                {served(func(f *snapshot) { f.assigned.deleting = true }), "Pending=False/ClusterClaimed ClusterRunning=False/ClusterDeleting"},
		"its cluster is gone":                           {served(func(f *snapshot) { f.assigned = nil }), "Pending=False/ClusterClaimed ClusterRunning=False/ClusterDeleted"},
		"its cluster does not show it yet":              {served(func(f *snapshot) { f.assigned.claim, f.assigned.pooled = "", true }), ""},
		"its cluster is no pool's":                      {served(func(f *snapshot) { f.assigned.claim = "" }), "Pending=True/AssignmentConflict"},
		"its cluster is another's":                      {served(func(f *snapshot) { f.assigned.claim = "y" }), "Pending=True/AssignmentConflict"}, // B17
		"deleted, it waits for its cluster to go":       {served(func(f *snapshot) { f.deleting = true }), "ClusterRunning=False/ClusterDeleting"},
		"deleted without a pool, it destroys it":        {served(func(f *snapshot) { f.deleting, f.poolExists = true, false }), "ClusterRunning=False/ClusterDeleting destroy"},
		"deleted, its cluster gone, it goes":            {served(func(f *snapshot) { f.deleting, f.assigned = true, nil }), "release"},
		"deleted, its cluster another's, it goes":       {served(func(f *snapshot) { f.deleting, f.assigned.claim = true, "y" }), "release"},
		"a lifetime wakes it at its end":                {served(func(f *snapshot) { f.lifetime = span("90m") }), "Pending=False/ClusterClaimed ClusterRunning=True/Running lifetime next 30m0s"},
		"a lifetime ends the claim":                     {served(func(f *snapshot) { f.lifetime = span("1h") }), "Pending=False/ClusterClaimed ClusterRunning=True/Running lifetime expired"},
		"the pool's default counts without one":         {served(func(f *snapshot) { f.fallback = span("2h") }), "Pending=False/ClusterClaimed ClusterRunning=True/Running lifetime next 1h0m0s"},
		"the claim's own counts before the default":     {served(func(f *snapshot) { f.lifetime, f.fallback = span("3h"), span("1h") }), "Pending=False/ClusterClaimed ClusterRunning=True/Running lifetime next 2h0m0s"},
		"the pool's maximum caps it":                    {served(func(f *snapshot) { f.lifetime, f.maximum = span("9h"), span("2h") }), "Pending=False/ClusterClaimed ClusterRunning=True/Running lifetime next 1h0m0s"},
		"the pool's maximum counts without any other":   {served(func(f *snapshot) { f.maximum = span("2h") }), "Pending=False/ClusterClaimed ClusterRunning=True/Running lifetime next 1h0m0s"},
		"a lifetime that is none ends no claim":         {served(func(f *snapshot) { f.lifetime = span("1w") }), "Pending=False/ClusterClaimed ClusterRunning=True/Running"},                                             // B14
		"a maximum that is none neither ends nor frees": {served(func(f *snapshot) { f.lifetime, f.maximum = span("2h"), span("1d") }), "Pending=False/ClusterClaimed ClusterRunning=True/Running lifetime next 1h0m0s"}, // B14
		"the lifetime counts while the cluster sleeps":  {served(func(f *snapshot) { f.lifetime, f.assigned.running, f.assigned.power = span("2h"), false, "Hibernating" }), "Pending=False/ClusterClaimed ClusterRunning=False/Hibernating lifetime next 1h0m0s"},
		"unreadable, it waits and says so":              {waiting(func(f *snapshot) { f.unreadable = "x" }), "Pending=True/Unreadable"},
		"unreadable, it keeps its cluster for ever":     {served(func(f *snapshot) { f.unreadable, f.fallback, f.maximum = "x", span("1m"), span("1m") }), "Pending=False/ClusterClaimed ClusterRunning=True/Running"},
		"unreadable and deleted, it goes its way":       {served(func(f *snapshot) { f.unreadable, f.deleting = "x", true }), "ClusterRunning=False/ClusterDeleting"},
		"an unreadable cluster may be its": {served(func(f *snapshot) {
			f.unreadable, f.assigned.unreadable, f.assigned.claim, f.lifetime = "x", true, "", span("1m")
		}), "Pending=False/ClusterClaimed"},
		"an unreadable cluster ends no claim": {served(func(f *snapshot) { f.unreadable, f.assigned.unreadable, f.lifetime = "x", true, span("1m") }), "Pending=False/ClusterClaimed"},
		"deleted, it waits for an unreadable cluster": {served(func(f *snapshot) {
			f.deleting, f.poolExists, f.assigned.unreadable, f.assigned.claim = true, false, true, ""
		}), "ClusterRunning=False/Unreadable"},
		"without a time to count from it has no end":     {served(func(f *snapshot) { f.assigned.claimed, f.lifetime = time.Time{}, span("1m") }), "Pending=False/ClusterClaimed ClusterRunning=True/Running"},
		"waiting claims have no lifetime that could end": {waiting(func(f *snapshot) { f.lifetime = span("1s") }), "Pending=True/NoClusters"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := brief(decide("x", tc.in, noon)); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
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
		"just released":                {time.Second, false, goes, 4 * time.Second},
		"released a while ago":         {grace, false, waits, 0},
		"its cluster is being deleted": {grace, true, goes, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := served(func(f *snapshot) { f.deleting, f.deletedAt, f.assigned.deleting = true, noon.Add(-tc.ago), tc.deleting })
			v := decide("x", f, noon)
			if !strings.HasPrefix(v.running.Message, tc.want) || v.next != tc.next {
				t.Errorf("it says %q and looks again in %v", v.running.Message, v.next)
			}
		})
	}
}

func TestALifetimeThatIsNoneIsExplained(t *testing.T) {
	v := decide("x", served(func(f *snapshot) { f.lifetime = span("1w") }), noon)
	if !strings.Contains(v.pending.Message, `"1w"`) {
		t.Errorf("the message does not name the value: %q", v.pending.Message)
	}
}
