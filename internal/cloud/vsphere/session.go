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
	// keepAliveInterval is how often a session is used to keep it: vCenter ends one after 30 minutes.
	keepAliveInterval = 10 * time.Minute
	// idleTimeout is how long a session is kept without any call that needs it.
	idleTimeout = time.Hour
	// lockoutDelay is how long a refused account is not tried again: vCenter locks one after
	// five refusals in three minutes. A corrected Secret is tried at once.
	lockoutDelay = 5 * time.Minute
	// requestTimeout bounds each request.
	requestTimeout = 10 * time.Second
)

var errClosed = errors.New("the vSphere platform is closed")

// key names a session. The account's password and the trusted certificates are
// part of it, as a sum: a cluster with a wrong password gets nobody else's session.
type key struct {
	address, username string
	secret            [sha256.Size]byte
}

// sessions are the sessions with vCenters, one for each account: vCenter has room
// for a limited number of them, and ends none before its time.
type sessions struct {
	// now is a field for tests alone.
	now func() time.Time

	mu     sync.Mutex
	open   map[key]*session
	users  map[types.NamespacedName]clusterSessions
	closed bool
}

// clusterSessions is a cluster with the sessions that it needs.
type clusterSessions struct {
	keys []key
	seen time.Time
}

// session is one session, or the place for one.
type session struct {
	// gate is held to log in and out; it is a channel so that who waits can give up.
	gate chan struct{}
	conn *conn // behind gate
	gone bool  // behind gate: nobody finds this session any more
	// denied is why the last login was refused, at deniedAt; behind gate.
	denied   error
	deniedAt time.Time
	used     time.Time // behind sessions.mu
}

func newSessions() *sessions {
	return &sessions{now: clock.RealClock{}.Now, open: map[key]*session{}, users: map[types.NamespacedName]clusterSessions{}}
}

// withSession does something in the session for c, after having logged in if need be. A
// session that turns out to have expired is forgotten.
func (s *sessions) withSession(ctx context.Context, c center, do func(context.Context, *conn) error) error {
	conn, err := s.getConnection(ctx, c)
	if err != nil {
		return err
	}
	err = do(ctx, conn)
	if errors.Is(err, errExpired) {
		// The half that has not expired must not stay behind; its error is of no use to anybody.
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

// reserveSession is where the session with that key is, or will be.
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

// ensureLoggedIn returns the session's connection, logged in. gone says that the session was
// ended while its gate was waited for. A refusal stands for a while: clusters that
// share a wrong password would have vCenter lock the account.
func (one *session) ensureLoggedIn(ctx context.Context, c center, now time.Time) (_ *conn, gone bool, err error) {
	select {
	case one.gate <- struct{}{}:
		defer func() { <-one.gate }()
	case <-ctx.Done():
		return nil, false, fault.New(fault.Unknown, fmt.Errorf("waiting to log in: %w", ctx.Err()))
	}
	if one.gone {
		return nil, true, nil
	}
	if one.conn != nil {
		return one.conn, false, nil
	}
	if one.denied != nil && now.Sub(one.deniedAt) < lockoutDelay {
		return nil, false, one.denied
	}
	one.conn, err = connectToCenter(ctx, c)
	one.denied, one.deniedAt = nil, now
	if fault.KindOf(err) == fault.Denied {
		one.denied = err
	}
	return one.conn, false, err
}

// logOutSession logs a session out and forgets it, if conn is still its connection; nil is any.
func (s *sessions) logOutSession(ctx context.Context, k key, conn *conn) error {
	s.mu.Lock()
	one := s.open[k]
	s.mu.Unlock()
	if one == nil {
		return nil
	}
	// Logging in takes a bounded time, and so does this wait.
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
	// A caller that has been cancelled must not leave a session behind.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	return one.conn.logoutBothAPIs(ctx)
}

// setClusterSessions notes which sessions a cluster needs, and ends those that it needed before
// and nobody needs now: its Secret has changed, or its platform.
func (s *sessions) setClusterSessions(ctx context.Context, cluster types.NamespacedName, centers []center) {
	keys := make([]key, len(centers))
	for i, c := range centers {
		keys[i] = c.sessionKey()
	}
	for _, k := range s.replaceClusterKeys(cluster, keys) {
		// vCenter ends by itself what could not be logged out.
		_ = s.logOutSession(ctx, k, nil)
	}
}

// replaceClusterKeys returns the keys that nobody needs any more.
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

// maintainSessions ends sessions that have not been needed for long, and keeps the others alive.
func (s *sessions) maintainSessions(ctx context.Context) {
	spare, kept := s.splitIdleSessions()
	for _, k := range spare {
		_ = s.logOutSession(ctx, k, nil) // as in use
	}
	for k, one := range kept {
		conn := one.currentConnection()
		if conn == nil {
			continue
		}
		if conn.pingBothAPIs(ctx) != nil {
			_ = s.logOutSession(ctx, k, conn) // the next call logs in anew, and tells if that fails
		}
	}
}

// splitIdleSessions tells sessions that are spare from others, and forgets clusters that have not been seen for long.
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

// currentConnection is the connection, if somebody has logged in and nobody is about to.
func (one *session) currentConnection() *conn {
	select {
	case one.gate <- struct{}{}:
		defer func() { <-one.gate }()
		return one.conn
	default:
		return nil
	}
}

// closeSessions ends all sessions; none is made after that.
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
