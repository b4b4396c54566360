package provision

import "time"

const (
	// poll is how often an executor at work is asked how far it is. It wakes us
	// when something happens; the poll is for the one that forgot.
	poll = 10 * time.Second
	// reconsider is how often something that a person must put right is tried
	// again: credentials and quotas of a cloud change without an event here.
	reconsider = 10 * time.Minute

	// keptFailures is how many failed attempts are kept for people to read.
	keptFailures = 3

	minBackoff = time.Minute
	maxBackoff = time.Hour

	minPace = 30 * time.Second
	maxPace = 15 * time.Minute
)

// backoff is how long to wait after attempt n failed: 1m, 2m, 4m, … 1h.
func backoff(n int) time.Duration {
	delay := minBackoff
	for range n {
		delay = min(2*delay, maxBackoff)
	}
	return delay
}

// pace is how long to wait before destroying is tried again when it has been
// failing for d: as long as it has been failing, so that the waits double
// without anybody counting them.
func pace(d time.Duration) time.Duration { return min(max(d, minPace), maxPace) }
