package v1

import (
	"bytes"

	"k8s.io/apimachinery/pkg/util/json"
)

// Inventory lists customizations. It is read in either of the forms in which it is
// written, and always marshalled as the shipped one, a list.
type Inventory []InventoryEntry

// InventoryEntry names one customization.
type InventoryEntry struct {
	// Kind is ClusterDeploymentCustomization, or empty, which means the same.
	// +optional
	Kind string `json:"kind,omitempty"`
	// Name is that of a ClusterDeploymentCustomization in the namespace of the pool.
	Name string `json:"name"`
}

// listed rewrites the enhancement's form of a pool's inventory,
// {"ClusterDeploymentCustomizations": […]}, as the list that it has. Anything else is
// left as it is.
func listed(pool []byte) []byte {
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

// Names are the customizations in their order.
func (i Inventory) Names() []string {
	out := make([]string, len(i))
	for n, e := range i {
		out[n] = e.Name
	}
	return out
}

// InventoryStatus is what a customization is to a pool.
// +kubebuilder:validation:Enum=Available;Reserved;BrokenByConfiguration;BrokenByCloud;Missing;Unavailable;ToBeDeleted;ToBeUpdated
type InventoryStatus string

// The statuses, as the enhancement has them with blanks.
const (
	// InventoryAvailable can be used by this pool.
	InventoryAvailable InventoryStatus = "Available"
	// InventoryReserved is used by one of this pool's clusters, or is about to be.
	InventoryReserved InventoryStatus = "Reserved"
	// InventoryBrokenByConfiguration has patches that do not apply to this pool's
	// install-config. It is tried again when it or the pool changes.
	InventoryBrokenByConfiguration InventoryStatus = "BrokenByConfiguration"
	// InventoryBrokenByCloud has used up its attempts: every cluster made with it failed to install.
	InventoryBrokenByCloud InventoryStatus = "BrokenByCloud"
	// InventoryMissing is listed, and does not exist.
	InventoryMissing InventoryStatus = "Missing"
	// InventoryUnavailable is used by another pool's cluster.
	InventoryUnavailable InventoryStatus = "Unavailable"
	// InventoryToBeDeleted is no longer listed, or is being deleted, while one of this pool's clusters uses it.
	InventoryToBeDeleted InventoryStatus = "ToBeDeleted"
	// InventoryToBeUpdated was changed since the cluster that uses it was made.
	InventoryToBeUpdated InventoryStatus = "ToBeUpdated"
)

// InventoryEntryStatus is what a pool knows of one customization.
type InventoryEntryStatus struct {
	// Version is the version of the customization's spec that was seen last; while a
	// cluster uses it, the one that cluster was made with.
	// +optional
	Version string          `json:"version,omitempty"`
	Status  InventoryStatus `json:"status"`
	// Attempts is how many more clusters may fail to install with it before it counts
	// as broken by the cloud. A change of it, or a success, starts over.
	Attempts int32 `json:"attempts"`
	// ClusterDeployment is the pool's cluster that uses it.
	// +optional
	ClusterDeployment *ClusterDeploymentReference `json:"clusterDeployment,omitempty"`
	// Failed is the cluster whose failure was counted last.
	// +optional
	Failed string `json:"failed,omitempty"`
	// Failure is what that failure was, in words.
	// +optional
	Failure string `json:"failure,omitempty"`
	// Message says in words what is wrong.
	// +optional
	Message string `json:"message,omitempty"`
}

// ClusterDeploymentReference names a cluster.
type ClusterDeploymentReference struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}
