package sizing

import "math"

// A claims is the expected distribution of the number of claims within a lead: negative binomial with
// variance = mean + dispersion × mean². The dispersion only affects which moments get the next
// cluster, not how many claims wait: the price determines that.
type claims struct {
	mean, dispersion float64
	leadHours        float64
}

// leastDispersion is that of claims that arrive as evenly as random ones can.
const leastDispersion = 0.03

// maxCount limits every count that is computed.
const maxCount = 5000

// A worth is what one more cluster is worth, for growing counts: claims that are served at once for
// each hour that the cluster is idle. Demand within a lead time is negative binomial with that mean.
type worth struct {
	count int
	// probability is that of exactly count claims within a lead, atMost that of count or fewer.
	probability, atMost  float64
	shape, odds, perHour float64
}

func newWorth(c claims) worth {
	shape := 1 / math.Max(c.dispersion, leastDispersion)
	p := math.Exp(-shape * math.Log1p(c.mean/shape))
	return worth{probability: p, atMost: p, shape: shape, odds: c.mean / (shape + c.mean), perHour: 1 / c.leadHours}
}

// next returns the worth of the next cluster. The number of claims that find exactly count-1 claims
// within the lead before them is count × P(count) / lead: an identity of the negative binomial.
func (w *worth) next() float64 {
	w.count++
	n := float64(w.count)
	p := w.probability * (w.shape + n - 1) / n * w.odds
	value := p * n * w.perHour / math.Max(w.atMost, math.SmallestNonzeroFloat64)
	w.probability = p
	w.atMost += p
	return value
}

// scoreOf returns the logarithm of the price up to which a cluster would have run for a claim that
// found rank claims within the lead before it.
func scoreOf(c claims, rank int) float64 {
	if rank >= maxCount {
		return lowestScore
	}
	w := newWorth(c)
	least := math.Inf(1)
	for range rank + 1 {
		least = math.Min(least, w.next())
	}
	return math.Log(math.Max(least, math.SmallestNonzeroFloat64))
}

// eachScore calls f with the scores that claims should have, and how many of them for each hour.
func (c claims) eachScore(f func(score, claimsPerHour float64)) {
	if c.mean <= 0 || c.leadHours <= 0 {
		return
	}
	const negligible = 1e-6
	w, least, left := newWorth(c), math.Inf(1), c.mean
	for left > negligible*c.mean && w.count < maxCount {
		least = math.Min(least, w.next())
		n := w.probability * float64(w.count)
		f(math.Log(math.Max(least, math.SmallestNonzeroFloat64)), n/c.leadHours)
		left -= n
	}
}

// countForRandom returns the smallest count that serves the share of the claims at once, if mean claims arrive
// within a lead, independently of each other.
func countForRandom(mean, share float64) int {
	w := newWorth(claims{mean: mean, leadHours: 1})
	for w.atMost < share && w.count < maxCount {
		w.next()
	}
	return w.count + 1
}

// countAt returns the largest count whose last cluster is worth the threshold.
func countAt(c claims, logThreshold float64, most int) int {
	threshold := math.Exp(logThreshold)
	w := newWorth(c)
	for n := range most {
		if w.next() < threshold {
			return n
		}
	}
	return most
}
