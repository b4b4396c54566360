// Package heappacer lets a process use more memory while it is busy, and less while it is idle, and
// prevents the garbage collector from delaying requests.
//
// The runtime collects when the heap has grown by a percentage of the live bytes
// (runtime/debug.SetGCPercent), and makes the goroutines that allocate assist, so that the
// collection finishes before the heap reaches its goal. The heap of an API server is big and
// changes fast: in a burst of claims, every request was blocked while it assisted, half a second at
// a time. This package starts collections long before the runtime would, so that no goroutine has
// to assist.
package heappacer

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Pacer configures when this process runs the garbage collector.
type Pacer struct {
	// Calm and Busy are the heap growth, in percent of the live bytes, that triggers a collection
	// while the process is idle and while it is busy.
	Calm, Busy int
	// Rate is the allocation rate, in bytes per second, from which the process counts as busy.
	Rate uint64
	// Extra is the maximum heap growth, in bytes, of a busy process before a collection. A big heap
	// may grow by more than that already while the process is idle.
	Extra uint64
	// Growing is the heap growth, in percent of the live bytes, that triggers a collection while the process allocates at
	// least GrowingRate, in bytes per second, for longer than a burst takes: it creates objects that stay, and these would be
	// spread over all memory that the garbage takes. 0 means as Busy.
	Growing     int
	GrowingRate uint64
	// Release is called after memory of the heap was returned to the operating system, to return other memory, too; nil does
	// nothing.
	Release func()
}

const (
	// sampleInterval is how often the heap is sampled.
	sampleInterval = 50 * time.Millisecond
	// busyWindow is how long a process must be busy to count as busy, and calmDelay how long it
	// must not be busy to count as idle again: the collection at that time should not delay the
	// next burst. When there is enough garbage to collect, only the last samples count: otherwise,
	// a process that has just become busy would be delayed.
	busyWindow = 500 * time.Millisecond
	calmDelay  = 2 * time.Second
	// recentSamples is the number of last samples that count in that case.
	recentSamples = 2
	// growingDelay is how long a process must allocate at GrowingRate.
	growingDelay = 3 * time.Second
	// scavengeDelay is how long memory must be unused before it is returned to the operating
	// system, and scavengeMin the minimum amount in bytes: allocating the memory again costs time
	// for each page.
	scavengeDelay = 15 * time.Second
	scavengeMin   = 64 << 20
	// startPercent is what Busy is at most until the process is idle for the first time, or startLimit has passed. The
	// objects that a start creates, and that stay, are spread over all memory that its garbage took.
	startPercent = 50
	startLimit   = 5 * time.Second
	// runtimeFactor multiplies the percentage that the runtime uses, so that the runtime starts a
	// collection only if this package has not been scheduled in time.
	runtimeFactor = 3
)

// Start controls the garbage collection of this process from now on.
func (p Pacer) Start() {
	s := pacerState{percent: p.Calm, starting: true, awaitsFirstIdle: true}
	limit := s.runtimePercent()
	debug.SetGCPercent(limit)
	go func() {
		for now := range time.Tick(sampleInterval) {
			what := s.decideAction(p, readSample(now))
			if percent := s.runtimePercent(); percent != limit {
				debug.SetGCPercent(percent)
				limit = percent
			}
			switch what {
			case actionCollect:
				runtime.GC()
			case actionScavenge:
				debug.FreeOSMemory() // the runtime would keep much of the memory and return the rest slowly
				if p.Release != nil {
					p.Release()
				}
			}
		}
	}()
}

// runtimePercent returns the percentage for the runtime. During a start, in which no request can be delayed, it is that of this
// package: several collections would come too late, because the heap grows by a third between two samples.
func (s *pacerState) runtimePercent() int {
	if s.starting {
		return s.percent
	}
	return runtimeFactor * s.percent
}

// heapSample is a sample of the heap at one time, in bytes.
type heapSample struct {
	sampledAt time.Time
	// total is the number of bytes ever allocated; heap is the size of live objects and garbage;
	// live is the size that the last collection found live; free is unused memory that was not
	// returned to the operating system.
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
	// actionScavenge collects, and returns memory to the operating system.
	actionScavenge
)

