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

// Breath is how a process breathes.
type Breath struct {
	// Calm and Busy are by how many percent of what is in use the heap grows before it is collected.
	Calm, Busy int
	// Rate is from how many bytes allocated in a second on the process counts as busy.
	Rate uint64
	// Extra is by how many bytes the heap of a busy process grows at most before it
	// is collected; a big one grows by more already when it is calm.
	Extra uint64
}

const (
	// beat is how often the heap is looked at.
	beat = 50 * time.Millisecond
	// rush is for how long a process must be busy to count as busy, rest for how long
	// it must not to count as calm again: a burst that follows should not meet with the
	// collection that comes then. When there is enough garbage to be collected the last
	// looks are enough: what has just begun to be busy would be kept waiting.
	rush = 500 * time.Millisecond
	rest = 2 * time.Second
	// glances are how many looks back that is.
	glances = 2
	// fallow is for how long memory must not be used to be given back, and worth how much
	// of it there must be: whoever takes it again pays for each page of it.
	fallow = time.Minute
	worth  = 64 << 20
	// late is how much later the runtime would begin, as a factor: only if we were asleep.
	late = 3
)

// Start collects this process's garbage from now on.
func (b Breath) Start() {
	debug.SetGCPercent(late * b.Calm)
	go func() {
		s := state{percent: b.Calm}
		for now := range time.Tick(beat) {
			before := s.percent
			what := s.look(b, see(now))
			if s.percent != before {
				debug.SetGCPercent(late * s.percent)
			}
			switch what {
			case collect:
				runtime.GC()
			case release:
				debug.FreeOSMemory() // the runtime would keep much of it, and give back the rest by and by
			}
		}
	}()
}

// sight is what can be seen of the heap at a time, in bytes.
type sight struct {
	at time.Time
	// total is all that was ever allocated, heap what is in use or garbage, live what
	// the last collection found to be in use, free what is neither and was not given back.
	total, heap, live, free uint64
}

func see(now time.Time) sight {
	s := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(s)
	return sight{now, s[0].Value.Uint64(), s[1].Value.Uint64(), s[2].Value.Uint64(), s[3].Value.Uint64()}
}

type verdict int

const (
	nothing verdict = iota
	collect
	// release collects, and gives the memory back.
	release
)

// state is what is remembered from look to look.
type state struct {
	// percent is by how much the heap may grow now.
	percent int
	// since is what was seen when the current span began, hot when the last one ended
	// in which the process was busy.
	since sight
	hot   time.Time
	// last is what was seen at the last looks, the oldest first.
	last [glances]sight
	// leastFree is the least that was free since freeSince, when the span of that began.
	leastFree uint64
	freeSince time.Time
}

// look judges what is seen now.
func (s *state) look(b Breath, now sight) verdict {
	before, ago := s.percent, s.last[0]
	copy(s.last[:], s.last[1:])
	s.last[glances-1] = now
	s.breathe(b, now)
	unused := s.unused(now)
	switch {
	case s.percent == b.Calm && unused >= worth:
		return release
	case s.percent < before && s.percent == b.Calm && garbage(now, b.Calm/2):
		return collect // so that the next burst does not begin with the garbage of this one
	case !garbage(now, s.percent):
		return nothing
	case s.percent == b.Calm && !ago.at.IsZero() && b.fast(ago, now):
		s.percent, s.since, s.hot = b.busy(now), now, now.at
		if !garbage(now, s.percent) {
			return nothing
		}
	}
	return collect
}

// unused is how much memory has been free for all of a span that ends now; none when none ends.
func (s *state) unused(now sight) uint64 {
	if s.freeSince.IsZero() {
		s.freeSince, s.leastFree = now.at, now.free
	}
	s.leastFree = min(s.leastFree, now.free)
	if now.at.Sub(s.freeSince) < fallow {
		return 0
	}
	unused := s.leastFree
	s.freeSince, s.leastFree = now.at, now.free
	return unused
}

// garbage reports whether there is more of it than so many percent of what is in use.
func garbage(now sight, percent int) bool {
	return now.heap-min(now.heap, now.live) > now.live/100*uint64(percent)
}

// fast reports whether a process was busy between two looks.
func (b Breath) fast(from, to sight) bool {
	return float64(to.total-from.total) >= float64(b.Rate)*to.at.Sub(from.at).Seconds()
}

// busy is the percentage of a busy process.
func (b Breath) busy(now sight) int {
	return max(b.Calm, min(b.Busy, int(100*b.Extra/max(1, now.live))))
}

// breathe sets the percentage at the end of each span of a rush.
func (s *state) breathe(b Breath, now sight) {
	if s.since.at.IsZero() {
		s.since = now
	}
	if now.at.Sub(s.since.at) < rush {
		return
	}
	switch {
	case b.fast(s.since, now):
		s.percent, s.hot = b.busy(now), now.at
	case now.at.Sub(s.hot) >= rest:
		s.percent = b.Calm
	}
	s.since = now
}
