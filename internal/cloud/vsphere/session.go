package vsphere

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"hotspare.io/hotspare/internal/fault"
)

const (
	// keepAliveInterval is how often a session is used to keep it alive: vCenter ends idle sessions
	// after 30 minutes.
	keepAliveInterval = 10 * time.Minute
	// idleTimeout is how long a session is kept after the last call that needed it.
	idleTimeout = time.Hour
	// lockoutDelay is how long to wait before a rejected account is tried again: vCenter locks an
	// account after five rejected logins in three minutes. A corrected Secret is tried immediately.
	lockoutDelay = 5 * time.Minute
	// requestTimeout bounds each request.
	requestTimeout = 10 * time.Second
)

var errClosed = errors.New("the vSphere platform is closed")

// key identifies a session. It includes a checksum of the account's password and the trusted
// certificates, so that a cluster with a wrong password cannot use another cluster's session.
type key struct {
	address, username string
	secret            [sha256.Size]byte
}

// sessions contains the sessions with vCenters, one for each account: a vCenter has a limited
// number of sessions, and does not end them before they time out.
type sessions struct {
	// now is a field only for tests.
	now func() time.Time

	mu     sync.Mutex
	open   map[key]*session
	users  map[types.NamespacedName]clusterSessions
	closed bool
}

// clusterSessions contains the keys of the sessions that a cluster needs.
type clusterSessions struct {
	keys []key
	seen time.Time
}

// session is one session, or a placeholder for one.
type session struct {
	// gate is a lock for logging in and out; it is a channel so that a waiting caller can give up.
	gate chan struct{}
	conn *conn // guarded by gate
	gone bool  // guarded by gate: the session is no longer in sessions
	// denied is why the last login was rejected, at deniedAt; guarded by gate.
	denied   error
	deniedAt time.Time
	used     time.Time // guarded by sessions.mu
}

func newSessions() *sessions {
	return &sessions{now: clock.RealClock{}.Now, open: map[key]*session{}, users: map[types.NamespacedName]clusterSessions{}}
}

// withSession calls do with the session for c, after logging in if necessary. It discards a session
// that turns out to have expired.
func (s *sessions) withSession(ctx context.Context, c center, do func(context.Context, *conn) error) error {
	conn, err := s.getConnection(ctx, c)
	if err != nil {
		return err
	}
	err = do(ctx, conn)
	if errors.Is(err, errExpired) {
		// Log out the part that has not expired; its error is irrelevant.
		_ = s.logOutSession(ctx, c.sessionKey(), conn)
	}
	return err
}

func (s *sessions) getConnection(ctx context.Context, c center) (*conn, error) {
	for {
		one, err := s.reserveSession(c.sessionKey())
		if err != nil {
			return nil, err
		}
		conn, gone, err := one.ensureLoggedIn(ctx, c, s.now())
		if !gone {
			return conn, err
		}
	}
}

// reserveSession returns the session with that key, or a new placeholder for it.
func (s *sessions) reserveSession(k key) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fault.New(fault.Unknown, errClosed)
	}
	one := s.open[k]
	if one == nil {
		one = &session{gate: make(chan struct{}, 1)}
		s.open[k] = one
	}
	one.used = s.now()
	return one, nil
}

// ensureLoggedIn returns the session's connection, and logs in if necessary. gone reports that the
// session was ended while this call waited for its gate. A rejected login is remembered for
// lockoutDelay: otherwise clusters that share a wrong password would make vCenter lock the account.
func (s *session) ensureLoggedIn(ctx context.Context, c center, now time.Time) (_ *conn, gone bool, err error) {
	select {
	case s.gate <- struct{}{}:
		defer func() { <-s.gate }()
	case <-ctx.Done():
		return nil, false, fault.New(fault.Unknown, fmt.Errorf("waiting to log in: %w", ctx.Err()))
	}
	if s.gone {
		return nil, true, nil
	}
	if s.conn != nil {
		return s.conn, false, nil
	}
	if s.denied != nil && now.Sub(s.deniedAt) < lockoutDelay {
		return nil, false, s.denied
	}
	s.conn, err = connectToCenter(ctx, c)
	s.denied, s.deniedAt = nil, now
	if fault.KindOf(err) == fault.Denied {
		s.denied = err
	}
	return s.conn, false, err
}

