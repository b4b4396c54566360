package facts

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/bootstrap"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/inventory"
	"hotspare.io/hotspare/internal/kstatus"
	"hotspare.io/hotspare/internal/pool"
)

// PoolStatus returns the pool's status for a report, based on the current status: counts, the plan
// as text, conditions, and the names of clusters that are about to be created. Of a pool that could not be read
// completely, it changes only the conditions that every pass sets, and the plan.
func (o Objects) PoolStatus(rep pool.Report, inventoryPlan inventory.Plan, pending []string, now time.Time) hivev1.ClusterPoolStatus {
	st := *o.Pool.Status.DeepCopy()
	st.Plan, st.ObservedGeneration = rep.Words, o.Pool.Generation
	if rep.Unreadable == "" {
		o.setCounts(&st, rep, inventoryPlan, pending, now)
	}
	o.setConditions(&st.Conditions, rep, inventoryPlan, now)
	kstatus.ReportClusterPool(o.Pool, &st, now)
	return st
}

func (o Objects) setCounts(st *hivev1.ClusterPoolStatus, rep pool.Report, inventoryPlan inventory.Plan, pending []string, now time.Time) {
	st.Size = int32(rep.UnclaimedCount())
	st.Standby = int32(rep.Count[pool.Standby])
	st.Ready = int32(rep.Count[pool.Assignable])
	st.Selector = fmt.Sprintf("%s=%s,%s=%s", hivev1.LabelPoolNamespace, o.Pool.Namespace, hivev1.LabelPoolName, o.Pool.Name)
	st.Pending, st.RecipeVersion = slices.Clone(pending), o.Recipe
	if o.Gates != nil {
		st.StepsVersion, st.GatesVersion, st.StepsSince = o.Steps.Version, o.Gates.Version, o.stepsSince(now)
		st.FailedStepsVersion, st.FailedStepsTime = rep.FailedSteps.Version, nil
		if at := rep.FailedSteps.At; !at.IsZero() {
			st.FailedStepsTime = &metav1.Time{Time: at}
		}
	}
	st.Inventory = inventoryStatus(inventoryPlan)
}

// stepsSince returns since when the pool has had steps; nil if it has none. If an earlier release has recorded steps
// without it, every cluster counts as younger.
func (o Objects) stepsSince(now time.Time) *metav1.Time {
	st := o.Pool.Status
	switch {
	case o.Steps.Version == "":
		return nil
	case st.StepsSince != nil:
		return st.StepsSince
	case st.StepsVersion != "" && st.StepsVersion != bootstrap.Unresolved:
		return o.Pool.CreationTimestamp.DeepCopy()
	default:
		since := metav1.NewTime(now.Truncate(time.Second))
		return &since
	}
}

// UnreadableMessage says what happens to a pool that could not be read completely, and who can change that.
func UnreadableMessage(p *hivev1.ClusterPool) string {
	return fmt.Sprintf("%s: correct it with kubectl edit clusterpool %s -n %s; until then hotspare does nothing for this pool",
		p.Unreadable, p.Name, p.Namespace)
}

type conditionSetter func(typ string, status corev1.ConditionStatus, reason, message string)

func (o Objects) setConditions(list *[]hivev1.Condition, rep pool.Report, inventoryPlan inventory.Plan, now time.Time) {
	set := func(typ string, status corev1.ConditionStatus, reason, message string) {
		condition.Set(list, typ, status, reason, message, now)
	}
	unknown := func(typ string) {
		if condition.Find(*list, typ) == nil {
			set(typ, corev1.ConditionUnknown, hivev1.ReasonInitialized, "Condition Initialized")
		}
	}
	if rep.Unreadable != "" {
		set(hivev1.PoolMissingDependencies, corev1.ConditionUnknown, hivev1.ReasonUnreadable, rep.Unreadable)
		set(hivev1.PoolProgressing, corev1.ConditionFalse, hivev1.ReasonUnreadable, rep.Unreadable)
		return
	}
	o.setInventoryCondition(set, inventoryPlan)
	o.setClaimsMissingCondition(set, condition.Find(*list, hivev1.PoolClaimsMissing) != nil, rep)
	if o.Pool.DeletionTimestamp != nil {
		setDeletionCondition(set, rep)
		setProgressingCondition(set, rep)
		return
	}
	unknown(hivev1.PoolDeletionPossible)
	setDependenciesCondition(set, o.Missing)
	o.setCapacityCondition(set, rep)
	setAllClustersCurrentCondition(set, rep)
	setProgressingCondition(set, rep)
}

func setDependenciesCondition(set conditionSetter, missing []string) {
	if len(missing) > 0 {
		set(hivev1.PoolMissingDependencies, corev1.ConditionTrue, hivev1.ReasonMissing, joinMessages(missing))
		return
	}
	set(hivev1.PoolMissingDependencies, corev1.ConditionFalse, hivev1.ReasonVerified, "Dependencies verified")
}

