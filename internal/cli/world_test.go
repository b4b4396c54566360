package cli

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/condition"
)

// world is a hub with one pool in use, one that is empty, and things half done.
func world() []client.Object {
	return []client.Object{
		&hivev1.ClusterImageSet{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"}},
		devPool(),
		&hivev1.ClusterPool{ObjectMeta: aged("team-a", "bare", time.Minute)}, // nothing filled in
		claimOn("dev", "alice", "dev-1aaaa"),
		claimOn("dev", "bob", ""),
		newCluster("dev-1aaaa", "alice", hivev1.PowerRunning, hivev1.StatusRunning),
		newCluster("dev-2bbbb", "", hivev1.PowerRunning, hivev1.StatusRunning),
		newCluster("dev-3cccc", "", hivev1.PowerHibernating, hivev1.StatusHibernating),
		&hivev1.ClusterDeployment{
			ObjectMeta: aged("dev-4dddd", "dev-4dddd", 90*time.Second),
			Spec:       hivev1.ClusterDeploymentSpec{ClusterPoolRef: &hivev1.ClusterPoolReference{Namespace: "default", PoolName: "dev"}},
		},
		&hivev1.ClusterDeployment{ObjectMeta: aged("default", "pet", 48*time.Hour), Spec: hivev1.ClusterDeploymentSpec{Installed: true}},
		secret("dev-1aaaa"), secret("dev-2bbbb"),
		nights("nights", 3, v1alpha1.OutcomeTaken), nights("break", 1, v1alpha1.OutcomeSkipped),
		&v1alpha1.PowerSchedule{ObjectMeta: aged("default", "new", time.Second)},
		&v1alpha1.PowerSchedule{ObjectMeta: aged("team-a", "typo", time.Hour), Status: v1alpha1.PowerScheduleStatus{Conditions: []metav1.Condition{{
			Type: v1alpha1.ScheduleValid, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonInvalidTimeZone,
			Message: `spec.windows[0].timeZone "Mars" is not a time zone: use a name from the IANA database, such as UTC or Europe/Berlin`,
		}}}},
	}
}

// nights is a schedule whose clusters sleep since yesterday evening. One whose last
// slot was skipped skips the next one, too.
func nights(name string, clusters int32, last v1alpha1.Outcome) *v1alpha1.PowerSchedule {
	slot := func(in time.Duration, power hivev1.PowerState) v1alpha1.Slot {
		return v1alpha1.Slot{Time: metav1.NewTime(now.Add(in)), PowerState: power}
	}
	next := slot(20*time.Hour, hivev1.PowerRunning)
	ps := &v1alpha1.PowerSchedule{
		ObjectMeta: aged("default", name, 72*time.Hour),
		Status: v1alpha1.PowerScheduleStatus{
			Clusters: clusters, NextSlot: &next,
			LastSlot: &v1alpha1.TakenSlot{Slot: slot(-17*time.Hour, hivev1.PowerHibernating), Outcome: last},
		},
	}
	if last == v1alpha1.OutcomeSkipped {
		until := metav1.NewTime(now.Add(24 * time.Hour))
		ps.Spec.SkipUntil = &until
	}
	return ps
}

func aged(namespace, name string, age time.Duration) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.NewTime(now.Add(-age))}
}

func devPool() *hivev1.ClusterPool {
	workers, most := int32(1), int32(10)
	p := &hivev1.ClusterPool{
		ObjectMeta: aged("default", "dev", 3*time.Hour),
		Spec: hivev1.ClusterPoolSpec{
			Platform: hivev1.Platform{Local: &hivev1.LocalPlatform{Workers: &workers}},
			Size:     3, RunningCount: 1, MaxSize: &most,
			BaseDomain: "local.hotspare.io", ImageSetRef: hivev1.ClusterImageSetReference{Name: "kubernetes"},
			ClaimLifetime: &hivev1.ClusterPoolClaimLifetime{Default: base.ToAPIDuration(8 * time.Hour), Maximum: base.ToAPIDuration(24 * time.Hour)},
		},
		Status: hivev1.ClusterPoolStatus{Size: 3, Ready: 1, Standby: 1, Plan: "installing 1; 1 claim waiting"},
	}
	condition.Set(&p.Status.Conditions, hivev1.PoolCapacityAvailable, corev1.ConditionTrue, hivev1.ReasonAvailable,
		"There is capacity to add more clusters to the pool.", now.Add(-2*time.Hour))
	condition.Set(&p.Status.Conditions, hivev1.PoolInventoryValid, corev1.ConditionUnknown, hivev1.ReasonInitialized, "", now)
	return p
}

// claimOn is a claim on a pool of the default namespace: served when it has a cluster.
func claimOn(pool, name, cluster string) *hivev1.ClusterClaim {
	c := &hivev1.ClusterClaim{
		ObjectMeta: aged("default", name, 20*time.Minute),
		Spec:       hivev1.ClusterClaimSpec{ClusterPoolName: pool},
	}
	if cluster == "" {
		condition.Set(&c.Status.Conditions, hivev1.ClaimPending, corev1.ConditionTrue, hivev1.ReasonNoClusters,
			"No clusters in pool are ready to be claimed", now.Add(-20*time.Minute))
		ready := metav1.NewTime(now.Add(3 * time.Minute))
		c.Status.Position, c.Status.EstimatedReadyTime = new(int32(1)), &ready
		return c
	}
	serve(c, cluster)
	return c
}

// serve does to a claim what the controllers do.
func serve(c *hivev1.ClusterClaim, cluster string) {
	c.Spec.Namespace = cluster
	c.Status.Lifetime = base.ToAPIDuration(8 * time.Hour)
	at := now.Add(-19 * time.Minute)
	condition.Set(&c.Status.Conditions, hivev1.ClaimPending, corev1.ConditionFalse, hivev1.ReasonClusterClaimed, "Cluster claimed", at)
	condition.Set(&c.Status.Conditions, hivev1.ClaimClusterRunning, corev1.ConditionTrue, hivev1.ReasonRunning, "Cluster is running", at)
}

func newCluster(name, claim string, want hivev1.PowerState, is string) *hivev1.ClusterDeployment {
	version := "v1.36.3"
	cd := &hivev1.ClusterDeployment{
		ObjectMeta: aged(name, name, 2*time.Hour),
		Spec: hivev1.ClusterDeploymentSpec{
			ClusterName: name, Installed: true, PowerState: want,
			Platform:        hivev1.Platform{Local: &hivev1.LocalPlatform{}},
			ClusterPoolRef:  &hivev1.ClusterPoolReference{Namespace: "default", PoolName: "dev", ClaimName: claim},
			ClusterMetadata: &hivev1.ClusterMetadata{AdminKubeconfigSecretRef: corev1.LocalObjectReference{Name: "admin"}},
		},
		Status: hivev1.ClusterDeploymentStatus{PowerState: is, InstallVersion: &version, APIURL: "https://127.0.0.1:40001"},
	}
	condition.Set(&cd.Status.Conditions, hivev1.ClusterProvisioned, corev1.ConditionTrue, hivev1.ReasonProvisioned,
		"Cluster is provisioned", now.Add(-time.Hour))
	return cd
}

const secretKubeconfig = "apiVersion: v1\nkind: Config\n# of a cluster\n"

func secret(cluster string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "admin"},
		Data:       map[string][]byte{hivev1.SecretKeyKubeconfig: []byte(secretKubeconfig)},
	}
}

func newNamespace() *corev1.Namespace { return &corev1.Namespace{} }