// pacerState is the state that is kept between samples.
type pacerState struct {
	// percent is the current heap growth, in percent, that triggers a collection.
	percent int
	// windowStart is the sample at the start of the current window, and lastBusy the end of the
	// last window in which the process was busy.
	windowStart heapSample
	lastBusy    time.Time
	// recent contains the last samples, oldest first.
	recent [recentSamples]heapSample
	// leastFree is the minimum of free memory since freeSince, the start of the current scavenge
	// period.
	leastFree uint64
	freeSince time.Time
	// growingSince is since when the process allocates at GrowingRate; zero if it does not.
	growingSince time.Time
	// starting is true while the rule of a start applies, awaitsFirstIdle until the process is idle for the first time, and
	// startedAt the time of the first sample.
	starting, awaitsFirstIdle bool
	startedAt                 time.Time
}

// decideAction updates the state with the sample now and returns the action to take.
func (s *pacerState) decideAction(b Pacer, now heapSample) action {
	before, ago := s.percent, s.recent[0]
	copy(s.recent[:], s.recent[1:])
	s.recent[recentSamples-1] = now
	if s.starting {
		b.Busy = min(b.Busy, startPercent)
	}
	s.updatePercent(b, now)
	ended := s.endStart(now)
	unused := s.unusedMemory(now)
	switch {
	case ended:
		return actionScavenge
	case s.percent == b.Calm && unused >= scavengeMin:
		return actionScavenge
	case s.percent < before && s.percent == b.Calm && garbageExceeds(now, b.Calm/2):
		return actionCollect // so that the next burst does not start with the garbage of this one
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

// endStart reports whether the process is idle for the first time after its start.
func (s *pacerState) endStart(now heapSample) bool {
	if !s.awaitsFirstIdle {
		return false
	}
	if s.startedAt.IsZero() {
		s.startedAt, s.lastBusy = now.sampledAt, now.sampledAt
	}
	idle := now.sampledAt.Sub(s.lastBusy) >= calmDelay
	s.starting = !idle && now.sampledAt.Sub(s.startedAt) < startLimit
	s.awaitsFirstIdle = !idle
	return idle
}

// unusedMemory returns the number of bytes that were free during the whole scavenge period if that
// ends now, and otherwise 0.
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

// garbageExceeds reports whether the garbage is more than percent of the live bytes.
func garbageExceeds(now heapSample, percent int) bool {
	return now.heap-min(now.heap, now.live) > now.live/100*uint64(percent)
}

// isBusy reports whether the process was busy between two samples.
func (p Pacer) isBusy(from, to heapSample) bool { return allocatesAt(p.Rate, from, to) }

// allocatesAt reports whether the process allocated at that rate or faster between two samples. The rate is in bytes per second.
func allocatesAt(rate uint64, from, to heapSample) bool {
	return float64(to.total-from.total) >= float64(rate)*to.sampledAt.Sub(from.sampledAt).Seconds()
}

// busyGCPercent returns the percentage for a busy process.
func (p Pacer) busyGCPercent(now heapSample) int {
	return max(p.Calm, min(p.Busy, int(100*p.Extra/max(1, now.live))))
}

// updatePercent updates the percentage at the end of each busyWindow.
func (s *pacerState) updatePercent(b Pacer, now heapSample) {
	if s.windowStart.sampledAt.IsZero() {
		s.windowStart = now
	}
	if now.sampledAt.Sub(s.windowStart.sampledAt) < busyWindow {
		return
	}
	switch {
	case b.Growing == 0 || !allocatesAt(b.GrowingRate, s.windowStart, now):
		s.growingSince = time.Time{}
	case s.growingSince.IsZero():
		s.growingSince = s.windowStart.sampledAt
	}
	switch {
	case b.isBusy(s.windowStart, now):
		s.percent, s.lastBusy = b.busyGCPercent(now), now.sampledAt
		if !s.growingSince.IsZero() && now.sampledAt.Sub(s.growingSince) >= growingDelay {
			s.percent = min(s.percent, b.Growing)
		}
	case now.sampledAt.Sub(s.lastBusy) >= calmDelay:
		s.percent = b.Calm
	}
	s.windowStart = now
}
