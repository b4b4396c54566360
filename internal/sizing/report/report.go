// Package report computes what a pool has done from its record: how claims were served, what its clusters
// cost, and how well the demand was predicted. The command line, the console and metrics show the same
// numbers. It is pure.
package report

import (
	"time"

	"hotspare.io/hotspare/internal/sizing"
	"hotspare.io/hotspare/internal/sizing/record"
)

// Options are what a report is about.
type Options struct {
	From, To time.Time
	// Prices are those of the pool's policy; zero if it has none.
	Prices sizing.Prices
	// Promised is the share of the claims that the policy promises to serve in time; 0 if it is not known.
	Promised float64
}

// A Report is what a pool has done between two times. Hours and costs are of unclaimed clusters.
type Report struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// ObservedHours is for how long the record has numbers of clusters within that time.
	ObservedHours float64 `json:"observedHours"`
	Claims        Claims  `json:"claims"`
	Hours         Hours   `json:"hours"`
	// Costs is nil if there are no prices.
	Costs *Costs `json:"costs,omitempty"`
	// Forecast is nil if there was none.
	Forecast *Forecast `json:"forecast,omitempty"`
	// Coverage is nil if no outcome is known.
	Coverage *Coverage `json:"coverage,omitempty"`
	// ComputedHours is for how long counts were computed from the demand.
	ComputedHours float64 `json:"computedHours"`
}

// Claims are those that were created within the time of a report.
type Claims struct {
	Total int `json:"total"`
	// Served is how many got a running cluster, AtOnce how many of them did not wait. Unserved were deleted
	// before they got one. Outcomes of the last eight days are known.
	Served   int `json:"served"`
	AtOnce   int `json:"atOnce"`
	Unserved int `json:"unserved"`
	// AtOnceShare is that of the claims whose outcome is known; 0 if none is.
	AtOnceShare float64 `json:"atOnceShare"`
	// P50 and the others are quantiles of the waits in seconds, exact to a tenth.
	P50 float64 `json:"p50Seconds"`
	P90 float64 `json:"p90Seconds"`
	P99 float64 `json:"p99Seconds"`
	Max float64 `json:"maxSeconds"`
}

// Hours are cluster-hours.
type Hours struct {
	RunningIdle float64 `json:"runningIdle"`
	Resuming    float64 `json:"resuming"`
	Hibernating float64 `json:"hibernating"`
	Installing  float64 `json:"installing"`
	Other       float64 `json:"other"`
	Claimed     float64 `json:"claimed"`
	// Shallow are the hours of Hibernating at shallow depths of sleep.
	Shallow sizing.PerShallowDepth[float64] `json:"shallow,omitzero"`
}

// Costs are in the currency of the prices.
type Costs struct {
	Total       float64 `json:"total"`
	Running     float64 `json:"running"`
	Hibernating float64 `json:"hibernating"`
	// Shallow is the part of Hibernating at shallow depths of sleep.
	Shallow sizing.PerShallowDepth[float64] `json:"shallow,omitzero"`
	// SavedByHibernating is how much more it would have cost if the clusters that hibernated had run.
	SavedByHibernating float64 `json:"savedByHibernating"`
	// CouldSave is what the recommended counts would have saved, compared with those of the pool: a negative
	// number means that they cost more. SavedByPolicy is what the counts of the pool have saved, compared with
	// those that a person has chosen last. Both are computed from the counts, not from the clusters, and clusters
	// hibernate at depth stop in them.
	CouldSave     float64 `json:"couldSave"`
	SavedByPolicy float64 `json:"savedByPolicy"`
}

// A Forecast compares what was expected with what was seen, for each hour that was forecast.
type Forecast struct {
	// Forecasts is how many were compared, one for each quarter of an hour. Within is how many times the number
	// of claims was within the band, which should have nine of ten.
	Forecasts int `json:"forecasts"`
	Within    int `json:"within"`
	// Expected and Seen are claims an hour, on average.
	Expected float64 `json:"expectedPerHour"`
	Seen     float64 `json:"seenPerHour"`
}

// WithinShare returns the share of the forecasts whose band had the number of claims.
func (f Forecast) WithinShare() float64 { return float64(f.Within) / float64(f.Forecasts) }

// Coverage compares what was promised with what was seen.
type Coverage struct {
	Promised float64 `json:"promised"`
	Seen     float64 `json:"seen"`
}

// New computes a report. It ends when the record ends, if that is earlier.
func New(r *record.Record, o Options) Report {
	out := Report{From: o.From.UTC(), To: o.To.UTC()}
	if out.From.Before(r.Since) {
		out.From = r.Since.UTC()
	}
	if out.To.After(r.Until) {
		out.To = r.Until.UTC()
	}
	waits := record.Waits{}
	late, judged := 0, 0 // of imported claims, nobody knows whether they were late
	for _, b := range r.Demand.Bins() {
		if b.Begin().Before(quarterOf(out.From)) || !b.Begin().Before(out.To) {
			continue
		}
		out.Claims.Total += int(b.Claims)
		if !b.Begin().Before(r.Demand.ImportedUntil()) {
			late, judged = late+int(b.Late), judged+int(b.Claims)
		}
	}
	pool, recommended, static := record.Hours{}, record.Hours{}, record.Hours{}
	for i := range r.Quarters {
		q := &r.Quarters[i]
		if q.Begin().Before(quarterOf(out.From)) || !q.Begin().Before(out.To) {
			continue
		}
		out.addHours(q)
		waits.Add(q.Waits)
		out.Claims.Unserved += int(q.Unserved)
		if hours := toHours(q.Seconds); q.Noted {
			pool.AddSetting(q.Pool, hours)
			recommended.AddSetting(q.Recommended, hours)
			static.AddSetting(q.Static, hours)
		}
	}
	out.setClaims(waits)
	if known := out.Claims.Served + out.Claims.Unserved; known > 0 && o.Promised > 0 {
		out.Coverage = &Coverage{Promised: o.Promised, Seen: 1 - float64(min(late, judged))/float64(max(judged, 1))}
	}
	out.Forecast = CompareForecasts(r, out.From, out.To)
	if o.Prices != (sizing.Prices{}) {
		out.Costs = newCosts(out.Hours, o.Prices)
		out.Costs.CouldSave = pool.Cost(o.Prices) - recommended.Cost(o.Prices)
		out.Costs.SavedByPolicy = static.Cost(o.Prices) - pool.Cost(o.Prices)
	}
	return out
}

