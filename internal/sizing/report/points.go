package report

import (
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
	// Claims is how many claims were created, Waited how many of them waited, or were deleted before they got
	// a cluster. LongestWait is the longest wait of those that were served.
	Claims, Waited int
	LongestWait    time.Duration
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
	const most = 1000
	first := quarterOf(from)
	from = truncateIn(zone, from, min(step, day))
	n := int(min(max((to.Sub(from)+step-1)/step, 0), most))
	out := make([]Point, n)
	seconds := make([]int64, n)
	for i := range out {
		out[i].At = from.Add(time.Duration(i) * step)
	}
	seen := newSeenClaims(r, first)
	for i := range r.Quarters {
		q := &r.Quarters[i]
		k := int(q.Begin().Sub(from) / step)
		if q.Begin().Before(first) || k >= n {
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
		p.Claims = seen.within(start, int64(step/record.QuarterLength))
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

// truncateIn returns the last multiple of a step, by the clock of a zone, up to a moment.
func truncateIn(zone *time.Location, at time.Time, step time.Duration) time.Time {
	_, seconds := at.In(zone).Zone()
	offset := time.Duration(seconds) * time.Second
	return at.Add(offset).Truncate(step).Add(-offset).UTC()
}

// add adds a quarter to a point, whose clusters are cluster-seconds until all were added.
func (p *Point) add(q *record.Quarter, seconds *int64) {
	*seconds += q.Seconds
	for s := range q.Clusters {
		p.Clusters[s] += float64(q.Clusters[s])
	}
	p.Waiting = max(p.Waiting, int(q.Waiting))
	p.Waited += int(q.Waits.Claims()-q.Waits.AtOnce()) + int(q.Unserved)
	p.LongestWait = max(p.LongestWait, q.Waits.Quantile(1))
	if q.Noted {
		p.Noted, p.Recommended, p.Pool = true, q.Recommended, q.Pool
	}
}
