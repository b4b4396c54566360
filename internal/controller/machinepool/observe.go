package machinepool

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/machinepool"
)

// canReleaseAtOnce reports whether the finalizer of a deleted MachinePool can be removed at once:
// its machines are deleted with its cluster, or it has none.
func canReleaseAtOnce(cd *hivev1.ClusterDeployment) bool {
	return cd == nil || cd.DeletionTimestamp != nil || !cd.Spec.Installed || hivev1.IsTrue(cd.Annotations, hivev1.AnnotationFake)
}

// blockedState returns the state to report while nothing can be done in the cluster; nil if it
// can.
func blockedState(cd *hivev1.ClusterDeployment, mp *hivev1.MachinePool) *syncState {
	switch {
	case cd == nil:
		return notSyncedState(hivev1.ReasonClusterNotFound, "ClusterDeployment %s does not exist in this namespace: create it, or delete this MachinePool.",
			mp.Spec.ClusterDeploymentRef.Name)
	case cd.DeletionTimestamp != nil:
		return notSyncedState(hivev1.ReasonClusterGoing, "The cluster is being destroyed, and its machines with it.")
	case !cd.Spec.Installed || cd.Spec.ClusterMetadata == nil:
		return notSyncedState(hivev1.ReasonClusterNotInstalled, "The cluster is not installed yet.")
	case hivev1.IsTrue(cd.Annotations, hivev1.AnnotationReconcilePause) || hivev1.IsTrue(mp.Annotations, hivev1.AnnotationReconcilePause):
		return notSyncedState(hivev1.ReasonPaused, "The annotation %s is set: remove it to resume the management of machines.", hivev1.AnnotationReconcilePause)
	case hivev1.IsTrue(cd.Annotations, hivev1.AnnotationFake):
		return fakeClusterState(mp)
	case cd.Spec.PowerState == hivev1.PowerHibernating || condition.IsTrue(cd.Status.Conditions, hivev1.ClusterHibernating):
		return notSyncedState(hivev1.ReasonClusterAsleep, "The cluster is hibernating: the pool is reconciled after it resumes.")
	}
	switch c := condition.Find(cd.Status.Conditions, hivev1.ClusterUnreachable); {
	case c == nil || c.Status == corev1.ConditionUnknown:
		return notSyncedState(hivev1.ReasonClusterUnreachable, "It is not known yet whether the cluster's API answers.")
	case c.Status == corev1.ConditionTrue:
		return notSyncedState(hivev1.ReasonClusterUnreachable, "%s", c.Message)
	}
	return nil
}

// fakeClusterState returns the state for fake clusters, which always have what they are asked
// for.
func fakeClusterState(mp *hivev1.MachinePool) *syncState {
	pool := machinepool.NewPool(mp)
	d := machinepool.Plan{
		Unsupported: condition.Value{Reason: hivev1.ReasonFakeCluster, Message: "The cluster is a fake cluster."},
		NotEnough:   condition.Value{Reason: hivev1.ReasonFakeCluster, Message: "The cluster is a fake cluster."},
		Replicas:    pool.Replicas, Owned: pool.Owned,
	}
	if pool.Range != nil {
		d.Replicas = pool.Range.Min
	}
	return &syncState{synced: corev1.ConditionTrue, reason: hivev1.ReasonFakeCluster, message: "The cluster is a fake cluster and has no machines.", decision: &d}
}

// task is a plan and the observed objects on which it is carried out.
type task struct {
	machinepool.Plan
	target install.Target
	spoke  client.Client
	// local is nil for a cluster that creates its machines itself.
	local *observedWorkers
	// sets is nil for a cluster that does not.
	sets *observedMachineSets
	// scaled reports whether the pool is autoscaled.
	scaled bool
}

// requeueDelay returns when to look again, given the error of the steps.
func (t *task) requeueDelay(err error) time.Duration {
	busy := len(t.Steps) > 0 || t.Waiting != ""
	switch {
	case fault.KindOf(err) == fault.Wait:
		return workersJoiningDelay
	case err != nil || t.Unsupported.IsTrue() || t.NotEnough.IsTrue():
		return retryDelay
	case t.local == nil && busy:
		return machinesComingDelay
	case t.local == nil:
		return steadySetsDelay
	case busy:
		return workersJoiningDelay
	case t.scaled:
		return autoscaledDelay
	}
	return steadyDelay
}

// observeAndDecide reads the cluster and decides.
func (r *Reconciler) observeAndDecide(ctx context.Context, cd *hivev1.ClusterDeployment, mp *hivev1.MachinePool, pool machinepool.Pool, spoke client.Client) (*task, error) {
	t := &task{target: install.Target{Cluster: client.ObjectKeyFromObject(cd), InfraID: cd.Spec.ClusterMetadata.InfraID}, spoke: spoke, scaled: pool.Range != nil}
	key := cd.Spec.Platform.Name()
	own, foreign, err := platformSettings(mp, key)
	if err != nil {
		return nil, err
	}
	if workers := r.Workers[key]; workers != nil {
		if len(own) > 0 {
			foreign = append([]string{key}, foreign...)
		}
		var crew machinepool.WorkerSnapshot
		crew, t.local, err = observeWorkers(ctx, workers, spoke, t.target, pool)
		crew.PlatformSettings, crew.Up = foreign, runningSince(cd)
		t.Plan = machinepool.DecideWorkers(crew, r.Clock.Now())
		return t, err
	}
	var fleet machinepool.MachineSetSnapshot
	fleet, t.sets, err = observeMachineSets(ctx, spoke)
	fleet.Pool, fleet.InfraID, fleet.Platform, fleet.Settings, fleet.Foreign = pool, t.target.InfraID, key, own, foreign
	t.Plan = machinepool.DecideMachineSets(fleet)
	return t, err
}

// platformSettings returns the MachinePool's settings for the cluster's platform, and the sorted
// keys of the other platforms for which it has settings. A value that is not a mapping is
// returned under an empty key, which no platform supports.
func platformSettings(mp *hivev1.MachinePool, platform string) (own map[string]any, foreign []string, err error) {
	if mp.Spec.Platform == nil || len(mp.Spec.Platform.Raw) == 0 {
		return nil, nil, nil
	}
	var all map[string]any
	if err := json.Unmarshal(mp.Spec.Platform.Raw, &all); err != nil {
		return nil, nil, fmt.Errorf("reading spec.platform: %w", err)
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		section, ok := all[key].(map[string]any)
		if !ok && all[key] != nil {
			section = map[string]any{"": all[key]}
		}
		switch {
		case key == platform:
			own = section
		case len(section) > 0:
			foreign = append(foreign, key)
		}
	}
	return own, foreign, nil
}

// runningSince returns when the cluster started running, if known.
func runningSince(cd *hivev1.ClusterDeployment) time.Time {
	if t := cd.Status.PowerTransition; t != nil && t.Target == hivev1.PowerRunning {
		if t.FinishedAt != nil {
			return t.FinishedAt.Time
		}
		return t.StartedAt.Time
	}
	if at := cd.Status.InstalledTimestamp; at != nil {
		return at.Time
	}
	return time.Time{}
}

// kubeconfigSecret returns the name of the Secret with the cluster's admin kubeconfig.
func kubeconfigSecret(cd *hivev1.ClusterDeployment) types.NamespacedName {
	return types.NamespacedName{Namespace: cd.Namespace, Name: cd.Spec.ClusterMetadata.AdminKubeconfigSecretRef.Name}
}
