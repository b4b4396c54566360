package claim

import (
	"fmt"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

// MinHeartbeatTimeout is the shortest timeout of a heartbeat: a shorter one would end claims because of
// a slow request.
const MinHeartbeatTimeout = 10 * time.Second

// ParseHeartbeatTimeout returns the value of the annotation heartbeat-timeout.
func ParseHeartbeatTimeout(text hivev1.Duration) (time.Duration, error) {
	timeout, err := text.Parse()
	if err == nil && timeout < MinHeartbeatTimeout {
		err = fmt.Errorf("%q is shorter than %s", string(text), MinHeartbeatTimeout)
	}
	return timeout, err
}

// addHeartbeat plans to end a claim whose heartbeat is missing.
//
// Two thirds into the timeout, the condition HeartbeatMissing becomes True. The claim ends when the
// timeout is over and the condition has been True for the last third of it. Without the second part, a hub
// that was away for longer than the timeout would end all claims when it is back, before their processes
// could renew the heartbeats: the condition proves that the hub has accepted a write, and so could have
// accepted a heartbeat, a third of the timeout ago.
func (p *Plan) addHeartbeat(h Heartbeat, now time.Time) {
	if h.Timeout == "" {
		p.expectHeartbeat(h)
		return
	}
	timeout, err := ParseHeartbeatTimeout(h.Timeout)
	if err != nil {
		if !p.Stalled.IsTrue() {
			p.Stalled = condition.True(hivev1.ReasonInvalidHeartbeatTimeout, "annotation "+hivev1.AnnotationHeartbeatTimeout+" is ignored: "+err.Error()+": correct it")
		}
		p.expectHeartbeat(h)
		return
	}
	if len(p.Steps) > 0 {
		return
	}
	last := timeout / 3
	if left := h.SeenAt.Add(timeout - last).Sub(now); left > 0 {
		p.expectHeartbeat(h)
		p.wakeAfter(left)
		return
	}
	p.HeartbeatMissing = condition.True(hivev1.ReasonHeartbeatOverdue, fmt.Sprintf(
		"The process that uses the claim has not renewed annotation %s: hotspare releases the claim unless it does so within %s",
		hivev1.AnnotationHeartbeat, last.Round(time.Second)))
	if h.MissingSince.IsZero() {
		p.wakeAfter(last)
		return
	}
	end := h.MissingSince.Add(time.Second + last) // the condition has whole seconds
	if atLeast := h.SeenAt.Add(timeout); end.Before(atLeast) {
		end = atLeast
	}
	if left := end.Sub(now); left > 0 {
		p.wakeAfter(left)
		return
	}
	p.Steps = []Step{{DeleteClaim, HeartbeatMissing}}
}

// expectHeartbeat withdraws the condition HeartbeatMissing.
func (p *Plan) expectHeartbeat(h Heartbeat) {
	if !h.MissingSince.IsZero() {
		p.HeartbeatMissing = condition.False(hivev1.ReasonHeartbeatOnTime, "The heartbeat of the claim is not overdue")
	}
}

// wakeAfter makes the next pass happen after d at the latest.
func (p *Plan) wakeAfter(d time.Duration) {
	if p.Next <= 0 || d < p.Next {
		p.Next = d
	}
}
