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

// A Permission is something that a person may do, or not: verb on the resource of a group, in
// a namespace or, with an empty one, in all.
type Permission struct{ Verb, Group, Resource, Namespace string }

// permissionTTL is how long an answer about rights is believed. Rights that are taken away
// work for so long in what is shown; the hub itself refuses writes at once.
const permissionTTL = 30 * time.Second

// A User is somebody at the hub. Its methods may be called by several goroutines.
type User struct {
	client.Client // asks the hub itself, with the person's rights

	name       string
	transport  sharedTransport
	clock      clock.PassiveClock
	life       context.Context //nolint:containedctx // that of the person's memory, which starts when it is first needed
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

// Name is what the hub calls the person.
func (p *User) Name() string { return p.name }

// IsAllowed asks the hub whether the person may do it. An answer is believed for a while. The
// error is ErrUnknown when the hub does not know the person any more.
func (p *User) IsAllowed(ctx context.Context, d Permission) (bool, error) {
	now := p.clock.Now()
	p.mu.Lock()
	known, found := p.permissions[d]
	p.mu.Unlock()
	if found && now.Sub(known.at) < permissionTTL {
		return known.allowed, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: d.Verb, Group: d.Group, Resource: d.Resource, Namespace: d.Namespace},
	}}
	if err := p.Create(ctx, review); err != nil {
		return false, p.recordAuthError(fmt.Errorf("asking whether you may %s %s: %w", d.Verb, d.Resource, err))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.permissions[d] = cachedPermission{review.Status.Allowed, now}
	return review.Status.Allowed, nil
}

// recordAuthError remembers if the hub does not know the person any more.
func (p *User) recordAuthError(err error) error {
	if !apierrors.IsUnauthorized(err) {
		return err
	}
	p.mu.Lock()
	p.lost = true
	p.mu.Unlock()
	p.changes.notifyAll()
	return errors.Join(ErrUnknown, err)
}

// HasLostAccess reports whether the hub does not know the person any more.
func (p *User) HasLostAccess() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// ChangeSignal is closed when something that the person looks at has changed since the call.
func (p *User) ChangeSignal() <-chan struct{} { return p.changes.nextChange() }

// ReaderFor is what there is in a namespace, or with an empty one in all of them. Only what
// the person may list there should be looked at.
func (p *User) ReaderFor(namespace string) (client.Reader, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.caches[namespace]; s != nil {
		return s, nil
	}
	if len(p.caches) >= maxCaches {
		p.dropCaches()
	}
	s, err := newUserCache(p, namespace)
	if err != nil {
		return nil, err
	}
	p.caches[namespace] = s
	return s, nil
}

// maxCaches bounds what is kept for one person: namespaces looked at one after another.
const maxCaches = 4

// ReleaseMemory lets go of what is in memory. It comes back with the next look.
func (p *User) ReleaseMemory() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropCaches()
}

func (p *User) dropCaches() {
	for _, s := range p.caches {
		s.stop()
	}
	clear(p.caches)
	clear(p.permissions)
}

// Close ends everything that is done for the person.
func (p *User) Close() {
	p.cancelLife()
	p.ReleaseMemory()
	p.transport.http.CloseIdleConnections()
	p.changes.notifyAll()
}

// broadcast tells many of a change, each at most once.
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
