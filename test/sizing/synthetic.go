package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"hotspare.io/hotspare/internal/simulate"
)

// A synthetic is demand at a rate that is known, in claims an hour. Each arrival brings a number of
// claims.
type synthetic struct {
	name  string
	weeks int
	rate  func(at time.Time, sinceBegin time.Duration) float64
	group func(*rand.Rand) int
	// jobs, if not nil, returns when further claims arrive on a day that begins at midnight.
	jobs func(r *rand.Rand, midnight time.Time) []time.Time
}

// begin of all synthetic traces is a Monday.
var begin = time.Date(2024, 9, 2, 0, 0, 0, 0, time.UTC)

// synthetics are the demand that the method was chosen with.
var synthetics = []synthetic{
	{"weekly", 104, func(at time.Time, _ time.Duration) float64 { return workingWeek(at, 5, 0.5) }, one, nil},
	{"burst", 104, func(at time.Time, _ time.Duration) float64 { return workingWeek(at, 5, 0.5) }, upToTen, nil},
	{"times10", 104, func(at time.Time, since time.Duration) float64 {
		if since >= 52*7*day {
			return workingWeek(at, 50, 5)
		}
		return workingWeek(at, 5, 0.5)
	}, one, nil},
	{"stops", 104, func(at time.Time, since time.Duration) float64 {
		if since >= 60*7*day && since < 60*7*day+30*day {
			return 0
		}
		return workingWeek(at, 5, 0.5)
	}, one, nil},
	{"random", 52, func(time.Time, time.Duration) float64 { return 4 }, one, nil},
	{"rare", 104, func(time.Time, time.Duration) float64 { return 0.1 }, one, nil},
	{"busy", 12, func(at time.Time, _ time.Duration) float64 { return workingWeek(at, 240, 24) }, one, nil},
}

// heldOutSynthetics were not looked at while the method was chosen.
var heldOutSynthetics = []synthetic{
	{"grows", 104, func(at time.Time, since time.Duration) float64 {
		return workingWeek(at, 1, 0.1) * math.Exp2(since.Hours()/(26*7*24))
	}, one, nil},
	{"rarer", 104, func(time.Time, time.Duration) float64 { return 0.05 }, one, nil},
	{"night", 104, func(at time.Time, _ time.Duration) float64 {
		if at.Hour() == 2 {
			return 20
		}
		return 0.2
	}, one, nil},
	{"waves", 52, func(at time.Time, since time.Duration) float64 {
		return 3 * math.Exp(1.2*math.Sin(since.Hours()/5.3)+0.8*math.Sin(since.Hours()/1.7))
	}, one, nil},
}

// jobSynthetics have claims that programs create, at times that somebody has set.
var jobSynthetics = []synthetic{
	{"cron-night", 26, quietDay, one, func(_ *rand.Rand, midnight time.Time) []time.Time {
		return repeatTime(30, midnight.Add(2*time.Hour))
	}},
	{"cron-hourly", 26, quietDay, one, func(_ *rand.Rand, midnight time.Time) []time.Time {
		var out []time.Time
		for hour := 8; hour < 18; hour++ {
			out = append(out, repeatTime(4, midnight.Add(time.Duration(hour)*time.Hour))...)
		}
		return out
	}},
	{"batch-night", 26, quietDay, one, func(r *rand.Rand, midnight time.Time) []time.Time {
		return repeatTime(30, midnight.Add(time.Hour+time.Duration(r.IntN(4*60))*time.Minute))
	}},
	{"batch-weekly", 52, quietDay, one, func(r *rand.Rand, midnight time.Time) []time.Time {
		if midnight.Weekday() != time.Sunday {
			return nil
		}
		return repeatTime(60, midnight.Add(20*time.Hour+time.Duration(r.IntN(30))*time.Minute))
	}},
	{"working-hours", 52, func(at time.Time, _ time.Duration) float64 { return workingWeek(at, 12, 0.05) }, one, nil},
}

func quietDay(at time.Time, _ time.Duration) float64 { return workingWeek(at, 1, 0.1) }

// repeatTime returns a time n times.
func repeatTime(n int, at time.Time) []time.Time { return slices.Repeat([]time.Time{at}, n) }

func workingWeek(at time.Time, busy, quiet float64) float64 {
	if d := at.Weekday(); d != time.Saturday && d != time.Sunday && at.Hour() >= 8 && at.Hour() < 18 {
		return busy
	}
	return quiet
}

func one(*rand.Rand) int { return 1 }

// upToTen is one claim nine times of ten, and otherwise two to ten together.
func upToTen(r *rand.Rand) int {
	if r.IntN(10) > 0 {
		return 1
	}
	return 2 + r.IntN(9)
}

// generate returns a trace.
func (s synthetic) generate(seed uint64) simulate.Trace {
	r := rand.New(rand.NewPCG(seed, uint64(len(s.name))))
	var out simulate.Trace
	const step = time.Minute
	for since := time.Duration(0); since < time.Duration(s.weeks)*7*day; since += step {
		at := begin.Add(since)
		if s.jobs != nil && since%day == 0 {
			for _, job := range s.jobs(r, at) {
				out.Claims = append(out.Claims, simulate.Claim{Arrived: job.Unix()})
			}
		}
		mean := s.rate(at, since) / 60
		for left := r.ExpFloat64(); left < mean; left += r.ExpFloat64() {
			arrived := at.Unix() + r.Int64N(60)
			for range s.group(r) {
				out.Claims = append(out.Claims, simulate.Claim{Arrived: arrived})
			}
		}
	}
	sortClaims(&out)
	return out
}
