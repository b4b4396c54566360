// Package session remembers who is in the console: in memory only, for as long as they
// use it.
package session

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"sync"
	"time"
)

// How long a session lasts, at most and unused.
const (
	MaxAge      = 12 * time.Hour
	IdleTimeout = time.Hour
)

// How many there may be, and how many of one person.
const (
	maxSessions = 500
	// Each session reads what its person looks at into memory of its own.
	maxSessionsPerUser = 5
	// maxMessages bounds those of a person who never looks at a page.
	maxMessages = 5
)

// ErrFull is when there are too many sessions for another.
var ErrFull = errors.New("too many users are signed in: try again later")

// A Message is told on the next page.
type Message struct {
	Text string
	// Failed is set when something did not happen.
	Failed bool
}

// A Session is a person who is in. What is exported never changes.
type Session[V any] struct {
	// ID is the secret that the person's browser keeps.
	ID string
	// CSRFToken is the secret in each form of the person's pages.
	CSRFToken string
	// UserName is who it is, Who what they come with.
	UserName string
	Viewer   V

	since time.Time
	// what follows is the store's.
	used     time.Time
	messages []Message
}

// HasCSRFToken reports whether a form was on a page of this session.
func (s *Session[V]) HasCSRFToken(mark string) bool {
	return subtle.ConstantTimeCompare([]byte(s.CSRFToken), []byte(mark)) == 1
}

// A Store has the sessions of a console. Its methods may be called by several goroutines.
type Store[V any] struct {
	// End is called for each session that ends, outside of any lock.
	End func(*Session[V])

	mu       sync.Mutex
	sessions map[string]*Session[V]
}

// Open lets somebody in. When they are in too often already, their session that has
// been idle for longest ends.
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

// Find returns the session of that ID, which is used now; nil if there is none.
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

// Close ends a session, if it has not ended.
func (s *Store[V]) Close(id string) {
	s.mu.Lock()
	one := s.sessions[id]
	delete(s.sessions, id)
	s.mu.Unlock()
	if one != nil {
		s.notifyEnded([]*Session[V]{one})
	}
}

// EndExpired ends the sessions that are over, and hands those to rest that nobody has used
// for so long.
func (s *Store[V]) EndExpired(now time.Time, unused time.Duration, rest func(*Session[V])) {
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

// AddMessage keeps a message for the session's next page.
func (s *Store[V]) AddMessage(one *Session[V], m Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one.messages = append(one.messages, m)
	one.messages = one.messages[max(0, len(one.messages)-maxMessages):]
}

// TakeMessages returns the messages for the session's next page, which this is.
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
