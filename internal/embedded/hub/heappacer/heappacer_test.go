package heappacer

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

const mb = 1 << 20

func TestLook(t *testing.T) {
	b := Pacer{Calm: 50, Busy: 150, Rate: 40 * mb, Extra: 300 * mb}
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		before  int
		hot     time.Duration // how long before the window the process was busy
		span    time.Duration
		bytes   uint64 // allocated in the window
		garbage uint64
		live    uint64
		percent int
		want    action
	}{
		"calm":                           {50, 0, busyWindow, 1 * mb, 10 * mb, 130 * mb, 50, actionNone},
		"calm, half of it is garbage":    {50, 0, busyWindow, 1 * mb, 66 * mb, 130 * mb, 50, actionCollect},
		"a burst begins":                 {50, 0, busyWindow, 20 * mb, 66 * mb, 130 * mb, 150, actionNone},
		"a little less is none":          {50, 0, busyWindow, 20*mb - 1, 10 * mb, 130 * mb, 50, actionNone},
		"it is too early to tell":        {50, 0, busyWindow - 1, 900 * mb, 10 * mb, 130 * mb, 50, actionNone},
		"in a burst":                     {150, 0, busyWindow, 70 * mb, 100 * mb, 130 * mb, 150, actionNone},
		"in a burst, much is garbage":    {150, 0, busyWindow, 70 * mb, 196 * mb, 130 * mb, 150, actionCollect},
		"a pause in a burst":             {150, calmDelay - busyWindow - 1, busyWindow, 0, 100 * mb, 130 * mb, 150, actionNone},
		"a burst ends":                   {150, calmDelay - busyWindow, busyWindow, 10 * mb, 40 * mb, 130 * mb, 50, actionCollect},
		"… and left little":              {150, calmDelay - busyWindow, busyWindow, 10 * mb, 30 * mb, 130 * mb, 50, actionNone},
		"a burst goes on after a pause":  {150, calmDelay, busyWindow, 20 * mb, 40 * mb, 130 * mb, 150, actionNone},
		"a bigger heap grows no further": {50, 0, busyWindow, 200 * mb, 299 * mb, 300 * mb, 100, actionNone},
		"… and is collected":             {100, 0, busyWindow, 200 * mb, 301 * mb, 300 * mb, 100, actionCollect},
		"a huge one grows as when calm":  {50, 0, busyWindow, 200 * mb, 301 * mb, 4096 * mb, 50, actionNone},
		"none is in use":                 {50, 0, busyWindow, 200 * mb, 0, 0, 150, actionNone},
		"less than was in use":           {50, 0, busyWindow, 1 * mb, 0, 130 * mb, 50, actionNone},
	} {
		t.Run(name, func(t *testing.T) {
			s := pacerState{percent: tc.before, windowStart: heapSample{sampledAt: start, total: 7}, lastBusy: start.Add(-tc.hot)}
			got := s.decideAction(b, heapSample{sampledAt: start.Add(tc.span), total: 7 + tc.bytes, heap: tc.live + tc.garbage, live: tc.live})
			if got != tc.want || s.percent != tc.percent {
				t.Errorf("%d at %d%%, want %d at %d%%", got, s.percent, tc.want, tc.percent)
			}
		})
	}
}

