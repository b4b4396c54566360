package sizing

import (
	"math"
	"time"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/sizing/calendar"
)

const (
	hoursOfDay  = 24
	hoursOfWeek = 7 * hoursOfDay
	// profileMemoryDays is the age at which a week weighs 1/e of the current one in the profile.
	profileMemoryDays = 90.0
	// weightMemoryDays is the same for the learned weights.
	weightMemoryDays = 60.0
	// priorHours is how many hours of its own an hour of the week needs to weigh as much as what
	// the same hour of other days says.
	priorHours = 4.0
	// recentHours is the time constant of the recent rate.
	recentHours = 1.0
	// warmUpHours and warmUpClaims are what must have been seen before counts are computed.
	warmUpHours  = 7 * 24.0
	warmUpClaims = 20.0
	// coverageMemory is the number of claims that the coverage is based on.
	coverageMemory = 1000.0
)

// Learned is what is known about the demand for a pool's clusters. The zero value knows nothing. It
// is a value of bounded size (about 20 KB as JSON): it can be stored and read back, and depends on
// nothing else. Its methods expect that time goes forward; they ignore times before the last one.
type Learned struct {
	// At is the time up to which it is known that no other claims have arrived.
	At time.Time `json:"at,omitzero"`
	// Zone is the IANA name of the time zone whose hours of the week are compared; empty for UTC.
	Zone string `json:"zone,omitempty"`
	// Hours is the number of hours seen, and Claims that of claims; old ones weigh less. An hour in which the calendar multiplies
	// the demand by a factor counts as that many hours: Claims / Hours is the demand on usual days.
	Hours  float64 `json:"hours"`
	Claims float64 `json:"claims"`
	// WatchedHours and WatchedClaims are the same, of which old ones weigh as much.
	WatchedHours  float64 `json:"watchedHours,omitempty"`
	WatchedClaims float64 `json:"watchedClaims,omitempty"`
	// WeekClaims and WeekHours are the same as Hours and Claims for each hour of the week; the week begins on Sunday.
	WeekClaims [hoursOfWeek]float64 `json:"weekClaims"`
	WeekHours  [hoursOfWeek]float64 `json:"weekHours"`
	// Recent is the recent rate, in claims an hour of usual demand.
	Recent float64 `json:"recent"`
	// Silence is the number of claims that the profile has expected since the last one.
	Silence float64 `json:"silence,omitempty"`
	// Share and MaxWait are those of the objective; Share is 0 if it is not known. Burst is the number of claims that would
	// have waited since the last one that would not.
	Share   float64       `json:"share,omitempty"`
	MaxWait time.Duration `json:"maxWait,omitempty"`
	Burst   float64       `json:"burst,omitempty"`
	// LongestBurst is the length of the longest burst; an old one weighs less.
	LongestBurst float64 `json:"longestBurst,omitempty"`
	// Weights are those of the profile and of the recent rate in the forecast; see weights.
	Weights weights `json:"weights"`
	// Method has the parts of the method that are left out.
	Method Method `json:"method,omitzero"`
	// Busiest is the largest number of claims that is expected within an install during the coming
	// day, and when; BusiestFrom is when that was computed.
	Busiest     forecast  `json:"busiest,omitzero"`
	BusiestFrom time.Time `json:"busiestFrom,omitzero"`
	// Running and Size have the scores of the running count and of the size.
	Running leadModel `json:"running"`
	Size    leadModel `json:"size"`
	// Shallow has the scores of the running count if clusters are woken from a shallow depth.
	Shallow PerShallowDepth[leadModel] `json:"shallow,omitzero"`
	// Outcomes are those of the last claims.
	Outcomes Outcomes `json:"outcomes,omitzero"`

	// calendar has the days on which demand differs; nil if there is none. factor is its factor from factorFrom to
	// factorEnds, which is zero if nothing follows.
	calendar               *calendar.Calendar
	factor                 float64
	factorFrom, factorEnds time.Time
	// zone caches Zone; hourEnds the end of the current hour of the week, hour.
	zone     *time.Location
	hour     int
	hourEnds time.Time
}

