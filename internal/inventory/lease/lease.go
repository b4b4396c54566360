// Package lease reads and edits the lease of a ClusterDeploymentCustomization: which
// cluster uses it. It writes nothing to the API: whoever does, does so with the
// resource version that was read, for that is what makes it a lease.
package lease

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// Holder is the cluster that has the lease, and whether there is one. A lease that Hive
// wrote names no namespace; its clusters live in one of their own name.
func Holder(c *hivev1.ClusterDeploymentCustomization) (types.NamespacedName, bool) {
	ref := c.Status.ClusterDeploymentRef
	if ref == nil || ref.Name == "" {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: cmp.Or(ref.Namespace, ref.Name), Name: ref.Name}, true
}

// Pool is the pool that the lease was taken for; without a name if it names none. One
// that Hive wrote names no namespace; it is the customization's.
func Pool(c *hivev1.ClusterDeploymentCustomization) types.NamespacedName {
	ref := c.Status.ClusterPoolRef
	if ref == nil || ref.Name == "" {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: cmp.Or(ref.Namespace, c.Namespace), Name: ref.Name}
}

// Lease gives c to a cluster of a pool, which is about to be made or is being installed.
// applied are the patches that it is made with, as JSON. c must be free.
func Lease(c *hivev1.ClusterDeploymentCustomization, cluster, pool types.NamespacedName, now time.Time, applied string) {
	c.Status.ClusterDeploymentRef = &corev1.ObjectReference{Namespace: cluster.Namespace, Name: cluster.Name}
	c.Status.ClusterPoolRef = &corev1.ObjectReference{Namespace: pool.Namespace, Name: pool.Name}
	c.Status.LastAppliedConfiguration = applied
	InUse(c, now)
	Applied(c, hivev1.ReasonInstallationPending, Installing, now)
}

// InUse says of a leased one that it is. What else is known of it stays.
func InUse(c *hivev1.ClusterDeploymentCustomization, now time.Time) {
	holder, _ := Holder(c)
	name := holder.String()
	if holder.Namespace == holder.Name {
		name = holder.Name
	}
	set(c, hivev1.CustomizationAvailable, metav1.ConditionFalse, hivev1.ReasonCustomizationInUse,
		fmt.Sprintf("Currently in use by cluster deployment %s of clusterpool %s", name, Pool(c).Name), now)
}

// Free takes the lease from whoever has it. How the last cluster did stays, unless it
// never came to an end: nothing is installing any longer.
func Free(c *hivev1.ClusterDeploymentCustomization, now time.Time) {
	c.Status.ClusterDeploymentRef, c.Status.ClusterPoolRef = nil, nil
	c.Status.Conditions = slices.DeleteFunc(c.Status.Conditions, func(have metav1.Condition) bool {
		return have.Type == hivev1.CustomizationApplySucceeded && have.Reason == hivev1.ReasonInstallationPending
	})
	set(c, hivev1.CustomizationAvailable, metav1.ConditionTrue, hivev1.ReasonCustomizationFree, "No cluster uses it", now)
}

// Messages of ApplySucceeded, as Hive has them.
const (
	Installed  = "Patches applied and cluster installed successfully"
	Installing = "Patches applied; cluster is installing"
	Broken     = "Cluster installation failed. This may or may not be the fault of patches. Check the installation logs."
)

// Applied tells how the patches did. The reason decides the status: True for
// ReasonApplySucceeded alone.
func Applied(c *hivev1.ClusterDeploymentCustomization, reason, message string, now time.Time) {
	status := metav1.ConditionFalse
	if reason == hivev1.ReasonApplySucceeded {
		status = metav1.ConditionTrue
	}
	set(c, hivev1.CustomizationApplySucceeded, status, reason, message, now)
	Find(c, hivev1.CustomizationApplySucceeded).ObservedGeneration = 0
}

// Denounce tells why c, as its spec is now, does not apply.
func Denounce(c *hivev1.ClusterDeploymentCustomization, message string, now time.Time) {
	Applied(c, hivev1.ReasonBrokenBySyntax, message, now)
	Find(c, hivev1.CustomizationApplySucceeded).ObservedGeneration = c.Generation
}

// Denounced reports whether it has been told that c, as its spec is now, does not apply.
func Denounced(c *hivev1.ClusterDeploymentCustomization) bool {
	have := Find(c, hivev1.CustomizationApplySucceeded)
	return have != nil && have.Reason == hivev1.ReasonBrokenBySyntax && have.ObservedGeneration == c.Generation
}

// Find is the condition of that type, or nil.
func Find(c *hivev1.ClusterDeploymentCustomization, typ string) *metav1.Condition {
	i := slices.IndexFunc(c.Status.Conditions, func(have metav1.Condition) bool { return have.Type == typ })
	if i < 0 {
		return nil
	}
	return &c.Status.Conditions[i]
}

// set puts a condition into the list, which stays sorted by type. The transition time
// moves with the status alone; what does not change stays as it is.
func set(c *hivev1.ClusterDeploymentCustomization, typ string, status metav1.ConditionStatus, reason, message string, now time.Time) {
	at := metav1.NewTime(now.Truncate(time.Second))
	have := Find(c, typ)
	if have == nil {
		c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{
			Type: typ, Status: status, Reason: reason, Message: message, LastTransitionTime: at,
		})
		slices.SortStableFunc(c.Status.Conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
		return
	}
	if have.Status != status {
		have.LastTransitionTime = at
	}
	have.Status, have.Reason, have.Message = status, reason, message
}
