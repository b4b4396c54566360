package exec

import (
	"errors"
	"time"

	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/recipe"
	"hotspare.io/hotspare/internal/recipe/runner"
)

// A failure is the error with which the last run of a program has ended.
type failure struct {
	err error
	// count is the number of runs that have failed in succession.
	count int
	// version is that of the recipe's content: a corrected recipe is tried at once.
	version string
	// retryAt is when the program may run again. Until then err is returned: each report of a failure can
	// wake the caller, who would otherwise run the program again at once.
	retryAt time.Time
}

const (
	// maxRetryFactor is the longest delay before a program runs again, in units of Options.FirstRetry.
	maxRetryFactor = 60
	// retryNoRoom is the delay after a program has reported that the platform has no capacity.
	retryNoRoom = time.Minute
)

// findFailure returns the error with which the last run of a program has ended while it is too early to run
// it again; nil otherwise.
func (c *cluster) findFailure(v recipe.Verb, r *recipe.Recipe, now time.Time) error {
	f, found := c.failures[v]
	if !found || !now.Before(f.retryAt) || f.version != contentVersion(r) {
		return nil
	}
	return fault.WithRetry(f.retryAt.Sub(now), f.err)
}

// contentVersion returns the version of a recipe's content; "" if it cannot be read.
func contentVersion(r *recipe.Recipe) string {
	version, err := r.ContentVersion()
	if err != nil {
		return ""
	}
	return version
}

// recordOutcome records how a run of a program has ended. version is that of the recipe's content before the
// run, because the recipe may have been corrected since. It returns the delay after which a program that has
// failed runs again. The caller holds a.mu.
func (a *Actuator) recordOutcome(c *cluster, v recipe.Verb, version string, err error) (retryIn time.Duration) {
	if err == nil {
		delete(c.failures, v)
		return 0
	}
	f := failure{count: c.failures[v].count + 1, version: version}
	retryIn, f.err = planRetry(err, f.count, a.FirstRetry)
	f.retryAt = a.Clock.Now().Add(retryIn)
	c.failures[v] = f
	return retryIn
}

// logFailure adds a failure of a program to the log of the cluster. A program that could not run now, or that
// hotspare has ended, has not failed.
func (a *Actuator) logFailure(t runner.Task, v recipe.Verb, err error, retryIn time.Duration) {
	kind := fault.KindOf(err)
	if err == nil || kind == fault.Wait || kind == fault.Conflict || a.workContext.Err() != nil {
		return
	}
	if l, ok := a.Runner.(runner.FailureLogger); ok {
		l.LogFailure(t, v, err, retryIn)
	}
}

// planRetry returns how long a program does not run again after that number of failures in succession, and
// err with what to do about it.
func planRetry(err error, count int, first time.Duration) (time.Duration, error) {
	longest := maxRetryFactor * first
	var failed *recipe.VerbError
	switch kind := fault.KindOf(err); {
	case errors.As(err, &failed) && failed.Outcome == recipe.Invalid:
		return longest, fault.New(fault.Denied, err)
	case errors.As(err, &failed) && failed.Outcome == recipe.NoRoom:
		return min(retryNoRoom, longest), fault.NewCapacity(retryNoRoom, "%w", err)
	case failed == nil && (kind == fault.Wait || kind == fault.Conflict): // another process of hotspare runs a program
		return fault.RetryAfter(err), err
	}
	return min(first<<min(count-1, 6), longest), err
}

// oppositeVerb returns the verb that undoes Start or Stop.
func oppositeVerb(v recipe.Verb) recipe.Verb {
	if v == recipe.Start {
		return recipe.Stop
	}
	return recipe.Start
}
