package provision

import "time"

const (
	// pollInterval is how often an executor at work is asked how far it is. It wakes us
	// when something happens; the poll is for the one that forgot.
	pollInterval = 10 * time.Second
	// deniedRetryInterval is how often something that a person must put right is tried
	// again: credentials and quotas of a cloud change without an event here.
	deniedRetryInterval = 10 * time.Minute

	// maxKeptFailures is how many failed attempts are kept for people to read.
	maxKeptFailures = 3

	minBackoff = time.Minute
	maxBackoff = time.Hour

	minDestroyBackoff = 30 * time.Second
	maxDestroyBackoff = 15 * time.Minute
)

// attemptBackoff is how long to wait after attempt n failed: 1m, 2m, 4m, … 1h.
func attemptBackoff(n int) time.Duration {
	delay := minBackoff
	for range n {
		delay = min(2*delay, maxBackoff)
	}
	return delay
}

// destroyBackoff is how long to wait before destroying is tried again when it has been
// failing for d: as long as it has been failing, so that the waits double
// without anybody counting them.
func destroyBackoff(d time.Duration) time.Duration {
	return min(max(d, minDestroyBackoff), maxDestroyBackoff)
}
