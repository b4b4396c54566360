package provision

import "time"

const (
	// pollInterval is how often a working executor is asked for its progress. Executors trigger a
	// pass when something happens; the poll is for an executor that fails to.
	pollInterval = 10 * time.Second
	// deniedRetryInterval is how often a step is retried that needs a person's action: a cloud's
	// credentials and quotas change without an event in the hub.
	deniedRetryInterval = 10 * time.Minute

	// maxKeptFailures is how many failed attempts are kept for people to read.
	maxKeptFailures = 3

	minBackoff = time.Minute
	maxBackoff = time.Hour

	minDestroyBackoff = 30 * time.Second
	maxDestroyBackoff = 15 * time.Minute
)

// attemptBackoff returns how long to wait after attempt n failed: 1m, 2m, 4m, … 1h.
func attemptBackoff(n int) time.Duration {
	delay := minBackoff
	for range n {
		delay = min(2*delay, maxBackoff)
	}
	return delay
}

// NextAttemptTime returns when the attempt may start that follows one that has failed.
func NextAttemptTime(number int, failedAt time.Time) time.Time {
	return failedAt.Add(attemptBackoff(number))
}

// destroyBackoff returns how long to wait before destroying is retried after it has been failing
// for d. It waits as long as it has been failing, so that the delays double without a counter.
func destroyBackoff(d time.Duration) time.Duration {
	return min(max(d, minDestroyBackoff), maxDestroyBackoff)
}
