package session_test

import (
	"errors"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/console/session"
)

var start = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// rig is a store that records which sessions have ended.
type rig struct {
	*testing.T
	session.Store[string]
	ended []string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t}
	r.End = func(s *session.Session[string]) { r.ended = append(r.ended, s.Viewer) }
	return r
}

func (r *rig) open(name, who string, at time.Time) *session.Session[string] {
	r.Helper()
	s, err := r.Open(name, who, at)
	if err != nil {
		r.Fatal(err)
	}
	return s
}

func TestASessionLastsAsLongAsItIsUsedButNotForEver(t *testing.T) {
	for name, c := range map[string]struct {
		every time.Duration
		lasts time.Duration
	}{
		"used all the time":   {10 * time.Minute, session.MaxAge},
		"used just in time":   {session.IdleTimeout - time.Minute, session.MaxAge},
		"unused for too long": {session.IdleTimeout, session.IdleTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			s := r.open("alice", "a", start)
			var last time.Duration
			for at := c.every; at < 2*session.MaxAge; at += c.every {
				if r.Find(s.ID, start.Add(at)) == nil {
					last = at
					break
				}
			}
			if last < c.lasts || last > c.lasts+c.every {
				t.Errorf("it lasted %s, want about %s", last, c.lasts)
			}
			r.EndExpiredAndRestIdle(start.Add(last), time.Hour, func(*session.Session[string]) { t.Error("one that is over is not let rest") })
			if len(r.ended) != 1 || r.ended[0] != "a" {
				t.Errorf("ended: %v", r.ended)
			}
		})
	}
}

func TestAClosedSessionIsNobodys(t *testing.T) {
	r := newRig(t)
	s := r.open("alice", "a", start)
	r.Close(s.ID)
	r.Close(s.ID)
	if r.Find(s.ID, start) != nil || len(r.ended) != 1 {
		t.Errorf("it is found, or ended %d times", len(r.ended))
	}
	r.open("bob", "b", start)
	r.CloseAll()
	if len(r.ended) != 2 {
		t.Errorf("ended: %v", r.ended)
	}
}

func TestSessionsAreBoundedByPersonAndInAll(t *testing.T) {
	r := newRig(t)
	first := r.open("alice", "first", start)
	for range 30 {
		r.open("alice", "more", start.Add(time.Minute))
	}
	if r.Find(first.ID, start.Add(time.Minute)) != nil {
		t.Error("the session that has been idle for longest is still there")
	}
	if r.ended[0] != "first" || len(r.ended) != 26 {
		t.Errorf("%d ended, the first of them %s", len(r.ended), r.ended[0])
	}
	for i := range 495 {
		r.open(string(rune('b'+i)), "other", start.Add(time.Minute))
	}
	if _, err := r.Open("one too many", "x", start.Add(time.Minute)); !errors.Is(err, session.ErrFull) {
		t.Errorf("got %v, want %v", err, session.ErrFull)
	}
	if _, err := r.Open("later", "x", start.Add(2*session.IdleTimeout)); err != nil {
		t.Errorf("when the others are over: %v", err)
	}
}

func TestOnlyAFormOfTheSessionIsTaken(t *testing.T) {
	r := newRig(t)
	a, b := r.open("alice", "a", start), r.open("alice", "b", start)
	if !a.HasCSRFToken(a.CSRFToken) || a.HasCSRFToken(b.CSRFToken) || a.HasCSRFToken("") || a.HasCSRFToken(a.ID) {
		t.Error("the mark tells nothing")
	}
	if a.ID == b.ID || a.CSRFToken == b.CSRFToken || len(a.ID) < 26 {
		t.Error("secrets that can be guessed")
	}
}

func TestAMessageIsToldOnce(t *testing.T) {
	r := newRig(t)
	a, b := r.open("alice", "a", start), r.open("bob", "b", start)
	for range 100 {
		r.AddMessage(a, session.Message{Text: "done"})
	}
	if got := r.TakeMessages(b); len(got) != 0 {
		t.Errorf("bob is told %v", got)
	}
	if got := r.TakeMessages(a); len(got) == 0 || len(got) > 10 {
		t.Errorf("alice is told %d messages", len(got))
	}
	if got := r.TakeMessages(a); len(got) != 0 {
		t.Errorf("alice is told again %v", got)
	}
}

func TestWhoIsUnusedRests(t *testing.T) {
	r := newRig(t)
	r.open("alice", "a", start)
	b := r.open("bob", "b", start)
	r.Find(b.ID, start.Add(50*time.Second))
	var rested []string
	r.EndExpiredAndRestIdle(start.Add(time.Minute), time.Minute, func(s *session.Session[string]) { rested = append(rested, s.Viewer) })
	if len(rested) != 1 || rested[0] != "a" {
		t.Errorf("rested: %v", rested)
	}
}
