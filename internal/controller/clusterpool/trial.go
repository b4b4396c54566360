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

// templateTTL is how long it is believed what a pool's template is, while a customization
// does not apply to it: Secrets are not watched.
const templateTTL = 30 * time.Second

// templateCache is what was found out about which customizations apply to the template of a pool.
type templateCache struct {
	at         time.Time
	generation int64
	template   []byte
	// faults are by customization and its version.
	faults map[types.NamespacedName]string
}

// customizationError says why a customization does not apply to the pool's template; "" when it does.
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

// checkCustomizations finds out which of the customizations that a cluster may be made with do not apply
// to the pool's install-config, and why not, in words.
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

// loadTemplateCache is what was found out before, if the pool and its template are still the same;
// nil while the template does not exist: the pool says so, and makes no clusters.
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
