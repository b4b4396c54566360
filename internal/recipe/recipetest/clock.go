package recipetest

import (
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// Clock is the clock of the computer, ahead by the sum of all steps. Its timers are those of the computer,
// so programs take the time that they take.
type Clock struct {
	clock.RealClock
	ahead atomic.Int64
}

// Step moves the clock forward.
func (c *Clock) Step(by time.Duration) { c.ahead.Add(int64(by)) }

// Now returns the time.
func (c *Clock) Now() time.Time { return c.RealClock.Now().Add(time.Duration(c.ahead.Load())) }

// Since returns the time since t.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