// A collection that is due is skipped while the last samples show many allocations, whatever came
// before.
func TestASpurt(t *testing.T) {
	b := Pacer{Calm: 50, Busy: 150, Rate: 40 * mb, Extra: 300 * mb}
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	type look struct {
		after time.Duration
		bytes uint64 // allocated since the previous sample
		live  uint64
		dirt  uint64 // garbage
	}
	for name, tc := range map[string]struct {
		looks   []look
		percent int
		want    action
	}{
		"a burst begins after a calm":   {[]look{{sampleInterval, 0, 130 * mb, 60 * mb}, {400 * time.Millisecond, 0, 130 * mb, 60 * mb}, {sampleInterval, 0, 130 * mb, 60 * mb}, {sampleInterval, 10 * mb, 130 * mb, 70 * mb}}, 150, actionNone},
		"… which may pause":             {[]look{{sampleInterval, 0, 130 * mb, 60 * mb}, {400 * time.Millisecond, 0, 130 * mb, 60 * mb}, {sampleInterval, 0, 130 * mb, 60 * mb}, {sampleInterval, 10 * mb, 130 * mb, 70 * mb}, {busyWindow, 0, 130 * mb, 70 * mb}}, 150, actionNone},
		"garbage made at leisure":       {[]look{{sampleInterval, 0, 130 * mb, 60 * mb}, {sampleInterval, mb, 130 * mb, 61 * mb}, {sampleInterval, mb, 130 * mb, 66 * mb}}, 50, actionCollect},
		"a process that has just begun": {[]look{{sampleInterval, 0, 130 * mb, 60 * mb}, {sampleInterval, 20 * mb, 130 * mb, 80 * mb}}, 50, actionCollect},
		"more than a busy one may have": {[]look{{sampleInterval, 0, 130 * mb, 60 * mb}, {sampleInterval, 0, 130 * mb, 60 * mb}, {sampleInterval, 140 * mb, 130 * mb, 200 * mb}}, 150, actionCollect},
		"in a huge heap":                {[]look{{sampleInterval, 0, 4096 * mb, 2000 * mb}, {sampleInterval, 0, 4096 * mb, 2000 * mb}, {sampleInterval, 140 * mb, 4096 * mb, 2140 * mb}}, 50, actionCollect},
		"calm after a spurt: no more":   {[]look{{sampleInterval, 0, 130 * mb, 60 * mb}, {sampleInterval, 0, 130 * mb, 60 * mb}, {sampleInterval, 10 * mb, 130 * mb, 70 * mb}, {calmDelay, 0, 130 * mb, 10 * mb}}, 50, actionNone},
		"… but what is due":             {[]look{{sampleInterval, 0, 130 * mb, 60 * mb}, {sampleInterval, 0, 130 * mb, 60 * mb}, {sampleInterval, 10 * mb, 130 * mb, 70 * mb}, {calmDelay, 0, 130 * mb, 70 * mb}}, 50, actionCollect},
		"a spurt that went on":          {[]look{{sampleInterval, 0, 130 * mb, 60 * mb}, {sampleInterval, 0, 130 * mb, 60 * mb}, {sampleInterval, 10 * mb, 130 * mb, 70 * mb}, {busyWindow, 30 * mb, 130 * mb, 70 * mb}, {calmDelay - 1, 0, 130 * mb, 40 * mb}}, 150, actionNone},
		"… and ended":                   {[]look{{sampleInterval, 0, 130 * mb, 60 * mb}, {sampleInterval, 0, 130 * mb, 60 * mb}, {sampleInterval, 10 * mb, 130 * mb, 70 * mb}, {busyWindow, 30 * mb, 130 * mb, 70 * mb}, {calmDelay, 0, 130 * mb, 40 * mb}}, 50, actionCollect},
	} {
		t.Run(name, func(t *testing.T) {
			s, at, total, got := pacerState{percent: b.Calm}, start, uint64(7), actionNone
			for _, l := range tc.looks {
				at, total = at.Add(l.after), total+l.bytes
				got = s.decideAction(b, heapSample{sampledAt: at, total: total, heap: l.live + l.dirt, live: l.live})
			}
			if got != tc.want || s.percent != tc.percent {
				t.Errorf("%d at %d%%, want %d at %d%%", got, s.percent, tc.want, tc.percent)
			}
		})
	}
}

