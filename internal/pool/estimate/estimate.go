// Package estimate works out how large a pool should be for claims that come at some
// rate. It is pure.
//
// A pool replaces what is claimed one for one, at once: it is a base-stock inventory, in
// which what has been ordered arrives after a lead time. If claims come at random
// (a Poisson process), how many orders are open at any moment is Poisson distributed with
// the rate times the mean lead time, whatever the lead times' distribution (Palm's
// theorem). So a claim finds no spare when as many installs are open as the pool has
// clusters, and no running one when as many resumes are open as it keeps running.
package estimate

import (
	"errors"
	"math"
	"time"
)

// Demand is what is known of claims and clusters.
type Demand struct {
	// Every is the mean time between two claims.
	Every time.Duration
	// Install, Resume and Destroy are how long each takes, on average.
	Install, Resume, Destroy time.Duration
	// Held is how long a claim keeps its cluster, on average; 0 is not known.
	Held time.Duration
	// AtOnce is the share of claims that are to get a cluster that runs, and Spare the share
	// that need not wait for an install; both are above 0 and below 1.
	AtOnce, Spare float64
}

// Recommendation is how large a pool should be.
type Recommendation struct {
	RunningCount int `json:"runningCount"`
	Size         int `json:"size"`
	// MaxConcurrent is how many installs and destructions there are at a time, but for one
	// moment in a hundred; less makes claims wait. MaxSize is how many clusters there are in
	// all, likewise; 0 when it is not known how long claims last.
	MaxConcurrent int `json:"maxConcurrent"`
	MaxSize       int `json:"maxSize,omitempty"`
	// AtOnce and Spare are the shares that result.
	AtOnce float64 `json:"atOnce"`
	Spare  float64 `json:"spare"`
}

// limitQuantile is what limits allow for: one moment in a hundred.
const limitQuantile = 0.99

// maxExpectedClaims is more claims within an install than any pool is meant for.
const maxExpectedClaims = 100_000

// Errors of For.
var (
	ErrShare = errors.New("a share is above 0 and below 1")
	ErrTime  = errors.New("times are above 0")
	ErrMany  = errors.New("so many claims come within an install that no pool keeps up")
)

// RecommendSize works out the smallest pool that will do.
func RecommendSize(d Demand) (Recommendation, error) {
	switch {
	case !isValidShare(d.AtOnce) || !isValidShare(d.Spare):
		return Recommendation{}, ErrShare
	case d.Every <= 0 || d.Install <= 0 || d.Resume <= 0 || d.Destroy < 0 || d.Held < 0:
		return Recommendation{}, ErrTime
	case d.expectedClaims(d.Install+d.Destroy+d.Held) > maxExpectedClaims:
		return Recommendation{}, ErrMany
	}
	resumes, installs := d.expectedClaims(d.Resume), d.expectedClaims(d.Install)
	a := Recommendation{RunningCount: poissonQuantile(resumes, d.AtOnce) + 1, Size: poissonQuantile(installs, d.Spare) + 1}
	a.Size = max(a.Size, a.RunningCount)
	a.AtOnce, a.Spare = poissonAtMost(resumes, a.RunningCount-1), poissonAtMost(installs, a.Size-1)
	a.MaxConcurrent = max(1, poissonQuantile(d.expectedClaims(d.Install+d.Destroy), limitQuantile))
	if d.Held > 0 {
		a.MaxSize = a.Size + poissonQuantile(d.expectedClaims(d.Held+d.Destroy), limitQuantile)
	}
	return a, nil
}

func isValidShare(p float64) bool { return p > 0 && p < 1 }

// expectedClaims is how many claims come in a time, on average.
func (d Demand) expectedClaims(t time.Duration) float64 { return float64(t) / float64(d.Every) }

// poissonAtMost is the probability that a Poisson variable of that mean is at most n.
func poissonAtMost(mean float64, n int) float64 {
	sum := 0.0
	for k := range n + 1 {
		log, _ := math.Lgamma(float64(k) + 1)
		sum += math.Exp(float64(k)*math.Log(mean) - mean - log) // by logarithms: a power would overflow
	}
	return min(sum, 1)
}

// poissonQuantile is the smallest n for which upTo is at least p.
func poissonQuantile(mean, p float64) int {
	sum := 0.0
	for k := 0; ; k++ {
		log, _ := math.Lgamma(float64(k) + 1)
		sum += math.Exp(float64(k)*math.Log(mean) - mean - log)
		// What rounding takes away must not let it run on for ever.
		if sum >= p || float64(k) > mean+50*math.Sqrt(mean)+50 {
			return k
		}
	}
}
