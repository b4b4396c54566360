package record

import (
	"cmp"
	"slices"
	"time"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/sizing"
	"hotspare.io/hotspare/internal/sizing/calendar"
)

const (
	// maxGap is the time without a pass that counts as observed. A longer one is a gap: claims that
	// came and went meanwhile are not known. It is longer than heartbeat, which is how exactly the end
	// of a record is known after a restart.
	maxGap = 2 * time.Hour
	// overlap is how long before the end of a record claims may have been missed.
	overlap = 10 * time.Minute
	// saveInterval is the shortest time between two writes of a record, heartbeat the longest: it
	// records until when somebody looked.
	saveInterval = 3 * time.Minute
	heartbeat    = time.Hour
	// withdrawal is the age below which the deletion of a waiting claim says nothing about the pool.
	withdrawal = 5 * time.Second
)

// A Claim is what is known about a claim at a moment.
type Claim struct {
	// ID is its UID.
	ID string
	// Created is since when it waits for a cluster: its creation, or its admission by a ClaimPolicy.
	Created time.Time
	// Running is when its cluster ran for the first time; zero before. AtOnce is set if the cluster
	// was running already when the claim was created.
	Running time.Time
	AtOnce  bool
}

// A Cluster is what is known about a cluster of a pool at a moment.
type Cluster struct {
	Name    string
	Created time.Time
	// State says what it costs, and Depth the depth at which it sleeps if it hibernates; "" is stop.
	State State
	Depth cloud.Depth
	// WantedDepth is the depth at which it should sleep, and AsleepSince when it went to sleep at Depth; zero if it
	// does not sleep.
	WantedDepth cloud.Depth
	AsleepSince time.Time
	// Resume and Install are the last operations that have ended; nil if there is none. ResumedFrom is the depth
	// from which Resume was; "" is stop.
	Resume, Install *Duration
	ResumedFrom     cloud.Depth
}

// CountSleepers returns how many unclaimed clusters hibernate at shallow depths.
func (o Objects) CountSleepers() sizing.PerShallowDepth[int] {
	var out sizing.PerShallowDepth[int]
	for _, c := range o.Clusters {
		if n := out.Of(c.Depth); n != nil && c.State == Hibernating {
			*n++
		}
	}
	return out
}

// Objects are the claims and the clusters of a pool at a moment.
type Objects struct {
	Now      time.Time
	Claims   []Claim
	Clusters []Cluster
	// Waiting is how many claims wait for a cluster.
	Waiting int
	// Held are the IDs of claims that a ClaimPolicy makes wait. More clusters would not help, so they are no demand.
	Held []string
}

// A Tracker keeps a record, and what was learned from it, up to date.
type Tracker struct {
	Record
	Learned *sizing.Learned
	// Calendar is that of the policy; nil if there is none. It applies from the next Observe on.
	Calendar *calendar.Calendar

	objective sizing.Objective
	zone      string
	// learnedCalendar is the Calendar that Learned was learned with.
	learnedCalendar *calendar.Calendar
	// claims are the claims that exist, by ID; began is set after the first Observe.
	claims map[string]*tracked
	began  bool
	// changed is set while claims or durations are recorded that were not saved, savedAt is when the
	// record was saved last.
	changed bool
	savedAt time.Time
	// beforeJump is the record from before the clock has jumped to jumpedAt; nil if it has not, or if that is long ago.
	beforeJump *saved
	jumpedAt   time.Time
	// noted is what was noted last, and when; notedAt is zero before the first Note.
	noted   Note
	notedAt time.Time
}

// tracked is a claim that exists.
type tracked struct {
	created time.Time
	// settled is set once it is known whether it was served in time, or if that will not be counted.
	settled bool
	// isHeld is set while a ClaimPolicy makes it wait, although it was recorded before.
	isHeld bool
	// byForecast is set if the pool had the running count of the forecast when the claim arrived.
	byForecast bool
}

// NewTracker continues a record; nil begins one.
func NewTracker(r *Record) *Tracker {
	t := &Tracker{claims: map[string]*tracked{}}
	if r != nil {
		t.Record = *r
		t.savedAt = r.Until
	}
	return t
}

