package heap

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestSuits(t *testing.T) {
	b := &Breath{Calm: 50, Busy: 150, Rate: 40 << 20, Extra: 400 << 20}
	for name, tc := range map[string]struct {
		bytes uint64
		span  time.Duration
		inUse uint64
		want  int
	}{
		"a burst":                        {60 << 20, 200 * time.Millisecond, 130 << 20, 150},
		"the rate itself":                {40 << 20, time.Second, 130 << 20, 150},
		"a little less":                  {40<<20 - 1, time.Second, 130 << 20, 50},
		"collected by the runtime":       {190 << 20, 2 * time.Minute, 130 << 20, 50},
		"two collections in one instant": {0, 0, 130 << 20, 50},
		"a bigger one takes no more":     {60 << 20, time.Second, 400 << 20, 100},
		"a huge one takes what it has":   {60 << 20, time.Second, 4 << 30, 50},
		"nothing in use":                 {60 << 20, time.Second, 0, 150},
	} {
		t.Run(name, func(t *testing.T) {
			if got := b.suits(tc.bytes, tc.span, tc.inUse); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

// Collections are noticed, one after the other, and set what suits.
func TestBreath(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(77))
	current := func() int {
		p := debug.SetGCPercent(77)
		debug.SetGCPercent(p)
		return p
	}
	b := &Breath{Calm: 50, Busy: 150, Rate: 1, Extra: 1 << 40}
	b.Start()
	if p := current(); p != 50 {
		t.Fatalf("it starts at %d", p)
	}
	until := func(want int, rate uint64) {
		t.Helper()
		b.mu.Lock()
		b.Rate = rate
		b.mu.Unlock()
		for deadline := time.Now().Add(time.Minute); current() != want; runtime.GC() {
			if time.Now().After(deadline) {
				t.Fatalf("it stays at %d, want %d", current(), want)
			}
		}
	}
	until(150, 1)
	until(50, 1<<60)
	until(150, 1)
}