// A Method leaves out parts of the method, to measure what each contributes.
type Method struct {
	// WithoutProfile leaves out the hour of the week, WithoutRecent the last hour, WithoutBursts how
	// bursty each hour of the day is, WithoutMargin the margin for few claims, WithoutFeedback the
	// adjustment of that margin by what was seen.
	WithoutProfile  bool `json:"withoutProfile,omitempty"`
	WithoutRecent   bool `json:"withoutRecent,omitempty"`
	WithoutBursts   bool `json:"withoutBursts,omitempty"`
	WithoutMargin   bool `json:"withoutMargin,omitempty"`
	WithoutFeedback bool `json:"withoutFeedback,omitempty"`
	// WithoutModel leaves out how many claims the forecasts expect to wait at a price, WithoutSilence that
	// fewer are expected after a long time without claims.
	WithoutModel   bool `json:"withoutModel,omitempty"`
	WithoutSilence bool `json:"withoutSilence,omitempty"`
	// WithoutBurstLimit counts each claim of a burst, WithoutRepeatedBursts no more of one that comes again.
	WithoutBurstLimit     bool `json:"withoutBurstLimit,omitempty"`
	WithoutRepeatedBursts bool `json:"withoutRepeatedBursts,omitempty"`
	// WithoutNextHour leaves out that a cluster which is resumed now first runs in the next hour.
	WithoutNextHour bool `json:"withoutNextHour,omitempty"`
}

// weights are learned by expectation maximization: each claim is attributed to the profile and to the
// recent rate in proportion to what each predicted.
type weights struct {
	// Claims are the claims attributed to each part, Expected what each part predicted.
	Claims, Expected [2]float64
	Weight           [2]float64
}

// NewLearned returns a Learned that starts at a time, and compares the hours of the week of a time
// zone: an IANA name, or empty for UTC. It uses UTC if the zone is unknown.
func NewLearned(at time.Time, zone string) *Learned {
	return &Learned{At: at.UTC(), Zone: zone}
}

// SetCalendar sets the calendar, which is not stored. Call it before Advance and AddClaim. What happens while an entry multiplies the demand
// counts in proportion, so that a busy release week is not expected again in the next week. Claims while the factor is 0 say nothing.
func (l *Learned) SetCalendar(c *calendar.Calendar) {
	if c != l.calendar {
		l.calendar, l.factorFrom = c, time.Time{}
	}
}

// Factors for learning are limited to this range, except for 0. A factor is a guess: without a limit, one claim during an entry with
// factor 0.01 would count as a hundred claims.
const (
	leastFactor = 0.1
	mostFactor  = 10.0
)

// demandFactor returns by what the calendar multiplies the demand at l.At, within limits.
func (l *Learned) demandFactor() float64 {
	if l.calendar == nil {
		return 1
	}
	if l.factorFrom.IsZero() || l.At.Before(l.factorFrom) || !l.factorEnds.IsZero() && !l.At.Before(l.factorEnds) {
		l.factor = l.calendar.At(l.At).DemandFactor()
		if l.factor > 0 {
			l.factor = math.Min(math.Max(l.factor, leastFactor), mostFactor)
		}
		l.factorFrom, l.factorEnds = l.At, l.calendar.NextChange(l.At)
	}
	return l.factor
}

// SetLeads sets the objective's share, and how long claims can be served from what is there: how long a resume takes,
// less what a claim may wait, and how long an install takes. Call it before Advance and AddClaim. Scores stay valid when
// a lead changes a little, and are dropped when it doubles or halves. What was served within another objective says nothing
// about this one.
func (l *Learned) SetLeads(o Objective, d Durations) {
	if l.Share != o.Share || l.MaxWait != o.MaxWait {
		l.Outcomes = Outcomes{}
	}
	l.Share, l.MaxWait = o.Share, o.MaxWait
	l.Running.setLead(runningLead(o, d))
	l.Size.setLead(sizeLead(o, d))
	for _, depth := range ShallowDepths() {
		l.Shallow.Of(depth).setLead(shallowLead(o, d, depth))
	}
}

// FitsLeads reports whether SetLeads keeps the scores. If it does not, Relearn computes them again.
func (l *Learned) FitsLeads(o Objective, d Durations) bool {
	return l.Running.fitsLead(runningLead(o, d)) && l.Size.fitsLead(sizeLead(o, d)) &&
		l.Shallow.Freeze.fitsLead(shallowLead(o, d, cloud.DepthFreeze)) && l.Shallow.Suspend.fitsLead(shallowLead(o, d, cloud.DepthSuspend))
}

func runningLead(o Objective, d Durations) time.Duration { return max(d.Resume-o.MaxWait, 0) }

func sizeLead(o Objective, d Durations) time.Duration { return max(d.Install+d.Resume-o.MaxWait, 0) }

