package e2e

import (
	"slices"
	"sync"
	"testing"
)

// How many tests run at a time, how many of their hubs, and how many of their parallel subtests: they wait for machines and
// clocks most of the time. A hub that starts keeps a processor busy for some seconds.
const (
	places        = 6
	hubPlaces     = 4
	subtestPlaces = 4
)

// longest are the tests that take longest, the longest first. They begin first, so that none of them runs alone at the end.
var longest = []string{
	"TestAMissedSlotIsMadeUpForAndAChangeByHandWins",
	"TestAClusterThatNobodyUsesSleepsAndWakesWhenAClientConnects",
	"TestTheCommandsOfTheDocsRun/even",
	"TestTheCommandsOfTheDocsRun/first",
	"TestTheCommandsOfTheDocsRun/odd",
	"TestABrokenSpareLeavesABundle",
	"TestAPolicyFollowsDemandUpAndDown",
	"TestAJobClaimsWithItsTokenAndIsKilled",
	"TestAClusterThatSleptPastItsCertificatesComesBack",
	"TestTheDemoOnARunningHub",
	"TestAClusterIsFrozenAndThawed",
	"TestAJobOfGitLabGetsACluster",
	"TestTheFlagsOfTheLastStartAreUsedAgain",
	"TestAFleetGrowsBeforeItIsFull",
	"TestBrokenStandbysAreReplaced",
	"TestNoSecretIsTold",
	"TestFlips",
	"TestASubjectCannotHaveAnotherClusterDestroyed",
	"TestAClusterWithADamagedDiskIsReplaced",
	"TestExpiredCertificatesAreRenewed",
}

// turns is where parallel tests wait for their turn.
var turns = turnQueue{places: places, hubs: hubPlaces}

// A turnQueue decides when parallel tests begin: the longest first, and a test with a hub of its own when there is room for both. Go's own
// limit would start tests in an order that nobody chooses, and a test that waits for a hub would keep others from running.
type turnQueue struct {
	mu sync.Mutex
	// announced are tests that will arrive: the first ones wait for all, so that the longest of them can begin.
	announced int
	// places and hubs are those that are free.
	places, hubs int
	// waiting are in the order of their arrival.
	waiting []*turn
}

// A turn is what a test waits for to be let in.
type turn struct {
	rank, places, hubs int
	// isEarly is set for tests that wait until all that are announced have arrived.
	isEarly  bool
	admitted chan struct{}
}

// inParallel runs t in parallel with others once it is its turn. It starts that many hubs of its own.
func inParallel(t *testing.T, hubs int) {
	t.Helper()
	turns.announce(1)
	t.Parallel()
	turns.arrive(t, hubs)
}

// announce adds n, which may be negative, to the calls of arrive that are expected.
func (q *turnQueue) announce(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.announced += n
	q.admit()
}

// arrive waits until it is the turn of t, which was announced. Its place is free again when t and its subtests have ended.
func (q *turnQueue) arrive(t *testing.T, hubs int) {
	t.Helper()
	rank := slices.Index(longest, t.Name())
	if rank < 0 {
		rank = len(longest) + 1 - min(hubs, 1) // those with hubs wait longer, and would be left at the end
	}
	q.mu.Lock()
	q.announced--
	q.mu.Unlock()
	q.enter(&turn{rank: rank, places: 1, hubs: hubs, isEarly: true})
	t.Cleanup(func() { q.leave(1, hubs) })
}

// takeHub takes room for one more hub until t ends, which runs already.
func (q *turnQueue) takeHub(t *testing.T) {
	t.Helper()
	q.enter(&turn{rank: -1, hubs: 1})
	t.Cleanup(func() { q.leave(0, 1) })
}

// idle runs a function that only waits, and lets another test run meanwhile. It returns when there is a place again, so measure times in
// the function. Do not call it in a parallelSubtest: its parent has the place.
func idle(wait func()) {
	turns.leave(1, 0)
	defer turns.enter(&turn{rank: -1, places: 1})
	wait()
}

// enter waits until next is let in.
func (q *turnQueue) enter(next *turn) {
	next.admitted = make(chan struct{})
	q.mu.Lock()
	q.waiting = append(q.waiting, next)
	q.admit()
	q.mu.Unlock()
	<-next.admitted
}

// leave frees places and hubs.
func (q *turnQueue) leave(places, hubs int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.places, q.hubs = q.places+places, q.hubs+hubs
	q.admit()
}

// admit lets in whom there is room for, those of the lowest rank first. It is called with mu held.
func (q *turnQueue) admit() {
	slices.SortStableFunc(q.waiting, func(a, b *turn) int { return a.rank - b.rank })
	q.waiting = slices.DeleteFunc(q.waiting, func(next *turn) bool {
		if next.isEarly && q.announced > 0 || next.places > q.places || next.hubs > q.hubs {
			return false
		}
		q.places, q.hubs = q.places-next.places, q.hubs-next.hubs
		close(next.admitted)
		return true
	})
}

// subtests bounds how many subtests run at a time: Go's own limit is not in effect.
var subtests = make(chan struct{}, subtestPlaces)

// parallelSubtest lets a subtest run in parallel with its siblings, whose parent keeps its place.
func parallelSubtest(t *testing.T) {
	t.Helper()
	t.Parallel()
	subtests <- struct{}{}
	t.Cleanup(func() { <-subtests })
}
