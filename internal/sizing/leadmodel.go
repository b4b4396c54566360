package sizing

import (
	"cmp"
	"math"
	"time"
)

// A leadModel is what one of the counts needs to know: the time that a new cluster takes, and the scores.
type leadModel struct {
	scores
	// Lead is the time within which claims must be served from what is there.
	Lead time.Duration `json:"lead"`
	// FirstLead is the Lead with which the scores began.
	FirstLead time.Duration `json:"firstLead,omitempty"`
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

func (lm *leadModel) setLead(lead time.Duration) {
	if lm.Lead > 0 && !lm.fitsLead(lead) {
		*lm = leadModel{}
	}
	lm.FirstLead = cmp.Or(lm.FirstLead, lm.Lead, lead)
	lm.Lead = lead
}

// fitsLead reports whether the scores are valid for another lead. It compares that with the one with which the scores began: a
// resume that becomes a little slower each day would never be a change otherwise.
func (lm *leadModel) fitsLead(lead time.Duration) bool {
	first := cmp.Or(lm.FirstLead, lm.Lead)
	return lead <= 2*first && 2*lead >= first
}

// forget lets what was seen weigh less.
func (lm *leadModel) forget(days, keep float64) {
	lm.scores.forget(days)
	lm.Peak *= keep
	for h := range lm.RankSum {
		lm.RankSum[h] *= keep
		lm.MeanSum[h] *= keep
	}
}

// priorBursts is how many claims must have been seen before others in an hour of the day to weigh as
// much as those of all hours.
const priorBursts = 20.0

// maxDispersion limits what a few bursts can do.
const maxDispersion = 3.0

// dispersionAt returns how bursty claims are in an hour of the day. A claim of a negative binomial
// process finds mean × (1 + dispersion) others on average.
func (lm *leadModel) dispersionAt(hour int, m Method) float64 {
	if m.WithoutBursts {
		return defaultDispersion
	}
	ranks, means := 0.0, 0.0
	for h := range lm.RankSum {
		ranks += lm.RankSum[h]
		means += lm.MeanSum[h]
	}
	prior := (ranks + defaultDispersion) / (means + 1)
	ratio := (lm.RankSum[hour] + priorBursts*prior) / (lm.MeanSum[hour] + priorBursts)
	return math.Min(math.Max(ratio-1, leastDispersion), maxDispersion)
}

// defaultDispersion is assumed where nothing is known.
const defaultDispersion = 0.1

// Scores are expected at most every expectInterval, and for at most maxExpected.
const (
	expectInterval = 5 * time.Minute
	maxExpected    = 6 * time.Hour
)

func (lm *leadModel) noteForecast(l *Learned, now time.Time, mean func(time.Duration) float64) {
	if lm.Lead <= 0 {
		return
	}
	if n := len(lm.Forecasts); n > 0 && now.Sub(lm.Forecasts[n-1].At) < lm.Lead/8 {
		return
	}
	for len(lm.Forecasts) > 1 && !lm.Forecasts[1].At.After(now.Add(-lm.Lead)) {
		lm.Forecasts = lm.Forecasts[1:]
	}
	f := forecast{At: now, Mean: mean(lm.Lead)}
	hour := hourOfWeek(now.Add(lm.Lead).In(l.zone)) % hoursOfDay
	f.Dispersion = lm.dispersionAt(hour, l.Method)
	lm.Forecasts = append(lm.Forecasts, f)
}

// expectScores records which scores the last forecast expects. They are those of scoreOf.
func (lm *leadModel) expectScores(l *Learned) {
	now := l.At
	span := now.Sub(lm.ExpectedAt)
	if len(lm.Forecasts) == 0 || !lm.ExpectedAt.IsZero() && span < expectInterval {
		return
	}
	if !lm.ExpectedAt.IsZero() {
		f := lm.Forecasts[len(lm.Forecasts)-1]
		factor := l.calendar.Highest(f.At, f.At.Add(lm.Lead)).DemandFactor()
		claims{factor * f.Mean, f.Dispersion, lm.Lead.Hours()}.eachScore(func(score, perHour float64) {
			lm.expect(score, perHour*min(span, maxExpected).Hours())
		})
	}
	lm.ExpectedAt = now
}

// addClaim scores a claim: a cluster runs for it if the count that was decided one lead ago exceeds
// the number of claims since. Counts reports whether the score is one to learn from.
func (lm *leadModel) addClaim(l *Learned, scoreOf func(c claims, rank int) float64, counts func(score float64) bool) {
	now, hour := l.At, l.hour%hoursOfDay
	if lm.Lead <= 0 {
		return
	}
	for len(lm.Arrived) > 0 && !lm.Arrived[0].After(now.Add(-lm.Lead)) {
		lm.Arrived = lm.Arrived[1:]
	}
	rank := len(lm.Arrived)
	if rank < maxCount {
		lm.Arrived = append(lm.Arrived, now)
	}
	lm.Peak = math.Max(lm.Peak, float64(rank+1))
	if len(lm.Forecasts) == 0 {
		return
	}
	f := lm.Forecasts[0]
	mean := f.Mean * l.calendar.Highest(f.At, now).DemandFactor() // counts follow the highest factor until the claim
	score := scoreOf(claims{mean, f.Dispersion, lm.Lead.Hours()}, rank)
	if !counts(score) {
		return
	}
	lm.add(score)
	lm.RankSum[hour] += float64(rank)
	lm.MeanSum[hour] += mean
}
