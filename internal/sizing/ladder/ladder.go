// Package ladder decides at which depths the spare clusters of a pool sleep.
//
// Decide is one pure function. It puts the next spare at a shallow depth as long as the spare is worth its price there:
// it makes running clusters unnecessary, or saves the claims that wait a part of their wait. How much, says
// sizing.SleepWorth.
package ladder

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/sizing"
)

// Counts are numbers of clusters at shallow depths. All others sleep at stop.
type Counts = sizing.PerShallowDepth[int]

// A Snapshot is everything that a ladder depends on.
type Snapshot struct {
	// Standby is the largest number of clusters that hibernate.
	Standby int
	// Prices are those of the pool; zero if it has none. Depths then cost the same.
	Prices    sizing.Prices
	Durations sizing.Durations
	// Worth is the result of sizing.SleepWorth, and Known its ok.
	Worth sizing.PerShallowDepth[[]float64]
	Known bool
	// Sleeping is the number of clusters that sleep at shallow depths now.
	Sleeping Counts
	// Refused is set for depths at which the platform has not put a cluster to sleep that should sleep there, lately.
	Refused sizing.PerShallowDepth[bool]
	// Current is the ladder in effect; nil if there is none.
	Current *Counts
}

// A Plan is a ladder with its reason.
type Plan struct {
	Counts Counts
	// Reason explains the counts in words and numbers.
	Reason string
}

// String returns the ladder in the form of the annotation: "freeze:1,stop".
func (p Plan) String() string {
	text := ""
	for _, depth := range sizing.ShallowDepths() {
		if n := *p.Counts.Of(depth); n > 0 {
			text += fmt.Sprintf("%s:%d,", depth, n)
		}
	}
	return text + string(cloud.DepthStop)
}

const (
	// leastWorth is what a cluster at a shallow depth must be worth, as a share of a running one, even if its sleep costs
	// no more than one at stop.
	leastWorth = 0.01
	// tolerance keeps a ladder that was right a moment ago: a spare stays at its depth as long as that would pay for a
	// difference of prices that is smaller by this share.
	tolerance = 0.1
)

// stop is the rank of depth stop: ranks are indexes of cloud.Depths.
const stop = 2

// Decide returns the ladder of a pool. It has at most Standby clusters at shallow depths, and at a depth that was refused at
// most as many as sleep there.
func Decide(s Snapshot) Plan {
	s.Standby = max(s.Standby, 0)
	ranks := s.currentRanks()
	if s.Known {
		ranks = s.chooseRanks(ranks)
	}
	counts := s.countRanks(ranks)
	explored := s.exploreDepth(&counts)
	return Plan{Counts: counts, Reason: s.explain(counts, explored)}
}

// currentRanks returns the rank of the depth of each spare by the ladder in effect, the shallowest first. One that sleeps
// at a depth to explore it is left out once the others are chosen by what they are worth.
func (s Snapshot) currentRanks() []int {
	out := slices.Repeat([]int{stop}, s.Standby)
	if s.Current == nil {
		return out
	}
	i := 0
	for rank, depth := range sizing.ShallowDepths() {
		if s.Known && *s.Durations.Shallow.Of(depth) == 0 {
			continue
		}
		for n := *s.Current.Of(depth); n > 0 && i < len(out); n-- {
			out[i] = rank
			i++
		}
	}
	return out
}

// chooseRanks returns the rank of the depth that pays most for each spare. A spare keeps the one that it has if that pays
// nearly as much. No spare sleeps less deeply than the one before.
func (s Snapshot) chooseRanks(current []int) []int {
	out := slices.Repeat([]int{stop}, s.Standby)
	var used [stop]int
	for i, last := 0, 0; i < len(out) && last < stop; i++ {
		last = s.chooseRank(i, last, current[i], used)
		if out[i] = last; last < stop {
			used[last]++
		}
	}
	return out
}

// chooseRank returns the rank for spare i, which is at least the given one.
func (s Snapshot) chooseRank(i, least, current int, used [stop]int) int {
	gains := [stop + 1]float64{stop: 0}
	best, canStay := stop, current == stop
	for rank := stop - 1; rank >= least; rank-- {
		gain, isUseful := s.gainAt(rank, i)
		if !isUseful || !s.hasRoom(rank, used[rank]) {
			continue
		}
		gains[rank] = gain
		canStay = canStay || rank == current
		if gain > gains[best] {
			best = rank
		}
	}
	depths := cloud.Depths()
	slack := tolerance * math.Abs(s.Prices.AtDepth(depths[current])-s.Prices.AtDepth(depths[best]))
	if s.Current != nil && canStay && gains[current]+slack >= gains[best] {
		return current
	}
	return best
}

