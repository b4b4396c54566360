package sizing

import (
	"math"
	"time"
)

// A leadModel is what one of the counts needs to know: the time that a new cluster takes, and the scores.
type leadModel struct {
	scores
	// Lead is the time within which claims must be served from what is there.
	Lead time.Duration `json:"lead"`
	// Arrived are the claims within the last Lead, and Forecasts those within it.
	Arrived   []time.Time `json:"arrived,omitempty"`
	Forecasts []forecast  `json:"forecasts,omitempty"`
	// ExpectedAt is when scores were expected last.
	ExpectedAt time.Time `json:"expectedAt,omitzero"`
	// Peak is the largest number of claims within a lead; an old one weighs less.
	Peak float64 `json:"peak"`
	// RankSum and MeanSum compare, for each hour of the day, the number of claims within the lead
	// before each claim with what was expected: where it is higher, claims come in bursts.
	RankSum [hoursOfDay]float64 `json:"rankSum"`
	MeanSum [hoursOfDay]float64 `json:"meanSum"`
}

// A forecast is the expected number of claims within a lead.
type forecast struct {
	At   time.Time `json:"at"`
	Mean float64   `json:"mean"`
	// Dispersion is how bursty they are.
	Dispersion float64 `json:"dispersion,omitempty"`
}

func (a *leadModel) setLead(lead time.Duration) {
	if a.Lead > 0 && !a.fitsLead(lead) {
		*a = leadModel{}
	}
	a.Lead = lead
}

// fitsLead reports whether the scores are valid for another lead.
func (a *leadModel) fitsLead(lead time.Duration) bool { return lead <= 2*a.Lead && 2*lead >= a.Lead }

// forget lets what was seen weigh less.
func (a *leadModel) forget(days, keep float64) {
	a.scores.forget(days)
	a.Peak *= keep
	for h := range a.RankSum {
		a.RankSum[h] *= keep
		a.MeanSum[h] *= keep
	}
}

// priorBursts is how many claims must have been seen before others in an hour of the day to weigh as
// much as those of all hours.
const priorBursts = 20.0

// maxDispersion limits what a few bursts can do.
const maxDispersion = 3.0

// dispersionAt returns how bursty claims are in an hour of the day. A claim of a negative binomial
// process finds mean × (1 + dispersion) others on average.
func (a *leadModel) dispersionAt(hour int, m Method) float64 {
	if m.WithoutBursts {
		return defaultDispersion
	}
	ranks, means := 0.0, 0.0
	for h := range a.RankSum {
		ranks += a.RankSum[h]
		means += a.MeanSum[h]
	}
	prior := (ranks + defaultDispersion) / (means + 1)
	ratio := (a.RankSum[hour] + priorBursts*prior) / (a.MeanSum[hour] + priorBursts)
	return math.Min(math.Max(ratio-1, leastDispersion), maxDispersion)
}

// defaultDispersion is assumed where nothing is known.
const defaultDispersion = 0.1

// Scores are expected at most every expectInterval, and for at most maxExpected.
const (
	expectInterval = 5 * time.Minute
	maxExpected    = 6 * time.Hour
)

func (a *leadModel) noteForecast(l *Learned, now time.Time, mean func(time.Duration) float64) {
	if a.Lead <= 0 {
		return
	}
	if n := len(a.Forecasts); n > 0 && now.Sub(a.Forecasts[n-1].At) < a.Lead/8 {
		return
	}
	for len(a.Forecasts) > 1 && !a.Forecasts[1].At.After(now.Add(-a.Lead)) {
		a.Forecasts = a.Forecasts[1:]
	}
	f := forecast{At: now, Mean: mean(a.Lead)}
	hour := hourOfWeek(now.Add(a.Lead).In(l.zone)) % hoursOfDay
	f.Dispersion = a.dispersionAt(hour, l.Method)
	a.Forecasts = append(a.Forecasts, f)
}

// expectScores records which scores the last forecast expects. They are those of scoreOf.
func (a *leadModel) expectScores(now time.Time) {
	span := now.Sub(a.ExpectedAt)
	if len(a.Forecasts) == 0 || !a.ExpectedAt.IsZero() && span < expectInterval {
		return
	}
	if !a.ExpectedAt.IsZero() {
		f := a.Forecasts[len(a.Forecasts)-1]
		claims{f.Mean, f.Dispersion, a.Lead.Hours()}.eachScore(func(score, perHour float64) {
			a.expect(score, perHour*min(span, maxExpected).Hours())
		})
	}
	a.ExpectedAt = now
}

// addClaim scores a claim: a cluster runs for it if the count that was decided one lead ago exceeds
// the number of claims since. Counts reports whether the score is one to learn from.
func (a *leadModel) addClaim(now time.Time, hour int, scoreOf func(c claims, rank int) float64, counts func(score float64) bool) {
	if a.Lead <= 0 {
		return
	}
	for len(a.Arrived) > 0 && !a.Arrived[0].After(now.Add(-a.Lead)) {
		a.Arrived = a.Arrived[1:]
	}
	rank := len(a.Arrived)
	if rank < maxCount {
		a.Arrived = append(a.Arrived, now)
	}
	a.Peak = math.Max(a.Peak, float64(rank+1))
	if len(a.Forecasts) == 0 {
		return
	}
	f := a.Forecasts[0]
	score := scoreOf(claims{f.Mean, f.Dispersion, a.Lead.Hours()}, rank)
	if !counts(score) {
		return
	}
	a.add(score)
	a.RankSum[hour] += float64(rank)
	a.MeanSum[hour] += f.Mean
}
