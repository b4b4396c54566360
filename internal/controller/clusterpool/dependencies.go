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
	// sources is the version of what was found.
	sources string
}

func (v *verdicts) forget(uid types.UID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.by, uid)
}

func (v *verdicts) recall(p *hivev1.ClusterPool, now time.Time) (verdict, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	old, ok := v.by[p.UID]
	return old, ok && old.generation == p.Generation && now.Sub(old.at) < verdictAge
}

func (v *verdicts) keep(p *hivev1.ClusterPool, found verdict) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.by == nil {
		v.by = map[types.UID]verdict{}
	}
	v.by[p.UID] = found
}

// dependencies finds out what the pool needs and lacks, each in words, and the version of
// what it does not lack.
func (r *Reconciler) dependencies(ctx context.Context, p *hivev1.ClusterPool) (verdict, error) {
	if p.DeletionTimestamp != nil {
		r.verdicts.forget(p.UID)
		return verdict{}, nil
	}
	if old, ok := r.verdicts.recall(p, r.Clock.Now()); ok {
		return old, nil
	}
	var versions []string
	missing, err := facts.Missing(p, r.Installers, func(n facts.Need) (string, error) {
		words, version, err := r.lacks(ctx, p.Namespace, n)
		if n.Kind != facts.ImageSet { // each attempt reads it anew
			versions = append(versions, version)
		}
		return words, err
	})
	if err != nil {
		return verdict{}, err
	}
	found := verdict{at: r.Clock.Now(), generation: p.Generation, missing: missing, sources: facts.SourceVersion(versions)}
	r.verdicts.keep(p, found)
	return found, nil
}

// lacks looks for what is needed, and says in words what is wrong with it; "" when nothing
// is. version changes when its content does.
func (r *Reconciler) lacks(ctx context.Context, namespace string, n facts.Need) (words, version string, err error) {
	var secret corev1.Secret
	var set hivev1.ClusterImageSet
	var customization hivev1.ClusterDeploymentCustomization
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
		return n.Absent(), "", nil
	case err != nil:
		return "", "", fmt.Errorf("reading %s %s: %w", n.Role, n.Name, err)
	case n.Kind == facts.Secret:
		return n.Unfit(&secret), fmt.Sprintf("%s/%s", secret.UID, secret.ResourceVersion), nil
	}
	// The status of a customization changes, too.
	return n.Unread(cmp.Or(set.Unreadable, customization.Unreadable)), fmt.Sprintf("%s/%d", customization.UID, customization.Generation), nil
}
