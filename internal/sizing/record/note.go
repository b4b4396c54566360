package record

import (
	"time"

	"hotspare.io/hotspare/internal/sizing"
)

// A Note is what was decided at a moment, for charts and reports.
type Note struct {
	// Pool are the counts of the pool, Recommended those that its policy recommends, Static those that a
	// person has chosen last. Computed is set if the recommendation was computed from the demand.
	Pool, Recommended, Static sizing.Setting
	Computed                  bool
	// FollowsForecast is set if the recommended running count is that of the forecast, and not of a limit.
	FollowsForecast bool
	// Forecast is of the next hour; nil if there is none.
	Forecast *sizing.Forecast
}

// Note records what was decided. Call it after Observe, with the same time.
func (t *Tracker) Note(n Note, now time.Time) {
	if t.IsAhead(now) {
		return
	}
	n.Pool, n.Recommended, n.Static = plausible(n.Pool), plausible(n.Recommended), plausible(n.Static)
	t.addCompared(now)
	t.noted, t.notedAt = n, now
	q := t.Quarters.at(now)
	if q == nil {
		return
	}
	q.Noted, q.Computed, q.Pool, q.Recommended, q.Static = true, n.Computed, n.Pool, n.Recommended, n.Static
	if q.Forecast == nil && n.Forecast != nil {
		f := *n.Forecast
		q.Forecast = &f
	}
}

// plausible limits a setting to what a quarter can keep.
func plausible(s sizing.Setting) sizing.Setting {
	return sizing.Setting{Running: min(max(s.Running, 0), maxClusters), Size: min(max(s.Size, 0), maxClusters)}
}

// addCompared adds the time since the last note to the hours of the settings that were in effect then.
func (t *Tracker) addCompared(now time.Time) {
	from := t.notedAt
	if from.IsZero() || now.Sub(from) > maxGap {
		return
	}
	if t.Compared == nil {
		if begin := beginOfMonth(now); from.Before(begin) {
			from = begin
		}
		t.Compared = &Compared{Since: from.UTC().Truncate(time.Second)}
	}
	hours := max(now.Sub(from), 0).Hours()
	t.Compared.Pool.AddSetting(t.noted.Pool, hours)
	t.Compared.Recommended.AddSetting(t.noted.Recommended, hours)
	t.Compared.Static.AddSetting(t.noted.Static, hours)
}

// addQuarters records the clusters since a moment.
func (t *Tracker) addQuarters(from time.Time, o Objects) {
	if o.Now.Sub(from) > maxGap {
		return
	}
	before := len(t.Quarters)
	t.Quarters.addSpan(from, o.Now, o.takeCensus())
	if n := len(t.Quarters); n > before {
		t.Quarters.trim(o.Now)
		// A quarter has ended. Save it if a chart would change.
		if n = len(t.Quarters); n > 2 && !t.Quarters[n-2].hasSameCounts(&t.Quarters[n-3]) {
			t.changed = true
		}
	}
}

func (o Objects) takeCensus() census {
	out := census{waiting: int64(o.Waiting)}
	for _, c := range o.Clusters {
		out.clusters[c.State]++
	}
	asleep := o.CountSleepers()
	out.shallow = sizing.PerShallowDepth[int64]{Freeze: int64(asleep.Freeze), Suspend: int64(asleep.Suspend)}
	return out
}

// addWait records how long a claim has waited that has got its cluster now.
func (t *Tracker) addWait(c Claim) {
	q := t.Quarters.at(c.Created)
	if q == nil {
		return // nobody looked when it was created
	}
	if q.Waits == nil {
		q.Waits = Waits{}
	}
	q.Waits.AddClaim(c)
}

// beginOfMonth returns when the month of a moment begins in UTC.
func beginOfMonth(t time.Time) time.Time {
	return time.Date(t.UTC().Year(), t.UTC().Month(), 1, 0, 0, 0, 0, time.UTC)
}