// All memory that was free for scavengeDelay is returned to the operating system if the process is idle.
func TestUnusedMemory(t *testing.T) {
	const half = scavengeDelay / 2
	type look struct {
		after time.Duration
		bytes uint64 // allocated since the previous sample
		free  uint64
	}
	for name, tc := range map[string]struct {
		looks []look
		want  action
	}{
		"free for that time":            {[]look{{0, 0, 700 * mb}, {half, 0, 800 * mb}, {half, 0, 700 * mb}}, actionScavenge},
		"not yet":                       {[]look{{0, 0, 700 * mb}, {half, 0, 700 * mb}, {half - 1, 0, 700 * mb}}, actionNone},
		"little":                        {[]look{{0, 0, scavengeMin - 1}, {half, 0, scavengeMin - 1}, {half, 0, scavengeMin - 1}}, actionNone},
		"used in between":               {[]look{{0, 0, 700 * mb}, {half, 0, mb}, {half, 0, 700 * mb}}, actionNone},
		"… and not any more":            {[]look{{0, 0, mb}, {scavengeDelay, 0, 700 * mb}, {half, 0, 700 * mb}, {half, 0, 700 * mb}}, actionScavenge},
		"busy":                          {[]look{{0, 0, 700 * mb}, {half, 6000 * mb, 700 * mb}, {half, 6000 * mb, 700 * mb}}, actionNone},
		"given back, and again a while": {[]look{{0, 0, 700 * mb}, {scavengeDelay, 0, 700 * mb}, {half, 0, 700 * mb}}, actionNone},
	} {
		t.Run(name, func(t *testing.T) {
			b := Pacer{Calm: 50, Busy: 150, Rate: 40 * mb, Extra: 300 * mb}
			s, got := pacerState{percent: b.Calm}, actionNone
			now := heapSample{sampledAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), total: 7, heap: 140 * mb, live: 130 * mb}
			for _, l := range tc.looks {
				now.sampledAt, now.total, now.free = now.sampledAt.Add(l.after), now.total+l.bytes, l.free
				got = s.decideAction(b, now)
			}
			if got != tc.want {
				t.Errorf("%d, want %d", got, tc.want)
			}
		})
	}
}

// A start may leave half as much garbage as there is in use. When it is over, its memory is returned to the operating system.
func TestAStart(t *testing.T) {
	b := Pacer{Calm: 50, Busy: 400, Rate: 40 * mb, Extra: 2000 * mb}
	type look struct {
		after   time.Duration
		bytes   uint64 // allocated since the previous sample
		garbage uint64
	}
	busy := func(n int, garbage uint64) (looks []look) {
		for range n {
			looks = append(looks, look{busyWindow, 100 * mb, garbage})
		}
		return looks
	}
	for name, tc := range map[string]struct {
		looks   []look
		percent int
		want    action
	}{
		"busy from the first moment":           {busy(3, 60*mb), startPercent, actionNone},
		"… and half as much garbage as in use": {busy(3, 66*mb), startPercent, actionCollect},
		"idle for a moment":                    {append(busy(3, 20*mb), look{calmDelay - 1, 0, 20 * mb}), startPercent, actionNone},
		"idle":                                 {append(busy(3, 20*mb), look{calmDelay, 0, 20 * mb}), b.Calm, actionScavenge},
		"idle and then busy":                   {append(append(busy(3, 20*mb), look{calmDelay, 0, 20 * mb}), busy(2, 140*mb)...), 400, actionNone},
		"idle once more":                       {append(append(busy(3, 20*mb), look{calmDelay, 0, 20 * mb}, look{busyWindow, 100 * mb, 20 * mb}), look{calmDelay, 0, 20 * mb}), b.Calm, actionNone},
		"busy at the end of the delay":         {append(busy(3, 20*mb), look{calmDelay - busyWindow, 0, 20 * mb}, look{busyWindow, 100 * mb, 20 * mb}), startPercent, actionNone},
		"never busy":                           {[]look{{0, 0, 20 * mb}, {calmDelay, 0, 20 * mb}}, b.Calm, actionScavenge},
		"claims that have waited":              {busy(int(startLimit/busyWindow)+2, 140*mb), 400, actionNone},
		"… and then idle":                      {append(busy(int(startLimit/busyWindow)+2, 140*mb), look{calmDelay, 0, 20 * mb}), b.Calm, actionScavenge},
	} {
		t.Run(name, func(t *testing.T) {
			s, at, total, got := pacerState{percent: b.Calm, starting: true, awaitsFirstIdle: true}, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), uint64(7), actionNone
			for _, l := range tc.looks {
				at, total = at.Add(l.after), total+l.bytes
				got = s.decideAction(b, heapSample{sampledAt: at, total: total, heap: 130*mb + l.garbage, live: 130 * mb})
			}
			if got != tc.want || s.percent != tc.percent {
				t.Errorf("%d at %d%%, want %d at %d%%", got, s.percent, tc.want, tc.percent)
			}
		})
	}
}

