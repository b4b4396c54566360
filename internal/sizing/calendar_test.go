package sizing

import (
	"fmt"
	"math"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/sizing/calendar"
	"hotspare.io/hotspare/internal/sizing/demand"
)

// eventWeek is the third week before monday, in which the calendar multiplies the demand.
var eventWeek = monday.AddDate(0, 0, -21)

// calendarOf returns a calendar whose entry multiplies the demand of eventWeek by a factor.
func calendarOf(t *testing.T, factor float64) *calendar.Calendar {
	t.Helper()
	c, err := calendar.Parse([]calendar.Item{{
		Name: "release", Start: eventWeek.Format(time.DateOnly), End: eventWeek.AddDate(0, 0, 6).Format(time.DateOnly), Demand: &factor,
	}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func isEvent(at time.Time) bool {
	return !at.Before(eventWeek) && at.Before(eventWeek.AddDate(0, 0, 7))
}

// learnEvent learns from eight weeks of six claims an hour, in eventWeek of factor times as many. It returns also the highest running
// count of eventWeek, and the record of the claims.
func learnEvent(t *testing.T, c *calendar.Calendar, factor float64) (l *Learned, most int, h *demand.History) {
	t.Helper()
	r := newRand(t)
	s, h := given(), &demand.History{}
	s.Calendar, s.Current = c, Setting{} // nothing must fall in steps
	l = NewLearned(monday.AddDate(0, 0, -56), "")
	l.SetCalendar(c)
	l.SetLeads(s.Objective, s.Durations)
	n := 0
	for at := l.At; at.Before(monday); at = at.Add(time.Minute) {
		l.Advance(at)
		rate := 6.0
		if isEvent(at) {
			rate *= factor
		}
		for range poisson(r, rate/60) {
			n++
			h.Add(fmt.Sprint(n), at, false, monday)
			l.AddClaim(at, true)
		}
		if at.Minute()%15 == 0 && isEvent(at.Add(-time.Hour)) && isEvent(at.Add(time.Hour)) { // counts change around its ends
			s.Now, s.Learned = at, l
			most = max(most, Decide(s).Running.Count)
		}
	}
	l.Advance(monday)
	return l, most, h
}

// weekRate is the mean rate of the profile.
func (l *Learned) weekRate() float64 {
	sum := 0.0
	for h := range hoursOfWeek {
		sum += l.profileRate(h)
	}
	return sum / hoursOfWeek
}

func TestABusyWeekOfTheCalendarIsNotExpectedAgain(t *testing.T) {
	usual, _, _ := learnEvent(t, nil, 1)
	for _, factor := range []float64{0.25, 3} {
		c := calendarOf(t, factor)
		l, most, h := learnEvent(t, c, factor)
		again := Relearn(h, time.Time{}, given().Objective, given().Durations, "", c, monday)
		for name, l := range map[string]*Learned{"learned": l, "learned again": again} {
			// 8000 claims differ by a hundredth, and their weights by age double that.
			if got, want := l.weekRate(), usual.weekRate(); math.Abs(got/want-1) > 0.12 {
				t.Errorf("factor %g, %s: %.2f claims an hour are usual, and %.2f without that week", factor, name, got, want)
			}
			if got, want := runningAt(l, monday.Add(time.Hour)).Count, runningAt(usual, monday.Add(time.Hour)).Count; got > want+2 || got < want-2 {
				t.Errorf("factor %g, %s: %d run, and %d without that week", factor, name, got, want)
			}
		}
		// Half a claim is expected within a resume on usual days.
		if limit := 4 + int(3*factor); most > limit {
			t.Errorf("factor %g: %d clusters ran in that week, more than %d", factor, most, limit)
		}
	}
}

func TestClaimsOfAHolidaySayNothing(t *testing.T) {
	c := calendarOf(t, 0)
	usual, _, _ := learnEvent(t, nil, 1)
	l, most, _ := learnEvent(t, c, 0)
	if got, want := l.weekRate(), usual.weekRate(); math.Abs(got/want-1) > 0.12 || most > 0 {
		t.Errorf("%.2f claims an hour are usual, and %.2f without the holidays; %d clusters ran", got, want, most)
	}
	stray := NewLearned(eventWeek, "")
	stray.SetCalendar(c)
	stray.SetLeads(given().Objective, given().Durations)
	stray.AddClaim(eventWeek.Add(time.Hour), true)
	if stray.Running.Total != 0 || stray.Claims != 0 || stray.WatchedClaims != 1 || stray.Recent != 0 {
		t.Errorf("a claim on a holiday is learned from: %g claims, %g watched, recent rate %g", stray.Claims, stray.WatchedClaims, stray.Recent)
	}
}

func TestTheSilenceOfAHolidayIsExpected(t *testing.T) {
	c := calendarOf(t, 0)
	l := NewLearned(eventWeek.AddDate(0, 0, -28), "")
	l.SetCalendar(c)
	l.SetLeads(given().Objective, given().Durations)
	for at := l.At; at.Before(eventWeek); at = at.Add(10 * time.Minute) {
		l.AddClaim(at, true)
	}
	l.Advance(eventWeek)
	silence := l.Silence
	for at := eventWeek; at.Before(eventWeek.AddDate(0, 0, 7)); at = at.Add(time.Hour) {
		l.Advance(at)
	}
	l.Advance(eventWeek.AddDate(0, 0, 7))
	if l.Silence != silence || l.silenceFactor() != 1 {
		t.Errorf("after a week of holidays, %.1f claims are missing, and %.1f were before", l.Silence, silence)
	}
}

// TestClaimsAtTheEndOfAnEntryAreExpected has an entry without demand each night, and a burst five seconds after its end. The counts of the
// day are those of a pool without the entry.
func TestClaimsAtTheEndOfAnEntryAreExpected(t *testing.T) {
	none := 0.0
	nights, err := calendar.Parse([]calendar.Item{{Name: "night", Start: "2025-01-01T18:00", End: "2025-01-02T08:00", Rule: "FREQ=DAILY", Demand: &none}})
	if err != nil {
		t.Fatal(err)
	}
	counts := map[*calendar.Calendar]int{}
	durations := given().Durations
	durations.Resume = 5*time.Minute + 20*time.Second // the forecast of a claim is more than a resume older
	for _, c := range []*calendar.Calendar{nil, nights} {
		l := NewLearned(monday.AddDate(0, 0, -42), "")
		l.SetCalendar(c)
		l.SetLeads(given().Objective, durations)
		for at := l.At; at.Before(monday); at = at.Add(time.Minute) {
			l.Advance(at)
			switch {
			case at.Hour() == 8 && at.Minute() == 0:
				for range 3 {
					l.AddClaim(at.Add(5*time.Second), true)
				}
			case at.Hour() > 8 && at.Hour() < 18 && at.Minute()%10 == 0:
				l.AddClaim(at, true)
			}
		}
		l.Advance(monday)
		s := given()
		s.Calendar, s.Current, s.Learned, s.Durations = c, Setting{}, l, durations
		s.Now = monday.Add(12 * time.Hour)
		l.SkipUnobserved(s.Now)
		if impossible := l.Running.Counts[0]; impossible > 0 {
			t.Errorf("%.1f claims are scored as if none were expected", impossible)
		}
		counts[c] = Decide(s).Running.Count
	}
	if counts[nights] > counts[nil]+1 || counts[nights] < 1 {
		t.Errorf("%d clusters run at noon, and %d without the entry", counts[nights], counts[nil])
	}
}

func TestMissesOnAHolidaySayNothing(t *testing.T) {
	l, _, _ := learnEvent(t, nil, 1)
	s := given()
	s.Learned, s.Current = l, Setting{}
	if p := Decide(s); !p.FollowsForecast() {
		t.Errorf("on a usual day, the count does not follow the forecast: %+v", p)
	}
	none := 0.0
	c, err := calendar.Parse([]calendar.Item{{Name: "holiday", Start: monday.Format(time.DateOnly), Demand: &none}})
	if err != nil {
		t.Fatal(err)
	}
	s.Calendar = c
	if p := Decide(s); p.FollowsForecast() || p.Running.Count > 0 {
		t.Errorf("on a holiday, the count follows the forecast: %+v", p)
	}
}