// setClaimsMissingCondition names the clusters that are deleted soon because their claim does not
// exist. A pool that never had such a cluster gets no such condition.
func (o Objects) setClaimsMissingCondition(set conditionSetter, known bool, rep pool.Report) {
	if len(rep.Orphans) == 0 {
		if known {
			set(hivev1.PoolClaimsMissing, corev1.ConditionFalse, hivev1.ReasonAllClaimsFound, "The claim of each claimed cluster exists")
		}
		return
	}
	var lost []string
	for _, name := range slices.Sorted(maps.Keys(rep.Orphans)) {
		lost = append(lost, fmt.Sprintf("%s (claim %s)", name, rep.Orphans[name]))
	}
	set(hivev1.PoolClaimsMissing, corev1.ConditionTrue, hivev1.ReasonClaimNotFound, fmt.Sprintf("The claims of these clusters do not exist. "+
		"Each cluster is deleted 10 minutes after its claim was found missing: %s. To keep one, create its ClusterClaim again in namespace %s.",
		strings.Join(lost, ", "), o.Pool.Namespace))
}

func (o Objects) setCapacityCondition(set conditionSetter, rep pool.Report) {
	limit := o.Pool.Spec.MaxSize
	switch {
	case !rep.Full:
		set(hivev1.PoolCapacityAvailable, corev1.ConditionTrue, hivev1.ReasonAvailable, "There is capacity to add more clusters to the pool.")
	case rep.By == pool.ByInventory:
		set(hivev1.PoolCapacityAvailable, corev1.ConditionFalse, hivev1.ReasonInventoryExhausted,
			"No customization of the inventory is free: add or repair some, release a cluster, or lower the pool's size.")
	case limit != nil && (rep.By == pool.ByMaxSize || len(o.Clusters) >= int(*limit)):
		set(hivev1.PoolCapacityAvailable, corev1.ConditionFalse, hivev1.ReasonMaxCapacity,
			fmt.Sprintf("Pool is at maximum capacity of %d waiting and claimed clusters.", *limit))
	default:
		set(hivev1.PoolCapacityAvailable, corev1.ConditionFalse, hivev1.ReasonNoRoom, rep.NoRoom)
	}
}

func setAllClustersCurrentCondition(set conditionSetter, rep pool.Report) {
	switch {
	case len(rep.Stale) > 0:
		set(hivev1.PoolAllClustersCurrent, corev1.ConditionFalse, hivev1.ReasonSomeClustersStale,
			"Some unassigned ClusterDeployments do not match the pool configuration: "+strings.Join(rep.Stale, ", "))
	case len(rep.Unversioned) > 0:
		set(hivev1.PoolAllClustersCurrent, corev1.ConditionUnknown, hivev1.ReasonSomeClustersUnknown,
			"Some unassigned ClusterDeployments are missing their pool spec hash annotation: "+strings.Join(rep.Unversioned, ", "))
	default:
		set(hivev1.PoolAllClustersCurrent, corev1.ConditionTrue, hivev1.ReasonClustersCurrent,
			"All unassigned ClusterDeployments match the pool configuration")
	}
}

// setProgressingCondition sets Progressing. While the pool makes progress, the message has no
// numbers: they would change with each cluster, and status.plan has them.
func setProgressingCondition(set conditionSetter, rep pool.Report) {
	switch rep.Progress {
	case pool.Settled:
		set(hivev1.PoolProgressing, corev1.ConditionFalse, hivev1.ReasonSettled, "The pool has the clusters that its spec asks for")
	case pool.Held:
		set(hivev1.PoolProgressing, corev1.ConditionFalse, hivev1.ReasonBlocked, rep.Blocked)
	default:
		set(hivev1.PoolProgressing, corev1.ConditionTrue, hivev1.ReasonClustersChanging, "Clusters are being installed, resumed, hibernated or deleted: status.plan shows the numbers")
	}
}

func setDeletionCondition(set conditionSetter, rep pool.Report) {
	if len(rep.Left) > 0 {
		message := "The following ClusterDeployments are pending cleanup: " + strings.Join(rep.Left, ", ")
		for _, name := range slices.Sorted(maps.Keys(rep.Failing)) {
			message += fmt.Sprintf("; the deletion of %s makes no progress: %s", name, strings.TrimRight(rep.Failing[name], "."))
		}
		set(hivev1.PoolDeletionPossible, corev1.ConditionFalse, hivev1.ReasonClustersPendingClean, message)
		return
	}
	set(hivev1.PoolDeletionPossible, corev1.ConditionTrue, hivev1.ReasonDeletionPossible, "No ClusterDeployments pending cleanup")
}
