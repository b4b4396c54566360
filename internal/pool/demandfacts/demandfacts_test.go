package demandfacts

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/sizing/record"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

var dev = types.NamespacedName{Namespace: "team", Name: "dev"}

func at(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(d)) }

// newCluster returns a cluster of the pool that runs without a claim.
func newCluster(changes ...func(*hivev1.ClusterDeployment)) hivev1.ClusterDeployment {
	installed := at(-2 * time.Hour)
	cd := hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "dev-1", Name: "dev-1", CreationTimestamp: at(-3 * time.Hour)},
		Spec:       hivev1.ClusterDeploymentSpec{Installed: true, ClusterPoolRef: &hivev1.ClusterPoolReference{Namespace: "team", PoolName: "dev"}},
		Status:     hivev1.ClusterDeploymentStatus{InstalledTimestamp: &installed, PowerState: hivev1.StatusRunning},
	}
	for _, c := range changes {
		c(&cd)
	}
	return cd
}

func TestEachClusterIsInOneState(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*hivev1.ClusterDeployment)
		want   record.State
	}{
		"one that runs":             {func(*hivev1.ClusterDeployment) {}, record.Running},
		"one that hibernates":       {func(cd *hivev1.ClusterDeployment) { cd.Status.PowerState = hivev1.StatusHibernating }, record.Hibernating},
		"one that is not installed": {func(cd *hivev1.ClusterDeployment) { cd.Spec.Installed, cd.Status.InstalledTimestamp = false, nil }, record.Installing},
		"one with a claim":          {func(cd *hivev1.ClusterDeployment) { cd.Spec.ClusterPoolRef.ClaimName = "mine" }, record.Claimed},
		"one that hibernates for a claim": {func(cd *hivev1.ClusterDeployment) {
			cd.Spec.ClusterPoolRef.ClaimName, cd.Status.PowerState = "mine", hivev1.StatusHibernating
		}, record.Claimed},
		"one that is being deleted": {func(cd *hivev1.ClusterDeployment) {
			now := at(0)
			cd.DeletionTimestamp = &now
		}, record.Other},
		"one that resumes": {func(cd *hivev1.ClusterDeployment) {
			cd.Spec.PowerState, cd.Status.PowerState = hivev1.PowerRunning, "StartingMachines"
			cd.Status.PowerTransition = &hivev1.PowerTransition{Target: hivev1.PowerRunning, StartedAt: at(-time.Minute)}
		}, record.Resuming},
		"one that is on its way to hibernation": {func(cd *hivev1.ClusterDeployment) {
			cd.Spec.PowerState, cd.Status.PowerState = hivev1.PowerHibernating, "Stopping"
			cd.Status.PowerTransition = &hivev1.PowerTransition{Target: hivev1.PowerHibernating, StartedAt: at(-time.Minute)}
		}, record.Other},
	} {
		o := NewObjects(dev, []hivev1.ClusterDeployment{newCluster(tc.change)}, nil, noon)
		if len(o.Clusters) != 1 || o.Clusters[0].State != tc.want {
			t.Errorf("%s: %+v, want %s", name, o.Clusters, tc.want)
		}
	}
}

func TestDepthsOfSleepAreObserved(t *testing.T) {
	finished := at(-time.Minute)
	transition := func(target hivev1.PowerState, depth string) *hivev1.PowerTransition {
		return &hivev1.PowerTransition{Target: target, StartedAt: at(-3 * time.Minute), FinishedAt: &finished, Depth: depth}
	}
	o := NewObjects(dev, []hivev1.ClusterDeployment{
		newCluster(func(cd *hivev1.ClusterDeployment) {
			cd.Spec.PowerState, cd.Status.PowerState = hivev1.PowerRunning, hivev1.StatusRunning
			cd.Status.PowerTransition = transition(hivev1.PowerRunning, hivev1.DepthFreeze)
		}),
		newCluster(func(cd *hivev1.ClusterDeployment) {
			cd.Spec.PowerState, cd.Status.PowerState = hivev1.PowerHibernating, hivev1.StatusHibernating
			cd.Status.PowerTransition = transition(hivev1.PowerHibernating, hivev1.DepthSuspend)
		}),
		newCluster(func(cd *hivev1.ClusterDeployment) {
			cd.Spec.PowerState, cd.Status.PowerState = hivev1.PowerRunning, hivev1.StatusHibernating
			cd.Status.PowerTransition = transition(hivev1.PowerHibernating, hivev1.DepthSuspend)
		}),
	}, nil, noon)
	if c := o.Clusters[0]; c.Resume == nil || c.Resume.Seconds != 120 || c.ResumedFrom != cloud.DepthFreeze || c.Depth != "" {
		t.Errorf("one that was woken from freeze: %+v", c)
	}
	if c := o.Clusters[1]; c.Depth != cloud.DepthSuspend || c.Resume != nil {
		t.Errorf("one that sleeps at suspend: %+v", c)
	}
	if got := o.CountSleepers(); got.Freeze != 0 || got.Suspend != 1 {
		t.Errorf("%+v sleep; one is about to wake", got)
	}
}

