package claimqueue_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/claimqueue"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	minPriority = -1000
	maxPriority = 1000
)

// random returns n entries, many of them with the same time of creation, priority or arrival.
func random(r *rand.Rand, n int) []claimqueue.Entry {
	out := make([]claimqueue.Entry, n)
	for i := range out {
		p := r.IntN(7) - 3
		if r.IntN(4) == 0 {
			p = minPriority + r.IntN(maxPriority-minPriority+1)
		}
		created := noon.Add(time.Duration(r.IntN(10)) * claimqueue.TimePerPriority).Add(time.Duration(r.IntN(2)) * time.Second)
		out[i] = claimqueue.Entry{Name: fmt.Sprintf("x%02d", i), Created: created, Priority: p}
	}
	return out
}

func withRandom(t *testing.T, rounds int, check func(t *testing.T, r *rand.Rand)) {
	t.Helper()
	for range rounds {
		seed := rand.Uint64()
		if !t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { check(t, rand.New(rand.NewPCG(seed, 1))) }) {
			return
		}
	}
}

func TestTheOrderIsTotal(t *testing.T) {
	withRandom(t, 50, func(t *testing.T, r *rand.Rand) {
		list := random(r, 30)
		slices.SortFunc(list, claimqueue.Compare)
		for i, a := range list {
			for j, b := range list {
				if got := claimqueue.Compare(a, b); (got < 0) != (i < j) || (got == 0) != (i == j) {
					t.Fatalf("Compare(%v, %v) is %d, and they are at places %d and %d", a, b, got, i, j)
				}
			}
		}
	})
}

func TestClaimsOfOnePriorityAreServedInTheOrderOfTheirCreation(t *testing.T) {
	withRandom(t, 50, func(t *testing.T, r *rand.Rand) {
		list := random(r, 60)
		slices.SortFunc(list, claimqueue.Compare)
		last := map[int]claimqueue.Entry{}
		for _, e := range list {
			before := last[e.Priority]
			if c := before.Created.Compare(e.Created); c > 0 || c == 0 && before.Name > e.Name {
				t.Fatalf("%v is before %v", before, e)
			}
			last[e.Priority] = e
		}
	})
}

func TestWithoutPrioritiesTheOrderIsThatOfCreation(t *testing.T) {
	withRandom(t, 50, func(t *testing.T, r *rand.Rand) {
		list := random(r, 60)
		for i := range list {
			list[i].Priority = 0
		}
		want := slices.Clone(list)
		slices.SortFunc(want, func(a, b claimqueue.Entry) int {
			if c := a.Created.Compare(b.Created); c != 0 {
				return c
			}
			return strings.Compare(a.Name, b.Name)
		})
		if slices.SortFunc(list, claimqueue.Compare); !slices.Equal(list, want) {
			t.Fatalf("got %v\nwant %v", list, want)
		}
	})
}

func TestAPriorityOvertakesByMinutes(t *testing.T) {
	low := claimqueue.Entry{Name: "b", Created: noon}
	for name, c := range map[string]struct {
		later    time.Duration
		priority int
		passes   bool
	}{
		"a minute before":                  {9 * time.Minute, 10, true},
		"a second before":                  {10*time.Minute - time.Second, 10, true},
		"at the same time the older first": {10 * time.Minute, 10, false},
		"later":                            {10*time.Minute + time.Second, 10, false},
		"without a priority":               {time.Second, 0, false},
		"a lower one never":                {0, -1, false},
	} {
		high := claimqueue.Entry{Name: "a", Created: noon.Add(c.later), Priority: c.priority}
		if got := claimqueue.Compare(high, low) < 0; got != c.passes {
			t.Errorf("%s: passes is %t, want %t", name, got, c.passes)
		}
	}
}

// Claims of high priority arrive for ever, at least as fast as claims are served. A claim of priority p that was
// created at t is passed only by claims created before t + (maxPriority - p) * TimePerPriority, and no claim before it is
// served twice. So it is served after at most as many others as waited when it came, and came until then.
func TestNobodyStarves(t *testing.T) {
	const highest, lowest = 5, -5
	withRandom(t, 20, func(t *testing.T, r *rand.Rand) {
		var queue, all []claimqueue.Entry
		var served []claimqueue.Entry
		waited, servedAt := map[string]int{}, map[string]int{} // when each came: how many waited, and had been served
		for minute := range 400 {
			for range 1 + r.IntN(2) {
				p := highest
				if r.IntN(10) == 0 {
					p = lowest + r.IntN(highest-lowest+1)
				}
				if minute > 300 { // the last arrivals are served too
					break
				}
				e := claimqueue.Entry{Name: fmt.Sprintf("x%04d", len(all)), Priority: p, Created: noon.Add(time.Duration(minute) * time.Minute)}
				waited[e.Name], servedAt[e.Name] = len(queue), len(served)
				queue, all = append(queue, e), append(all, e)
			}
			slices.SortFunc(queue, claimqueue.Compare)
			served, queue = append(served, queue[0]), queue[1:]
			if len(queue) == 0 {
				break
			}
		}
		for i, e := range served {
			window := e.Created.Add(time.Duration(highest-e.Priority) * claimqueue.TimePerPriority)
			bound := waited[e.Name]
			for _, other := range all {
				if other.Name > e.Name && (other.Created.Before(window) || other.Created.Equal(e.Created)) {
					bound++
				}
			}
			if others := i - servedAt[e.Name]; others > bound {
				t.Fatalf("%v was served after %d others, and the bound is %d", e, others, bound)
			}
		}
		for _, e := range queue {
			if late := served[len(served)-1].Created.Sub(e.Created); late > time.Duration(highest-e.Priority)*claimqueue.TimePerPriority {
				t.Fatalf("%v waits, and a claim created %s later was served", e, late)
			}
		}
	})
}
