// Package claimqueue orders the claims that wait: for a cluster of their pool, or for a place within the limits
// of a ClaimPolicy. It is pure.
//
// Every list of waiting claims uses Compare, so that all agree on who is next.
package claimqueue

import (
	"cmp"
	"time"
)

// TimePerPriority is how much earlier a claim counts as created for each 1 of its priority.
const TimePerPriority = time.Minute

// An Entry is a claim that waits.
type Entry struct {
	// Name is unique among the claims that are compared.
	Name    string
	Created time.Time
	// Priority is the priority in effect, within the limits of the ClaimPolicies.
	Priority int
}

// EffectiveArrival returns the time from which the place of the claim in the queue is counted: priority times TimePerPriority
// before its creation.
func (e Entry) EffectiveArrival() time.Time {
	return e.Created.Add(-time.Duration(e.Priority) * TimePerPriority)
}

// Compare returns a negative number if a is served before b. It is a total order: by arrival, then by creation,
// then by name. It depends on no clock, so two claims never change places while their priorities stay the
// same. Claims of one priority are served in the order of their creation.
//
// Nobody starves: b can be before a only if b was created less than (b.Priority - a.Priority) * TimePerPriority after
// a. So no claim that is created later than that passes a, whatever its priority.
func Compare(a, b Entry) int {
	return cmp.Or(a.EffectiveArrival().Compare(b.EffectiveArrival()), a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
}