// Observe records what has happened since the last call. It ignores a moment before the last one: the
// clock was set back, and it waits until the clock is there again. If the clock was ahead for a while, it forgets that. The zero objective stands for the last one.
func (t *Tracker) Observe(o Objects, objective sizing.Objective, zone string) {
	if t.IsAhead(o.Now) {
		return
	}
	t.undoJump(o.Now)
	if objective == (sizing.Objective{}) {
		objective = t.lastObjective()
	}
	t.objective = objective
	from := t.Until
	switch {
	case t.Since.IsZero():
		t.Since, t.Until, from = o.Now, o.Now, o.Now
		t.changed = true
	case o.Now.Sub(from) > maxGap:
		t.keepBeforeJump(o.Now)
		t.Demand.AddGap(from, o.Now)
		t.changed = true
		if t.Learned != nil {
			t.Learned.SkipUnobserved(o.Now)
		}
	}
	t.addDurations(o.Clusters)
	t.addRefusals(o)
	t.addHours(from, o)
	t.addQuarters(from, o)
	if !t.began || t.zone != zone || !t.Calendar.Equal(t.learnedCalendar) || t.Learned == nil || !t.Learned.FitsLeads(objective, t.Measured()) {
		t.addClaims(o, from, nil)
		t.Learned = sizing.Relearn(&t.Demand, t.Since, objective, t.Measured(), zone, t.Calendar, o.Now)
		t.recallOutcomes()
	} else {
		t.Learned.SetCalendar(t.Calendar)
		t.Learned.SetLeads(objective, t.Measured())
		t.rememberOutcomes()
		t.addClaims(o, from, t.Learned)
		t.Learned.Advance(o.Now)
	}
	t.began, t.zone, t.learnedCalendar = true, zone, t.Calendar
	if o.Now.After(t.Until) {
		t.Until = o.Now
	}
}

