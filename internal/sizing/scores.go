package sizing

import "math"

// Scores of claims are kept as a histogram of their logarithms: scoreBins bins, scoreWidth wide.
const (
	scoreBins   = 256
	scoreWidth  = 0.25
	lowestScore = -scoreBins * scoreWidth * 0.75
)

// Memory of the scores. A count of scores beyond scoreMemory weighs less the older it is: the tail
// that decides has then 50 scores if the objective is 99 %.
const (
	scoreMemory     = 5000.0
	scoreMemoryDays = 360.0
)

// scores has what one count must achieve: scores of past claims, for one lead time.
type scores struct {
	Counts []float64 `json:"counts"`
	Total  float64   `json:"total"`
}

func (s *scores) add(score float64) {
	if s.Counts == nil {
		s.Counts = make([]float64, scoreBins)
	}
	i := int(math.Floor((score - lowestScore) / scoreWidth))
	s.Counts[min(max(i, 0), scoreBins-1)]++
	s.Total++
}

// forget lets old scores weigh less, after a number of days.
func (s *scores) forget(days float64) {
	keep := math.Exp(-days / scoreMemoryDays)
	if s.Total*keep > scoreMemory {
		keep = scoreMemory / s.Total
	}
	for i := range s.Counts {
		s.Counts[i] *= keep
	}
	s.Total *= keep
}

// logPrice returns the logarithm of the price at which at most the share miss of the past claims
// would have waited, less a margin in standard deviations.
func (s *scores) logPrice(miss float64, margin float64) float64 {
	allowed := allowedMisses(s.Total*miss, margin)
	sum := 0.0
	for i, n := range s.Counts {
		if sum+n > allowed {
			return lowestScore + scoreWidth*(float64(i)+interpolate(allowed-sum, n))
		}
		sum += n
	}
	return lowestScore
}

// allowedMisses returns how many claims may have waited, given the number that the objective allows.
func allowedMisses(expected float64, margin float64) float64 {
	return math.Max(0, expected-margin*math.Sqrt(expected))
}

// interpolate returns the position of the quantile within a bin. If not even one score may be
// missed, it is the lower edge of the bin with the lowest score.
func interpolate(left, n float64) float64 {
	if n < 1 || left <= 0 {
		return 0
	}
	return left / n
}

// scoreOfSize returns the score of a claim for the size: by how many standard deviations of a Poisson
// distribution it exceeds what was expected, negated, so that a lower score is a rarer claim.
func scoreOfSize(c claims, rank int) float64 {
	return -(float64(rank+1) - c.mean) / math.Sqrt(c.mean+1)
}

// A count may exceed the largest number of claims that have arrived within a lead by these factors.
// Hibernating clusters are cheap, and a claim that waits for an install waits long.
const (
	runningPeakFactor = 1.25
	sizePeakFactor    = 2
)

// most returns the largest count that may be computed: a forecast from little data can be far off.
func (a *lane) most(mean, peakFactor float64) int {
	return int(math.Min(math.Ceil(peakFactor*math.Max(a.Peak, mean)), maxCount))
}

// sizeFor returns the size for an expected number of claims within the time of an install.
func (a *lane) sizeFor(mean, miss, margin float64) int {
	if a.Total == 0 || mean <= 0 || math.IsNaN(mean) {
		return 0
	}
	n := mean - a.logPrice(miss, margin)*math.Sqrt(mean+1)
	return int(math.Min(math.Max(math.Ceil(n), 0), float64(a.most(mean, sizePeakFactor))))
}