// Advance lets time pass without a claim. A longer gap than a day during which nobody looked must be
// skipped with Skip: otherwise it counts as a time without demand.
func (l *Learned) Advance(now time.Time) {
	l.initialize(now)
	for now.After(l.At) {
		l.findHour()
		until := now
		if l.hourEnds.Before(until) {
			until = l.hourEnds
		}
		if l.demandFactor(); !l.factorEnds.IsZero() && l.factorEnds.Before(until) {
			until = l.factorEnds
		}
		l.advanceTo(until)
	}
	if l.At.Sub(l.BusiestFrom) >= time.Hour {
		l.findBusiest()
	}
	for _, a := range l.runningLeadModels() {
		a.noteForecast(l, l.At, l.expectedAhead)
		a.expectScores(l)
	}
	l.Size.noteForecast(l, l.At, l.expectedPeak)
}

// findBusiest finds the busiest hour of the coming day.
func (l *Learned) findBusiest() {
	l.BusiestFrom, l.Busiest = l.At, forecast{}
	weight := l.Weights.Weight[0] + l.Weights.Weight[1]
	for h := range hoursOfDay {
		at := l.At.Add(time.Duration(h) * time.Hour)
		if m := weight * l.profileClaims(at, l.Size.Lead); m > l.Busiest.Mean {
			l.Busiest = forecast{At: at, Mean: m}
		}
	}
}

// expectedPeak returns the number of claims expected within a time, in the busiest hour of the coming
// day.
func (l *Learned) expectedPeak(span time.Duration) float64 {
	return math.Max(l.Busiest.Mean, l.expectedClaims(span))
}

// SkipUnobserved moves to a time without learning from what lies between.
func (l *Learned) SkipUnobserved(now time.Time) {
	l.initialize(now)
	if now.After(l.At) {
		l.Recent *= math.Exp(-now.Sub(l.At).Hours() / recentHours)
		l.At, l.hourEnds = now.UTC(), time.Time{}
	}
}

// AddClaim records a claim, and whether it was served within the objective by a count that followed the forecast: AddArrival and
// AddOutcome in one.
func (l *Learned) AddClaim(at time.Time, served bool) {
	l.AddArrival(at)
	l.AddOutcome(served, true)
}

// AddOutcome records whether a claim was served within the objective, and whether the running count followed the forecast when it
// arrived: the outcomes under counts that a person or a limit has set say nothing about the forecast.
func (l *Learned) AddOutcome(served, byForecast bool) {
	l.Outcomes.All.addClaim(served)
	if byForecast {
		l.Outcomes.OfForecast.addClaim(served)
	}
}

// Outcomes are those of all claims, and of those that arrived while the running count followed the forecast.
type Outcomes struct {
	All        Outcome `json:"all,omitzero"`
	OfForecast Outcome `json:"ofForecast,omitzero"`
}

// IsPlausible reports whether the numbers are some that AddOutcome can have counted.
func (o Outcomes) IsPlausible() bool { return o.All.isPlausible() && o.OfForecast.isPlausible() }

// An Outcome is how many claims were served within the objective: about the last 1000, of which older ones count less.
type Outcome struct {
	Claims float64 `json:"claims"`
	Served float64 `json:"served"`
}

func (o *Outcome) addClaim(served bool) {
	const keep = 1 - 1/coverageMemory
	o.Claims, o.Served = o.Claims*keep+1, o.Served*keep
	if served {
		o.Served++
	}
}

func (o Outcome) isPlausible() bool {
	return o.Served >= 0 && o.Served <= o.Claims && o.Claims <= coverageMemory
}

// AddArrival records a claim whose outcome is not known yet. A claim that is older than the last
// recorded time counts as if it arrived at that time.
func (l *Learned) AddArrival(at time.Time) {
	// A claim is scored by the forecasts of one lead before it. Nobody may have looked then: a record
	// has only claims.
	for _, lead := range [...]time.Duration{l.Size.Lead, l.Running.Lead, l.Shallow.Suspend.Lead, l.Shallow.Freeze.Lead} {
		if before := at.Add(-lead); before.After(l.At) {
			l.Advance(before)
		}
	}
	l.Advance(at)
	l.WatchedClaims++
	l.Silence = 0
	factor := l.demandFactor()
	if factor <= 0 {
		return
	}
	l.attribute()
	l.findHour()
	l.Claims++
	l.WeekClaims[l.hour]++
	l.Recent += 1 / factor / recentHours
	l.Running.addClaim(l, scoreOf, l.countsInBurst)
	for _, depth := range ShallowDepths() {
		l.Shallow.Of(depth).addClaim(l, scoreOf, always)
	}
	l.Size.addClaim(l, scoreOfSize, always)
}

// burstMemoryDays is the age at which the length of a burst is 1/e of what it was.
const burstMemoryDays = 30.0

