// Package heap lets a process take more memory while it is busy, and less while it
// is not, and keeps the garbage collector out of the way of what is being served.
//
// The runtime collects when the heap has grown by a percentage of what is in use
// (runtime/debug.SetGCPercent), and has everybody who allocates help, so that it is
// done before the heap reaches its goal. The heap of an API server is big and
// changes fast: in a burst of claims every request stood still for as long as it
// helped, half a second at a time. Here collections begin long before the runtime
// would begin one, and nobody has to help.
package heap

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Pacer is how a process breathes.
type Pacer struct {
	// Calm and Busy are by how many percent of what is in use the heap grows before it is collected.
	Calm, Busy int
	// Rate is from how many bytes allocated in a second on the process counts as busy.
	Rate uint64
	// Extra is by how many bytes the heap of a busy process grows at most before it
	// is collected; a big one grows by more already when it is calm.
	Extra uint64
}

const (
	// sampleInterval is how often the heap is looked at.
	sampleInterval = 50 * time.Millisecond
	// busyWindow is for how long a process must be busy to count as busy, rest for how long
	// it must not to count as calm again: a burst that follows should not meet with the
	// collection that comes then. When there is enough garbage to be collected the last
	// looks are enough: what has just begun to be busy would be kept waiting.
	busyWindow = 500 * time.Millisecond
	calmDelay  = 2 * time.Second
	// recentSamples are how many looks back that is.
	recentSamples = 2
	// scavengeDelay is for how long memory must not be used to be given back, and worth how much
	// of it there must be: whoever takes it again pays for each page of it.
	scavengeDelay = time.Minute
	scavengeMin   = 64 << 20
	// runtimeFactor is how much later the runtime would begin, as a factor: only if we were asleep.
	runtimeFactor = 3
)

// Start collects this process's garbage from now on.
func (b Pacer) Start() {
	debug.SetGCPercent(runtimeFactor * b.Calm)
	go func() {
		s := pacerState{percent: b.Calm}
		for now := range time.Tick(sampleInterval) {
			before := s.percent
			what := s.decideAction(b, readSample(now))
			if s.percent != before {
				debug.SetGCPercent(runtimeFactor * s.percent)
			}
			switch what {
			case actionCollect:
				runtime.GC()
			case actionScavenge:
				debug.FreeOSMemory() // the runtime would keep much of it, and give back the rest by and by
			}
		}
	}()
}

// heapSample is what can be seen of the heap at a time, in bytes.
type heapSample struct {
	sampledAt time.Time
	// total is all that was ever allocated, heap what is in use or garbage, live what
	// the last collection found to be in use, free what is neither and was not given back.
	total, heap, live, free uint64
}

func readSample(now time.Time) heapSample {
	s := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(s)
	return heapSample{now, s[0].Value.Uint64(), s[1].Value.Uint64(), s[2].Value.Uint64(), s[3].Value.Uint64()}
}

type action int

const (
	actionNone action = iota
	actionCollect
	// actionScavenge collects, and gives the memory back.
	actionScavenge
)

// pacerState is what is remembered from look to look.
type pacerState struct {
	// percent is by how much the heap may grow now.
	percent int
	// windowStart is what was seen when the current span began, hot when the last one ended
	// in which the process was busy.
	windowStart heapSample
	lastBusy    time.Time
	// recent is what was seen at the last looks, the oldest first.
	recent [recentSamples]heapSample
	// leastFree is the least that was free since freeSince, when the span of that began.
	leastFree uint64
	freeSince time.Time
}

// decideAction judges what is seen now.
func (s *pacerState) decideAction(b Pacer, now heapSample) action {
	before, ago := s.percent, s.recent[0]
	copy(s.recent[:], s.recent[1:])
	s.recent[recentSamples-1] = now
	s.updatePercent(b, now)
	unused := s.unusedMemory(now)
	switch {
	case s.percent == b.Calm && unused >= scavengeMin:
		return actionScavenge
	case s.percent < before && s.percent == b.Calm && garbageExceeds(now, b.Calm/2):
		return actionCollect // so that the next burst does not begin with the garbage of this one
	case !garbageExceeds(now, s.percent):
		return actionNone
	case s.percent == b.Calm && !ago.sampledAt.IsZero() && b.isBusy(ago, now):
		s.percent, s.windowStart, s.lastBusy = b.busyGCPercent(now), now, now.sampledAt
		if !garbageExceeds(now, s.percent) {
			return actionNone
		}
	}
	return actionCollect
}

// unusedMemory is how much memory has been free for all of a span that ends now; none when none ends.
func (s *pacerState) unusedMemory(now heapSample) uint64 {
	if s.freeSince.IsZero() {
		s.freeSince, s.leastFree = now.sampledAt, now.free
	}
	s.leastFree = min(s.leastFree, now.free)
	if now.sampledAt.Sub(s.freeSince) < scavengeDelay {
		return 0
	}
	unused := s.leastFree
	s.freeSince, s.leastFree = now.sampledAt, now.free
	return unused
}

// garbageExceeds reports whether there is more of it than so many percent of what is in use.
func garbageExceeds(now heapSample, percent int) bool {
	return now.heap-min(now.heap, now.live) > now.live/100*uint64(percent)
}

// isBusy reports whether a process was busy between two looks.
func (b Pacer) isBusy(from, to heapSample) bool {
	return float64(to.total-from.total) >= float64(b.Rate)*to.sampledAt.Sub(from.sampledAt).Seconds()
}

// busyGCPercent is the percentage of a busy process.
func (b Pacer) busyGCPercent(now heapSample) int {
	return max(b.Calm, min(b.Busy, int(100*b.Extra/max(1, now.live))))
}

// updatePercent sets the percentage at the end of each span of a rush.
func (s *pacerState) updatePercent(b Pacer, now heapSample) {
	if s.windowStart.sampledAt.IsZero() {
		s.windowStart = now
	}
	if now.sampledAt.Sub(s.windowStart.sampledAt) < busyWindow {
		return
	}
	switch {
	case b.isBusy(s.windowStart, now):
		s.percent, s.lastBusy = b.busyGCPercent(now), now.sampledAt
	case now.sampledAt.Sub(s.lastBusy) >= calmDelay:
		s.percent = b.Calm
	}
	s.windowStart = now
}