// addClaims records new claims, and outcomes of the others. It adds them to learned unless that is nil.
func (t *Tracker) addClaims(o Objects, from time.Time, learned *sizing.Learned) {
	claims := slices.SortedFunc(slices.Values(o.Claims), func(a, b Claim) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	exist := make(map[string]bool, len(claims))
	for _, id := range o.Held {
		if k := t.claims[id]; k != nil {
			exist[id], k.isHeld = true, true
		}
	}
	for _, c := range claims {
		exist[c.ID] = true
		if t.claims[c.ID] == nil {
			t.claims[c.ID] = t.addClaim(c, from, o.Now, learned)
		}
		t.claims[c.ID].isHeld = false
		if k := t.claims[c.ID]; !k.settled && !c.Running.IsZero() {
			k.settled = true
			t.addWait(c)
			t.addOutcome(k.created, t.isServed(c), k.byForecast, learned)
		}
	}
	for id, k := range t.claims {
		if exist[id] {
			continue
		}
		if !k.settled && !k.isHeld && o.Now.Sub(k.created) > max(t.objective.MaxWait, withdrawal) {
			t.addOutcome(k.created, false, k.byForecast, learned)
			if q := t.Quarters.at(k.created); q != nil {
				q.Unserved = min(q.Unserved+1, maxClusters)
			}
		}
		delete(t.claims, id)
	}
}

// addClaim records a claim that this process sees for the first time.
func (t *Tracker) addClaim(c Claim, from, now time.Time, learned *sizing.Learned) *tracked {
	isFirst := !t.began && from.Equal(now) && t.Since.Equal(now)
	isGap := !isFirst && now.Sub(from) > maxGap
	switch {
	case isGap && c.Created.After(from):
		return &tracked{created: c.Created, settled: true} // of the others in the gap nothing is known
	case !isFirst && !t.began && c.Created.Before(from.Add(-overlap)):
		return &tracked{created: c.Created, settled: !c.Running.IsZero()} // recorded by an earlier process
	case !t.Demand.Add(c.ID, c.Created, false, now):
		return &tracked{created: c.Created, settled: !c.Running.IsZero()}
	}
	t.changed = true
	if learned != nil {
		learned.AddArrival(c.Created)
	}
	return &tracked{created: c.Created, byForecast: t.noted.FollowsForecast && t.noted.Pool.Running == t.noted.Recommended.Running}
}

func (t *Tracker) isServed(c Claim) bool {
	if t.objective.MaxWait == 0 {
		return c.AtOnce
	}
	return c.AtOnce || c.Running.Sub(c.Created) <= t.objective.MaxWait
}

func (t *Tracker) addOutcome(created time.Time, served, byForecast bool, learned *sizing.Learned) {
	t.changed = true
	if !served {
		t.Demand.AddLate(created)
	}
	if learned != nil {
		learned.AddOutcome(served, byForecast)
		t.rememberOutcomes()
	}
}

// lastObjective returns the objective of the last call or, before the first one, that of the record; 99 % at once if neither exists.
func (t *Tracker) lastObjective() sizing.Objective {
	switch o := t.Outcomes; {
	case t.objective != (sizing.Objective{}):
		return t.objective
	case o != nil && o.Share > 0 && o.Share < 1 && o.MaxWait >= 0 && o.MaxWait < maxDuration.Seconds():
		return sizing.Objective{Share: o.Share, MaxWait: time.Duration(o.MaxWait * float64(time.Second))}
	default:
		return sizing.Objective{Share: 0.99}
	}
}

// rememberOutcomes records the outcomes of claims in the details, which do not follow from the claims.
func (t *Tracker) rememberOutcomes() {
	t.Outcomes = &Outcomes{Share: t.objective.Share, MaxWait: t.objective.MaxWait.Seconds(), Outcomes: t.Learned.Outcomes}
}

// recallOutcomes restores the outcomes that the record has of the objective. Those of another one say nothing. A record of an older
// version has none, but the claims that were late.
func (t *Tracker) recallOutcomes() {
	o := t.Outcomes
	if o == nil {
		return
	}
	t.Learned.Outcomes = sizing.Outcomes{}
	if o.Share == t.objective.Share && o.MaxWait == t.objective.MaxWait.Seconds() {
		t.Learned.Outcomes = o.Outcomes
	}
}

func (t *Tracker) addDurations(clusters []Cluster) {
	for _, c := range clusters {
		resumes := &t.Resumes
		if shallow := t.ShallowResumes.Of(c.ResumedFrom); shallow != nil {
			resumes = shallow
		}
		if c.Resume != nil && c.Resume.isPlausible(t.Until) && resumes.add(*c.Resume) {
			t.changed = true
		}
		if c.Install != nil && c.Install.isPlausible(t.Until) && t.Installs.add(*c.Install) {
			t.changed = true
		}
	}
}

// refusalWindow is how soon after a cluster went to sleep its depth says what the platform refused. Later, a cluster may be deeper
// because its processes ended, or the computer restarted, or may have got another wish.
const refusalWindow = 3 * time.Minute

// addRefusals records at which depths spare clusters should sleep and do not.
func (t *Tracker) addRefusals(o Objects) {
	for _, c := range o.Clusters {
		if c.AsleepSince.IsZero() || c.State == Claimed || o.Now.Sub(c.AsleepSince) > refusalWindow || c.AsleepSince.After(t.Until.Add(maxGap)) {
			continue
		}
		for _, depth := range sizing.ShallowDepths() {
			at := t.RefusedDepths.Of(depth)
			if !c.WantedDepth.IsDeeperThan(depth) && c.Depth.IsDeeperThan(depth) && c.AsleepSince.After(*at) {
				*at, t.changed = c.AsleepSince.UTC(), true
			}
		}
	}
}

// isPlausible reports whether a duration may be recorded.
func (d Duration) isPlausible(until time.Time) bool {
	return !d.At.After(until.Add(maxGap)) && d.Seconds <= int64(maxDuration/time.Second) && (d.Failed || d.Seconds > 0)
}

// addHours adds what the unclaimed clusters have cost since a moment. If nobody looked in between, each counts from its creation, in the
// state that it has now.
func (t *Tracker) addHours(from time.Time, o Objects) {
	if month := monthOf(o.Now); t.Month != month {
		t.Month, t.RunningHours, t.HibernatingHours, t.Compared = month, 0, 0, nil
		t.ShallowHours = sizing.PerShallowDepth[float64]{}
		if begin := beginOfMonth(o.Now); from.Before(begin) {
			from = begin
		}
	}
	isGap := o.Now.Sub(from) > maxGap
	for _, c := range o.Clusters {
		since := from
		if isGap && c.Created.After(from) {
			since = c.Created
		}
		hours := max(o.Now.Sub(since), 0).Hours()
		switch c.State {
		case Claimed:
		case Hibernating:
			t.HibernatingHours += hours
			if shallow := t.ShallowHours.Of(c.Depth); shallow != nil {
				*shallow += hours
			}
		default:
			t.RunningHours += hours
		}
	}
}

// NeedsSave reports whether the record should be written now.
func (t *Tracker) NeedsSave(now time.Time) bool {
	age := now.Sub(t.savedAt)
	isDue := age < 0 || t.changed && age >= saveInterval || age >= heartbeat
	return !t.IsAhead(now) && (t.savedAt.IsZero() || t.beforeJump == nil && isDue)
}

// HasUnsaved reports whether something was recorded that was not saved.
func (t *Tracker) HasUnsaved() bool { return t.changed }

// MarkUnsaved has the record written at the next opportunity.
func (t *Tracker) MarkUnsaved() { t.savedAt = time.Time{} }

// MarkSaved records that the record was written.
func (t *Tracker) MarkSaved(now time.Time) { t.savedAt, t.changed = now, false }