// A process that allocates fast for longer than a burst takes has less garbage.
func TestGrowth(t *testing.T) {
	b := Pacer{Calm: 50, Busy: 400, Rate: 40 * mb, Extra: 2000 * mb, Growing: 100, GrowingRate: 250 * mb}
	type look struct {
		windows int
		rate    uint64 // allocated in each second
	}
	const delay = int(growingDelay / busyWindow)
	for name, tc := range map[string]struct {
		looks   []look
		percent int
	}{
		"a burst":                       {[]look{{delay - 1, 700 * mb}}, 400},
		"a pool that fills":             {[]look{{delay, 700 * mb}}, 100},
		"… and goes on":                 {[]look{{3 * delay, 250 * mb}}, 100},
		"claims that come one by one":   {[]look{{9 * delay, 249 * mb}}, 400},
		"a pool that fills, with a gap": {[]look{{delay - 1, 700 * mb}, {1, 100 * mb}, {delay - 1, 700 * mb}}, 400},
		"a pool that is full":           {[]look{{delay, 700 * mb}, {1, 100 * mb}}, 400},
		"… and then idle":               {[]look{{delay, 700 * mb}, {int(calmDelay / busyWindow), 0}}, 50},
	} {
		t.Run(name, func(t *testing.T) {
			s, at, total := pacerState{percent: b.Calm}, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), uint64(7)
			s.decideAction(b, heapSample{sampledAt: at, total: total, heap: 130 * mb, live: 130 * mb})
			for _, l := range tc.looks {
				for range l.windows {
					at, total = at.Add(busyWindow), total+uint64(float64(l.rate)*busyWindow.Seconds())
					s.decideAction(b, heapSample{sampledAt: at, total: total, heap: 130 * mb, live: 130 * mb})
				}
			}
			if s.percent != tc.percent {
				t.Errorf("%d%%, want %d%%", s.percent, tc.percent)
			}
		})
	}
}

func TestTheFirstLookOnlyBegins(t *testing.T) {
	b := Pacer{Calm: 50, Busy: 150, Rate: 1, Extra: 300 * mb}
	s := pacerState{percent: b.Calm}
	if got := s.decideAction(b, heapSample{sampledAt: time.Now(), total: 100 * mb, heap: 100 * mb, live: 90 * mb}); got != actionNone || s.percent != 50 {
		t.Errorf("%d at %d%%: what was allocated before is not known to have been allocated fast", got, s.percent)
	}
}

// This package collects the garbage before the runtime does: the runtime's own percentage is never
// reached.
func TestBreath(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	runtime.GC()
	Pacer{Calm: 1, Busy: 1, Rate: 1 << 60}.Start()
	debug.SetGCPercent(-1) // the runtime's percentage
	before := collections()
	for deadline := time.Now().Add(time.Minute); collections() < before+2; {
		if time.Now().After(deadline) {
			t.Fatal("nothing is collected")
		}
		sink = make([]byte, mb)
		runtime.Gosched()
	}
}

var sink []byte

func collections() uint32 {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.NumGC
}
