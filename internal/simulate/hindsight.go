package simulate

import (
	"time"

	"hotspare.io/hotspare/internal/sizing"
)

// maxStatic limits the search for a static setting.
const maxStatic = 5000

// AmpleSize returns a size with which no claim waits for an install. Running counts are compared with
// it.
func AmpleSize(t Trace, o Options, maxWait time.Duration) int {
	most := 0
	forEachWindow(t, o, o.Install.P90()+o.Resume.P90()-maxWait, func(_ int64, rank int) { most = max(most, rank+1) })
	return most
}

// forEachWindow calls f for each counted claim with the number of claims within the lead before it.
func forEachWindow(t Trace, o Options, lead time.Duration, f func(at int64, rank int)) {
	span, first := int64(lead/time.Second), 0
	for i, c := range t.Claims {
		for t.Claims[first].Arrived <= c.Arrived-span && first < i {
			first++
		}
		if c.Arrived >= o.From.Unix() && c.Arrived < o.To.Unix() {
			f(c.Arrived, i-first)
		}
	}
}

// BestStatic returns the smallest running count with which the share of the claims that are served
// within maxWait is at least share, chosen in hindsight, and what it gives. The size is such that no
// claim waits for an install; it is the smallest of that kind.
func BestStatic(t Trace, o Options, share float64, maxWait time.Duration) (sizing.Setting, Result) {
	size := AmpleSize(t, o, maxWait)
	settingOf := func(n int) sizing.Setting { return sizing.Setting{Running: n, Size: max(size, n)} }
	served := -1
	var best Result // that of served
	try := func(n int) bool {
		r := ReplayAny(t, Static(settingOf(n)), o, maxWait)
		if r.Within < share {
			return false
		}
		served, best = n, r
		return true
	}
	n := searchFrom(usualStatic(t, o, share, maxWait), min(max(size, 1), maxStatic), try)
	if served != n {
		best = ReplayAny(t, Static(settingOf(n)), o, maxWait)
	}
	return settingOf(n), best
}

// usualStatic returns the running count that serves the share of the claims if each claim waits that finds as many
// others within the lead before it. It is near the best one, and takes no simulation.
func usualStatic(t Trace, o Options, share float64, maxWait time.Duration) int {
	var ranks []int
	total := 0
	forEachWindow(t, o, max(o.Resume.P90()-maxWait, 0), func(_ int64, rank int) {
		for len(ranks) <= rank {
			ranks = append(ranks, 0)
		}
		ranks[rank]++
		total++
	})
	served := 0
	for n, claims := range ranks {
		if float64(served) >= share*float64(total) {
			return n
		}
		served += claims
	}
	return len(ranks)
}

// searchFrom returns the smallest number from 0 to most for which ok is true: most if there is no lower one. It
// begins at a guess, so that a good one takes two calls. If ok is true for a number, it must be for higher ones.
func searchFrom(guess, most int, ok func(int) bool) int {
	below, above := -1, most
	n := min(max(guess, 0), most-1)
	for step := 1; above-below > 1; step *= 2 {
		if ok(n) {
			above = n
		} else {
			below = n
		}
		switch {
		case below < 0:
			n = max(above-step, 0)
		case above == most:
			n = min(below+step, most-1)
		default:
			n = (below + above) / 2
		}
	}
	return above
}

// BestWeekly returns a schedule by the hour of the week, chosen in hindsight for the same share, and
// what it gives. It gives the next running cluster to the hour in which it saves the most waits for
// each hour that it is idle, until the share is reached.
func BestWeekly(t Trace, o Options, share float64, maxWait time.Duration, zone *time.Location) (*Weekly, Result) {
	lead := max(o.Resume.P90()-maxWait, 0)
	w := &Weekly{Size: AmpleSize(t, o, maxWait), Zone: zone, Ahead: lead}
	var ranks [HoursOfWeek][]float64
	total := 0.0
	forEachWindow(t, o, lead, func(at int64, rank int) {
		h := HourOfWeek(time.Unix(at, 0).In(zone))
		for len(ranks[h]) <= rank {
			ranks[h] = append(ranks[h], 0)
		}
		ranks[h][rank]++
		total++
	})
	missed := total
	if lead == 0 {
		missed = 0 // a cluster that hibernates resumes in time
	}
	var best Result
	for margin := 1.0; margin > 0.05; margin *= 0.9 {
		raised := w.raiseHours(&ranks, &missed, (1-share)*total*margin)
		w.Size = max(w.Size, w.Most())
		if best.Claims > 0 && !raised {
			continue // it would give the same
		}
		if best = ReplayAny(t, w, o, maxWait); best.Within >= share {
			break
		}
	}
	return w, best
}

// raiseHours raises the counts of the best hours until no more claims than most are missed, or no hour is left. It reports whether
// it has raised one.
func (w *Weekly) raiseHours(ranks *[HoursOfWeek][]float64, missed *float64, most float64) bool {
	raised := false
	for *missed > most {
		saved := w.raiseBestHour(ranks)
		if saved == 0 {
			break
		}
		*missed, raised = *missed-saved, true
	}
	return raised
}

// raiseBestHour raises the count of the hour in which that saves the most waits for each cluster, and
// returns how many it saves.
func (w *Weekly) raiseBestHour(ranks *[HoursOfWeek][]float64) float64 {
	hour, count, saved, rate := 0, 0, 0.0, 0.0
	for h := range ranks {
		sum := 0.0
		for n := w.Running[h]; n < len(ranks[h]); n++ {
			sum += ranks[h][n]
			if r := sum / float64(n+1-w.Running[h]); r > rate {
				hour, count, saved, rate = h, n+1, sum, r
			}
		}
	}
	if saved > 0 {
		w.Running[hour] = count
	}
	return saved
}

// Most returns the largest running count.
func (w *Weekly) Most() int {
	most := 0
	for _, n := range w.Running {
		most = max(most, n)
	}
	return most
}
