// Package simulate replays arrivals of claims on a pool with a stepped clock, and reports what the
// claims waited and what the clusters cost.
//
// Replay asks the pool's own decider, pool.Decide, at each event. Where durations are constant, nothing
// fails and no limit is set, ReplayFast takes the same steps several hundred times faster; a property
// test compares the two.
package simulate