// quarterOf returns the beginning of the quarter of an hour of a moment.
func quarterOf(t time.Time) time.Time { return t.Truncate(record.QuarterLength) }

func toHours(seconds int64) float64 { return float64(seconds) / time.Hour.Seconds() }

func (r *Report) addHours(q *record.Quarter) {
	r.ObservedHours += toHours(q.Seconds)
	if q.Computed {
		r.ComputedHours += toHours(q.Seconds)
	}
	h := &r.Hours
	for state, to := range map[record.State]*float64{
		record.Running: &h.RunningIdle, record.Resuming: &h.Resuming, record.Hibernating: &h.Hibernating,
		record.Installing: &h.Installing, record.Other: &h.Other, record.Claimed: &h.Claimed,
	} {
		*to += toHours(q.Clusters[state])
	}
	h.Shallow.Freeze += toHours(q.Shallow.Freeze)
	h.Shallow.Suspend += toHours(q.Shallow.Suspend)
}

func (r *Report) setClaims(waits record.Waits) {
	c := &r.Claims
	c.Served, c.AtOnce = int(waits.Claims()), int(waits.AtOnce())
	if known := c.Served + c.Unserved; known > 0 {
		c.AtOnceShare = float64(c.AtOnce) / float64(known)
	}
	c.P50, c.P90, c.P99 = waits.Quantile(0.5).Seconds(), waits.Quantile(0.9).Seconds(), waits.Quantile(0.99).Seconds()
	c.Max = waits.Quantile(1).Seconds()
}

// newCosts prices hours: only a cluster that hibernates costs less than one that runs.
func newCosts(h Hours, p sizing.Prices) *Costs {
	out := &Costs{Running: (h.RunningIdle + h.Resuming + h.Installing + h.Other) * p.Running, Hibernating: p.SleepCost(h.Hibernating, h.Shallow)}
	for _, depth := range sizing.ShallowDepths() {
		*out.Shallow.Of(depth) = *h.Shallow.Of(depth) * p.AtDepth(depth)
	}
	out.Total = out.Running + out.Hibernating
	out.SavedByHibernating = h.Hibernating*p.Running - out.Hibernating
	return out
}

// CompareForecasts compares each forecast between two times whose hour has ended; nil if there is none.
func CompareForecasts(r *record.Record, from, to time.Time) *Forecast {
	if len(r.Quarters) == 0 {
		return nil
	}
	out := &Forecast{}
	seen := newSeenClaims(r, r.Quarters[0].Begin())
	for i := range r.Quarters {
		q := &r.Quarters[i]
		begin := q.Begin()
		if q.Forecast == nil || begin.Before(quarterOf(from)) || begin.Add(time.Hour).After(to) || !hasWholeHour(r.Quarters, i) {
			continue
		}
		n := seen.within(q.Start, quartersOfHour)
		out.Forecasts++
		out.Expected += q.Forecast.Mean
		out.Seen += float64(n)
		if n >= q.Forecast.Low && n <= q.Forecast.High {
			out.Within++
		}
	}
	if out.Forecasts == 0 {
		return nil
	}
	out.Expected /= float64(out.Forecasts)
	out.Seen /= float64(out.Forecasts)
	return out
}

// hasWholeHour reports whether somebody looked for an hour from a quarter on.
func hasWholeHour(q record.Quarters, i int) bool {
	last := i + int(quartersOfHour) - 1
	return last < len(q) && q[last].Start == q[i].Start+quartersOfHour-1
}

const quartersOfHour = int64(time.Hour / record.QuarterLength)

// seenClaims has the number of claims by quarter of an hour.
type seenClaims map[int64]int

// newSeenClaims returns the claims of a record from a moment on. Those of an hour without quarters count in its first one.
func newSeenClaims(r *record.Record, from time.Time) seenClaims {
	out := seenClaims{}
	for _, b := range r.Demand.Bins() {
		if !b.Begin().Before(from) {
			out[b.Start] = int(b.Claims)
		}
	}
	return out
}

// within returns the number of claims in some quarters of an hour.
func (s seenClaims) within(start, quarters int64) int {
	n := 0
	for i := range quarters {
		n += s[start+i]
	}
	return n
}

// FromObjects computes what can be known without a record: of the claims that exist and were created since a
// time.
func FromObjects(o record.Objects, since time.Time) Report {
	out := Report{From: since.UTC(), To: o.Now.UTC()}
	waits := record.Waits{}
	for _, c := range o.Claims {
		if c.Created.Before(since) {
			continue
		}
		out.Claims.Total++
		if !c.Running.IsZero() {
			waits.AddClaim(c)
		}
	}
	out.setClaims(waits)
	return out
}
