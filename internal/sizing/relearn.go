package sizing

import (
	"time"

	"hotspare.io/hotspare/internal/sizing/calendar"
	"hotspare.io/hotspare/internal/sizing/demand"
)

// Relearn computes a Learned from a record of claims that began at since: after the Learned was lost, or after claims were
// imported. The record has no times within a quarter of an hour; Relearn puts as many claims into one
// minute as the record says, and spreads the others evenly. The calendar is nil if there is none.
func Relearn(h *demand.History, since time.Time, o Objective, d Durations, zone string, c *calendar.Calendar, now time.Time) *Learned {
	bins, gaps := newestBins(h.Bins()), h.Gaps()
	l := NewLearned(beginOfLearning(bins, since, len(bins) < len(h.Bins()), now), zone)
	l.SetCalendar(c)
	l.SetLeads(o, d)
	l.countCutBins(h.Bins()[:len(h.Bins())-len(bins)], bins)
	for _, b := range bins {
		if b.Begin().After(now) {
			break
		}
		for len(gaps) > 0 && !gaps[0].From.After(b.Begin()) {
			l.Advance(gaps[0].From)
			l.SkipUnobserved(gaps[0].To)
			gaps = gaps[1:]
		}
		l.addBin(b, now, b.Begin().Before(h.ImportedUntil()))
	}
	for _, g := range gaps {
		if g.To.Before(now) {
			l.Advance(g.From)
			l.SkipUnobserved(g.To)
		}
	}
	l.Advance(now)
	return l
}

// maxLearned is how far back Relearn looks: no claims are recorded for longer.
const maxLearned = 731 * 24 * time.Hour

// beginOfLearning returns when learning begins: when recording did, since nobody claimed anything from then to the first bin. If
// older bins were cut, it begins with the first that is left.
func beginOfLearning(bins []demand.Bin, since time.Time, cut bool, now time.Time) time.Time {
	begin := since
	if len(bins) > 0 && (cut || begin.IsZero() || bins[0].Begin().Before(begin)) {
		begin = bins[0].Begin()
	}
	if oldest := now.Add(-maxLearned); begin.Before(oldest) && !begin.IsZero() {
		begin = oldest
	}
	if begin.IsZero() || begin.After(now) {
		return now
	}
	return begin
}

// maxReplayed limits the claims of one bin that are replayed one by one, maxRelearned those of all
// bins: whoever can write a record could otherwise keep a controller busy.
const (
	maxReplayed  = 10_000
	maxRelearned = 200_000
)

// newestBins returns the newest bins that have at most maxRelearned claims.
func newestBins(bins []demand.Bin) []demand.Bin {
	claims := 0
	for i := len(bins) - 1; i >= 0; i-- {
		if claims += min(int(bins[i].Claims), maxReplayed); claims > maxRelearned {
			return bins[i+1:]
		}
	}
	return bins
}

// countCutBins adds the claims of bins that were cut, and the time from the first of them to the first that is left, to what was
// watched. Nothing is learned from them.
func (l *Learned) countCutBins(cut, left []demand.Bin) {
	for _, b := range cut {
		l.WatchedClaims += float64(b.Claims)
	}
	if len(cut) > 0 && len(left) > 0 {
		l.WatchedHours += left[0].Begin().Sub(cut[0].Begin()).Hours()
	}
}

// addBin adds the claims of a bin. Of imported ones, nobody knows whether they were late.
func (l *Learned) addBin(b demand.Bin, now time.Time, imported bool) {
	n := min(int(b.Claims), maxReplayed)
	together := min(int(b.Peak), n)
	step := b.Length() / time.Duration(max(n-together+1, 1))
	late := int(b.Late)
	for i := range n {
		at := b.Begin()
		if i >= together {
			at = at.Add(step * time.Duration(i-together+1))
		}
		if at.After(now) {
			at = now
		}
		l.AddArrival(at)
		if !imported {
			l.AddOutcome(i < n-late, false)
		}
	}
}
