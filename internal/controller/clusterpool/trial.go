package clusterpool

import (
	"bytes"
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/inventory"
	"hotspare.io/hotspare/internal/pool/facts"
)

// templateTTL is the TTL of a pool's cached template while a customization does not apply to it:
// Secrets are not watched.
const templateTTL = 30 * time.Second

// A templateCache caches which customizations apply to the template of a pool.
type templateCache struct {
	at         time.Time
	generation int64
	template   []byte
	// faults has the error of each customization and version.
	faults map[types.NamespacedName]string
}

// customizationError explains why a customization does not apply to the pool's template; "" if it
// does.
func (t *templateCache) customizationError(p *hivev1.ClusterPool, c *hivev1.ClusterDeploymentCustomization) (string, error) {
	version, err := inventory.CustomizationVersion(c.Spec)
	if err != nil {
		return "", err
	}
	key := types.NamespacedName{Namespace: c.Name, Name: version}
	words, known := t.faults[key]
	if !known {
		words = facts.CustomizationError(t.template, p, c)
		t.faults[key] = words
	}
	return words, nil
}

// checkCustomizations finds the customizations that a cluster could be made with but that do not
// apply to the pool's install-config, and records the errors as text.
func (r *Reconciler) checkCustomizations(ctx context.Context, s *observation) error {
	if len(s.pool.Spec.Inventory) == 0 || s.pool.DeletionTimestamp != nil {
		s.cache.template = nil
		return nil
	}
	t, err := r.loadTemplateCache(ctx, s)
	if err != nil || t == nil {
		return err
	}
	s.faults = map[string]string{}
	for name, c := range s.customizations {
		if !slices.Contains(s.pool.Spec.Inventory.Names(), name) && !s.isReservedForPending(name) {
			continue
		}
		words, err := t.customizationError(s.pool, c)
		if err != nil {
			return err
		}
		if words != "" {
			s.faults[name] = words
		}
	}
	return nil
}

// loadTemplateCache returns the cached results if the pool and its template are unchanged, and an
// empty cache otherwise; nil if the template does not exist: the pool reports that, and creates no
// clusters.
func (r *Reconciler) loadTemplateCache(ctx context.Context, s *observation) (*templateCache, error) {
	p, t := s.pool, s.cache.template
	if t != nil && t.generation == p.Generation && r.Clock.Since(t.at) < templateTTL {
		return t, nil
	}
	template, found, err := r.getInstallConfigTemplate(ctx, p)
	if err != nil || !found {
		return nil, err
	}
	next := &templateCache{at: r.Clock.Now(), generation: p.Generation, template: template, faults: map[types.NamespacedName]string{}}
	if t != nil && t.generation == next.generation && bytes.Equal(t.template, template) {
		next.faults = t.faults
	}
	s.cache.template = next
	return next, nil
}
