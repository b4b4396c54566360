package power

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func clusterKey(i int) types.NamespacedName {
	name := fmt.Sprintf("c%d", i)
	return types.NamespacedName{Namespace: name, Name: name}
}

// TestClaimReportsAreSpread plays claims that arrive at random rates: no report is early or late, none
// changes its time while it waits, and, unless they are a minute old, at most ten are due in a second.
func TestClaimReportsAreSpread(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 50 {
		var q claimReportQueue
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		claimed := map[int]time.Time{}
		due := map[int]time.Time{}
		for i := range 1 + random.IntN(2000) {
			now = now.Add(time.Duration(random.IntN(60)) * time.Millisecond)
			claimed[i] = now.Truncate(time.Second) // as the API stores it
			due[i] = q.dueTime(clusterKey(i), claimed[i], now)
			if j := random.IntN(i + 1); due[j] != q.dueTime(clusterKey(j), claimed[j], now) {
				t.Fatalf("the time of cluster %d changed from %s", j, due[j])
			}
		}
		var times []time.Time
		for i, at := range due {
			wait := at.Sub(claimed[i])
			if wait < 3*time.Second || wait > time.Minute {
				t.Fatalf("the report of cluster %d is due %s after the claim", i, wait)
			}
			if wait < time.Minute {
				times = append(times, at)
			}
		}
		slices.SortFunc(times, time.Time.Compare)
		for i := 10; i < len(times); i++ {
			if span := times[i].Sub(times[i-10]); span < time.Second {
				t.Fatalf("11 reports are due within %s from %s", span, times[i-10])
			}
		}
	}
}

func TestClaimReportsOfSlowClaimsAreDueAfterThreeSeconds(t *testing.T) {
	var q claimReportQueue
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i := range 5 {
		now = now.Add(time.Second)
		if wait := q.dueTime(clusterKey(i), now, now).Sub(now); wait != 3*time.Second {
			t.Errorf("report %d is due after %s", i, wait)
		}
	}
}

func TestAClaimFromTheFutureDelaysNoOtherReport(t *testing.T) {
	var q claimReportQueue
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	if wait := q.dueTime(clusterKey(0), now.Add(24*time.Hour), now).Sub(now); wait != 3*time.Second {
		t.Errorf("its own report is due after %s", wait)
	}
	if wait := q.dueTime(clusterKey(1), now, now).Sub(now); wait > 4*time.Second {
		t.Errorf("the next report is due after %s", wait)
	}
}

func TestARemovedClusterGetsANewTime(t *testing.T) {
	var q claimReportQueue
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	first := q.dueTime(clusterKey(0), now, now)
	q.removeCluster(clusterKey(0))
	if len(q.due) > 0 {
		t.Errorf("the queue keeps %v", q.due)
	}
	now = now.Add(time.Hour)
	if again := q.dueTime(clusterKey(0), now, now); !again.After(first) {
		t.Errorf("the time of the next claim is %s", again)
	}
}
