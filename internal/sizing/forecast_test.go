package sizing

import (
	"fmt"
	"math"
	"testing"
)

// atMost is the probability of at most n, by the definition of the negative binomial.
func atMost(n int, mean, dispersion float64) float64 {
	shape := 1 / math.Max(dispersion, leastDispersion)
	sum := 0.0
	for k := range n + 1 {
		a, _ := math.Lgamma(shape + float64(k))
		b, _ := math.Lgamma(shape)
		c, _ := math.Lgamma(float64(k) + 1)
		sum += math.Exp(a - b - c + shape*math.Log(shape/(shape+mean)) + float64(k)*math.Log(mean/(shape+mean)))
	}
	return sum
}

func TestABandHasNineOfTenNumbers(t *testing.T) {
	for _, mean := range []float64{0.001, 0.04, 0.5, 1, 3.7, 20, 240} {
		for _, dispersion := range []float64{0, 0.1, 1, 3} {
			t.Run(fmt.Sprintf("mean %g, dispersion %g", mean, dispersion), func(t *testing.T) {
				low, high := band(mean, dispersion)
				if low > 0 && atMost(low-1, mean, dispersion) > bandTail+1e-9 || atMost(low, mean, dispersion) <= bandTail-1e-9 {
					t.Errorf("the lower end %d is not the 5th percentile", low)
				}
				if atMost(high, mean, dispersion) < 1-bandTail-1e-9 || high > 0 && atMost(high-1, mean, dispersion) >= 1-bandTail+1e-9 {
					t.Errorf("the upper end %d is not the 95th percentile", high)
				}
			})
		}
	}
}

func TestBandsOfUnusualMeans(t *testing.T) {
	for _, mean := range []float64{0, -1, math.NaN()} {
		if low, high := band(mean, 0.1); low != 0 || high != 0 {
			t.Errorf("mean %g: %d to %d", mean, low, high)
		}
	}
	for _, mean := range []float64{400, 600, 5000, maxForecast} {
		low, high := band(mean, 0.1)
		if float64(low) >= mean || float64(high) <= mean || high > 3*int(mean) {
			t.Errorf("mean %g: %d to %d", mean, low, high)
		}
	}
}
