// Package lease decides which cluster has the lease of a ClusterDeploymentCustomization, and reads
// and edits the lease in its status. It is pure: callers write the result with the resource version
// that they read, which makes it a lease.
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

// Holder returns the cluster that has the lease, and whether there is one. A lease that Hive wrote
// has no namespace; Hive's clusters are in a namespace of the same name.
func Holder(c *hivev1.ClusterDeploymentCustomization) (types.NamespacedName, bool) {
	ref := c.Status.ClusterDeploymentRef
	if ref == nil || ref.Name == "" {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: cmp.Or(ref.Namespace, ref.Name), Name: ref.Name}, true
}

// HolderPool returns the pool that the lease was taken for; its name is empty if the lease names
// none. A lease that Hive wrote has no namespace: it is the customization's.
func HolderPool(c *hivev1.ClusterDeploymentCustomization) types.NamespacedName {
	ref := c.Status.ClusterPoolRef
	if ref == nil || ref.Name == "" {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: cmp.Or(ref.Namespace, c.Namespace), Name: ref.Name}
}

// Acquire gives the lease of c to a cluster of a pool that is about to be created or is being
// installed. applied are the patches that it is made with, as JSON. c must be free.
func Acquire(c *hivev1.ClusterDeploymentCustomization, cluster, pool types.NamespacedName, now time.Time, applied string) {
	c.Status.ClusterDeploymentRef = &corev1.ObjectReference{Namespace: cluster.Namespace, Name: cluster.Name}
	c.Status.ClusterPoolRef = &corev1.ObjectReference{Namespace: pool.Namespace, Name: pool.Name}
	c.Status.LastAppliedConfiguration = applied
	SetInUse(c, now)
	SetApplySucceeded(c, hivev1.ReasonInstallationPending, MessageInstalling, now)
}

// SetInUse sets the conditions of a leased customization to in use. It does not change its other
// fields.
func SetInUse(c *hivev1.ClusterDeploymentCustomization, now time.Time) {
	holder, _ := Holder(c)
	name := holder.String()
	if holder.Namespace == holder.Name {
		name = holder.Name
	}
	setCondition(c, hivev1.CustomizationAvailable, metav1.ConditionFalse, hivev1.ReasonCustomizationInUse,
		fmt.Sprintf("Currently in use by cluster deployment %s of clusterpool %s", name, HolderPool(c).Name), now)
}

// Release ends the lease, whichever cluster has it. It keeps the outcome of the last cluster,
// unless the install never ended: nothing is installing any longer.
func Release(c *hivev1.ClusterDeploymentCustomization, now time.Time) {
	c.Status.ClusterDeploymentRef, c.Status.ClusterPoolRef = nil, nil
	c.Status.Conditions = slices.DeleteFunc(c.Status.Conditions, func(have metav1.Condition) bool {
		return have.Type == hivev1.CustomizationApplySucceeded && have.Reason == hivev1.ReasonInstallationPending
	})
	setCondition(c, hivev1.CustomizationAvailable, metav1.ConditionTrue, hivev1.ReasonCustomizationFree, "No cluster uses it", now)
}

// Messages of ApplySucceeded, as Hive has them.
const (
	MessageInstalled     = "Patches applied and cluster installed successfully"
	MessageInstalling    = "Patches applied; cluster is installing"
	MessageInstallFailed = "Cluster installation failed. This may or may not be the fault of patches. Check the installation logs."
)

// SetApplySucceeded sets the condition ApplySucceeded. The reason determines the status: it is True
// only for ReasonApplySucceeded.
func SetApplySucceeded(c *hivev1.ClusterDeploymentCustomization, reason, message string, now time.Time) {
	status := metav1.ConditionFalse
	if reason == hivev1.ReasonApplySucceeded {
		status = metav1.ConditionTrue
	}
	setCondition(c, hivev1.CustomizationApplySucceeded, status, reason, message, now)
	FindCondition(c, hivev1.CustomizationApplySucceeded).ObservedGeneration = 0
}

// ReportInvalid records why the current spec of c does not apply.
func ReportInvalid(c *hivev1.ClusterDeploymentCustomization, message string, now time.Time) {
	SetApplySucceeded(c, hivev1.ReasonBrokenBySyntax, message, now)
	FindCondition(c, hivev1.CustomizationApplySucceeded).ObservedGeneration = c.Generation
}

// IsReportedInvalid reports whether it is recorded that the current spec of c does not apply.
func IsReportedInvalid(c *hivev1.ClusterDeploymentCustomization) bool {
	have := FindCondition(c, hivev1.CustomizationApplySucceeded)
	return have != nil && have.Reason == hivev1.ReasonBrokenBySyntax && have.ObservedGeneration == c.Generation
}

// FindCondition returns the condition of that type; nil if there is none.
func FindCondition(c *hivev1.ClusterDeploymentCustomization, typ string) *metav1.Condition {
	i := slices.IndexFunc(c.Status.Conditions, func(have metav1.Condition) bool { return have.Type == typ })
	if i < 0 {
		return nil
	}
	return &c.Status.Conditions[i]
}

// setCondition sets a condition in the list, and keeps the list sorted by type. The transition time
// changes only with the status; an unchanged condition is not touched.
func setCondition(c *hivev1.ClusterDeploymentCustomization, typ string, status metav1.ConditionStatus, reason, message string, now time.Time) {
	at := metav1.NewTime(now.Truncate(time.Second))
	have := FindCondition(c, typ)
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
