// Package counts decides who sets the counts of a pool, a person or its policy, and to what.
//
// Decide is one pure function. It asks sizing.Decide for the counts that the pool should have, and
// respects a change by hand until the next midnight. What it needs to know about the past is an
// Applied, which is written to the pool together with the counts: so whatever happens between two
// writes, the counts and what is known about them belong together.
package counts

import (
	"encoding/json"
	"fmt"
	"time"

	"hotspare.io/hotspare/internal/sizing"
)

// Applied is what is recorded on a pool about the counts that a policy has set last.
type Applied struct {
	sizing.Setting
	// Static is the setting that a person has chosen last.
	Static sizing.Setting `json:"static"`
	// RunningLoweredAt and SizeLoweredAt are when each count was lowered last; zero if it was not.
	RunningLoweredAt time.Time `json:"runningLoweredAt,omitzero"`
	SizeLoweredAt    time.Time `json:"sizeLoweredAt,omitzero"`
}

// String returns the value of the annotation.
func (a Applied) String() string {
	raw, err := json.Marshal(a)
	if err != nil {
		return "" // a value of numbers and times can be encoded
	}
	return string(raw)
}

// ParseApplied reads what String has returned; nil if it is anything else. The counts of the pool are
// then those that a person has set.
func ParseApplied(text string) *Applied {
	var a Applied
	if text == "" || json.Unmarshal([]byte(text), &a) != nil || !isSetting(a.Setting) || !isSetting(a.Static) {
		return nil
	}
	return &a
}

// maxCount is the largest count that a pool can have.
const maxCount = 1<<31 - 1

func isSetting(s sizing.Setting) bool {
	return s.Running >= 0 && s.Size >= 0 && s.Running <= maxCount && s.Size <= maxCount
}

// Manual is a change by hand that is respected.
type Manual struct {
	sizing.Setting
	Since, Until time.Time
	// By is who changed the counts; empty if that is not known.
	By string
}

// A Change is when the counts were changed last, and by whom.
type Change struct {
	At time.Time
	By string
}

// A Snapshot is everything that a plan depends on.
type Snapshot struct {
	// Auto is set if the policy may set the counts.
	Auto bool
	// Zone is the time zone in which a day ends.
	Zone *time.Location
	// Pool is the setting that the pool has, Applied what is recorded on it; nil if nothing is.
	Pool    sizing.Setting
	Applied *Applied
	// Manual is the change that was respected at the last pass; nil if none was.
	Manual *Manual
	// Changed is when the counts were changed last; nil if that is not known. It is only read if
	// NeedsChange.
	Changed *Change
	// Resume is set if a person has asked to end a change by hand. It ends the change that the next pass
	// finds, whichever came first.
	Resume bool
	// Sizing has the demand, the objective and the limits. Decide sets its Static and Current, and when
	// the counts were lowered.
	Sizing sizing.Snapshot
}

// A Plan is what should happen.
type Plan struct {
	// Recommended are the counts that the pool should have.
	Recommended sizing.Plan
	Static      sizing.Setting
	// Manual is the change by hand that is respected; nil if there is none.
	Manual *Manual
	// Apply is what is to be written to the pool, with the counts; nil if nothing is.
	Apply *Applied
	// EndResume is set if the request of a person to end a change was carried out by Apply, or if the policy sets no counts.
	EndResume bool
}

// isChangedByHand reports whether somebody else has changed the counts since they were applied.
func (s Snapshot) isChangedByHand() bool { return s.Applied != nil && s.Applied.Setting != s.Pool }

// isSameChange reports whether the last pass respected this change already.
func (s Snapshot) isSameChange() bool { return s.Manual != nil && s.Manual.Setting == s.Pool }

// NeedsChange reports whether Decide needs to know when the counts were changed: it has not seen this
// change before.
func (s Snapshot) NeedsChange() bool {
	return s.Auto && !s.Resume && s.isChangedByHand() && !s.isSameChange()
}

// Decide returns the plan.
func Decide(s Snapshot) Plan {
	now := s.Sizing.Now
	in := s.Sizing
	static := s.static()
	in.Static, in.Current = effective(static), effective(s.Pool)
	if s.Applied != nil {
		in.RunningLoweredAt, in.SizeLoweredAt = s.Applied.RunningLoweredAt, s.Applied.SizeLoweredAt
	}
	p := Plan{Static: static}
	if s.Auto {
		p.Manual = s.manual(now)
	}
	in.Unpaced = !s.Auto || p.Manual != nil
	p.Recommended = sizing.Decide(in)
	if in.Unpaced {
		p.EndResume = s.Resume && !s.Auto // there is no change to end, and the request must not end one of another day
		return p
	}
	p.EndResume = s.Resume
	next := Applied{
		Setting: p.Recommended.Setting(), Static: static,
		RunningLoweredAt: in.RunningLoweredAt, SizeLoweredAt: in.SizeLoweredAt,
	}
	if s.Applied != nil && s.Applied.Setting == s.Pool && next.Setting == s.Pool {
		return p
	}
	if next.Running < in.Current.Running {
		next.RunningLoweredAt = now.UTC().Truncate(time.Second)
	}
	if next.Size < in.Current.Size {
		next.SizeLoweredAt = now.UTC().Truncate(time.Second)
	}
	p.Apply = &next
	return p
}

// effective returns what a setting means: not more clusters run than exist. Without it, a running count
// above the size would raise the size.
func effective(s sizing.Setting) sizing.Setting {
	return sizing.Setting{Running: min(s.Running, s.Size), Size: s.Size}
}

// static returns the setting that a person has chosen last.
func (s Snapshot) static() sizing.Setting {
	if s.Applied == nil || s.isChangedByHand() {
		return s.Pool
	}
	return s.Applied.Static
}

// manual returns the change by hand that is respected now; nil if there is none.
func (s Snapshot) manual(now time.Time) *Manual {
	if !s.isChangedByHand() || s.Resume {
		return nil
	}
	m := Manual{Setting: s.Pool, Since: now}
	switch {
	case s.isSameChange():
		m.Since, m.By = s.Manual.Since, s.Manual.By
	case s.Changed != nil:
		m.Since, m.By = s.Changed.At, s.Changed.By
	}
	if m.Since.After(now) { // the clock was set back
		m.Since = now
	}
	m.Since = m.Since.UTC().Truncate(time.Second)
	m.Until = NextMidnight(m.Since, s.Zone)
	if !now.Before(m.Until) {
		return nil
	}
	return &m
}

// NextMidnight returns when the day of a moment ends in a zone: where clocks skip midnight, at the
// first time of the next day.
func NextMidnight(at time.Time, zone *time.Location) time.Time {
	local := at.In(zone)
	next := time.Date(local.Year(), local.Month(), local.Day()+1, 0, 0, 0, 0, zone)
	if next.Day() == local.Day() { // it does not exist, and time.Date has chosen an hour earlier
		next = next.Add(time.Hour)
	}
	return next.UTC()
}

// Describe returns what Apply changes: "spec.runningCount from 3 to 2: Mon 9-10: …".
func (p Plan) Describe(from sizing.Setting) []string {
	var out []string
	for _, c := range []struct {
		field    string
		from, to int
		reason   string
	}{
		{"spec.runningCount", from.Running, p.Recommended.Running.Count, p.Recommended.Running.Reason},
		{"spec.size", from.Size, p.Recommended.Size.Count, p.Recommended.Size.Reason},
	} {
		if c.from != c.to {
			out = append(out, fmt.Sprintf("%s from %d to %d: %s", c.field, c.from, c.to, c.reason))
		}
	}
	return out
}
