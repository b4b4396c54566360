package facts

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/install/config"
	"hotspare.io/hotspare/internal/inventory"
	"hotspare.io/hotspare/internal/inventory/lease"
	"hotspare.io/hotspare/internal/pool"
)

// CustomizationNames returns, sorted, the customizations that the pool lists, has recorded, or has
// clusters of.
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

// DecideInventory returns the state of the pool's inventory. The result is empty for a pool that
// has no inventory and never had one.
func (o Objects) DecideInventory() (inventory.Plan, error) {
	s := inventory.Snapshot{
		Listed: o.Pool.Spec.Inventory.Names(), Recorded: map[string]inventory.Entry{},
		Customizations: map[string]inventory.Customization{}, Pending: o.pendingNames(),
	}
	for name, e := range o.Pool.Status.Inventory {
		s.Recorded[name] = readEntry(e)
	}
	for _, cd := range o.Clusters {
		if name := CustomizationOf(cd); name != "" {
			s.Clusters = append(s.Clusters, inventory.Cluster{
				Name: cd.Name, Customization: name, Version: cd.Annotations[hivev1.AnnotationCustomizationVersion],
				Claimed: cd.Spec.ClusterPoolRef.ClaimName != "", Installed: cd.Spec.Installed,
				Failed:  !cd.Spec.Installed && condition.IsTrue(cd.Status.Conditions, hivev1.ClusterProvisionStopped),
				Failure: installFailure(cd),
			})
		}
	}
	if len(s.Listed) == 0 {
		s.Pending = nil // without an inventory, they need none
		if len(s.Clusters) == 0 {
			return inventory.Plan{}, nil
		}
	}
	for name, c := range o.Customizations {
		version, err := inventory.CustomizationVersion(c.Spec)
		if err != nil {
			return inventory.Plan{}, err
		}
		if o.Assumed[name] {
			version = s.Recorded[name].Version
		}
		holder, _ := lease.Holder(c)
		s.Customizations[name] = inventory.Customization{
			Version: version, Holder: holder.Name, Deleting: c.DeletionTimestamp != nil, Fault: o.customizationError(c),
		}
	}
	return inventory.Decide(s), nil
}

// AssumeCustomizations assumes that the customizations of the pool's inventory are as they were
// when its status was written. It is for callers that do not read the customizations.
func (o *Objects) AssumeCustomizations() {
	o.Customizations, o.Assumed = map[string]*hivev1.ClusterDeploymentCustomization{}, map[string]bool{}
	for name := range o.Pool.Status.Inventory {
		o.Customizations[name], o.Assumed[name] = AssumedCustomization(o.Pool, name), true
	}
}

// AssumedCustomization returns a customization as the status of a pool describes it.
func AssumedCustomization(p *hivev1.ClusterPool, name string) *hivev1.ClusterDeploymentCustomization {
	c := &hivev1.ClusterDeploymentCustomization{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: name}}
	e := p.Status.Inventory[name]
	if by := e.ClusterDeployment; by != nil {
		c.Status.ClusterDeploymentRef = &corev1.ObjectReference{Namespace: by.Namespace, Name: by.Name}
	}
	if e.Status == hivev1.InventoryToBeDeleted && slices.Contains(p.Spec.Inventory.Names(), name) {
		c.DeletionTimestamp = &metav1.Time{} // a listed entry is to be deleted only if the customization itself is being deleted
	}
	return c
}

// installFailure returns the error of a cluster's last install attempt; "" if it did not fail.
// Users read it after the cluster and the log that it names are deleted.
func installFailure(cd *hivev1.ClusterDeployment) string {
	c := condition.Find(cd.Status.Conditions, hivev1.ClusterProvisionFailed)
	if c == nil || c.Status != corev1.ConditionTrue {
		return ""
	}
	return strings.TrimRight(c.Message, ".")
}

// CustomizationOf returns the name of the customization of its pool's inventory that a cluster was
// made with; "" if there is none.
func CustomizationOf(cd *hivev1.ClusterDeployment) string {
	if ref := cd.Spec.ClusterPoolRef; ref != nil && ref.CustomizationRef != nil {
		return ref.CustomizationRef.Name
	}
	return ""
}

func (o Objects) customizationError(c *hivev1.ClusterDeploymentCustomization) string {
	if c.Unreadable != "" {
		return "it cannot be read: " + c.Unreadable
	}
	return o.Faults[c.Name]
}

// CustomizationError explains why a customization cannot be applied to a pool's clusters; "" if it
// can. It tries the customization on the template, rendered with the pool's own name.
func CustomizationError(template []byte, p *hivev1.ClusterPool, c *hivev1.ClusterDeploymentCustomization) string {
	_, _, err := RenderCustomizedCluster(template, p, p.Name, c)
	if err != nil {
		return err.Error()
	}
	return ""
}

