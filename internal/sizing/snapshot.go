package sizing

import (
	"slices"
	"time"

	"hotspare.io/hotspare/internal/sizing/calendar"
)

// A Setting is what a pool is asked to keep.
type Setting struct {
	// Running is the number of clusters that run without a claim, Size the number of clusters
	// without a claim.
	Running int `json:"running"`
	Size    int `json:"size"`
}

// An Objective says which share of the claims must not wait longer than MaxWait for a running
// cluster.
type Objective struct {
	// Share is above 0 and below 1.
	Share float64 `json:"share"`
	// MaxWait is how long such a claim may wait; 0 means that it gets a running cluster at once.
	MaxWait time.Duration `json:"maxWait,omitempty"`
}

// None is the Max of a Range that allows only 0.
const None = -1

// A Range is the owner's limit for a count; a Max of 0 means no upper limit.
type Range struct {
	Min int `json:"min,omitempty"`
	Max int `json:"max,omitempty"`
	// MaxReason explains a Max that is not the owner's; empty if it is.
	MaxReason string `json:"-"`
}

// Durations are how long clusters take: for each kind, the 90th percentile of what was measured.
type Durations struct {
	// Resume is from depth stop, Shallow from shallower depths; 0 if no resume from there was measured.
	Resume  time.Duration                  `json:"resume"`
	Shallow PerShallowDepth[time.Duration] `json:"shallow,omitzero"`
	Install time.Duration                  `json:"install"`
}

// A Budget limits what the unclaimed clusters of a pool cost in a calendar month.
type Budget struct {
	// Limit is in the currency of the prices. The limit is only in effect if Set.
	Set   bool    `json:"set,omitempty"`
	Limit float64 `json:"limit,omitempty"`
	// Spent is what the unclaimed clusters have cost since the month began.
	Spent float64 `json:"spent,omitempty"`
}

// Limits are what the owner of a pool allows.
type Limits struct {
	Running Range  `json:"running"`
	Size    Range  `json:"size"`
	Budget  Budget `json:"budget"`
	Prices  Prices `json:"prices"`
	// Interval is the shortest time between two steps down of the same count; 0 means
	// DefaultInterval.
	Interval time.Duration `json:"interval,omitempty"`
}

// DefaultInterval is the shortest time between two steps down. A cluster that is hibernated a minute
// too early costs a resume; one that is hibernated later costs its idle time.
const DefaultInterval = time.Minute

// sizeInterval is the shortest time between two steps down of the size: a step down deletes a
// cluster, and a step up installs one.
const sizeInterval = time.Hour

// A Snapshot is everything that the next setting depends on.
type Snapshot struct {
	Now time.Time
	// Static is the owner's own setting. It is in effect while nothing better is known.
	Static    Setting
	Objective Objective
	Limits    Limits
	Durations Durations
	// Calendar has the days on which demand differs; nil if there is none.
	Calendar *calendar.Calendar
	// Learned is what is known about the demand; nil if nothing is.
	Learned *Learned
	// RecordedSince is when recording began: of the claims before, only those that still existed then
	// are known. Zero if all are.
	RecordedSince time.Time
	// Current is the setting in effect. RunningLoweredAt and SizeLoweredAt are when its counts were
	// last lowered; zero if they were not, or if that is unknown.
	Current                         Setting
	RunningLoweredAt, SizeLoweredAt time.Time
	// Waiting is the number of claims that wait for a cluster.
	Waiting int
	// Sleeping is the number of clusters that sleep at shallow depths now. Claims wake them first.
	Sleeping PerShallowDepth[int]
	// Unpaced is set for a recommendation that nobody applies: a count that goes down in steps would stay one step below that
	// of the pool forever.
	Unpaced bool
	// Terse leaves the reasons out, for simulations that need the counts only.
	Terse bool
}

// A Target is one wanted count with its reason.
type Target struct {
	Count int `json:"count"`
	// Reason explains the count in words and numbers, for people.
	Reason string `json:"reason"`
	// Cause is the reason from a closed list, for programs.
	Cause Cause `json:"cause"`
}

// A Cause is why a count is as it is, from a closed list.
type Cause string

// The causes. The last guard that changed a count determines its cause.
const (
	// ByDemand: the expected demand needs that many.
	ByDemand Cause = "demand"
	// ByStatic: the owner's setting is in effect.
	ByStatic Cause = "static"
	// ByCalendar: an entry of the calendar sets the count.
	ByCalendar Cause = "calendar"
	// ByMinimum and ByMaximum: the owner's limits.
	ByMinimum Cause = "minimum"
	ByMaximum Cause = "maximum"
	// ByBudget: more would cost more than the budget.
	ByBudget Cause = "budget"
	// ByWaiting: claims wait, so the count does not go down.
	ByWaiting Cause = "waiting"
	// ByPace: the count goes down by a twentieth of it at a time.
	ByPace Cause = "pace"
	// BySize: not more clusters can run than exist.
	BySize Cause = "size"
)

// A Plan is the setting that a pool should have, with reasons.
type Plan struct {
	Running Target `json:"running"`
	Size    Target `json:"size"`
	// Fallback explains why the owner's setting is in effect instead of a computed one, or where it is
	// higher than the computed one; empty if it is not.
	Fallback string `json:"fallback,omitempty"`
	// Computed is set if the counts were computed from the demand, with a Fallback or without.
	Computed bool `json:"computed"`
	// ExpectedClaims is the number of claims that is expected within the next hour.
	ExpectedClaims float64 `json:"expectedClaims"`
	// ExpectsNone is set while an entry of the calendar multiplies the demand by 0.
	ExpectsNone bool `json:"expectsNone,omitempty"`
	// Coverage compares what was promised with what was seen.
	Coverage Coverage `json:"coverage"`
}

// FollowsForecast reports whether the forecast, or distrust in it, set the running count, and no limit or calendar entry of the owner
// did, also none that expects no claims.
func (p Plan) FollowsForecast() bool {
	cause := p.Running.Cause
	if cause == BySize {
		cause = p.Size.Cause
	}
	return p.Computed && !p.ExpectsNone && !slices.Contains([]Cause{ByMinimum, ByMaximum, ByBudget, ByCalendar}, cause)
}

// Setting returns the counts of the plan.
func (p Plan) Setting() Setting { return Setting{Running: p.Running.Count, Size: p.Size.Count} }

// Coverage compares what was promised with what was seen, over about the last 1000 claims.
type Coverage struct {
	// Claims is the number of claims that it is based on; older ones count less.
	Claims float64 `json:"claims"`
	// Promised is the objective's share, Seen the share of the claims that was served within the
	// objective.
	Promised float64 `json:"promised"`
	Seen     float64 `json:"seen"`
}