// burstShare is the share of the claims that may wait, of which one burst can be: its first claims that
// wait count, and the others do not. A burst can also be repeatShare of the longest one: bursts of that length come again.
const (
	burstShare  = 0.5
	repeatShare = 1.0 / 3
)

// countsInBurst reports whether the score of a claim for the running count is one to learn from. Claims that
// wait one after the other are one burst. They are one observation, and not as many as there are claims: if each
// counted, one burst would keep clusters running for weeks, as if such bursts were usual. Bursts that
// come again count again.
func (l *Learned) countsInBurst(score float64) bool {
	if l.Method.WithoutBurstLimit || l.Share <= 0 {
		return true
	}
	miss := 1 - l.Share
	if score >= l.Running.logThreshold(miss, l.margin(Objective{Share: l.Share}), l.Method) {
		l.LongestBurst = math.Max(l.LongestBurst, l.Burst)
		l.Burst = 0
		return true
	}
	l.Burst++
	most := math.Max(burstShare*miss*l.Running.Total, 1)
	if !l.Method.WithoutRepeatedBursts {
		most = math.Max(most, repeatShare*l.LongestBurst)
	}
	return l.Burst <= most
}

// always is for a count that learns from all claims.
func always(float64) bool { return true }

func (l *Learned) initialize(now time.Time) {
	if l.At.IsZero() {
		l.At = now.UTC()
	}
	if l.Weights.Weight == [2]float64{} {
		l.Weights.Weight = l.Method.initialWeights()
	}
	if l.zone == nil {
		zone, err := time.LoadLocation(l.Zone)
		if err != nil {
			zone = time.UTC // NewLearned documents it
		}
		l.zone = zone
	}
}

// initialWeights gives each part half of the weight, or all to the one that is not left out.
func (m Method) initialWeights() [2]float64 {
	switch {
	case m.WithoutProfile:
		return [2]float64{0, 1}
	case m.WithoutRecent:
		return [2]float64{1, 0}
	default:
		return [2]float64{0.5, 0.5}
	}
}

// findHour sets the hour of the week at l.At, and when it ends. Zones change their offset at full
// quarters of an hour only, so the end is searched in such steps.
func (l *Learned) findHour() {
	if l.At.Before(l.hourEnds) {
		return
	}
	l.hour = hourOfWeek(l.At.In(l.zone))
	const quarter = 15 * time.Minute
	end := l.At.Truncate(quarter).Add(quarter)
	for range 8 {
		if hourOfWeek(end.In(l.zone)) != l.hour {
			break
		}
		end = end.Add(quarter)
	}
	l.hourEnds = end
}

func hourOfWeek(local time.Time) int { return int(local.Weekday())*hoursOfDay + local.Hour() }

// advanceTo lets time pass until a time within the current hour of the week.
func (l *Learned) advanceTo(until time.Time) {
	hours := until.Sub(l.At).Hours()
	l.WatchedHours += hours
	factor := l.demandFactor()
	usual := factor * hours
	l.Hours += usual
	l.WeekHours[l.hour] += usual
	rate := l.profileRate(l.hour)
	l.Weights.Expected[0] += rate * usual
	l.Silence += l.Weights.Weight[0] * rate * usual
	decay := math.Exp(-hours / recentHours)
	l.Weights.Expected[1] += factor * l.Recent * recentHours * (1 - decay)
	l.Recent *= decay
	before := l.At
	l.At = until.UTC()
	if before.Unix()/secondsOfDay != l.At.Unix()/secondsOfDay {
		l.forget(1)
	}
}

const secondsOfDay = 24 * 60 * 60

// forget lets what was seen weigh less, after a number of days, and adjusts the weights.
func (l *Learned) forget(days float64) {
	keep := math.Exp(-days / profileMemoryDays)
	l.Hours *= keep
	l.Claims *= keep
	for i := range l.WeekHours {
		l.WeekHours[i] *= keep
		l.WeekClaims[i] *= keep
	}
	for _, a := range l.runningLeadModels() {
		a.forget(days, keep)
	}
	l.Size.forget(days, keep)
	l.LongestBurst *= math.Exp(-days / burstMemoryDays)
	l.Weights.learn(math.Exp(-days / weightMemoryDays))
}

// learn sets each weight to the share of claims that its part explains.
func (w *weights) learn(keep float64) {
	for i := range w.Weight {
		w.Weight[i] *= (w.Claims[i] + 1) / (w.Expected[i] + 1)
		w.Expected[i] *= keep
		w.Claims[i] = w.Expected[i] // what was learned is the starting point of what follows
	}
}

