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

// Advice is how large a pool should be.
type Advice struct {
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

// rare is what limits allow for: one moment in a hundred.
const rare = 0.99

// most is more claims within an install than any pool is meant for.
const most = 100_000

// Errors of For.
var (
	ErrShare = errors.New("a share is above 0 and below 1")
	ErrTime  = errors.New("times are above 0")
	ErrMany  = errors.New("so many claims come within an install that no pool keeps up")
)

// For works out the smallest pool that will do.
func For(d Demand) (Advice, error) {
	switch {
	case !share(d.AtOnce) || !share(d.Spare):
		return Advice{}, ErrShare
	case d.Every <= 0 || d.Install <= 0 || d.Resume <= 0 || d.Destroy < 0 || d.Held < 0:
		return Advice{}, ErrTime
	case d.within(d.Install+d.Destroy+d.Held) > most:
		return Advice{}, ErrMany
	}
	resumes, installs := d.within(d.Resume), d.within(d.Install)
	a := Advice{RunningCount: quantile(resumes, d.AtOnce) + 1, Size: quantile(installs, d.Spare) + 1}
	a.Size = max(a.Size, a.RunningCount)
	a.AtOnce, a.Spare = upTo(resumes, a.RunningCount-1), upTo(installs, a.Size-1)
	a.MaxConcurrent = max(1, quantile(d.within(d.Install+d.Destroy), rare))
	if d.Held > 0 {
		a.MaxSize = a.Size + quantile(d.within(d.Held+d.Destroy), rare)
	}
	return a, nil
}

func share(p float64) bool { return p > 0 && p < 1 }

// within is how many claims come in a time, on average.
func (d Demand) within(t time.Duration) float64 { return float64(t) / float64(d.Every) }

// upTo is the probability that a Poisson variable of that mean is at most n.
func upTo(mean float64, n int) float64 {
	sum := 0.0
	for k := range n + 1 {
		log, _ := math.Lgamma(float64(k) + 1)
		sum += math.Exp(float64(k)*math.Log(mean) - mean - log) // by logarithms: a power would overflow
	}
	return min(sum, 1)
}

// quantile is the smallest n for which upTo is at least p.
func quantile(mean, p float64) int {
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
