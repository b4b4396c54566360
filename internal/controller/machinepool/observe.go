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

// nothingLeft reports whether a deleted MachinePool can go at once: what it made goes
// with its cluster, or it has made nothing.
func nothingLeft(cd *hivev1.ClusterDeployment) bool {
	return cd == nil || cd.DeletionTimestamp != nil || !cd.Spec.Installed || hivev1.IsTrue(cd.Annotations, hivev1.AnnotationFake)
}

// obstacle is what is said while nothing can be done in the cluster; nil if it can.
func obstacle(cd *hivev1.ClusterDeployment, mp *hivev1.MachinePool) *state {
	switch {
	case cd == nil:
		return waiting(hivev1.ReasonClusterNotFound, "ClusterDeployment %s does not exist in this namespace: make it, or delete this MachinePool.",
			mp.Spec.ClusterDeploymentRef.Name)
	case cd.DeletionTimestamp != nil:
		return waiting(hivev1.ReasonClusterGoing, "The cluster is being destroyed, and its machines with it.")
	case !cd.Spec.Installed || cd.Spec.ClusterMetadata == nil:
		return waiting(hivev1.ReasonClusterNotInstalled, "The cluster is not installed yet.")
	case hivev1.IsTrue(cd.Annotations, hivev1.AnnotationReconcilePause) || hivev1.IsTrue(mp.Annotations, hivev1.AnnotationReconcilePause):
		return waiting(hivev1.ReasonPaused, "The annotation %s is set: remove it to have machines made and removed.", hivev1.AnnotationReconcilePause)
	case hivev1.IsTrue(cd.Annotations, hivev1.AnnotationFake):
		return pretended(mp)
	case cd.Spec.PowerState == hivev1.PowerHibernating || condition.IsTrue(cd.Status.Conditions, hivev1.ClusterHibernating):
		return waiting(hivev1.ReasonClusterAsleep, "The cluster is hibernating: the pool is looked at when it has resumed.")
	}
	switch c := condition.Find(cd.Status.Conditions, hivev1.ClusterUnreachable); {
	case c == nil || c.Status == corev1.ConditionUnknown:
		return waiting(hivev1.ReasonClusterUnreachable, "It is not known yet whether the cluster's API answers.")
	case c.Status == corev1.ConditionTrue:
		return waiting(hivev1.ReasonClusterUnreachable, "%s", c.Message)
	}
	return nil
}

// pretended is for fake clusters: they have what they are asked for.
func pretended(mp *hivev1.MachinePool) *state {
	pool := machinepool.PoolOf(mp)
	d := machinepool.Decision{
		Unsupported: condition.Value{Reason: hivev1.ReasonFakeCluster, Message: "The cluster is fake."},
		NotEnough:   condition.Value{Reason: hivev1.ReasonFakeCluster, Message: "The cluster is fake."},
		Replicas:    pool.Replicas, Owned: pool.Owned,
	}
	if pool.Range != nil {
		d.Replicas = pool.Range.Min
	}
	return &state{synced: corev1.ConditionTrue, reason: hivev1.ReasonFakeCluster, message: "The cluster is fake: it has no machines.", decision: &d}
}

// task is a decision with what it is carried out on.
type task struct {
	machinepool.Decision
	target install.Target
	spoke  client.Client
	// local is nil for a cluster that makes its machines itself.
	local *locals
	// sets is nil for one that does not.
	sets *remotes
	// scaled is whether the pool is autoscaled.
	scaled bool
}

// next is when to look again, given how the steps ended.
func (t *task) next(err error) time.Duration {
	busy := len(t.Steps) > 0 || t.Waiting != ""
	switch {
	case fault.Of(err) == fault.Wait:
		return soon
	case err != nil || t.Unsupported.IsTrue() || t.NotEnough.IsTrue():
		return retry
	case t.local == nil && busy:
		return later
	case t.local == nil:
		return steadySets
	case busy:
		return soon
	case t.scaled:
		return awake
	}
	return steady
}

// look sees the cluster and decides.
func (r *Reconciler) look(ctx context.Context, cd *hivev1.ClusterDeployment, mp *hivev1.MachinePool, pool machinepool.Pool, spoke client.Client) (*task, error) {
	t := &task{target: install.Target{Cluster: client.ObjectKeyFromObject(cd), InfraID: cd.Spec.ClusterMetadata.InfraID}, spoke: spoke, scaled: pool.Range != nil}
	key := cd.Spec.Platform.Name()
	own, foreign, err := settings(mp, key)
	if err != nil {
		return nil, err
	}
	if workers := r.Workers[key]; workers != nil {
		if len(own) > 0 {
			foreign = append([]string{key}, foreign...)
		}
		var crew machinepool.Crew
		crew, t.local, err = lookLocally(ctx, workers, spoke, t.target, pool)
		crew.Set, crew.Up = foreign, upSince(cd)
		t.Decision = machinepool.Workers(crew, r.Clock.Now())
		return t, err
	}
	var fleet machinepool.Fleet
	fleet, t.sets, err = lookRemotely(ctx, spoke)
	fleet.Pool, fleet.InfraID, fleet.Platform, fleet.Settings, fleet.Foreign = pool, t.target.InfraID, key, own, foreign
	t.Decision = machinepool.Sets(fleet)
	return t, err
}

// settings are what the MachinePool says of the cluster's platform, and the keys of the
// other platforms of which it says something, sorted. What is no mapping stands below an
// empty key, which no platform knows.
func settings(mp *hivev1.MachinePool, platform string) (own map[string]any, foreign []string, err error) {
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

// upSince is since when the cluster runs, as far as that is known.
func upSince(cd *hivev1.ClusterDeployment) time.Time {
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

// secretOf names the Secret with the cluster's admin kubeconfig.
func secretOf(cd *hivev1.ClusterDeployment) types.NamespacedName {
	return types.NamespacedName{Namespace: cd.Namespace, Name: cd.Spec.ClusterMetadata.AdminKubeconfigSecretRef.Name}
}
