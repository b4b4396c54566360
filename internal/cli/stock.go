package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// stock is what there is of inventories in a namespace, or in all of them, sorted by
// namespace and name.
type stock struct {
	pools          []hivev1.ClusterPool
	customizations []hivev1.ClusterDeploymentCustomization
	clusters       []hivev1.ClusterDeployment
}

// takeStock reads a stock; an empty namespace stands for all.
func (h *hub) takeStock(ctx context.Context, namespace string) (*stock, error) {
	var pools hivev1.ClusterPoolList
	if err := h.List(ctx, &pools, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing pools: %w", err)
	}
	var customizations hivev1.ClusterDeploymentCustomizationList
	if err := h.List(ctx, &customizations, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing customizations: %w", err)
	}
	clusters, err := h.seeClusters(ctx, namespace)
	if err != nil {
		return nil, err
	}
	return &stock{pools.Items, customizations.Items, clusters.Items}, nil
}

// entry is a customization as one pool has it, or, with no pool, as none does. It is
// what -o json prints.
type entry struct {
	Namespace string `json:"namespace"`
	Pool      string `json:"pool,omitempty"`
	Name      string `json:"name"`
	// Status is empty while the pool has not looked at the customization, and without a pool.
	Status hivev1.InventoryStatus `json:"status,omitempty"`
	// Cluster has the customization, be it of this pool or of another.
	Cluster string `json:"cluster,omitempty"`
	Claim   string `json:"claim,omitempty"`
	// Attempts are those left; nil while the status is empty.
	Attempts *int32 `json:"attempts,omitempty"`
	Message  string `json:"message,omitempty"`

	customization *hivev1.ClusterDeploymentCustomization // nil when there is none
}

// Messages of entries that no pool's status tells of.
const (
	notSeen  = "the pool has not looked at it yet"
	unlisted = "in no pool's spec.inventory"
)

// entries are those of all pools, and then the customizations that are in no pool, by
// namespace.
func (s *stock) entries() []entry {
	out := []entry{}
	listed := map[client.ObjectKey]bool{}
	for i := range s.pools {
		for _, e := range s.entriesOf(&s.pools[i]) {
			listed[client.ObjectKey{Namespace: e.Namespace, Name: e.Name}] = true
			out = append(out, e)
		}
	}
	for i := range s.customizations {
		c := &s.customizations[i]
		if !listed[client.ObjectKeyFromObject(c)] {
			e := entry{Namespace: c.Namespace, Name: c.Name, Message: unlisted}
			s.fill(&e, c)
			out = append(out, e)
		}
	}
	slices.SortStableFunc(out, func(a, b entry) int { return cmp.Compare(a.Namespace, b.Namespace) })
	return out
}

// entriesOf are a pool's: those that its spec lists, in that order, and then those that
// only its status still has, by name.
func (s *stock) entriesOf(p *hivev1.ClusterPool) []entry {
	out := entriesIn(p)
	for i := range out {
		s.fill(&out[i], s.customization(p.Namespace, out[i].Name))
	}
	return out
}

// entriesIn is entriesOf as far as the pool itself tells.
func entriesIn(p *hivev1.ClusterPool) []entry {
	names := p.Spec.Inventory.Names()
	for _, name := range slices.Sorted(maps.Keys(p.Status.Inventory)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	out := []entry{} // JSON has no null for it
	seen := map[string]bool{}
	for _, name := range names {
		if !seen[name] { // an old object may list one twice
			seen[name] = true
			out = append(out, entryOf(p, name))
		}
	}
	return out
}

func entryOf(p *hivev1.ClusterPool, name string) entry {
	e := entry{Namespace: p.Namespace, Pool: p.Name, Name: name, Message: notSeen}
	st, ok := p.Status.Inventory[name]
	if !ok {
		return e
	}
	e.Status, e.Attempts, e.Message = st.Status, &st.Attempts, st.Message
	if st.ClusterDeployment != nil {
		e.Cluster = st.ClusterDeployment.Name
	}
	return e
}

// fill adds what the customization and the clusters tell. c may be nil.
func (s *stock) fill(e *entry, c *hivev1.ClusterDeploymentCustomization) {
	e.customization = c
	if e.Cluster == "" && c != nil && c.Status.ClusterDeploymentRef != nil {
		e.Cluster = c.Status.ClusterDeploymentRef.Name
	}
	if cd := s.cluster(e.Cluster); cd != nil {
		e.Claim = poolOf(cd).ClaimName
	}
}

func (s *stock) customization(namespace, name string) *hivev1.ClusterDeploymentCustomization {
	i := slices.IndexFunc(s.customizations, func(c hivev1.ClusterDeploymentCustomization) bool {
		return c.Namespace == namespace && c.Name == name
	})
	if i < 0 {
		return nil
	}
	return &s.customizations[i]
}

// cluster is a pool's cluster by its name, which is also that of its namespace.
func (s *stock) cluster(name string) *hivev1.ClusterDeployment {
	i := slices.IndexFunc(s.clusters, func(cd hivev1.ClusterDeployment) bool {
		return cd.Name == name && cd.Namespace == name
	})
	if i < 0 {
		return nil
	}
	return &s.clusters[i]
}

// listing are a customization's entries, one for each pool that has it. The stock is
// that of its namespace.
func (s *stock) listing(name string) []entry {
	var out []entry
	for i := range s.pools {
		for _, e := range s.entriesOf(&s.pools[i]) {
			if e.Name == name {
				out = append(out, e)
			}
		}
	}
	return out
}
