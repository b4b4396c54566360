// Package sizeestimate computes how large a pool should be for claims that arrive at a given rate. It
// is pure.
//
// A pool replaces each claimed cluster at once: it is a base-stock inventory, in which an order
// arrives after a lead time. If claims arrive at random (a Poisson process), the number of open
// orders at any moment has a Poisson distribution whose mean is the rate times the mean lead time,
// whatever the distribution of the lead times (Palm's theorem). So a claim finds no spare if as
// many installs are open as the pool has clusters, and no running one if as many resumes are open
// as the pool keeps running.
package sizeestimate

import (
	"errors"
	"math"
	"time"
)

// Demand describes claims and clusters.
type Demand struct {
	// Every is the mean time between two claims.
	Every time.Duration
	// Install, Resume and Destroy are the mean durations of these operations.
	Install, Resume, Destroy time.Duration
	// Held is the mean time that a claim keeps its cluster; 0 if unknown.
	Held time.Duration
	// AtOnce is the share of claims that should get a running cluster, Spare the share that should
	// not wait for an install; both are above 0 and below 1.
	AtOnce, Spare float64
}

// A Recommendation is the recommended size of a pool.
type Recommendation struct {
	RunningCount int `json:"runningCount"`
	Size         int `json:"size"`
	// MaxConcurrent is the 99th percentile of the number of concurrent installs and destructions; a
	// lower value makes claims wait. MaxSize is the 99th percentile of the number of all clusters;
	// 0 if it is unknown how long claims last.
	MaxConcurrent int `json:"maxConcurrent"`
	MaxSize       int `json:"maxSize,omitempty"`
	// AtOnce and Spare are the resulting shares. A claim that finds no spare cluster gets none at once either.
	AtOnce float64 `json:"atOnce"`
	Spare  float64 `json:"spare"`
}

// limitQuantile is the share of moments in which the recommended limits suffice.
const limitQuantile = 0.99

// spareOfLate is the least share of the claims which get no cluster at once that find one all the same, and wait for a resume.
const spareOfLate = 0.5

// maxExpectedClaims is the maximum number of claims within an install; no pool is meant for more.
const maxExpectedClaims = 100_000

// Errors of RecommendSize.
var (
	ErrShare = errors.New("a share is above 0 and below 1")
	ErrTime  = errors.New("times are above 0")
	ErrMany  = errors.New("too many claims arrive during one installation for a pool of any size")
)

// RecommendSize computes the smallest pool that meets the demand.
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
	a := Recommendation{Size: poissonQuantile(installs, max(d.Spare, d.AtOnce+spareOfLate*(1-d.AtOnce))) + 1}
	a.RunningCount = poissonQuantile(resumes, d.AtOnce+1-poissonAtMost(installs, a.Size-1)) + 1
	a.Size = max(a.Size, a.RunningCount)
	a.Spare = poissonAtMost(installs, a.Size-1)
	a.AtOnce = poissonAtMost(resumes, a.RunningCount-1) + a.Spare - 1
	a.MaxConcurrent = max(1, poissonQuantile(d.expectedClaims(d.Install+d.Destroy), limitQuantile))
	if d.Held > 0 {
		a.MaxSize = a.Size + poissonQuantile(d.expectedClaims(d.Held+d.Destroy), limitQuantile)
	}
	return a, nil
}

func isValidShare(p float64) bool { return p > 0 && p < 1 }

// expectedClaims returns the mean number of claims that arrive within t.
func (d Demand) expectedClaims(t time.Duration) float64 { return float64(t) / float64(d.Every) }

// poissonAtMost returns the probability that a Poisson variable with that mean is at most n.
func poissonAtMost(mean float64, n int) float64 {
	sum := 0.0
	for k := range n + 1 {
		log, _ := math.Lgamma(float64(k) + 1)
		sum += math.Exp(float64(k)*math.Log(mean) - mean - log) // with logarithms: a power would overflow
	}
	return min(sum, 1)
}

// poissonQuantile returns the smallest n for which poissonAtMost is at least p.
func poissonQuantile(mean, p float64) int {
	sum := 0.0
	for k := 0; ; k++ {
		log, _ := math.Lgamma(float64(k) + 1)
		sum += math.Exp(float64(k)*math.Log(mean) - mean - log)
		// Stop even if rounding keeps sum below p.
		if sum >= p || float64(k) > mean+50*math.Sqrt(mean)+50 {
			return k
		}
	}
}
