package power

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// claimReportDelay is the delay of the write that reports a claim in the status of its cluster.
	claimReportDelay = 3 * time.Second
	// claimReportPeriod is the minimum time between two such writes, of all clusters.
	claimReportPeriod = 100 * time.Millisecond
	// maxClaimReportDelay is the maximum delay of such a write, however many others are due.
	maxClaimReportDelay = time.Minute
)

// A claimReportQueue spreads the writes that only report claims in the status of their clusters. Nobody
// waits for such a write, and while claims arrive faster than these writes should, each would delay a
// claim that still waits. The zero value is an empty queue. A queue that a restart has emptied fills
// again: every cluster whose report is missing asks for a time.
type claimReportQueue struct {
	mu sync.Mutex
	// due has the time of the report of each cluster that asked for one.
	due map[types.NamespacedName]time.Time
	// last is the time of the last report in the queue.
	last time.Time
}

// dueTime returns when the report of a cluster that was claimed at claimedAt is due, at least
// claimReportDelay and at most maxClaimReportDelay later. It is the same time until removeCluster. A
// claimedAt after now, by a clock that was wrong, counts as now.
func (q *claimReportQueue) dueTime(cluster types.NamespacedName, claimedAt, now time.Time) time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	if at, found := q.due[cluster]; found {
		return at
	}
	if claimedAt.After(now) {
		claimedAt = now
	}
	at := claimedAt.Add(claimReportDelay)
	if next := q.last.Add(claimReportPeriod); at.Before(next) {
		at = next
	}
	if latest := claimedAt.Add(maxClaimReportDelay); at.After(latest) {
		at = latest
	}
	if at.After(q.last) {
		q.last = at
	}
	if q.due == nil {
		q.due = map[types.NamespacedName]time.Time{}
	}
	q.due[cluster] = at
	return at
}

// removeCluster removes a cluster whose status was written, or that is deleted.
func (q *claimReportQueue) removeCluster(cluster types.NamespacedName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.due, cluster)
}