// attribute attributes a claim that arrives now.
func (l *Learned) attribute() {
	l.findHour()
	parts := [2]float64{l.Weights.Weight[0] * l.profileRate(l.hour), l.Weights.Weight[1] * l.Recent}
	total := parts[0] + parts[1]
	if total <= 0 {
		return
	}
	for i := range parts {
		l.Weights.Claims[i] += parts[i] / total / math.Max(l.Weights.Weight[i], math.SmallestNonzeroFloat64)
	}
}

// averageRate returns the claims for each hour, over all hours.
func (l *Learned) averageRate() float64 { return (l.Claims + 1) / (l.Hours + hoursOfDay) }

// profileRate returns the usual number of claims in an hour of the week. An hour of which little was
// seen is estimated from the same hour of the other days and from its day.
func (l *Learned) profileRate(hour int) float64 {
	average := l.averageRate()
	var hourClaims, hourTotal, dayClaims, dayTotal float64
	for d := range 7 {
		hourClaims += l.WeekClaims[d*hoursOfDay+hour%hoursOfDay]
		hourTotal += l.WeekHours[d*hoursOfDay+hour%hoursOfDay]
	}
	first := hour / hoursOfDay * hoursOfDay
	for h := range hoursOfDay {
		dayClaims += l.WeekClaims[first+h]
		dayTotal += l.WeekHours[first+h]
	}
	ofHour := (hourClaims + priorHours*average) / (hourTotal + priorHours)
	ofDay := (dayClaims + hoursOfDay*average) / (dayTotal + hoursOfDay)
	prior := ofHour * ofDay / average
	return (l.WeekClaims[hour] + priorHours*prior) / (l.WeekHours[hour] + priorHours)
}

// expectedClaims returns the number of claims that is expected within a time from l.At, and from a
// later moment on.
func (l *Learned) expectedClaims(span time.Duration) float64 {
	sum := 0.0
	if !l.Method.WithoutProfile {
		sum += l.Weights.Weight[0] * l.profileClaims(l.At, span)
	}
	if !l.Method.WithoutRecent {
		sum += l.Weights.Weight[1] * l.recentClaims(span)
	}
	return sum
}

// longSilence is the number of claims that were expected, and did not come, from which on fewer are
// expected: the demand has stopped. By chance it happens once in e^longSilence claims.
const longSilence = 10.0

// expectedNow is expectedClaims in view of the time since the last claim. It is for the running count: a
// size that falls while demand pauses would cost installs when it comes back.
func (l *Learned) expectedNow(span time.Duration) float64 {
	return l.silenceFactor() * l.expectedClaims(span)
}

// silenceFactor is the share of the demand that is still expected after the time since the last claim.
func (l *Learned) silenceFactor() float64 {
	if l.Silence > longSilence && !l.Method.WithoutSilence {
		return longSilence / l.Silence
	}
	return 1
}

// nextHourFactor is how much busier the next hour must be to count as if it had begun: hours of little demand differ by chance.
const nextHourFactor = 2.0

// expectedAhead is expectedNow within a lead, of clusters that are resumed now: they run in the hour that begins within the lead, so
// as many are expected as if it had begun.
func (l *Learned) expectedAhead(lead time.Duration) float64 {
	n := l.expectedNow(lead)
	if l.Method.WithoutProfile || l.Method.WithoutNextHour {
		return n
	}
	span := min(lead, time.Hour)
	usual := l.profileClaims(l.At.Add(lead-span), span)
	if next := l.profileRate(hourOfWeek(l.At.Add(lead).In(l.location()))) * span.Hours(); next > nextHourFactor*usual {
		n += l.silenceFactor() * l.Weights.Weight[0] * (next - usual)
	}
	return n
}

// recentClaims returns what the recent rate predicts for a time from now on.
func (l *Learned) recentClaims(span time.Duration) float64 {
	return l.Recent * recentHours * (1 - math.Exp(-span.Hours()/recentHours))
}

// profileClaims returns what the profile predicts for a time.
func (l *Learned) profileClaims(from time.Time, span time.Duration) float64 {
	sum := 0.0
	for at, end := from, from.Add(span); at.Before(end); {
		next := at.Truncate(time.Hour).Add(time.Hour)
		if next.After(end) {
			next = end
		}
		sum += l.profileRate(hourOfWeek(at.In(l.zone))) * next.Sub(at).Hours()
		at = next
	}
	return sum
}

// isWarm reports whether enough was seen to compute counts. It does not become false with time: a demand that has stopped was seen.
func (l *Learned) isWarm() bool {
	return l.WatchedHours >= warmUpHours && l.WatchedClaims >= warmUpClaims
}
