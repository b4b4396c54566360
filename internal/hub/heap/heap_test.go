package heap

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

const mb = 1 << 20

func TestLook(t *testing.T) {
	b := Breath{Calm: 50, Busy: 150, Rate: 40 * mb, Extra: 300 * mb}
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		before  int
		hot     time.Duration // how long before the span it was busy
		span    time.Duration
		bytes   uint64 // allocated in the span
		garbage uint64
		live    uint64
		percent int
		want    verdict
	}{
		"calm":                           {50, 0, rush, 1 * mb, 10 * mb, 130 * mb, 50, nothing},
		"calm, half of it is garbage":    {50, 0, rush, 1 * mb, 66 * mb, 130 * mb, 50, collect},
		"a burst begins":                 {50, 0, rush, 20 * mb, 66 * mb, 130 * mb, 150, nothing},
		"a little less is none":          {50, 0, rush, 20*mb - 1, 10 * mb, 130 * mb, 50, nothing},
		"it is too early to tell":        {50, 0, rush - 1, 900 * mb, 10 * mb, 130 * mb, 50, nothing},
		"in a burst":                     {150, 0, rush, 70 * mb, 100 * mb, 130 * mb, 150, nothing},
		"in a burst, much is garbage":    {150, 0, rush, 70 * mb, 196 * mb, 130 * mb, 150, collect},
		"a pause in a burst":             {150, rest - rush - 1, rush, 0, 100 * mb, 130 * mb, 150, nothing},
		"a burst ends":                   {150, rest - rush, rush, 10 * mb, 40 * mb, 130 * mb, 50, collect},
		"… and left little":              {150, rest - rush, rush, 10 * mb, 30 * mb, 130 * mb, 50, nothing},
		"a burst goes on after a pause":  {150, rest, rush, 20 * mb, 40 * mb, 130 * mb, 150, nothing},
		"a bigger heap grows no further": {50, 0, rush, 200 * mb, 299 * mb, 300 * mb, 100, nothing},
		"… and is collected":             {100, 0, rush, 200 * mb, 301 * mb, 300 * mb, 100, collect},
		"a huge one grows as when calm":  {50, 0, rush, 200 * mb, 301 * mb, 4096 * mb, 50, nothing},
		"none is in use":                 {50, 0, rush, 200 * mb, 0, 0, 150, nothing},
		"less than was in use":           {50, 0, rush, 1 * mb, 0, 130 * mb, 50, nothing},
	} {
		t.Run(name, func(t *testing.T) {
			s := state{percent: tc.before, since: sight{at: start, total: 7}, hot: start.Add(-tc.hot)}
			got := s.look(b, sight{at: start.Add(tc.span), total: 7 + tc.bytes, heap: tc.live + tc.garbage, live: tc.live})
			if got != tc.want || s.percent != tc.percent {
				t.Errorf("%d at %d%%, want %d at %d%%", got, s.percent, tc.want, tc.percent)
			}
		})
	}
}

