package report

import (
	"time"

	"hotspare.io/hotspare/internal/sizing"
	"hotspare.io/hotspare/internal/sizing/record"
)

// A Month is what the unclaimed clusters of a pool have cost since a calendar month began in UTC.
type Month struct {
	// Month is such as 2026-03.
	Month string `json:"month"`
	// RunningHours are those of all clusters that do not hibernate.
	RunningHours     float64 `json:"runningHours"`
	HibernatingHours float64 `json:"hibernatingHours"`
	// ShallowHours are those of HibernatingHours at shallow depths of sleep.
	ShallowHours sizing.PerShallowDepth[float64] `json:"shallowHours,omitzero"`
	// Costs is nil if there are no prices.
	Costs *Costs `json:"costs,omitempty"`
	// ComparedSince is since when CouldSave and SavedByPolicy are counted; zero if they are not.
	ComparedSince time.Time `json:"comparedSince,omitzero"`
}

// NewMonth returns the month of a moment.
func NewMonth(d *record.Details, p sizing.Prices, now time.Time) Month {
	out := Month{Month: now.UTC().Format("2006-01")}
	if d.Month != out.Month {
		return out
	}
	out.RunningHours, out.HibernatingHours, out.ShallowHours = d.RunningHours, d.HibernatingHours, d.ShallowHours
	c := d.Compared
	if c != nil {
		out.ComparedSince = c.Since
	}
	if p == (sizing.Prices{}) {
		return out
	}
	out.Costs = newCosts(Hours{RunningIdle: d.RunningHours, Hibernating: d.HibernatingHours, Shallow: d.ShallowHours}, p)
	if c != nil {
		out.Costs.CouldSave = c.Pool.Cost(p) - c.Recommended.Cost(p)
		out.Costs.SavedByPolicy = c.Static.Cost(p) - c.Pool.Cost(p)
	}
	return out
}
