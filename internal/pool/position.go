package pool

import (
	"fmt"
	"time"
)

const (
	// positionDelay is the age from which the position of a waiting claim is set: most claims are
	// served earlier, and writing a status that nobody reads only costs time.
	positionDelay = 5 * time.Second
	// positionPeriod is the minimum time between two updates of the positions of a pool's claims.
	// positionRate is the number of positions set per second: all claims move up when one is
	// served.
	positionPeriod = 10 * time.Second
	positionRate   = 10
	// estimateTolerance is how far an estimate may move before it is set again.
	estimateTolerance = 10 * time.Second
)

// planPositions plans to set the changed positions of waiting claims, and returns the time until
// the pool must be reconciled again; 0 if nothing is postponed.
func (d *draft) planPositions(queue []Wait) time.Duration {
	var next time.Duration
	var changed []Wait
	for _, w := range queue {
		claim := d.claims[w.Claim]
		if left := claim.Created.Add(positionDelay).Sub(d.Now); left > 0 {
			next = soonerDelay(next, left)
		} else if !claim.showsPosition(w) {
			changed = append(changed, w)
		}
	}
	if len(changed) == 0 {
		return next
	}
	pause := max(positionPeriod, time.Duration(len(changed))*time.Second/positionRate)
	if left := d.PositionsSetAt.Add(pause).Sub(d.Now); !d.PositionsSetAt.IsZero() && left > 0 {
		return soonerDelay(next, left)
	}
	for _, w := range changed {
		d.steps = append(d.steps, Step{
			Verb: SetPosition, Claim: w.Claim, Position: w.Position, Ready: w.Ready, Cause: ClaimWaiting,
			Reason: fmt.Sprintf("it is number %d in the queue", w.Position),
		})
	}
	return next
}

// showsPosition reports whether the status of c has the position and the estimate of w.
func (c Claim) showsPosition(w Wait) bool {
	if c.Position != w.Position || w.Ready.IsZero() != c.Ready.IsZero() {
		return false
	}
	return w.Ready.IsZero() || w.Ready.Sub(c.Ready).Abs() < estimateTolerance
}
