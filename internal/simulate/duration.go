package simulate

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"time"
)

// A Duration is how long an operation takes: Median, or at random around it. It is log-normal: 90 %
// of the operations take less than Median × (1 + Spread).
type Duration struct {
	Median time.Duration
	Spread float64
}

// errDuration is what ParseDuration returns.
var errDuration = errors.New("write a duration such as 5m, or its median and 90th percentile, such as 5m,8m, up to 30 days")

// maxDuration is the longest duration that is accepted.
const maxDuration = 30 * 24 * time.Hour

// ParseDuration reads "5m", which is constant, or "5m,8m": the median and the 90th percentile.
func ParseDuration(text string) (Duration, error) {
	first, second, isRange := strings.Cut(text, ",")
	median, err := time.ParseDuration(first)
	if err != nil || median < time.Second || median > maxDuration {
		return Duration{}, errDuration
	}
	if !isRange {
		return Duration{Median: median}, nil
	}
	p90, err := time.ParseDuration(second)
	if err != nil || p90 < median || p90 > maxDuration {
		return Duration{}, errDuration
	}
	return Duration{Median: median, Spread: float64(p90)/float64(median) - 1}, nil
}

// P90 returns the 90th percentile.
func (d Duration) P90() time.Duration { return time.Duration(float64(d.Median) * (1 + d.Spread)) }

func (d Duration) medianSeconds() int64 { return max(1, int64(d.Median/time.Second)) }

// normal90 is the 90th percentile of the standard normal distribution.
const normal90 = 1.2815515655446004

// drawSeconds returns one duration in seconds.
func (d Duration) drawSeconds(r *rand.Rand) int64 {
	if d.Spread == 0 {
		return d.medianSeconds()
	}
	sigma := math.Log1p(d.Spread) / normal90
	return max(1, int64(d.Median.Seconds()*math.Exp(sigma*r.NormFloat64())))
}
