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
	// Expected are the scores that the forecasts have expected in that time.
	Expected []float64 `json:"expected,omitempty"`

	// cached is what logThreshold has returned last.
	cached cachedThreshold
}

func (s *scores) add(score float64) {
	if s.Counts == nil {
		s.Counts = make([]float64, scoreBins)
	}
	s.cached.known = false
	s.Counts[scoreBin(score)]++
	s.Total++
}

// expect records that a number of claims is expected with a score.
func (s *scores) expect(score, claims float64) {
	if s.Expected == nil {
		s.Expected = make([]float64, scoreBins)
	}
	s.cached.known = false
	s.Expected[scoreBin(score)] += claims
}

func scoreBin(score float64) int {
	i := int(math.Floor((score - lowestScore) / scoreWidth))
	return min(max(i, 0), scoreBins-1)
}

// forget lets old scores weigh less, after a number of days.
func (s *scores) forget(days float64) {
	s.cached.known = false
	keep := math.Exp(-days / scoreMemoryDays)
	if s.Total*keep > scoreMemory {
		keep = scoreMemory / s.Total
	}
	for i := range s.Counts {
		s.Counts[i] *= keep
	}
	for i := range s.Expected {
		s.Expected[i] *= keep
	}
	s.Total *= keep
}

// logThreshold returns the logarithm of the threshold of worth at which at most the share miss of the past claims
// would have waited, with a margin in standard deviations.
func (s *scores) logThreshold(miss, margin float64, m Method) float64 {
	if k := (thresholdKey{miss, margin, m}); !s.cached.known || s.cached.key != k {
		s.cached = cachedThreshold{true, k, s.findLogThreshold(miss, margin, m)}
	}
	return s.cached.log
}

// A cachedThreshold is what logThreshold has returned for a key.
type cachedThreshold struct {
	known bool
	key   thresholdKey
	log   float64
}

type thresholdKey struct {
	miss, margin float64
	method       Method
}

func (s *scores) findLogThreshold(miss, margin float64, m Method) float64 {
	allowed := s.Total * miss
	var sums [scoreBins]struct{ seen, expected float64 }
	seen, expected := 0.0, 0.0
	for i, n := range s.Counts {
		more := n
		if s.Expected != nil {
			expected += s.Expected[i]
			more += s.Expected[i]
		}
		seen += n
		sums[i].seen, sums[i].expected = seen, expected
		if more == 0 || mostWaiting(seen, expected, margin) <= allowed {
			continue
		}
		waiting := estimateWaiting(seen, expected, margin, m)
		if waiting <= allowed {
			continue
		}
		last := 0.0 // the largest estimate of the bins below
		for j := i - 1; j >= 0 && mostWaiting(sums[j].seen, sums[j].expected, margin) > last; j-- {
			last = math.Max(last, estimateWaiting(sums[j].seen, sums[j].expected, margin, m))
		}
		return lowestScore + scoreWidth*(float64(i)+interpolate(allowed-last, waiting-last))
	}
	return lowestScore
}

// mostWaiting is at least estimateWaiting, grows with both numbers, and takes a tenth of the time.
func mostWaiting(seen, expected, margin float64) float64 {
	most := math.Max(seen, expected)
	return most + math.Max(margin, 0)*math.Sqrt(most+most*most/4)
}

// estimateWaiting returns how many claims would have waited, with a margin in standard deviations: given how
// many have, and how many the forecasts expected to. Few claims say little, and then the forecasts
// count as long as they agree with the claims.
func estimateWaiting(seen, expected, margin float64, m Method) float64 {
	if m.WithoutModel || expected <= 0 {
		return seen + margin*math.Sqrt(seen)
	}
	// The odds of a Poisson distribution with the expected mean against one with any mean, both as probable
	// beforehand.
	gamma, _ := math.Lgamma(seen + 1)
	odds := math.Exp(-expected - gamma + (seen+1)*math.Log1p(expected))
	trust := odds / (1 + odds)
	if math.IsInf(odds, 1) {
		trust = 1
	}
	mean := trust*expected + (1-trust)*seen
	variance := (1-trust)*seen + trust*(1-trust)*(seen-expected)*(seen-expected)
	return mean + margin*math.Sqrt(variance)
}

// interpolate returns the position of the quantile within a bin.
func interpolate(left, n float64) float64 {
	if n <= 0 || left <= 0 {
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

// plausibleMax returns the largest count that may be computed: a forecast from little data can be far off.
func (lm *leadModel) plausibleMax(mean, peakFactor float64) int {
	return int(math.Min(math.Ceil(peakFactor*math.Max(lm.Peak, mean)), maxCount))
}

// sizeFor returns the size for an expected number of claims within the time of an install.
func (lm *leadModel) sizeFor(mean, miss, margin float64) int {
	if lm.Total == 0 || mean <= 0 || math.IsNaN(mean) {
		return 0
	}
	n := mean - lm.logThreshold(miss, margin, Method{})*math.Sqrt(mean+1)
	return int(math.Min(math.Max(math.Ceil(n), 0), float64(lm.plausibleMax(mean, sizePeakFactor))))
}
