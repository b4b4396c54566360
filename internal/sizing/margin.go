package sizing

import "math"

// The margin is between leastMargin and mostMargin standard deviations. It is never negative: claims
// that were served beyond the promise may have been luck.
const (
	leastMargin = 0.0
	mostMargin  = 2.0
)

// margin returns by how many standard deviations fewer claims may have waited than the objective
// allows. Without feedback it is one: the objective is a promise, and a quantile of few scores
// misses it as often as it meets it. Each standard deviation of claims that were served beyond the
// promise lowers it by one, and each that is lacking raises it.
func (l *Learned) margin(o Objective) float64 {
	switch {
	case l.Method.WithoutMargin:
		return 0
	case l.Method.WithoutFeedback:
		return 1
	}
	seen := l.Outcomes.OfForecast
	expected := seen.Claims * (1 - o.Share)
	missed := seen.Claims - seen.Served
	slack := (expected - missed) / math.Sqrt(math.Max(expected, 1))
	return math.Min(math.Max(1-slack, leastMargin), mostMargin)
}
