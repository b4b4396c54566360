package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hotspare.io/hotspare/internal/simulate"
	"hotspare.io/hotspare/internal/sizing"
)

// A replayCase is a trace and how long a resume takes.
type replayCase struct {
	name   string
	trace  simulate.Trace
	resume time.Duration
}

const (
	usualResume = 5 * time.Minute
	install     = 40 * time.Minute
	day         = 24 * time.Hour
)

// options are those of the simulation: of a trace of half a year or more, the first twelve weeks are
// only learned from, of a shorter one two weeks.
func (c replayCase) options() simulate.Options {
	begin, end := c.trace.Begin(), c.trace.End().Add(time.Second)
	train := 14 * day
	if end.Sub(begin) >= 180*day {
		train = 84 * day
	}
	return simulate.Options{
		Resume: simulate.Duration{Median: c.resume}, Install: simulate.Duration{Median: install},
		Prices: sizing.Prices{Running: 1, Hibernating: 0.1}, From: begin.Add(train), To: end,
	}
}

// replay replays the case on the policy auto. Its owner's setting is the best static one of the time that is
// only learned from.
func (c replayCase) replay(m sizing.Method) simulate.Result {
	o := c.options()
	before := o
	before.From, before.To = c.trace.Begin(), o.From
	a := &simulate.Auto{Method: m, Given: sizing.Snapshot{
		Objective: sizing.Objective{Share: promise}, Durations: sizing.Durations{Resume: c.resume, Install: install},
	}}
	a.Given.Static, _ = simulate.BestStatic(c.trace, before, promise, 0)
	return simulate.ReplayAny(c.trace, a, o, 0)
}

func baseCases(recorded map[string]simulate.Trace) []replayCase {
	var out []replayCase
	for _, name := range slices.Sorted(maps.Keys(recorded)) {
		out = append(out, replayCase{name, recorded[name], usualResume})
	}
	for _, s := range synthetics {
		out = append(out, replayCase{"syn-" + s.name, s.generate(1), usualResume})
	}
	return out
}

// variedCases are the traces at other resume times, thinned, begun later, with their weeks in reverse
// order, and synthetic ones from other seeds.
func variedCases(recorded map[string]simulate.Trace) []replayCase {
	var out []replayCase
	for _, name := range slices.Sorted(maps.Keys(recorded)) {
		t := recorded[name]
		out = append(out,
			replayCase{name + " resume 1m", t, time.Minute},
			replayCase{name + " resume 15m", t, 15 * time.Minute},
			replayCase{name + " half", thin(t, 0.5, 1), usualResume},
			replayCase{name + " later", later(t, 0.15), usualResume},
			replayCase{name + " reversed weeks", reverseWeeks(t), usualResume})
	}
	for _, s := range synthetics {
		for seed := uint64(2); seed <= 3; seed++ {
			out = append(out, replayCase{fmt.Sprintf("syn-%s seed %d", s.name, seed), s.generate(seed), usualResume})
		}
	}
	return out
}

// heldOutCases were not looked at while the method was chosen.
func heldOutCases(recorded map[string]simulate.Trace) []replayCase {
	var out []replayCase
	var merged simulate.Trace
	for _, name := range slices.Sorted(maps.Keys(recorded)) {
		t := recorded[name]
		if strings.HasPrefix(name, "merges-") {
			merged.Claims = append(merged.Claims, t.Claims...)
		}
		out = append(out,
			replayCase{name + " resume 3m", t, 3 * time.Minute},
			replayCase{name + " resume 10m", t, 10 * time.Minute},
			replayCase{name + " two thirds", thin(t, 2.0/3, 7), usualResume},
			replayCase{name + " much later", later(t, 0.3), usualResume},
			replayCase{name + " last first", swapHalves(t), usualResume})
	}
	if len(merged.Claims) > 0 {
		sortClaims(&merged)
		out = append(out, replayCase{"all merges", merged, usualResume})
	}
	for _, s := range append(slices.Clone(synthetics), heldOutSynthetics...) {
		for seed := uint64(101); seed <= 102; seed++ {
			out = append(out, replayCase{fmt.Sprintf("syn-%s seed %d", s.name, seed), s.generate(seed), usualResume})
		}
	}
	return out
}

// jobCases are claims that programs create.
func jobCases() []replayCase {
	var out []replayCase
	for _, s := range jobSynthetics {
		out = append(out, replayCase{"syn-" + s.name, s.generate(1), usualResume})
	}
	return out
}

// thin keeps a share of the claims at random.
func thin(t simulate.Trace, share float64, seed uint64) simulate.Trace {
	r := rand.New(rand.NewPCG(seed, 1))
	var out simulate.Trace
	for _, c := range t.Claims {
		if r.Float64() < share {
			out.Claims = append(out.Claims, c)
		}
	}
	return out
}

// later leaves out a share of the time at the beginning.
func later(t simulate.Trace, share float64) simulate.Trace {
	from := t.Begin().Add(time.Duration(share * float64(t.End().Sub(t.Begin())))).Unix()
	i := slices.IndexFunc(t.Claims, func(c simulate.Claim) bool { return c.Arrived >= from })
	return simulate.Trace{Claims: t.Claims[i:]}
}

const week = int64(7 * day / time.Second)

// reverseWeeks replays the weeks in reverse order, each forward.
func reverseWeeks(t simulate.Trace) simulate.Trace {
	return mapClaims(t, func(at, first, last int64) int64 { return at + (last+first-2*(at/week))*week })
}

// swapHalves replays the second half of the weeks before the first.
func swapHalves(t simulate.Trace) simulate.Trace {
	return mapClaims(t, func(at, first, last int64) int64 {
		middle := (first + last + 1) / 2
		if at/week < middle {
			return at + (last+1-middle)*week
		}
		return at - (middle-first)*week
	})
}

// mapClaims changes the time of each claim. It gets the numbers of the first and the last week.
func mapClaims(t simulate.Trace, f func(at, first, last int64) int64) simulate.Trace {
	first, last := t.Begin().Unix()/week, t.End().Unix()/week
	var out simulate.Trace
	for _, c := range t.Claims {
		c.Arrived = f(c.Arrived, first, last)
		out.Claims = append(out.Claims, c)
	}
	sortClaims(&out)
	return out
}

func sortClaims(t *simulate.Trace) {
	slices.SortStableFunc(t.Claims, func(a, b simulate.Claim) int { return int(max(-1, min(1, a.Arrived-b.Arrived))) })
}

func writeTraces(dir string, cases []replayCase) error {
	for _, c := range cases {
		var b strings.Builder
		b.WriteString("created\n")
		for _, x := range c.trace.Claims {
			b.WriteString(time.Unix(x.Arrived, 0).UTC().Format(time.RFC3339) + "\n")
		}
		path := filepath.Join(dir, strings.ReplaceAll(c.name, " ", "-")+".csv")
		if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
			return err
		}
	}
	return nil
}
