package record

import (
	"math"
	"slices"
	"time"

	"hotspare.io/hotspare/internal/sizing"
)

// QuarterLength is how long a Quarter is.
const QuarterLength = 15 * time.Minute

const (
	quarterSeconds = int64(QuarterLength / time.Second)
	// keptQuarters is how many quarters are kept: eight days, so that a chart of a week is complete.
	keptQuarters = 8 * 24 * 4
	// KeptSpan is how long that is.
	KeptSpan = keptQuarters * QuarterLength
	// maxClusters limits what one quarter counts, so that no sum overflows.
	maxClusters = 1_000_000
)

// A State is what an hour of a cluster counts as.
type State int

// The states. A cluster is in one of them at each moment.
const (
	// Running: it runs without a claim, so a claim gets it at once.
	Running State = iota
	Resuming
	Hibernating
	Installing
	// Other: it is unclaimed, and on its way to hibernation, broken, or being deleted.
	Other
	// Claimed: it belongs to a claim.
	Claimed
	// States is the number of states.
	States
)

// stateNames are the words of the states, for people and programs.
var stateNames = [States]string{"running", "resuming", "hibernating", "installing", "other", "claimed"}

// String returns the word for the state.
func (s State) String() string { return stateNames[s] }

// Unclaimed lists the states of clusters that have no claim.
var Unclaimed = []State{Running, Resuming, Hibernating, Installing, Other}

// A Quarter is what was seen of a pool within a quarter of an hour.
type Quarter struct {
	// Start is in quarters of an hour since 1970.
	Start int64
	// Seconds is how long somebody looked, Clusters the cluster-seconds of each state meanwhile.
	Seconds  int64
	Clusters [States]int64
	// Shallow are the cluster-seconds of Hibernating at shallow depths of sleep.
	Shallow sizing.PerShallowDepth[int64]
	// Waiting is the largest number of claims that waited at the same time.
	Waiting int64
	// Noted is set if the settings below are known. They are those at the end of the quarter: what the
	// pool has, what is recommended, and what a person has chosen last. Computed is set if the
	// recommendation was computed from the demand.
	Noted, Computed           bool
	Pool, Recommended, Static sizing.Setting
	// Forecast is of the claims in the hour that begins with this quarter; nil if there was none.
	Forecast *sizing.Forecast
	// Waits are those of the claims that were created in this quarter and were served, Unserved is how
	// many were deleted before that.
	Waits    Waits
	Unserved int64
}

// Begin returns when the quarter begins.
func (q *Quarter) Begin() time.Time { return time.Unix(q.Start*quarterSeconds, 0).UTC() }

// Average returns the average number of clusters in a state while somebody looked.
func (q *Quarter) Average(s State) float64 {
	if q.Seconds <= 0 {
		return 0
	}
	return float64(q.Clusters[s]) / float64(q.Seconds)
}

// hasSameCounts reports whether two quarters have the same numbers of clusters and the same settings.
func (q *Quarter) hasSameCounts(o *Quarter) bool {
	for s := range q.Clusters {
		if q.Clusters[s]*o.Seconds != o.Clusters[s]*q.Seconds {
			return false
		}
	}
	return q.Pool == o.Pool && q.Recommended == o.Recommended && q.Waiting == o.Waiting
}

// Waits counts claims by how long they have waited. The index is the one of waitIndex.
type Waits map[int]int64

// waitSteps is the number of indexes for each doubling of a wait, maxWaitIndex the largest one.
const (
	waitSteps    = 4
	maxWaitIndex = 100
)

// waitIndex returns the index of a wait: 0 if the claim got a cluster at once.
func waitIndex(wait time.Duration) int {
	seconds := max(wait.Seconds(), 1)
	return min(1+int(math.Round(waitSteps*math.Log2(seconds))), maxWaitIndex)
}

// waitAt returns the wait that an index stands for. It differs from the real one by at most a tenth, or a second.
func waitAt(index int) time.Duration {
	if index <= 0 {
		return 0
	}
	return time.Duration(math.Round(math.Exp2(float64(index-1)/waitSteps))) * time.Second
}

// AddClaim adds a claim that has got its cluster.
func (w Waits) AddClaim(c Claim) {
	i := 0
	if !c.AtOnce {
		i = waitIndex(c.Running.Sub(c.Created))
	}
	w[i] = min(w[i]+1, maxClusters)
}

// Add adds other waits.
func (w Waits) Add(o Waits) {
	for i, n := range o {
		w[i] += n
	}
}

// Claims returns the number of claims, AtOnce that of those that did not wait.
func (w Waits) Claims() int64 {
	n := int64(0)
	for _, m := range w {
		n += m
	}
	return n
}

// AtOnce returns the number of claims that got a running cluster at once.
func (w Waits) AtOnce() int64 { return w[0] }

// Quantile returns a quantile of the waits, exact to a tenth or a second; 0 if there are none.
func (w Waits) Quantile(q float64) time.Duration {
	left := int64(math.Ceil(q * float64(w.Claims())))
	for i := range maxWaitIndex + 1 {
		if left -= w[i]; left <= 0 {
			return waitAt(i)
		}
	}
	return 0
}

// Quarters are in the order of time, without two of the same time. There are none for times in which
// nobody looked.
type Quarters []Quarter

// at returns the quarter of a moment; nil if there is none.
func (q Quarters) at(t time.Time) *Quarter {
	start := t.Unix() / quarterSeconds
	i, found := slices.BinarySearchFunc(q, start, func(o Quarter, s int64) int { return int(max(-1, min(1, o.Start-s))) })
	if !found {
		return nil
	}
	return &q[i]
}

// A census has the number of clusters in each state, that of those which hibernate at shallow depths, and that of
// waiting claims.
type census struct {
	clusters [States]int64
	shallow  sizing.PerShallowDepth[int64]
	waiting  int64
}

// addSpan adds a time in which there were so many clusters and waiting claims. It must not begin before the last
// quarter. Afterwards there is a quarter of its end.
func (q *Quarters) addSpan(from, to time.Time, c census) {
	for from.Before(to) {
		start := from.Unix() / quarterSeconds
		end := time.Unix((start+1)*quarterSeconds, 0)
		if end.After(to) {
			end = to
		}
		last := q.extendTo(start)
		seconds := min(end.Unix()-from.Unix(), quarterSeconds-last.Seconds)
		last.Seconds += seconds
		for s := range c.clusters {
			last.Clusters[s] += seconds * min(c.clusters[s], maxClusters)
		}
		for _, depth := range sizing.ShallowDepths() {
			*last.Shallow.Of(depth) += seconds * min(*c.shallow.Of(depth), maxClusters)
		}
		last.Waiting = max(last.Waiting, min(c.waiting, maxClusters))
		from = end
	}
	last := q.extendTo(to.Unix() / quarterSeconds)
	last.Waiting = max(last.Waiting, min(c.waiting, maxClusters))
}

// extendTo returns the last quarter, and adds one if the last begins before start.
func (q *Quarters) extendTo(start int64) *Quarter {
	if n := len(*q); n == 0 || (*q)[n-1].Start < start {
		*q = append(*q, Quarter{Start: start})
	}
	return &(*q)[len(*q)-1]
}

// trim drops what is older than eight days.
func (q *Quarters) trim(now time.Time) {
	oldest := now.Unix()/quarterSeconds - keptQuarters
	i := slices.IndexFunc(*q, func(o Quarter) bool { return o.Start > oldest })
	if i < 0 {
		i = len(*q)
	}
	*q = slices.Clip((*q)[i:])
}