// What is due to be collected is not while much has been allocated at the last looks,
// whatever was before.
func TestASpurt(t *testing.T) {
	b := Breath{Calm: 50, Busy: 150, Rate: 40 * mb, Extra: 300 * mb}
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	type look struct {
		after time.Duration
		bytes uint64 // allocated since the look before
		live  uint64
		dirt  uint64 // garbage
	}
	for name, tc := range map[string]struct {
		looks   []look
		percent int
		want    verdict
	}{
		"a burst begins after a calm":   {[]look{{beat, 0, 130 * mb, 60 * mb}, {400 * time.Millisecond, 0, 130 * mb, 60 * mb}, {beat, 0, 130 * mb, 60 * mb}, {beat, 10 * mb, 130 * mb, 70 * mb}}, 150, nothing},
		"… which may pause":             {[]look{{beat, 0, 130 * mb, 60 * mb}, {400 * time.Millisecond, 0, 130 * mb, 60 * mb}, {beat, 0, 130 * mb, 60 * mb}, {beat, 10 * mb, 130 * mb, 70 * mb}, {rush, 0, 130 * mb, 70 * mb}}, 150, nothing},
		"garbage made at leisure":       {[]look{{beat, 0, 130 * mb, 60 * mb}, {beat, mb, 130 * mb, 61 * mb}, {beat, mb, 130 * mb, 66 * mb}}, 50, collect},
		"a process that has just begun": {[]look{{beat, 0, 130 * mb, 60 * mb}, {beat, 20 * mb, 130 * mb, 80 * mb}}, 50, collect},
		"more than a busy one may have": {[]look{{beat, 0, 130 * mb, 60 * mb}, {beat, 0, 130 * mb, 60 * mb}, {beat, 140 * mb, 130 * mb, 200 * mb}}, 150, collect},
		"in a huge heap":                {[]look{{beat, 0, 4096 * mb, 2000 * mb}, {beat, 0, 4096 * mb, 2000 * mb}, {beat, 140 * mb, 4096 * mb, 2140 * mb}}, 50, collect},
		"calm after a spurt: no more":   {[]look{{beat, 0, 130 * mb, 60 * mb}, {beat, 0, 130 * mb, 60 * mb}, {beat, 10 * mb, 130 * mb, 70 * mb}, {rest, 0, 130 * mb, 10 * mb}}, 50, nothing},
		"… but what is due":             {[]look{{beat, 0, 130 * mb, 60 * mb}, {beat, 0, 130 * mb, 60 * mb}, {beat, 10 * mb, 130 * mb, 70 * mb}, {rest, 0, 130 * mb, 70 * mb}}, 50, collect},
		"a spurt that went on":          {[]look{{beat, 0, 130 * mb, 60 * mb}, {beat, 0, 130 * mb, 60 * mb}, {beat, 10 * mb, 130 * mb, 70 * mb}, {rush, 30 * mb, 130 * mb, 70 * mb}, {rest - 1, 0, 130 * mb, 40 * mb}}, 150, nothing},
		"… and ended":                   {[]look{{beat, 0, 130 * mb, 60 * mb}, {beat, 0, 130 * mb, 60 * mb}, {beat, 10 * mb, 130 * mb, 70 * mb}, {rush, 30 * mb, 130 * mb, 70 * mb}, {rest, 0, 130 * mb, 40 * mb}}, 50, collect},
	} {
		t.Run(name, func(t *testing.T) {
			s, at, total, got := state{percent: b.Calm}, start, uint64(7), nothing
			for _, l := range tc.looks {
				at, total = at.Add(l.after), total+l.bytes
				got = s.look(b, sight{at: at, total: total, heap: l.live + l.dirt, live: l.live})
			}
			if got != tc.want || s.percent != tc.percent {
				t.Errorf("%d at %d%%, want %d at %d%%", got, s.percent, tc.want, tc.percent)
			}
		})
	}
}

// Memory is given back when it has been free for a minute, all of it, and nobody is busy.
func TestUnusedMemory(t *testing.T) {
	const half = fallow / 2
	type look struct {
		after time.Duration
		bytes uint64 // allocated since the look before
		free  uint64
	}
	for name, tc := range map[string]struct {
		looks []look
		want  verdict
	}{
		"free for a minute":             {[]look{{0, 0, 700 * mb}, {half, 0, 800 * mb}, {half, 0, 700 * mb}}, release},
		"not yet":                       {[]look{{0, 0, 700 * mb}, {half, 0, 700 * mb}, {half - 1, 0, 700 * mb}}, nothing},
		"little":                        {[]look{{0, 0, worth - 1}, {half, 0, worth - 1}, {half, 0, worth - 1}}, nothing},
		"used in between":               {[]look{{0, 0, 700 * mb}, {half, 0, mb}, {half, 0, 700 * mb}}, nothing},
		"… and not any more":            {[]look{{0, 0, mb}, {fallow, 0, 700 * mb}, {half, 0, 700 * mb}, {half, 0, 700 * mb}}, release},
		"busy":                          {[]look{{0, 0, 700 * mb}, {half, 6000 * mb, 700 * mb}, {half, 6000 * mb, 700 * mb}}, nothing},
		"given back, and again a while": {[]look{{0, 0, 700 * mb}, {fallow, 0, 700 * mb}, {half, 0, 700 * mb}}, nothing},
	} {
		t.Run(name, func(t *testing.T) {
			b := Breath{Calm: 50, Busy: 150, Rate: 40 * mb, Extra: 300 * mb}
			s, got := state{percent: b.Calm}, nothing
			now := sight{at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), total: 7, heap: 140 * mb, live: 130 * mb}
			for _, l := range tc.looks {
				now.at, now.total, now.free = now.at.Add(l.after), now.total+l.bytes, l.free
				got = s.look(b, now)
			}
			if got != tc.want {
				t.Errorf("%d, want %d", got, tc.want)
			}
		})
	}
}

func TestTheFirstLookOnlyBegins(t *testing.T) {
	b := Breath{Calm: 50, Busy: 150, Rate: 1, Extra: 300 * mb}
	s := state{percent: b.Calm}
	if got := s.look(b, sight{at: time.Now(), total: 100 * mb, heap: 100 * mb, live: 90 * mb}); got != nothing || s.percent != 50 {
		t.Errorf("%d at %d%%: what was allocated before is not known to have been allocated fast", got, s.percent)
	}
}

// Garbage is collected without the runtime's help: its own percentage is never reached.
func TestBreath(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	runtime.GC()
	Breath{Calm: 1, Busy: 1, Rate: 1 << 60}.Start()
	debug.SetGCPercent(-1) // the runtime's
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