// gainAt returns what spare i gains in an hour at a depth, compared with stop. Without prices, a running cluster is worth 1.
func (s Snapshot) gainAt(rank, i int) (gain float64, isUseful bool) {
	depth := cloud.Depths()[rank]
	worth := *s.Worth.Of(depth)
	if i >= len(worth) || worth[i] < leastWorth {
		return 0, false
	}
	deep := s.Prices.AtDepth(cloud.DepthStop)
	value := s.Prices.Running - deep
	if s.Prices == (sizing.Prices{}) {
		value = 1
	}
	return worth[i]*value - (s.Prices.AtDepth(depth) - deep), true
}

// hasRoom reports whether one more cluster may sleep at a depth.
func (s Snapshot) hasRoom(rank, used int) bool {
	depth := cloud.Depths()[rank]
	return !*s.Refused.Of(depth) || used < *s.Sleeping.Of(depth)
}

// countRanks counts the spares at each depth. What is too many at a depth that was refused sleeps at stop.
func (s Snapshot) countRanks(ranks []int) Counts {
	var out Counts
	for _, rank := range ranks {
		if rank < stop {
			if n := out.Of(cloud.Depths()[rank]); s.hasRoom(rank, *n) {
				*n++
			}
		}
	}
	return out
}

// exploreDepth puts one spare at the shallowest depth of which no resume was measured, and returns the depth; "" if there is
// none that can pay.
func (s Snapshot) exploreDepth(counts *Counts) cloud.Depth {
	for _, depth := range sizing.ShallowDepths() {
		n, price := counts.Of(depth), s.Prices.AtDepth(depth)
		switch {
		case *s.Durations.Shallow.Of(depth) > 0:
			if *n > 0 && price <= s.Prices.AtDepth(cloud.DepthSuspend) {
				return "" // a deeper sleep would be worse in both respects
			}
		case *s.Refused.Of(depth):
		case s.Prices != (sizing.Prices{}) && price >= s.Prices.Running:
		case *n > 0:
			return depth
		case counts.Freeze+counts.Suspend < s.Standby:
			*n = 1
			return depth
		case depth == cloud.DepthFreeze && counts.Suspend > 0:
			counts.Suspend--
			*n = 1
			return depth
		}
	}
	return ""
}

// explain returns the reason of the counts.
func (s Snapshot) explain(counts Counts, explored cloud.Depth) string {
	var numbers, reasons []string
	for rank, word := range []string{"frozen", "suspended"} {
		depth := sizing.ShallowDepths()[rank]
		n := *counts.Of(depth)
		if n > 0 {
			numbers = append(numbers, fmt.Sprintf("%d %s", n, word))
		}
		if reason := s.explainDepth(depth, n, explored); reason != "" {
			reasons = append(reasons, reason)
		}
	}
	if n := s.Standby - counts.Freeze - counts.Suspend; n > 0 || len(numbers) == 0 {
		numbers = append(numbers, fmt.Sprintf("%d stopped", n))
	}
	if len(reasons) == 0 {
		return strings.Join(numbers, ", ")
	}
	return strings.Join(numbers, ", ") + ": " + strings.Join(reasons, "; ")
}

// explainDepth says why n spares sleep at a depth.
func (s Snapshot) explainDepth(depth cloud.Depth, n int, explored cloud.Depth) string {
	wake := *s.Durations.Shallow.Of(depth)
	worth := *s.Worth.Of(depth)
	switch {
	case s.Standby == 0:
		return ""
	case *s.Refused.Of(depth):
		return fmt.Sprintf("the platform has put no further cluster to sleep at depth %s", depth)
	case explored == depth:
		return fmt.Sprintf("one sleeps at depth %s to measure a resume from there", depth)
	case wake == 0:
		return ""
	case wake >= s.Durations.Resume:
		return fmt.Sprintf("a resume from %s takes %s, and one from stop %s", depth, wake, s.Durations.Resume)
	case !s.Known:
		return fmt.Sprintf("a resume from %s takes %s in place of %s, and too little is known about the demand to change the ladder", depth, wake, s.Durations.Resume)
	case n > 0:
		return fmt.Sprintf("a resume from %s takes %s in place of %s%s", depth, wake, s.Durations.Resume, s.describeWorth(depth, worth[n-1]))
	case len(worth) == 0:
		return "claims may wait for a resume from stop"
	default:
		return fmt.Sprintf("none at depth %s%s", depth, s.describeWorth(depth, worth[0]))
	}
}

// describeWorth compares what a spare at a depth is worth with its price.
func (s Snapshot) describeWorth(depth cloud.Depth, worth float64) string {
	if s.Prices == (sizing.Prices{}) {
		return fmt.Sprintf(", and the last one is worth %.0f%% of a running cluster", 100*worth)
	}
	return fmt.Sprintf(", and the last one is worth %.0f%% of a running cluster, for %.3g in place of %.3g an hour",
		100*worth, s.Prices.AtDepth(depth), s.Prices.AtDepth(cloud.DepthStop))
}
