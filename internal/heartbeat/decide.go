// Package heartbeat decides when a ClusterClaim or a ClaimSet ends because the process that uses it does not renew its
// heartbeat. It is pure.
//
// Package tracker observes the heartbeats.
package heartbeat

import (
	"fmt"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

// MinTimeout is the shortest timeout of a heartbeat: a shorter one would end claims because of a slow request.
const MinTimeout = 10 * time.Second

// ParseTimeout returns the value of the annotation heartbeat-timeout.
func ParseTimeout(text hivev1.Duration) (time.Duration, error) {
	timeout, err := text.Parse()
	if err == nil && timeout < MinTimeout {
		err = fmt.Errorf("%q is shorter than %s", string(text), MinTimeout)
	}
	return timeout, err
}

// An Observation is what was observed of the heartbeat of an object.
type Observation struct {
	// Timeout is the annotation heartbeat-timeout; empty if the object has no heartbeat any more.
	Timeout hivev1.Duration
	// SeenAt is when this process first saw the current value of the annotation heartbeat, by its own
	// clock. A new process has seen no heartbeat before it started.
	SeenAt time.Time
	// MissingSince is when the condition HeartbeatMissing became True, in whole seconds; zero if it is
	// not.
	MissingSince time.Time
}

// A Snapshot is everything that the plan for a heartbeat depends on.
type Snapshot struct {
	Now time.Time
	// Object is the word for the object in a message, such as "claim".
	Object string
	Observation
}

// A Plan is what to do about the heartbeat of an object.
type Plan struct {
	// Missing is the condition HeartbeatMissing of the object; the zero value leaves it unchanged.
	Missing condition.Value
	// Invalid reports a timeout that is not valid; the zero value means that there is none.
	Invalid condition.Value
	// End is set if the object must be deleted, unless it has changed.
	End bool
	// Next is the time until the next decision even if nothing changes; 0 means never.
	Next time.Duration
}

// Decide returns the plan for the heartbeat of an object.
//
// Two thirds into the timeout, the condition HeartbeatMissing becomes True. The object ends when the
// timeout is over and the condition has been True for the last third of it. Without the second part, a hub
// that was away for longer than the timeout would end all objects when it is back, before their processes
// could renew the heartbeats: the condition proves that the hub has accepted a write, and so could have
// accepted a heartbeat, a third of the timeout ago.
func Decide(s Snapshot) Plan {
	if s.Timeout == "" {
		return Plan{Missing: s.onTime()}
	}
	timeout, err := ParseTimeout(s.Timeout)
	if err != nil {
		return Plan{Missing: s.onTime(), Invalid: condition.True(
			hivev1.ReasonInvalidHeartbeatTimeout, "annotation "+hivev1.AnnotationHeartbeatTimeout+" is ignored: "+err.Error()+": correct it")}
	}
	last := timeout / 3
	if left := s.SeenAt.Add(timeout - last).Sub(s.Now); left > 0 {
		return Plan{Missing: s.onTime(), Next: left}
	}
	missing := condition.True(hivev1.ReasonHeartbeatOverdue, fmt.Sprintf(
		"The process that uses the %s has not renewed annotation %s: hotspare releases the %s unless it does so within %s",
		s.Object, hivev1.AnnotationHeartbeat, s.Object, last.Round(time.Second)))
	if s.MissingSince.IsZero() {
		return Plan{Missing: missing, Next: last}
	}
	end := s.MissingSince.Add(time.Second + last) // the condition has whole seconds
	if atLeast := s.SeenAt.Add(timeout); end.Before(atLeast) {
		end = atLeast
	}
	if left := end.Sub(s.Now); left > 0 {
		return Plan{Missing: missing, Next: left}
	}
	return Plan{Missing: missing, End: true}
}

// onTime returns the condition that withdraws HeartbeatMissing; the zero value if it is not True.
func (s Snapshot) onTime() condition.Value {
	if s.MissingSince.IsZero() {
		return condition.Value{}
	}
	return condition.False(hivev1.ReasonHeartbeatOnTime, "The heartbeat of the "+s.Object+" is not overdue")
}
