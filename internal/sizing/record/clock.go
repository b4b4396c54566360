package record

import "time"

// jumpDelay is how long a clock that has jumped may be wrong: that of a computer that starts is corrected within minutes. The record is not
// written meanwhile, unless MarkUnsaved asks for it.
const jumpDelay = 15 * time.Minute

// saved is a record as it is written.
type saved struct {
	until      time.Time
	binaryData map[string][]byte
	data       map[string]string
}

// keepBeforeJump keeps what was recorded until a time without a pass, which may be a clock that is ahead.
func (t *Tracker) keepBeforeJump(now time.Time) {
	binaryData, data, err := t.Write(t.Until)
	if err != nil {
		return // then nothing can be saved, either, and the next write reports it
	}
	t.beforeJump, t.jumpedAt = &saved{t.Until, binaryData, data}, now
}

// undoJump forgets what was recorded since the clock has jumped, if it is before that time again. What was recorded meanwhile has no date.
func (t *Tracker) undoJump(now time.Time) {
	switch {
	case t.beforeJump == nil:
	case t.Until.After(now.Add(maxAhead)):
		r, _, err := Read(t.beforeJump.binaryData, t.beforeJump.data, now)
		t.beforeJump = nil
		if err == nil {
			t.Record, t.Learned, t.notedAt, t.changed = *r, nil, time.Time{}, true
		}
	case now.Sub(t.jumpedAt) > jumpDelay:
		t.beforeJump = nil
	}
}

// IsAhead reports whether the record ends after a moment by more than clocks differ, and no jump of the clock explains that.
func (t *Tracker) IsAhead(now time.Time) bool {
	limit := now.Add(maxAhead)
	return t.Until.After(limit) && (t.beforeJump == nil || t.beforeJump.until.After(limit))
}
