package clusterpool

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/pool/facts"
)

// dependenciesTTL is how long the result of a check of a pool's Secrets is used. Secrets are read
// from the API server, since caching every Secret of a hub would use more memory than everything
// else.
const dependenciesTTL = 5 * time.Second

// findDependencies returns descriptions of what the pool needs and lacks, and the version of the
// dependencies that exist.
func (r *Reconciler) findDependencies(ctx context.Context, s *observation) (dependencies, error) {
	p, now := s.pool, r.Clock.Now()
	if p.DeletionTimestamp != nil {
		s.cache.dependencies.Store(nil)
		return dependencies{}, nil
	}
	if known := s.cache.dependencies.Load(); known != nil && known.generation == p.Generation && now.Sub(known.at) < dependenciesTTL {
		return *known, nil
	}
	var versions []string
	missing, err := facts.MissingDependencies(p, r.Installers, func(n facts.Dependency) (string, error) {
		words, version, err := r.checkDependency(ctx, p.Namespace, n)
		if n.Kind != facts.ImageSet { // each attempt reads it again
			versions = append(versions, version)
		}
		return words, err
	})
	if err != nil {
		return dependencies{}, err
	}
	found := dependencies{at: now, generation: p.Generation, missing: missing, sources: facts.SourceVersion(versions)}
	s.cache.dependencies.Store(&found)
	return found, nil
}

// checkDependency reads a dependency, and describes what is wrong with it; "" if nothing is.
// version changes when its content does.
func (r *Reconciler) checkDependency(ctx context.Context, namespace string, n facts.Dependency) (words, version string, err error) {
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
		return n.NotFoundMessage(), "", nil
	case err != nil:
		return "", "", fmt.Errorf("reading %s %s: %w", n.Role, n.Name, err)
	case n.Kind == facts.Secret:
		return n.InvalidMessage(&secret), fmt.Sprintf("%s/%s", secret.UID, secret.ResourceVersion), nil
	}
	// A customization's status changes too, so the version uses its generation.
	return n.UnreadableMessage(cmp.Or(set.Unreadable, customization.Unreadable)), fmt.Sprintf("%s/%d", customization.UID, customization.Generation), nil
}
