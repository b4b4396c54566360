package report

import (
	"sort"
	"time"

	"hotspare.io/hotspare/internal/sizing"
	"hotspare.io/hotspare/internal/sizing/record"
)

// A Point is what a chart shows of a step of time.
type Point struct {
	At time.Time
	// Known is set if somebody looked. Clusters are average numbers, by state.
	Known    bool
	Clusters [record.States]float64
	// Noted is set if the recommendation is known: the number of clusters that should have run, and exist.
	Noted             bool
	Recommended, Pool sizing.Setting
	// Claims is how many claims were created, Judged of how many of them it is known whether they waited, and Waited how many of
	// those did, or were deleted before they got a cluster. LongestWait is the longest wait of those that were served.
	Claims, Judged, Waited int
	LongestWait            time.Duration
	// Waiting is the largest number of claims that waited at the same time.
	Waiting int
	// Forecast was made at the beginning of the step, of the hour from then on; nil if there was none. Seen is
	// the number of claims in that hour, and Compared is set if it has ended.
	Forecast *sizing.Forecast
	Seen     int
	Compared bool
}

// NewPoints returns the points of a time, one for each step, which is a multiple of a quarter of an hour, and begins at a full hour, or
// at midnight, of the zone. A point whose time nobody has looked at is not Known. Points of more than an hour have no forecasts.
func NewPoints(r *record.Record, from, to time.Time, step time.Duration, zone *time.Location) []Point {
	first := quarterOf(from)
	begins := splitTime(from, to, step, zone)
	n := len(begins) - 1
	out := make([]Point, n)
	seconds := make([]int64, n)
	for i := range out {
		out[i].At = begins[i]
	}
	seen := newSeenClaims(r, first)
	for i := range r.Quarters {
		q := &r.Quarters[i]
		k := sort.Search(len(begins), func(i int) bool { return begins[i].After(q.Begin()) }) - 1
		if q.Begin().Before(first) || k < 0 || k >= n {
			continue
		}
		out[k].add(q, &seconds[k])
		if f := q.Forecast; f != nil && step <= time.Hour && q.Begin().Equal(out[k].At) {
			out[k].Forecast, out[k].Seen = f, seen.within(q.Start, quartersOfHour)
			out[k].Compared = hasWholeHour(r.Quarters, i) && !out[k].At.Add(time.Hour).After(r.Until)
		}
	}
	for i := range out {
		p := &out[i]
		start := p.At.Unix() / int64(record.QuarterLength/time.Second)
		p.Claims = seen.within(start, int64(begins[i+1].Sub(p.At)/record.QuarterLength))
		if p.Known = seconds[i] > 0; !p.Known {
			continue
		}
		for s := range p.Clusters {
			p.Clusters[s] /= float64(seconds[i])
		}
	}
	return out
}

const day = 24 * time.Hour

// splitTime returns when each step of a time begins, of at most 1000, and when the last one ends. By the clock of the zone, steps begin at
// multiples of their length, and those of days at midnight, also after clocks are changed.
func splitTime(from, to time.Time, step time.Duration, zone *time.Location) []time.Time {
	const most = 1000
	local := from.In(zone)
	_, seconds := local.Zone()
	offset := time.Duration(seconds) * time.Second
	beginOf := func(i int) time.Time {
		return from.Add(offset).Truncate(step).Add(time.Duration(i)*step - offset).UTC()
	}
	if days := int(step / day); days > 0 {
		beginOf = func(i int) time.Time {
			return time.Date(local.Year(), local.Month(), local.Day()+i*days, 0, 0, 0, 0, zone).UTC()
		}
	}
	out := []time.Time{beginOf(0)}
	for i := 0; i < most && out[i].Before(to); i++ {
		out = append(out, beginOf(i+1))
	}
	return out
}

// add adds a quarter to a point, whose clusters are cluster-seconds until all were added.
func (p *Point) add(q *record.Quarter, seconds *int64) {
	*seconds += q.Seconds
	for s := range q.Clusters {
		p.Clusters[s] += float64(q.Clusters[s])
	}
	p.Waiting = max(p.Waiting, int(q.Waiting))
	p.Judged += int(q.Waits.Claims()) + int(q.Unserved)
	p.Waited += int(q.Waits.Claims()-q.Waits.AtOnce()) + int(q.Unserved)
	p.LongestWait = max(p.LongestWait, q.Waits.Quantile(1))
	if q.Noted {
		p.Noted, p.Recommended, p.Pool = true, q.Recommended, q.Pool
	}
}
