package clusterpool

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/pool/facts"
)

// verdictAge is how long it is believed that a pool's Secrets are there, or are
// not. They are read from the API server, since caching every Secret of a hub
// would cost more memory than everything else.
const verdictAge = 5 * time.Second

// verdicts remembers what was missing, by pool.
type verdicts struct {
	mu sync.Mutex
	by map[types.UID]verdict
}

type verdict struct {
	at         time.Time
	generation int64
	missing    []string
}

func (v *verdicts) forget(uid types.UID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.by, uid)
}

func (v *verdicts) recall(p *hivev1.ClusterPool, now time.Time) ([]string, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	old, ok := v.by[p.UID]
	return old.missing, ok && old.generation == p.Generation && now.Sub(old.at) < verdictAge
}

func (v *verdicts) keep(p *hivev1.ClusterPool, missing []string, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.by == nil {
		v.by = map[types.UID]verdict{}
	}
	v.by[p.UID] = verdict{now, p.Generation, missing}
}

// missing tells what the pool needs and lacks, each in words.
func (r *Reconciler) missing(ctx context.Context, p *hivev1.ClusterPool) ([]string, error) {
	if p.DeletionTimestamp != nil {
		r.verdicts.forget(p.UID)
		return nil, nil
	}
	if old, ok := r.verdicts.recall(p, r.Clock.Now()); ok {
		return old, nil
	}
	out, err := facts.Missing(p, r.Installers, func(n facts.Need) (string, error) { return r.lacks(ctx, p.Namespace, n) })
	if err != nil {
		return nil, err
	}
	r.verdicts.keep(p, out, r.Clock.Now())
	return out, nil
}

// lacks looks for what is needed, and says in words what is wrong with it; "" when nothing is.
func (r *Reconciler) lacks(ctx context.Context, namespace string, n facts.Need) (string, error) {
	var secret corev1.Secret
	var set hivev1.ClusterImageSet
	var customization hivev1.ClusterDeploymentCustomization
	var err error
	switch key := (types.NamespacedName{Namespace: namespace, Name: n.Name}); n.Kind {
	case facts.Secret:
		err = r.Live.Get(ctx, key, &secret)
	case facts.ImageSet:
		key.Namespace = ""
		err = r.Client.Get(ctx, key, &set)
	case facts.Customization:
		err = r.Client.Get(ctx, key, &customization)
	}
	switch {
	case apierrors.IsNotFound(err):
		return n.Absent(), nil
	case err != nil:
		return "", fmt.Errorf("reading %s %s: %w", n.Role, n.Name, err)
	case n.Kind == facts.Secret:
		return n.Unfit(&secret), nil
	}
	return n.Unread(cmp.Or(set.Unreadable, customization.Unreadable)), nil
}
