package sizing

import (
	"time"

	"hotspare.io/hotspare/internal/cloud"
)

// ShallowDepths are the depths of sleep that are shallower than stop, from the shallowest to the deepest.
func ShallowDepths() []cloud.Depth { return []cloud.Depth{cloud.DepthFreeze, cloud.DepthSuspend} }

// PerShallowDepth has a value for each of ShallowDepths.
type PerShallowDepth[T any] struct {
	Freeze  T `json:"freeze,omitzero"`
	Suspend T `json:"suspend,omitzero"`
}

// Of returns the value of a depth; nil for stop and for a depth that does not exist.
func (s *PerShallowDepth[T]) Of(d cloud.Depth) *T {
	switch d {
	case cloud.DepthFreeze:
		return &s.Freeze
	case cloud.DepthSuspend:
		return &s.Suspend
	default:
		return nil
	}
}

// runningLeadModels returns the lead models of the running count: one for each depth from which a cluster can be woken, the
// deepest first. Those of shallow depths have no lead while no resume from there was measured.
func (l *Learned) runningLeadModels() [3]*leadModel {
	return [3]*leadModel{&l.Running, &l.Shallow.Suspend, &l.Shallow.Freeze}
}

// leastShallowLead is the shortest lead of a shallow depth: a claim and its cluster take some seconds even if a
// resume takes none.
const leastShallowLead = 10 * time.Second

func shallowLead(o Objective, d Durations, depth cloud.Depth) time.Duration {
	lead := *d.Shallow.Of(depth) - o.MaxWait
	if lead <= 0 {
		return 0
	}
	return max(lead, leastShallowLead)
}

// A sleeper is a number of clusters that sleep at a shallow depth.
type sleeper struct {
	depth cloud.Depth
	count int
	wake  time.Duration
}

// sleepers returns the clusters at shallow depths that the next claims can wake, the shallowest first. Claims that wait
// take the first ones. A depth counts only if a resume from there was measured and is shorter than one from stop.
func (s Snapshot) sleepers() []sleeper {
	var out []sleeper
	taken := s.Waiting
	for _, depth := range ShallowDepths() {
		n, wake := *s.Sleeping.Of(depth), *s.Durations.Shallow.Of(depth)
		taken, n = max(taken-n, 0), max(n-taken, 0)
		if n > 0 && wake > 0 && wake < s.Durations.Resume {
			out = append(out, sleeper{depth, n, wake})
		}
	}
	return out
}

// countWithSleepers returns how many clusters should run if all would be woken from stop in count, in view of those
// that sleep less deeply. A claim that takes a running cluster has the shallowest sleeper woken in its place. So running
// clusters and sleepers together serve the claims within a resume from stop, and the running ones need to
// serve only those within a resume of the sleepers.
func (s Snapshot) countWithSleepers(count int, factor float64, asleep []sleeper) int {
	least, stock := 0, 0
	for _, a := range asleep {
		least = max(least, min(s.countWithin(s.Learned.Shallow.Of(a.depth), factor), count)-stock)
		stock += a.count
	}
	return max(least, count-stock)
}

// countWithin returns the count of a lead model for the demand now, multiplied by factor.
func (s Snapshot) countWithin(a *leadModel, factor float64) int {
	l := s.Learned
	if a.Lead <= 0 {
		return 0
	}
	hour := hourOfWeek(l.At.Add(a.Lead).In(l.location())) % hoursOfDay
	c := claims{factor * l.expectedAhead(a.Lead), a.dispersionAt(hour, l.Method), a.Lead.Hours()}
	return a.countFor(c, 1-s.Objective.Share, l.margin(s.Objective), l.Method)
}
