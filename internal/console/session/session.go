// Package session stores the sessions of users of the console, in memory only.
package session

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"sync"
	"time"
)

// MaxAge is the maximum age of a session, IdleTimeout the time after which an unused session ends.
const (
	MaxAge      = 12 * time.Hour
	IdleTimeout = time.Hour
)

// Limits of the number of sessions, of all users and of one.
const (
	maxSessions = 500
	// Each session caches the objects that its user reads.
	maxSessionsPerUser = 5
	// maxMessages bounds the messages of a user who does not open a page.
	maxMessages = 5
)

// ErrFull is returned if there are too many sessions.
var ErrFull = errors.New("too many users are signed in: try again later")

// A Message is shown on the session's next page.
type Message struct {
	Text string
	// Failed is set if the action failed.
	Failed bool
}

// A Session is the session of a user. The exported fields never change.
type Session[V any] struct {
	// ID is the secret in the session cookie.
	ID string
	// CSRFToken is the secret in each form of the session.
	CSRFToken string
	// UserName is the name of the user, Viewer what Open received.
	UserName string
	Viewer   V

	since time.Time
	// The following fields are guarded by the store.
	used     time.Time
	messages []Message
}

// HasCSRFToken reports whether a token is the session's.
func (s *Session[V]) HasCSRFToken(mark string) bool {
	return subtle.ConstantTimeCompare([]byte(s.CSRFToken), []byte(mark)) == 1
}

// A Store has the sessions of a console. Its methods are safe for concurrent use.
type Store[V any] struct {
	// End is called for each session that ends, without a lock.
	End func(*Session[V])

	mu       sync.Mutex
	sessions map[string]*Session[V]
}

// Open starts a session. If the user has too many sessions, the one that has been idle longest
// ends.
func (s *Store[V]) Open(name string, who V, now time.Time) (*Session[V], error) {
	one := &Session[V]{ID: rand.Text(), CSRFToken: rand.Text(), UserName: name, Viewer: who, since: now, used: now}
	ended, err := s.insertSession(one, now)
	s.notifyEnded(ended)
	return one, err
}

func (s *Store[V]) insertSession(one *Session[V], now time.Time) (ended []*Session[V], err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions == nil {
		s.sessions = map[string]*Session[V]{}
	}
	ended = s.removeExpired(now)
	var idlest *Session[V]
	own := 0
	for _, other := range s.sessions {
		if other.UserName != one.UserName {
			continue
		}
		own++
		if idlest == nil || other.used.Before(idlest.used) {
			idlest = other
		}
	}
	if own >= maxSessionsPerUser {
		delete(s.sessions, idlest.ID)
		ended = append(ended, idlest)
	}
	if len(s.sessions) >= maxSessions {
		return ended, ErrFull
	}
	s.sessions[one.ID] = one
	return ended, nil
}

// Find returns the session of an ID and marks it as used; nil if there is none.
func (s *Store[V]) Find(id string, now time.Time) *Session[V] {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.sessions[id]
	if one == nil || one.isExpired(now) {
		return nil
	}
	one.used = now
	return one
}

// Close ends a session if it exists.
func (s *Store[V]) Close(id string) {
	s.mu.Lock()
	one := s.sessions[id]
	delete(s.sessions, id)
	s.mu.Unlock()
	if one != nil {
		s.notifyEnded([]*Session[V]{one})
	}
}

// EndExpiredAndRestIdle ends expired sessions and calls rest for each session that has been idle for the given
// time.
func (s *Store[V]) EndExpiredAndRestIdle(now time.Time, unused time.Duration, rest func(*Session[V])) {
	s.mu.Lock()
	ended := s.removeExpired(now)
	var tired []*Session[V]
	for _, one := range s.sessions {
		if now.Sub(one.used) >= unused {
			tired = append(tired, one)
		}
	}
	s.mu.Unlock()
	s.notifyEnded(ended)
	for _, one := range tired {
		rest(one)
	}
}

// CloseAll ends all sessions.
func (s *Store[V]) CloseAll() {
	s.mu.Lock()
	var ended []*Session[V]
	for _, one := range s.sessions {
		ended = append(ended, one)
	}
	clear(s.sessions)
	s.mu.Unlock()
	s.notifyEnded(ended)
}

// AddMessage stores a message for the session's next page.
func (s *Store[V]) AddMessage(one *Session[V], m Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one.messages = append(one.messages, m)
	one.messages = one.messages[max(0, len(one.messages)-maxMessages):]
}

// TakeMessages returns the messages for the session's next page and removes them.
func (s *Store[V]) TakeMessages(one *Session[V]) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := one.messages
	one.messages = nil
	return out
}

func (s *Session[V]) isExpired(now time.Time) bool {
	return now.Sub(s.since) >= MaxAge || now.Sub(s.used) >= IdleTimeout
}

func (s *Store[V]) removeExpired(now time.Time) (ended []*Session[V]) {
	for id, one := range s.sessions {
		if one.isExpired(now) {
			delete(s.sessions, id)
			ended = append(ended, one)
		}
	}
	return ended
}

func (s *Store[V]) notifyEnded(ended []*Session[V]) {
	for _, one := range ended {
		if s.End != nil {
			s.End(one)
		}
	}
}
