package facts

import (
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/install/config"
	"hotspare.io/hotspare/internal/inventory"
	"hotspare.io/hotspare/internal/inventory/lease"
)

// CustomizationNames are the customizations that the pool has to do with: those that it
// lists, has recorded, or has clusters of; sorted.
func (o Objects) CustomizationNames() []string {
	out := o.Pool.Spec.Inventory.Names()
	for name := range o.Pool.Status.Inventory {
		out = append(out, name)
	}
	for _, cd := range o.Clusters {
		if name := CustomizationOf(cd); name != "" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Books are what the customizations of the pool's inventory are to it. Of a pool that
// has none, and never had, they are empty.
func (o Objects) Books() (inventory.Books, error) {
	s := inventory.Snapshot{
		Listed: o.Pool.Spec.Inventory.Names(), Recorded: map[string]inventory.Entry{},
		Customizations: map[string]inventory.Customization{}, Pending: o.pending(),
	}
	for name, e := range o.Pool.Status.Inventory {
		s.Recorded[name] = entry(e)
	}
	for _, cd := range o.Clusters {
		if name := CustomizationOf(cd); name != "" {
			s.Clusters = append(s.Clusters, inventory.Cluster{
				Name: cd.Name, Customization: name, Version: cd.Annotations[hivev1.AnnotationCustomizationVersion],
				Claimed: cd.Spec.ClusterPoolRef.ClaimName != "", Installed: cd.Spec.Installed,
				Failed:  !cd.Spec.Installed && condition.IsTrue(cd.Status.Conditions, hivev1.ClusterProvisionStopped),
				Failure: failure(cd),
			})
		}
	}
	if len(s.Listed) == 0 {
		s.Pending = nil // they need none
		if len(s.Clusters) == 0 {
			return inventory.Books{}, nil
		}
	}
	for name, c := range o.Customizations {
		version, err := inventory.Version(c.Spec)
		if err != nil {
			return inventory.Books{}, err
		}
		if o.Assumed[name] {
			version = s.Recorded[name].Version
		}
		holder, _ := lease.Holder(c)
		s.Customizations[name] = inventory.Customization{
			Version: version, Holder: holder.Name, Deleting: c.DeletionTimestamp != nil, Fault: o.fault(c),
		}
	}
	return inventory.Keep(s), nil
}

// Assume takes the customizations of the pool's inventory to be as they were when its
// status was written, for who does not read them.
func (o *Objects) Assume() {
	o.Customizations, o.Assumed = map[string]*hivev1.ClusterDeploymentCustomization{}, map[string]bool{}
	for name := range o.Pool.Status.Inventory {
		o.Customizations[name], o.Assumed[name] = Assumed(o.Pool, name), true
	}
}

// Assumed is a customization as the status of a pool tells of it.
func Assumed(p *hivev1.ClusterPool, name string) *hivev1.ClusterDeploymentCustomization {
	c := &hivev1.ClusterDeploymentCustomization{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: name}}
	e := p.Status.Inventory[name]
	if by := e.ClusterDeployment; by != nil {
		c.Status.ClusterDeploymentRef = &corev1.ObjectReference{Namespace: by.Namespace, Name: by.Name}
	}
	if e.Status == hivev1.InventoryToBeDeleted && slices.Contains(p.Spec.Inventory.Names(), name) {
		c.DeletionTimestamp = &metav1.Time{} // what is listed and to be deleted is being deleted itself
	}
	return c
}

// failure is what a cluster says of its last attempt to install it; "" when that did not
// fail. It is read when the cluster is gone, and the log that it names is gone, too.
func failure(cd *hivev1.ClusterDeployment) string {
	c := condition.Find(cd.Status.Conditions, hivev1.ClusterProvisionFailed)
	if c == nil || c.Status != corev1.ConditionTrue {
		return ""
	}
	if words := attempted.FindStringSubmatch(c.Message); words != nil {
		return words[1]
	}
	return strings.TrimRight(c.Message, ".")
}

// attempted is how internal/provision tells of a failure. Hive has other words.
var attempted = regexp.MustCompile(`(?s)^Attempt \d+ failed: (.*); ClusterProvision \S+ has the log\.$`)

// CustomizationOf names the customization of its pool's inventory that a cluster was
// made with; "" when it was made with none.
func CustomizationOf(cd *hivev1.ClusterDeployment) string {
	if ref := cd.Spec.ClusterPoolRef; ref != nil && ref.CustomizationRef != nil {
		return ref.CustomizationRef.Name
	}
	return ""
}

func (o Objects) fault(c *hivev1.ClusterDeploymentCustomization) string {
	if c.Unreadable != "" {
		return "it cannot be read: " + c.Unreadable
	}
	return o.Faults[c.Name]
}

// Fault says why a customization cannot be applied to a pool's clusters; "" when it
// can. It is tried on what the template makes of the pool's own name.
func Fault(template []byte, p *hivev1.ClusterPool, c *hivev1.ClusterDeploymentCustomization) string {
	_, _, err := Customized(template, p, p.Name, c)
	if err != nil {
		return err.Error()
	}
	return ""
}

// Customized renders the install-config of a pool's cluster with a customization, and
// applies it to the cluster's Spec, whose names are those of the install-config then.
// Its errors quote nothing of the template.
func Customized(template []byte, p *hivev1.ClusterPool, cluster string, c *hivev1.ClusterDeploymentCustomization) ([]byte, hivev1.ClusterDeploymentSpec, error) {
	spec := Spec(p, cluster)
	raw, err := Render(template, p, cluster)
	if err != nil {
		return nil, spec, err
	}
	if raw, err = config.Patch(raw, c.Spec.InstallConfigPatches); err != nil {
		return nil, spec, err
	}
	if spec.ClusterName, spec.BaseDomain, err = config.Identity(raw); err != nil {
		return nil, spec, err
	}
	if spec, err = config.PatchSpec(spec, c.Spec.ClusterDeploymentSpecPatches); err != nil {
		return nil, spec, err
	}
	// Whether they apply only the installer's manifests tell.
	return raw, spec, config.CheckManifestPatches(c.Spec.InstallerManifestPatches)
}

func entry(e hivev1.InventoryEntryStatus) inventory.Entry {
	out := inventory.Entry{Version: e.Version, Status: e.Status, Attempts: int(e.Attempts), Failed: e.Failed, Failure: e.Failure, Message: e.Message}
	if e.ClusterDeployment != nil {
		out.Cluster = e.ClusterDeployment.Name
	}
	return out
}

// recorded are the books as the pool's status has them.
func recorded(books inventory.Books) map[string]hivev1.InventoryEntryStatus {
	if len(books.Entries) == 0 {
		return nil
	}
	out := make(map[string]hivev1.InventoryEntryStatus, len(books.Entries))
	for name, e := range books.Entries {
		st := hivev1.InventoryEntryStatus{Version: e.Version, Status: e.Status, Attempts: int32(e.Attempts), Failed: e.Failed, Failure: e.Failure, Message: e.Message}
		if e.Cluster != "" {
			st.ClusterDeployment = &hivev1.ClusterDeploymentReference{Name: e.Cluster, Namespace: e.Cluster}
		}
		out[name] = st
	}
	return out
}

func (o Objects) inventory(set setter, books inventory.Books) {
	if len(o.Pool.Spec.Inventory) == 0 {
		set(hivev1.PoolInventoryValid, corev1.ConditionUnknown, hivev1.ReasonInitialized, "Condition Initialized")
		return
	}
	reason, message := books.Summary(o.Pool.Spec.Inventory.Names(), int(o.Pool.Spec.Size))
	status := corev1.ConditionFalse
	if reason == hivev1.ReasonInventoryValid {
		status = corev1.ConditionTrue
		message = strings.TrimSuffix("Every customization of the inventory can be used; "+message, "; ")
	}
	set(hivev1.PoolInventoryValid, status, reason, message)
}