func TestOnlyThePoolsObjectsCount(t *testing.T) {
	claim := func(namespace, pool string) hivev1.ClusterClaim {
		return hivev1.ClusterClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mine", UID: "u", CreationTimestamp: at(0)},
			Spec:       hivev1.ClusterClaimSpec{ClusterPoolName: pool},
		}
	}
	o := NewObjects(dev, []hivev1.ClusterDeployment{
		newCluster(func(cd *hivev1.ClusterDeployment) { cd.Spec.ClusterPoolRef = nil }),
		newCluster(func(cd *hivev1.ClusterDeployment) { cd.Spec.ClusterPoolRef.Namespace = "other" }),
		newCluster(func(cd *hivev1.ClusterDeployment) { cd.Unreadable = "broken" }),
	}, []hivev1.ClusterClaim{claim("team", "dev"), claim("team", "prod"), claim("other", "dev")}, noon)
	if len(o.Clusters) != 0 || len(o.Claims) != 1 || o.Waiting != 1 {
		t.Errorf("%+v", o)
	}
}

// A claim that a ClaimPolicy holds needs no cluster; once it is admitted, it waits for the pool.
func TestWhenAClaimArrives(t *testing.T) {
	const created, admitted = 0, time.Hour
	for name, tc := range map[string]struct {
		conditions []hivev1.Condition
		cluster    string
		want       time.Duration
		held       bool
	}{
		"without a policy": {nil, "", created, false},
		"held":             {[]hivev1.Condition{{Type: hivev1.ClaimAdmitted, Status: corev1.ConditionFalse, LastTransitionTime: at(admitted)}}, "", 0, true},
		"admitted":         {[]hivev1.Condition{{Type: hivev1.ClaimAdmitted, Status: corev1.ConditionTrue, LastTransitionTime: at(admitted)}}, "", admitted, false},
		"admitted and served": {[]hivev1.Condition{
			{Type: hivev1.ClaimAdmitted, Status: corev1.ConditionTrue, LastTransitionTime: at(admitted)},
			{Type: hivev1.ClaimPending, Status: corev1.ConditionFalse, LastTransitionTime: at(admitted + time.Minute)},
		}, "dev-1", admitted, false},
		"served before the first policy": {[]hivev1.Condition{
			{Type: hivev1.ClaimAdmitted, Status: corev1.ConditionTrue, LastTransitionTime: at(admitted)},
			{Type: hivev1.ClaimPending, Status: corev1.ConditionFalse, LastTransitionTime: at(time.Minute)},
		}, "dev-1", created, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := hivev1.ClusterClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "mine", UID: "u", CreationTimestamp: at(created)},
				Spec:       hivev1.ClusterClaimSpec{ClusterPoolName: "dev", Namespace: tc.cluster},
				Status:     hivev1.ClusterClaimStatus{Conditions: tc.conditions},
			}
			o := NewObjects(dev, nil, []hivev1.ClusterClaim{c}, noon.Add(2*time.Hour))
			if (len(o.Claims) == 0) != tc.held || o.Waiting > len(o.Claims) {
				t.Fatalf("%+v", o)
			}
			if !tc.held && !o.Claims[0].Created.Equal(noon.Add(tc.want)) {
				t.Errorf("it arrived at %v, want %v", o.Claims[0].Created, noon.Add(tc.want))
			}
		})
	}
}

func TestWhetherAClaimWasServedAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		installed, started, finished time.Duration
		want                         bool
	}{
		"its cluster ran":                    {-2 * time.Hour, -time.Hour, -50 * time.Minute, true},
		"its cluster became ready meanwhile": {-2 * time.Hour, -time.Minute, time.Second, false},
		"its cluster was resumed for it":     {-2 * time.Hour, time.Second, 5 * time.Minute, false},
		"its cluster was installed for it":   {10 * time.Minute, -time.Hour, -time.Hour, false},
		"it hibernated later":                {-2 * time.Hour, 2 * time.Hour, 3 * time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			cd := newCluster(func(cd *hivev1.ClusterDeployment) {
				claimed, installed, finished := at(time.Second), at(tc.installed), at(tc.finished)
				cd.Spec.ClusterPoolRef.ClaimName, cd.Spec.ClusterPoolRef.ClaimedTimestamp = "mine", &claimed
				cd.Status.InstalledTimestamp = &installed
				cd.Status.PowerTransition = &hivev1.PowerTransition{Target: hivev1.PowerRunning, StartedAt: at(tc.started), FinishedAt: &finished}
			})
			c := hivev1.ClusterClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "mine", UID: "u", CreationTimestamp: at(0)},
				Spec:       hivev1.ClusterClaimSpec{ClusterPoolName: "dev", Namespace: "dev-1"},
				Status: hivev1.ClusterClaimStatus{Conditions: []hivev1.Condition{
					{Type: hivev1.ClaimClusterRunning, Status: corev1.ConditionTrue, LastTransitionTime: at(time.Minute)},
				}},
			}
			o := NewObjects(dev, []hivev1.ClusterDeployment{cd}, []hivev1.ClusterClaim{c}, noon.Add(4*time.Hour))
			if len(o.Claims) != 1 || o.Claims[0].AtOnce != tc.want || !o.Claims[0].Running.Equal(noon.Add(time.Minute)) {
				t.Error(fmt.Sprintf("%+v", o.Claims), "want at once:", tc.want)
			}
		})
	}
}