// RenderCustomizedCluster renders the install-config of a pool's cluster with a customization, and
// returns it with the cluster's spec, in which the names are then those of the install-config. Its
// errors do not quote the template.
func RenderCustomizedCluster(template []byte, p *hivev1.ClusterPool, cluster string, c *hivev1.ClusterDeploymentCustomization) ([]byte, hivev1.ClusterDeploymentSpec, error) {
	spec := NewClusterSpec(p, cluster)
	raw, err := RenderInstallConfig(template, p, cluster)
	if err != nil {
		return nil, spec, err
	}
	if raw, err = config.ApplyPatches(raw, c.Spec.InstallConfigPatches); err != nil {
		return nil, spec, err
	}
	if spec.ClusterName, spec.BaseDomain, err = config.ClusterIdentity(raw); err != nil {
		return nil, spec, err
	}
	if spec, err = config.PatchSpec(spec, c.Spec.ClusterDeploymentSpecPatches); err != nil {
		return nil, spec, err
	}
	// Only the installer's manifests show whether these patches apply.
	return raw, spec, config.ValidateManifestPatches(c.Spec.InstallerManifestPatches)
}

// unassignedNames maps the recorded names for which no customization is left to that cause; nil if
// there are none.
func unassignedNames(inventoryPlan inventory.Plan) map[string]pool.Cause {
	if len(inventoryPlan.Unassigned) == 0 {
		return nil
	}
	out := make(map[string]pool.Cause, len(inventoryPlan.Unassigned))
	for _, name := range inventoryPlan.Unassigned {
		out[name] = pool.CustomizationExhausted
	}
	return out
}

// invalidCustomizations returns the unused customizations that do not apply to the pool, by name,
// and what their statuses show.
func (o Objects) invalidCustomizations(inventoryPlan inventory.Plan) []pool.InvalidCustomization {
	var out []pool.InvalidCustomization
	for _, name := range slices.Sorted(maps.Keys(inventoryPlan.Entries)) {
		c, e := o.Customizations[name], inventoryPlan.Entries[name]
		if e.Status != hivev1.InventoryBrokenByConfiguration || c == nil || c.Unreadable != "" || o.Assumed[name] {
			continue
		}
		by := "pool " + o.Pool.Name + ": "
		invalid := pool.InvalidCustomization{Name: name, Message: by + e.Message, ReservedForName: o.IsReservedForName(name)}
		if lease.IsReportedInvalid(c) {
			invalid.Reported = lease.FindCondition(c, hivev1.CustomizationApplySucceeded).Message
			invalid.ReportedByPool = invalid.Reported == invalid.Message || invalid.Reported == by+o.Pool.Status.Inventory[name].Message
		}
		out = append(out, invalid)
	}
	return out
}

// IsReservedForName reports whether the pool's status reserves a customization for a cluster name
// that it records. The customization may have been removed from the inventory since.
func (o Objects) IsReservedForName(customization string) bool {
	ref := o.Pool.Status.Inventory[customization].ClusterDeployment
	return ref != nil && slices.Contains(o.Pool.Status.Pending, ref.Name)
}

func readEntry(e hivev1.InventoryEntryStatus) inventory.Entry {
	out := inventory.Entry{Version: e.Version, Status: e.Status, Attempts: int(e.Attempts), Failed: e.Failed, Failure: e.Failure, Message: e.Message}
	if e.ClusterDeployment != nil {
		out.Cluster = e.ClusterDeployment.Name
	}
	return out
}

// inventoryStatus converts the entries of an inventory plan to the form of the pool's status.
func inventoryStatus(inventoryPlan inventory.Plan) map[string]hivev1.InventoryEntryStatus {
	if len(inventoryPlan.Entries) == 0 {
		return nil
	}
	out := make(map[string]hivev1.InventoryEntryStatus, len(inventoryPlan.Entries))
	for name, e := range inventoryPlan.Entries {
		st := hivev1.InventoryEntryStatus{Version: e.Version, Status: e.Status, Attempts: int32(e.Attempts), Failed: e.Failed, Failure: e.Failure, Message: e.Message}
		if e.Cluster != "" {
			st.ClusterDeployment = &hivev1.ClusterDeploymentReference{Name: e.Cluster, Namespace: e.Cluster}
		}
		out[name] = st
	}
	return out
}

func (o Objects) setInventoryCondition(set conditionSetter, inventoryPlan inventory.Plan) {
	if len(o.Pool.Spec.Inventory) == 0 {
		set(hivev1.PoolInventoryValid, corev1.ConditionUnknown, hivev1.ReasonInitialized, "Condition Initialized")
		return
	}
	reason, message := inventoryPlan.ValidCondition(o.Pool.Spec.Inventory.Names(), int(o.Pool.Spec.Size))
	status := corev1.ConditionFalse
	if reason == hivev1.ReasonInventoryValid {
		status = corev1.ConditionTrue
		message = strings.TrimSuffix("Every customization of the inventory can be used; "+message, "; ")
	}
	set(hivev1.PoolInventoryValid, status, reason, message)
}
