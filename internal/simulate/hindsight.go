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
	low, high := 0, min(max(size, 1), maxStatic)
	try := func(n int) Result {
		return PlayAny(t, Static{Running: n, Size: max(size, n)}, o, maxWait)
	}
	for low < high {
		middle := (low + high) / 2
		if try(middle).Within >= share {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return sizing.Setting{Running: low, Size: max(size, low)}, try(low)
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
	var best Result
	for margin := 1.0; margin > 0.05; margin *= 0.9 {
		for missed > (1-share)*total*margin {
			saved := w.raiseBestHour(&ranks)
			if saved == 0 {
				break
			}
			missed -= saved
		}
		w.Size = max(w.Size, w.Most())
		if best = PlayAny(t, w, o, maxWait); best.Within >= share {
			break
		}
	}
	return w, best
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
