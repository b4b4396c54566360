package simulate

import (
	"math"
	"time"

	"hotspare.io/hotspare/internal/sizing"
)

const (
	// pace is the number of seconds between two decisions of a policy without a claim.
	pace = 60
	// never is later than any event.
	never = int64(math.MaxInt64)
)

// world is a pool that is replayed: by its own decider, or fast.
type world interface {
	nextEvent() int64
	// completeTransitions lets happen what is due at now.
	completeTransitions(now int64)
	// acceptClaim adds a claim and reports whether it got a running cluster at once.
	acceptClaim(Claim) bool
	applySetting(s sizing.Setting, now int64)
	waitingClaims() int
}

// replayTrace steps the clock from event to event until the end, and then until no claim waits any more, at
// most for afterEnd.
func replayTrace(t Trace, p Policy, w world, r *recorder) {
	next, tick := 0, r.last+pace
	for {
		arrival := never
		if next < len(t.Claims) && t.Claims[next].Arrived < r.to {
			arrival = t.Claims[next].Arrived
		}
		event := w.nextEvent()
		now := min(arrival, event, tick)
		if arrival == never && now > r.to {
			break
		}
		r.advanceTo(now)
		seen := Seen{Now: time.Unix(now, 0).UTC(), Spent: r.spent}
		switch now {
		case event:
			w.completeTransitions(now)
			continue
		case arrival:
			c := t.Claims[next]
			next++
			seen.Arrived, seen.Immediate = true, w.acceptClaim(c)
			r.addClaim(now, seen.Immediate)
		default:
			tick += pace
			if r.Progress != nil {
				r.Progress(seen.Now)
			}
		}
		seen.Waiting, seen.Sleeping, seen.Waits = w.waitingClaims(), r.state.shallow, r.takeRecentWaits()
		w.applySetting(p.Decide(seen), now)
	}
	r.advanceTo(r.to)
	decideUntilSettled(w, r)
}

// afterEnd is how long after the end claims that still wait can get their clusters, in seconds, and maxEventsAfterEnd how many
// transitions may be completed then: each takes longer the more claims wait.
const (
	afterEnd          = 30 * 24 * 3600
	maxEventsAfterEnd = 100_000
)

// decideUntilSettled lets the claims that still wait get their clusters, so that their waits are counted.
func decideUntilSettled(w world, r *recorder) {
	for range maxEventsAfterEnd {
		if w.waitingClaims() == 0 {
			break
		}
		now := w.nextEvent()
		if now == never || now > r.to+afterEnd {
			break
		}
		r.last = now
		w.completeTransitions(now)
	}
	r.unserved = min(w.waitingClaims(), r.claims) // the oldest are served first
}

// ReplayAny replays a trace in the fastest way that is equivalent to the pool's own decider.
func ReplayAny(t Trace, p Policy, o Options, maxWait time.Duration) Result {
	if o.Exact || o.Resume.Spread > 0 || o.Install.Spread > 0 || o.FailedResumes > 0 || o.FailedInstalls > 0 || o.MaxSize != nil || o.MaxConcurrent != nil || len(o.Sleep) > 0 {
		return Replay(t, p, o, maxWait)
	}
	return ReplayFast(t, p, o, maxWait)
}
