package poolplan_test

import (
	"fmt"
	"math/bits"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/explain/clusterstate"
	"hotspare.io/hotspare/internal/explain/poolplan"
	"hotspare.io/hotspare/internal/pool"
)

// quirk is one thing that may be so about a cluster, or about its pool and a claim.
type quirk struct {
	name  string
	apply func(*hivev1.ClusterPool, *hivev1.ClusterDeployment, *hivev1.ClusterClaim, *hivev1.ClusterDeploymentCustomization)
}

func onCluster(name string, apply func(*hivev1.ClusterDeployment)) quirk {
	return quirk{name, func(_ *hivev1.ClusterPool, cd *hivev1.ClusterDeployment, _ *hivev1.ClusterClaim, _ *hivev1.ClusterDeploymentCustomization) {
		apply(cd)
	}}
}

func conditionMessage(typ string, status corev1.ConditionStatus, reason string) func(*hivev1.ClusterDeployment) {
	return func(cd *hivev1.ClusterDeployment) {
		condition.Set(&cd.Status.Conditions, typ, status, reason, "", noon.Add(-time.Hour))
	}
}

var powers = []quirk{
	onCluster("running", func(cd *hivev1.ClusterDeployment) {
		cd.Spec.PowerState, cd.Status.PowerState = hivev1.PowerRunning, hivev1.StatusRunning
	}),
	onCluster("never told", func(cd *hivev1.ClusterDeployment) { cd.Status.PowerState = hivev1.StatusRunning }),
	onCluster("asleep", func(cd *hivev1.ClusterDeployment) {
		cd.Spec.PowerState, cd.Status.PowerState = hivev1.PowerHibernating, hivev1.StatusHibernating
	}),
	onCluster("stopping", func(cd *hivev1.ClusterDeployment) {
		cd.Spec.PowerState, cd.Status.PowerState = hivev1.PowerHibernating, hivev1.StatusRunning
	}),
	onCluster("resuming", func(cd *hivev1.ClusterDeployment) {
		cd.Spec.PowerState, cd.Status.PowerState = hivev1.PowerRunning, hivev1.ReasonWaitingForNodes
		cd.Status.PowerTransition = &hivev1.PowerTransition{Target: hivev1.PowerRunning, StartedAt: metav1.NewTime(noon.Add(-time.Minute))}
	}),
	onCluster("resume timed out", func(cd *hivev1.ClusterDeployment) {
		cd.Spec.PowerState, cd.Status.PowerState = hivev1.PowerRunning, hivev1.ReasonWaitingForNodes
		at := metav1.NewTime(noon.Add(-time.Hour))
		cd.Status.PowerTransition = &hivev1.PowerTransition{Target: hivev1.PowerRunning, StartedAt: at, Deadline: &at}
	}),
}

var quirks = []quirk{
	onCluster("not installed", func(cd *hivev1.ClusterDeployment) { cd.Spec.Installed = false }),
	onCluster("install given up", conditionMessage(hivev1.ClusterProvisionStopped, corev1.ConditionTrue, "X")),
	onCluster("failed to start", conditionMessage(hivev1.ClusterHibernating, corev1.ConditionFalse, hivev1.ReasonFailedToStart)),
	onCluster("failed to stop", conditionMessage(hivev1.ClusterHibernating, corev1.ConditionFalse, hivev1.ReasonFailedToStop)),
	onCluster("unreachable", conditionMessage(hivev1.ClusterUnreachable, corev1.ConditionTrue, hivev1.ReasonErrorConnecting)),
	onCluster("marked", func(cd *hivev1.ClusterDeployment) {
		metav1.SetMetaDataAnnotation(&cd.ObjectMeta, hivev1.AnnotationRemove, "true")
	}),
	onCluster("unreadable", func(cd *hivev1.ClusterDeployment) { cd.Unreadable = "spec.x: 1 is not a string" }),
	onCluster("being deleted", func(cd *hivev1.ClusterDeployment) { cd.DeletionTimestamp = &metav1.Time{Time: noon} }),
	onCluster("claimed", func(cd *hivev1.ClusterDeployment) { cd.Spec.ClusterPoolRef.ClaimName = "x" }),
	{"a claim names it", func(_ *hivev1.ClusterPool, cd *hivev1.ClusterDeployment, c *hivev1.ClusterClaim, _ *hivev1.ClusterDeploymentCustomization) {
		c.Spec.Namespace = cd.Name
	}},
	{"its entry was taken off", func(p *hivev1.ClusterPool, _ *hivev1.ClusterDeployment, _ *hivev1.ClusterClaim, _ *hivev1.ClusterDeploymentCustomization) {
		p.Spec.Inventory = hivev1.Inventory{{Name: "other"}}
	}},
	{"its customization is being deleted", func(p *hivev1.ClusterPool, _ *hivev1.ClusterDeployment, _ *hivev1.ClusterClaim, c *hivev1.ClusterDeploymentCustomization) {
		c.DeletionTimestamp = &metav1.Time{Time: noon}
		e := p.Status.Inventory["foo"]
		e.Status = hivev1.InventoryToBeDeleted
		p.Status.Inventory["foo"] = e
	}},
	onCluster("taken the steps of before", func(cd *hivev1.ClusterDeployment) {
		cd.Status.Bootstrap = &hivev1.BootstrapRecord{Version: "old", FinishedAt: &metav1.Time{Time: noon}}
	}),
	{"its pool has steps and gates", func(p *hivev1.ClusterPool, _ *hivev1.ClusterDeployment, _ *hivev1.ClusterClaim, _ *hivev1.ClusterDeploymentCustomization) {
		p.Status.StepsVersion, p.Status.GatesVersion = "new", "gates"
	}},
	{"its pool has a resume timeout", func(p *hivev1.ClusterPool, _ *hivev1.ClusterDeployment, _ *hivev1.ClusterClaim, _ *hivev1.ClusterDeploymentCustomization) {
		p.Spec.HibernationConfig = &hivev1.HibernationConfig{ResumeTimeout: "10m"}
	}},
}

