package sizing

import (
	"math"
	"time"
)

// A Forecast is how many claims are expected within an hour, with a band in which nine of ten such
// numbers should lie.
type Forecast struct {
	Mean float64 `json:"mean"`
	// Low and High are the 5th and the 95th percentile.
	Low  int `json:"low"`
	High int `json:"high"`
}

// bandTail is the probability of a number below the band, and of one above it.
const bandTail = 0.05

// ForecastHour returns what is expected within the next hour; nil while nothing can be computed.
func ForecastHour(s Snapshot) *Forecast {
	if s.fallbackReason() != "" {
		return nil
	}
	l := s.Learned
	mean := s.Calendar.At(s.Now).DemandFactor() * l.expectedNow(time.Hour)
	if !(mean > 0) || mean > maxForecast {
		mean = math.Min(math.Max(mean, 0), maxForecast)
	}
	dispersion := l.Running.dispersionAt(hourOfWeek(l.At.In(l.location()))%hoursOfDay, l.Method)
	f := &Forecast{Mean: mean}
	f.Low, f.High = band(mean, dispersion)
	return f
}

// maxForecast limits what a forged record can do.
const maxForecast = 100_000

// band returns the percentiles of a negative binomial with variance = mean + dispersion × mean².
func band(mean, dispersion float64) (low, high int) {
	if !(mean > 0) {
		return 0, 0
	}
	if mean > maxCount/10 {
		const tail = 1.645 // standard deviations
		spread := tail * math.Sqrt(mean+dispersion*mean*mean)
		return int(math.Max(mean-spread, 0)), int(math.Ceil(mean + spread))
	}
	shape := 1 / math.Max(dispersion, leastDispersion)
	p := math.Exp(-shape * math.Log1p(mean/shape))
	odds, sum := mean/(shape+mean), p
	for n := 0; n < maxCount; n++ {
		if sum <= bandTail {
			low = n + 1
		}
		if sum >= 1-bandTail {
			return low, n
		}
		p *= (shape + float64(n)) / float64(n+1) * odds
		sum += p
	}
	return low, maxCount
}
