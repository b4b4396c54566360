// Package inventoryview describes inventories to users: each pool's entries, the clusters that use them,
// the meaning of their status, and the remedies. The CLI and the console share it. It is pure: it
// turns API objects into values and text.
package inventoryview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/explain/clusterstate"
	"hotspare.io/hotspare/internal/inventory"
)

// Objects are the objects that inventories consist of, in one namespace or in all of them, sorted
// by namespace and name. This package does not change them.
type Objects struct {
	Pools          []hivev1.ClusterPool
	Customizations []hivev1.ClusterDeploymentCustomization
	Clusters       []hivev1.ClusterDeployment
}

// An Entry is a customization in one pool's inventory or, without a pool, one in no pool's
// inventory. -o json prints it.
type Entry struct {
	Namespace string `json:"namespace"`
	Pool      string `json:"pool,omitempty"`
	Name      string `json:"name"`
	// Status is empty while the pool has not reported the customization, and without a pool.
	Status hivev1.InventoryStatus `json:"status,omitempty"`
	// Cluster is the cluster that has the customization, of this pool or of another.
	Cluster string `json:"cluster,omitempty"`
	Claim   string `json:"claim,omitempty"`
	// Attempts is the number of attempts left; nil while Status is empty.
	Attempts *int32 `json:"attempts,omitempty"`
	Message  string `json:"message,omitempty"`

	// Customization is nil if it does not exist.
	Customization *hivev1.ClusterDeploymentCustomization `json:"-"`
}

// Messages of entries that are in no pool's status.
const (
	notSeen  = "the pool has not checked it yet"
	unlisted = "in no pool's spec.inventory"
)

// Entries returns the entries of all pools, and then the customizations that are in no pool, by
// namespace.
func (o *Objects) Entries() []Entry {
	out := []Entry{}
	listed := map[types.NamespacedName]bool{}
	for i := range o.Pools {
		for _, e := range o.PoolEntries(&o.Pools[i]) {
			listed[types.NamespacedName{Namespace: e.Namespace, Name: e.Name}] = true
			out = append(out, e)
		}
	}
	for i := range o.Customizations {
		c := &o.Customizations[i]
		if !listed[types.NamespacedName{Namespace: c.Namespace, Name: c.Name}] {
			e := Entry{Namespace: c.Namespace, Name: c.Name, Message: unlisted}
			o.addHolder(&e, c)
			out = append(out, e)
		}
	}
	slices.SortStableFunc(out, func(a, b Entry) int { return cmp.Compare(a.Namespace, b.Namespace) })
	return out
}

// PoolEntries returns a pool's entries: those that its spec lists, in that order, and then those
// that only its status still has, by name.
func (o *Objects) PoolEntries(p *hivev1.ClusterPool) []Entry {
	out := EntriesFromPool(p)
	for i := range out {
		o.addHolder(&out[i], o.FindCustomization(p.Namespace, out[i].Name))
	}
	return out
}

// EntriesFromPool is PoolEntries with the data of the pool alone.
func EntriesFromPool(p *hivev1.ClusterPool) []Entry {
	names := p.Spec.Inventory.Names()
	for _, name := range slices.Sorted(maps.Keys(p.Status.Inventory)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	out := []Entry{} // JSON has no null for it
	seen := map[string]bool{}
	for _, name := range names {
		if !seen[name] { // a stored object may list one twice
			seen[name] = true
			out = append(out, newEntry(p, name))
		}
	}
	return out
}

func newEntry(p *hivev1.ClusterPool, name string) Entry {
	e := Entry{Namespace: p.Namespace, Pool: p.Name, Name: name, Message: notSeen}
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

// addHolder adds the data of the customization and of the clusters. c may be nil.
func (o *Objects) addHolder(e *Entry, c *hivev1.ClusterDeploymentCustomization) {
	e.Customization = c
	if e.Cluster == "" && c != nil && c.Status.ClusterDeploymentRef != nil {
		e.Cluster = c.Status.ClusterDeploymentRef.Name
	}
	if cd := o.findCluster(e.Cluster); cd != nil {
		e.Claim = clusterstate.PoolReference(cd).ClaimName
	}
}

// FindCustomization returns the customization of that name; nil if there is none.
func (o *Objects) FindCustomization(namespace, name string) *hivev1.ClusterDeploymentCustomization {
	i := slices.IndexFunc(o.Customizations, func(c hivev1.ClusterDeploymentCustomization) bool {
		return c.Namespace == namespace && c.Name == name
	})
	if i < 0 {
		return nil
	}
	return &o.Customizations[i]
}

// findCluster returns a pool's cluster by its name, which is also the name of its namespace; nil if
// there is none.
func (o *Objects) findCluster(name string) *hivev1.ClusterDeployment {
	i := slices.IndexFunc(o.Clusters, func(cd hivev1.ClusterDeployment) bool {
		return cd.Name == name && cd.Namespace == name
	})
	if i < 0 {
		return nil
	}
	return &o.Clusters[i]
}

// EntriesNamed returns a customization's entries, one for each pool that has it. The objects must
// be those of its namespace.
func (o *Objects) EntriesNamed(name string) []Entry {
	var out []Entry
	for i := range o.Pools {
		for _, e := range o.PoolEntries(&o.Pools[i]) {
			if e.Name == name {
				out = append(out, e)
			}
		}
	}
	return out
}

// Tries returns the attempts left out of the initial number, such as "2/3"; empty if unknown.
func (e Entry) Tries() string {
	if e.Attempts == nil {
		return ""
	}
	return fmt.Sprintf("%d/%d", *e.Attempts, inventory.MaxAttempts)
}

// DescribeHolder describes the holder of the customization's lease, such as "cluster foo of pool
// bar, claimed by alice".
func (o *Objects) DescribeHolder(c *hivev1.ClusterDeploymentCustomization) string {
	ref := c.Status.ClusterDeploymentRef
	if ref == nil {
		return "nobody"
	}
	words := "cluster " + ref.Name
	if p := c.Status.ClusterPoolRef; p != nil {
		words += " of pool " + p.Name
	}
	cd := o.findCluster(ref.Name)
	switch {
	case cd == nil:
		return words + ", which is about to be created, or was deleted"
	case cd.DeletionTimestamp != nil:
		return words + ", which is being deleted"
	case clusterstate.PoolReference(cd).ClaimName != "":
		return words + ", claimed by " + clusterstate.PoolReference(cd).ClaimName
	default:
		return words + ", unclaimed"
	}
}