// The controller, explain, the metrics, the command line's lists and the console have each
// cluster in the same phase, whatever is odd about it.
func TestEveryoneHasAClusterInTheSamePhase(t *testing.T) {
	seen := map[pool.Phase]int{}
	for _, power := range powers {
		for set := range uint(1) << len(quirks) {
			if bits.OnesCount(set) > 4 {
				continue // more at a time would show no more
			}
			p := &hivev1.ClusterPool{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ci", Name: "p"},
				Spec:       hivev1.ClusterPoolSpec{Inventory: hivev1.Inventory{{Name: "foo"}, {Name: "other"}}},
				Status: hivev1.ClusterPoolStatus{Inventory: map[string]hivev1.InventoryEntryStatus{"foo": {
					Status: hivev1.InventoryReserved, ClusterDeployment: &hivev1.ClusterDeploymentReference{Namespace: "p-1", Name: "p-1"},
				}}},
			}
			cd := &hivev1.ClusterDeployment{
				ObjectMeta: metav1.ObjectMeta{Namespace: "p-1", Name: "p-1"},
				Spec: hivev1.ClusterDeploymentSpec{Installed: true, ClusterPoolRef: &hivev1.ClusterPoolReference{
					Namespace: "ci", PoolName: "p", CustomizationRef: &corev1.LocalObjectReference{Name: "foo"},
				}},
			}
			claim := &hivev1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ci", Name: "x"}, Spec: hivev1.ClusterClaimSpec{ClusterPoolName: "p"}}
			c := &hivev1.ClusterDeploymentCustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "ci", Name: "foo"}}
			c.Status.ClusterDeploymentRef = &corev1.ObjectReference{Namespace: "p-1", Name: "p-1"}
			power.apply(p, cd, claim, c)
			name := power.name
			for i, q := range quirks {
				if set>>i&1 == 1 {
					q.apply(p, cd, claim, c)
					name += ", " + q.name
				}
			}
			seen[agree(t, name, p, cd, claim, c)]++
		}
	}
	for _, phase := range []pool.Phase{pool.Deleting, pool.Removed, pool.Claimed, pool.Broken, pool.Installing, pool.Standby, pool.Assignable, pool.Unreadable} {
		if seen[phase] == 0 {
			t.Errorf("no cluster is %s: the test is blind to it", phase)
		}
	}
	t.Log(seen)
}

func agree(t *testing.T, name string, p *hivev1.ClusterPool, cd *hivev1.ClusterDeployment, claim *hivev1.ClusterClaim, c *hivev1.ClusterDeploymentCustomization) pool.Phase {
	t.Helper()
	claims, clusters := []hivev1.ClusterClaim{*claim}, []hivev1.ClusterDeployment{*cd}
	f := poolplan.New(p, claims, clusters, []hivev1.ClusterDeploymentCustomization{*c})
	if err := f.Decide(noon); err != nil {
		t.Fatal(err)
	}
	want := f.PlannedClusters()[0].Phase
	lists := clusterstate.ComputePhases([]hivev1.ClusterPool{*p}, clusters, claims, noon)[types.NamespacedName{Namespace: "p-1", Name: "p-1"}]
	if lists != want || f.CountMembersAndClaims()[string(want)] != 1 || f.Facts.CountMembersAndClaims().Members[want] != 1 {
		t.Fatalf("%s: explain has it as %s, lists and the console as %s; explain counts %v, metrics %v", name, want, lists, f.CountMembersAndClaims(), f.Facts.CountMembersAndClaims().Members)
	}
	n := clusterstate.CountPool(p, clusters, claims, noon)
	if got := fmt.Sprint(n.Assignable, n.Standby, n.Broken); got != fmt.Sprint(one(want, pool.Assignable), one(want, pool.Standby), one(want, pool.Broken)) {
		t.Fatalf("%s: it is %s, and the lists count %+v", name, want, n)
	}
	if len(f.Plan.StepsOf(pool.Bind)) == 0 { // status foresees these
		if got := fmt.Sprint(f.Told.Ready, f.Told.Standby); got != fmt.Sprint(one(want, pool.Assignable), one(want, pool.Standby)) {
			t.Fatalf("%s: it is %s, and the status has ready and standby %s", name, want, got)
		}
	}
	return want
}

func one(is, want pool.Phase) int {
	if is == want {
		return 1
	}
	return 0
}