// logOutSession logs a session out and discards it if its connection is still conn; a nil conn
// matches any.
func (s *sessions) logOutSession(ctx context.Context, k key, conn *conn) error {
	s.mu.Lock()
	one := s.open[k]
	s.mu.Unlock()
	if one == nil {
		return nil
	}
	// Logging in takes a bounded time, and therefore this wait does too.
	one.gate <- struct{}{}
	defer func() { <-one.gate }()
	if one.gone || conn != nil && one.conn != conn {
		return nil
	}
	s.mu.Lock()
	delete(s.open, k)
	s.mu.Unlock()
	one.gone = true
	if one.conn == nil {
		return nil
	}
	// A cancelled caller must not leave a session behind.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	return one.conn.logoutBothAPIs(ctx)
}

// setClusterSessions records which sessions a cluster needs. It ends the sessions that only this
// cluster needed, and no longer needs because its Secret or its platform has changed.
func (s *sessions) setClusterSessions(ctx context.Context, cluster types.NamespacedName, centers []center) {
	keys := make([]key, len(centers))
	for i, c := range centers {
		keys[i] = c.sessionKey()
	}
	for _, k := range s.replaceClusterKeys(cluster, keys) {
		// vCenter automatically ends sessions that could not be logged out.
		_ = s.logOutSession(ctx, k, nil)
	}
}

// replaceClusterKeys records the cluster's keys, and returns those that no cluster needs any more.
func (s *sessions) replaceClusterKeys(cluster types.NamespacedName, keys []key) []key {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.users[cluster].keys
	s.users[cluster] = clusterSessions{keys: keys, seen: s.now()}
	return slices.DeleteFunc(slices.Clone(before), s.isKeyNeeded)
}

func (s *sessions) isKeyNeeded(k key) bool {
	for _, u := range s.users {
		if slices.Contains(u.keys, k) {
			return true
		}
	}
	return false
}

// maintainSessions ends sessions that have not been needed for idleTimeout, and keeps the others
// alive.
func (s *sessions) maintainSessions(ctx context.Context) {
	spare, kept := s.splitIdleSessions()
	for _, k := range spare {
		_ = s.logOutSession(ctx, k, nil) // vCenter ends it automatically if this fails
	}
	for k, one := range kept {
		conn := one.currentConnection()
		if conn == nil {
			continue
		}
		if conn.pingBothAPIs(ctx) != nil {
			_ = s.logOutSession(ctx, k, conn) // the next call logs in again, and returns an error if that fails
		}
	}
}

// splitIdleSessions separates unused sessions from the others, and forgets clusters not seen for a
// long time.
func (s *sessions) splitIdleSessions() (spare []key, kept map[key]*session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.now().Add(-idleTimeout)
	maps.DeleteFunc(s.users, func(_ types.NamespacedName, u clusterSessions) bool { return u.seen.Before(before) })
	kept = map[key]*session{}
	for k, one := range s.open {
		if one.used.Before(before) {
			spare = append(spare, k)
			continue
		}
		kept[k] = one
	}
	return spare, kept
}

// currentConnection returns the connection; nil if there is none or a login or logout is in
// progress.
func (s *session) currentConnection() *conn {
	select {
	case s.gate <- struct{}{}:
		defer func() { <-s.gate }()
		return s.conn
	default:
		return nil
	}
}

// closeSessions ends all sessions; no new ones can be created afterwards.
func (s *sessions) closeSessions(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	keys := slices.Collect(maps.Keys(s.open))
	s.mu.Unlock()
	var errs []error
	for _, k := range keys {
		if err := s.logOutSession(ctx, k, nil); err != nil {
			errs = append(errs, fmt.Errorf("logging out of vCenter %s: %w", k.address, err))
		}
	}
	return errors.Join(errs...)
}
