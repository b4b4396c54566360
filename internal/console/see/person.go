package see

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

// A Deed is something that a person may do, or not: verb on the resource of a group, in
// a namespace or, with an empty one, in all.
type Deed struct{ Verb, Group, Resource, Namespace string }

// answersFor is how long an answer about rights is believed. Rights that are taken away
// work for so long in what is shown; the hub itself refuses writes at once.
const answersFor = 30 * time.Second

// A Person is somebody at the hub. Its methods may be called by several goroutines.
type Person struct {
	client.Client // asks the hub itself, with the person's rights

	name  string
	via   transportOf
	clock clock.PassiveClock
	life  context.Context //nolint:containedctx // that of the person's memory, which starts when it is first needed
	leave context.CancelFunc
	bell  bell

	mu      sync.Mutex
	answers map[Deed]answer
	sights  map[string]*Sight
	lost    bool
}

type answer struct {
	yes bool
	at  time.Time
}

func newPerson(life context.Context, name string, cfg *rest.Config, h *http.Client, c client.Client, now clock.PassiveClock) *Person {
	life, leave := context.WithCancel(life)
	return &Person{
		Client: c, name: name, via: transportOf{cfg, h}, clock: now, life: life, leave: leave,
		answers: map[Deed]answer{}, sights: map[string]*Sight{},
	}
}

// Name is what the hub calls the person.
func (p *Person) Name() string { return p.name }

// May asks the hub whether the person may do it. An answer is believed for a while. The
// error is ErrUnknown when the hub does not know the person any more.
func (p *Person) May(ctx context.Context, d Deed) (bool, error) {
	now := p.clock.Now()
	p.mu.Lock()
	known, found := p.answers[d]
	p.mu.Unlock()
	if found && now.Sub(known.at) < answersFor {
		return known.yes, nil
	}
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: d.Verb, Group: d.Group, Resource: d.Resource, Namespace: d.Namespace},
	}}
	if err := p.Create(ctx, review); err != nil {
		return false, p.noting(fmt.Errorf("asking whether you may %s %s: %w", d.Verb, d.Resource, err))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers[d] = answer{review.Status.Allowed, now}
	return review.Status.Allowed, nil
}

// noting remembers if the hub does not know the person any more.
func (p *Person) noting(err error) error {
	if !apierrors.IsUnauthorized(err) {
		return err
	}
	p.mu.Lock()
	p.lost = true
	p.mu.Unlock()
	p.bell.ring()
	return errors.Join(ErrUnknown, err)
}

// Lost reports whether the hub does not know the person any more.
func (p *Person) Lost() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// Changed is closed when something that the person looks at has changed since the call.
func (p *Person) Changed() <-chan struct{} { return p.bell.next() }

// Sight is what there is in a namespace, or with an empty one in all of them. Only what
// the person may list there should be looked at.
func (p *Person) Sight(namespace string) (client.Reader, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.sights[namespace]; s != nil {
		return s, nil
	}
	if len(p.sights) >= mostSights {
		p.forget()
	}
	s, err := newSight(p, namespace)
	if err != nil {
		return nil, err
	}
	p.sights[namespace] = s
	return s, nil
}

// mostSights bounds what is kept for one person: namespaces looked at one after another.
const mostSights = 4

// Rest lets go of what is in memory. It comes back with the next look.
func (p *Person) Rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget()
}

func (p *Person) forget() {
	for _, s := range p.sights {
		s.stop()
	}
	clear(p.sights)
	clear(p.answers)
}

// Close ends everything that is done for the person.
func (p *Person) Close() {
	p.leave()
	p.Rest()
	p.via.http.CloseIdleConnections()
	p.bell.ring()
}

// bell tells many of a change, each at most once.
type bell struct {
	mu   sync.Mutex
	wait chan struct{}
}

func (b *bell) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.wait == nil {
		b.wait = make(chan struct{})
	}
	return b.wait
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.wait != nil {
		close(b.wait)
		b.wait = nil
	}
}
