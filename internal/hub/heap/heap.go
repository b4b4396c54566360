// Package heap lets a process take more memory while it is busy, and less while it
// is not.
//
// The garbage collector's percentage (runtime/debug.SetGCPercent) trades the two.
// A hub idles most of the time, and should be small then. In a burst of claims a
// small percentage makes the collector take a third of the processor time.
package heap

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// Breath is how a process breathes.
type Breath struct {
	// Calm and Busy are percentages for runtime/debug.SetGCPercent.
	Calm, Busy int
	// Rate is from how many bytes allocated in a second on the process counts as busy.
	Rate uint64
	// Extra is how many bytes of garbage a busy process may have at most; a big one
	// has more already when it is calm.
	Extra uint64

	mu      sync.Mutex
	percent int
	at      time.Time
	total   uint64
	again   *time.Timer
}

// rest is how long a busy process has to be less busy to be calm.
const rest = 5 * time.Second

// Start sets the percentage to Calm, and from then on after each collection to what
// suits the rate at which memory was allocated since the last look. A busy process is
// also looked at every five seconds: when it is calm, collections are rare.
func (b *Breath) Start() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.percent, b.at, b.total = b.Calm, time.Now(), read(allocated)
	b.again = time.AfterFunc(rest, b.look)
	debug.SetGCPercent(b.Calm)
	b.arm()
}

// arm has the next collection noticed: it finds an object that nobody uses.
func (b *Breath) arm() {
	bait := new([64]byte)
	runtime.AddCleanup(bait, func(b *Breath) {
		b.look()
		b.arm()
	}, b)
}

func (b *Breath) look() {
	if b.turn() {
		debug.FreeOSMemory() // the runtime would keep much of it, and give back the rest by and by
	}
}

// turn sets what suits, and reports whether the process is busy no more.
func (b *Breath) turn() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, total := time.Now(), read(allocated)
	want := b.suits(total-b.total, now.Sub(b.at), read(live))
	b.at, b.total = now, total
	if want != b.Calm {
		b.again.Reset(rest)
	}
	if want == b.percent {
		return false
	}
	b.percent = want
	debug.SetGCPercent(want)
	return want == b.Calm
}

// suits is the percentage for that many bytes allocated in that time, with so many in use.
func (b *Breath) suits(bytes uint64, span time.Duration, inUse uint64) int {
	if span <= 0 || float64(bytes) < float64(b.Rate)*span.Seconds() {
		return b.Calm
	}
	return max(b.Calm, min(b.Busy, int(100*b.Extra/max(1, inUse))))
}

// Names of runtime/metrics.
const (
	allocated = "/gc/heap/allocs:bytes"
	live      = "/gc/heap/live:bytes"
)

func read(name string) uint64 {
	s := []metrics.Sample{{Name: name}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
