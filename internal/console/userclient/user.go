package userclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Permission is a verb on a resource of a group in a namespace, or in all namespaces if it is
// empty.
type Permission struct{ Verb, Group, Resource, Namespace string }

// permissionTTL is how long the hub's answer about a permission is cached. Pages show objects that
// long after a permission is revoked; the hub rejects writes immediately.
const permissionTTL = 30 * time.Second

// A User is a user of the hub. Its methods are safe for concurrent use.
type User struct {
	client.Client // without a cache, with the user's permissions

	name       string
	transport  sharedTransport
	clock      clock.PassiveClock
	life       context.Context //nolint:containedctx // that of the user's caches, which start at the first read
	cancelLife context.CancelFunc
	changes    broadcast

	mu          sync.Mutex
	permissions map[Permission]cachedPermission
	caches      map[string]*UserCache
	lost        bool
}

type cachedPermission struct {
	allowed bool
	at      time.Time
}

func newUser(life context.Context, name string, cfg *rest.Config, h *http.Client, c client.Client, now clock.PassiveClock) *User {
	life, leave := context.WithCancel(life)
	return &User{
		Client: c, name: name, transport: sharedTransport{cfg, h}, clock: now, life: life, cancelLife: leave,
		permissions: map[Permission]cachedPermission{}, caches: map[string]*UserCache{},
	}
}

// Name returns the user's name at the hub.
func (u *User) Name() string { return u.name }

// IsAllowed asks the hub whether the user has a permission and caches the answer for permissionTTL.
// The error is ErrUnknown if the hub no longer accepts the user's credentials.
func (u *User) IsAllowed(ctx context.Context, d Permission) (bool, error) {
	now := u.clock.Now()
	u.mu.Lock()
	known, found := u.permissions[d]
	u.mu.Unlock()
	if found && now.Sub(known.at) < permissionTTL {
		return known.allowed, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: d.Verb, Group: d.Group, Resource: d.Resource, Namespace: d.Namespace},
	}}
	if err := u.Create(ctx, review); err != nil {
		return false, u.recordAuthError(fmt.Errorf("asking whether you may %s %s: %w", d.Verb, d.Resource, err))
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.permissions[d] = cachedPermission{review.Status.Allowed, now}
	return review.Status.Allowed, nil
}

// recordAuthError records that the hub no longer accepts the user's credentials.
func (u *User) recordAuthError(err error) error {
	if !apierrors.IsUnauthorized(err) {
		return err
	}
	u.mu.Lock()
	u.lost = true
	u.mu.Unlock()
	u.changes.notifyAll()
	return errors.Join(ErrUnknown, err)
}

// HasLostAccess reports whether the hub no longer accepts the user's credentials.
func (u *User) HasLostAccess() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.lost
}

// ChangeSignal returns a channel that is closed at the next change of an object in the user's
// caches.
func (u *User) ChangeSignal() <-chan struct{} { return u.changes.nextChange() }

// ReaderFor returns a cached reader of a namespace, or of all namespaces if it is empty. Use it
// only for kinds that the user may list there.
func (u *User) ReaderFor(namespace string) (client.Reader, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if s := u.caches[namespace]; s != nil {
		return s, nil
	}
	if len(u.caches) >= maxCaches {
		u.dropCaches()
	}
	s, err := newUserCache(u, namespace)
	if err != nil {
		return nil, err
	}
	u.caches[namespace] = s
	return s, nil
}

// maxCaches bounds the namespaces that are cached for one user.
const maxCaches = 4

// ReleaseMemory drops the caches. The next read fills them again.
func (u *User) ReleaseMemory() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.dropCaches()
}

func (u *User) dropCaches() {
	for _, s := range u.caches {
		s.stop()
	}
	clear(u.caches)
	clear(u.permissions)
}

// Close stops everything that runs for the user.
func (u *User) Close() {
	u.cancelLife()
	u.ReleaseMemory()
	u.transport.http.CloseIdleConnections()
	u.changes.notifyAll()
}

// broadcast signals a change to any number of receivers, each at most once.
type broadcast struct {
	mu      sync.Mutex
	changed chan struct{}
}

func (b *broadcast) nextChange() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changed == nil {
		b.changed = make(chan struct{})
	}
	return b.changed
}

func (b *broadcast) notifyAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}
