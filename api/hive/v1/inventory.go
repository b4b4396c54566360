package v1

import (
	"bytes"

	"k8s.io/apimachinery/pkg/util/json"
)

// Inventory is a list of customizations. It decodes both forms of an inventory, and always encodes
// the form that Hive ships, a list.
type Inventory []InventoryEntry

// InventoryEntry refers to one customization.
type InventoryEntry struct {
	// Kind is ClusterDeploymentCustomization. An empty value has the same meaning.
	// +optional
	Kind string `json:"kind,omitempty"`
	// Name is the name of a ClusterDeploymentCustomization in the namespace of the pool.
	Name string `json:"name"`
}

// normalizeInventory replaces the enhancement's form of a pool's inventory,
// {"ClusterDeploymentCustomizations": […]}, by the list that it contains. It returns any other
// input unchanged.
func normalizeInventory(pool []byte) []byte {
	if !bytes.Contains(pool, []byte(customizations)) {
		return pool
	}
	var tree map[string]any
	if json.Unmarshal(pool, &tree) != nil {
		return pool
	}
	spec, _ := tree["spec"].(map[string]any)
	form, _ := spec["inventory"].(map[string]any)
	list, ok := form[customizations]
	if !ok || len(form) != 1 {
		return pool
	}
	spec["inventory"] = list
	raw, err := json.Marshal(tree)
	if err != nil {
		return pool
	}
	return raw
}

// customizations is the key of the enhancement's form.
const customizations = "ClusterDeploymentCustomizations"

// Names returns the names of the customizations, in order.
func (i Inventory) Names() []string {
	out := make([]string, len(i))
	for n, e := range i {
		out[n] = e.Name
	}
	return out
}

// InventoryStatus is the state of a customization for one pool.
//
// +kubebuilder:validation:Enum=Available;Reserved;BrokenByConfiguration;BrokenByCloud;Missing;Unavailable;ToBeDeleted;ToBeUpdated
type InventoryStatus string

// The statuses. The enhancement writes them with spaces.
const (
	// InventoryAvailable: the pool can use the customization.
	InventoryAvailable InventoryStatus = "Available"
	// InventoryReserved: one of the pool's clusters uses it, or is about to use it.
	InventoryReserved InventoryStatus = "Reserved"
	// InventoryBrokenByConfiguration: its patches do not apply to the pool's install-config.
	// hotspare tries it again when the customization or the pool changes.
	InventoryBrokenByConfiguration InventoryStatus = "BrokenByConfiguration"
	// InventoryBrokenByCloud: it has no attempts left, because every cluster created with it failed
	// to install.
	InventoryBrokenByCloud InventoryStatus = "BrokenByCloud"
	// InventoryMissing: the inventory lists it, and it does not exist.
	InventoryMissing InventoryStatus = "Missing"
	// InventoryUnavailable: a cluster of another pool uses it.
	InventoryUnavailable InventoryStatus = "Unavailable"
	// InventoryToBeDeleted: it was removed from the inventory, or is being deleted, while one of
	// the pool's clusters uses it.
	InventoryToBeDeleted InventoryStatus = "ToBeDeleted"
	// InventoryToBeUpdated: it was changed after the cluster that uses it was created.
	InventoryToBeUpdated InventoryStatus = "ToBeUpdated"
)

// InventoryEntryStatus is the state of one customization of a pool's inventory.
type InventoryEntryStatus struct {
	// Version is the last observed version of the customization's spec. While a cluster uses the
	// customization, it is the version with which that cluster was created.
	// +optional
	Version string `json:"version,omitempty"`
	// Status is the state of the customization for this pool.
	Status InventoryStatus `json:"status"`
	// Attempts is the number of further clusters that may fail to install with the customization
	// before it is BrokenByCloud. A change of the customization, or a success, resets it.
	Attempts int32 `json:"attempts"`
	// ClusterDeployment is the pool's cluster that uses the customization.
	// +optional
	ClusterDeployment *ClusterDeploymentReference `json:"clusterDeployment,omitempty"`
	// Failed is the name of the last cluster whose failure was counted.
	// +optional
	Failed string `json:"failed,omitempty"`
	// Failure describes that failure.
	// +optional
	Failure string `json:"failure,omitempty"`
	// Message describes why the customization cannot be used, and how to correct it.
	// +optional
	Message string `json:"message,omitempty"`
}

// ClusterDeploymentReference refers to a ClusterDeployment.
type ClusterDeploymentReference struct {
	// Name is the name of the ClusterDeployment.
	Name string `json:"name"`
	// Namespace is the namespace of the ClusterDeployment.
	Namespace string `json:"namespace"`
}
