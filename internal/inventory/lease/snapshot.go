package lease

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A Snapshot is everything that a lease depends on.
type Snapshot struct {
	// Key is the namespace and name of the customization.
	Key types.NamespacedName
	// Exists is set if the customization exists. If it does not, there may still be clusters that
	// name it.
	Exists bool
	// Unreadable is set if some of it could not be read, such as its holder.
	Unreadable bool
	Deleting   bool
	// HasFinalizer is set if it has hotspare's finalizer.
	HasFinalizer bool
	// If Leased is set, Holder has the lease, which was acquired for Pool.
	Leased       bool
	Holder, Pool types.NamespacedName
	// Available is the status of its condition Available; empty if it has none.
	Available metav1.ConditionStatus
	// ApplyReason is the reason of ApplySucceeded.
	ApplyReason string
	// StatusCurrent is set if observedGeneration and the conditions Reconciling and Stalled are up
	// to date.
	StatusCurrent bool
	// HolderRecorded is set if the pool has recorded the holder for creation, PoolUnreadable if the
	// pool cannot be read, so that this is unknown. Both are known only after a read from the API
	// server.
	HolderRecorded, PoolUnreadable bool
	// Clusters are the existing ones among the clusters that name the customization, and the
	// holder.
	Clusters []Cluster
}

// A Cluster has the fields of a cluster that matter to a lease. It is comparable.
type Cluster struct {
	Key     types.NamespacedName
	UID     types.UID
	Created time.Time
	// Customization is the one that it names, in its pool's namespace. An empty name means none.
	Customization types.NamespacedName
	Pool          types.NamespacedName
	Deleting      bool
	// HasDeprovisionFinalizer is set while it remains to be destroyed. A new cluster does not have
	// that finalizer yet.
	HasDeprovisionFinalizer bool
	// HasLeaseFinalizer is set while it has the finalizer that package customization removes.
	HasLeaseFinalizer bool
	// Installed and Stopped are set if its installation succeeded or failed permanently.
	Installed, Stopped bool
	// Unreadable is set if some of it could not be read, such as the customization that it names.
	Unreadable bool
}

// IsDestroyed reports whether nothing is left of a cluster that is being deleted. A cluster that
// was deleted before it got the deprovision finalizer has never been installed.
func (c Cluster) IsDestroyed() bool { return c.Deleting && !c.HasDeprovisionFinalizer }

// FindCluster returns the cluster with that key; nil if it does not exist.
func (s Snapshot) FindCluster(key types.NamespacedName) *Cluster {
	for i := range s.Clusters {
		if s.Clusters[i].Key == key {
			return &s.Clusters[i]
		}
	}
	return nil
}
