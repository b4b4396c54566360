package facts

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/gate"
	"hotspare.io/hotspare/internal/inventory"
	"hotspare.io/hotspare/internal/pool"
)

func TestTheVerdictOfGatesDecidesWhetherAClusterIsUsable(t *testing.T) {
	resumed := metav1.NewTime(noon.Add(-time.Minute))
	verdict := func(change func(*hivev1.GateRecord)) func(*hivev1.ClusterDeployment) {
		return func(cd *hivev1.ClusterDeployment) {
			cd.Status.PowerTransition = &hivev1.PowerTransition{Target: hivev1.PowerRunning, StartedAt: resumed, FinishedAt: &resumed}
			cd.Status.Gates = &hivev1.GateRecord{Version: "g1", RunStartedAt: &resumed, Passed: true}
			change(cd.Status.Gates)
		}
	}
	fails := func(r *hivev1.GateRecord) {
		deadline := metav1.NewTime(noon)
		r.Passed, r.FailedSince, r.Deadline = false, &resumed, &deadline
	}
	claimed := func(cd *hivev1.ClusterDeployment) { cd.Spec.ClusterPoolRef.ClaimName = "x" }
	for name, tc := range map[string]struct {
		cd       *hivev1.ClusterDeployment
		required *gate.Requirement
		want     pool.Phase
	}{
		"it has passed":                      {running(verdict(func(*hivev1.GateRecord) {})), &gate.Requirement{Version: "g1"}, pool.Assignable},
		"it was not checked":                 {running(), &gate.Requirement{Version: "g1"}, pool.Standby},
		"it has passed other gates":          {running(verdict(func(*hivev1.GateRecord) {})), &gate.Requirement{Version: "g2"}, pool.Standby},
		"it has passed in an earlier run":    {running(verdict(func(r *hivev1.GateRecord) { r.RunStartedAt = &metav1.Time{Time: noon.Add(-time.Hour)} })), &gate.Requirement{Version: "g1"}, pool.Standby},
		"a gate has failed for too long":     {running(verdict(fails)), &gate.Requirement{Version: "g1"}, pool.Broken},
		"another gate has, of before":        {running(verdict(fails)), &gate.Requirement{Version: "g2"}, pool.Standby},
		"the pool has no gates":              {running(verdict(fails)), &gate.Requirement{}, pool.Assignable},
		"nobody knows the gates of the pool": {running(verdict(fails)), nil, pool.Broken},
		"it has no record, and nobody knows": {running(), nil, pool.Assignable},
		"it is claimed":                      {running(verdict(fails), claimed), &gate.Requirement{Version: "g1"}, pool.Claimed},
	} {
		t.Run(name, func(t *testing.T) {
			p := &hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}}
			o := Objects{Pool: p, Clusters: map[string]*hivev1.ClusterDeployment{"a": tc.cd}, Gates: tc.required}
			s, err := o.PoolSnapshot(inventory.Plan{}, noon)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.MemberPhases()["a"]; got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestTheFailureOfAGateIsItsCondition(t *testing.T) {
	at := metav1.NewTime(noon)
	cd := running()
	cd.Status.Gates = &hivev1.GateRecord{Version: "g1", FailedSince: &at, Deadline: &at}
	condition.Set(&cd.Status.Conditions, hivev1.ClusterGatesPassed, corev1.ConditionFalse, hivev1.ReasonGateFailed, "A gate fails: web: it is down.", noon)
	if m := ReadMember(cd, noon); m.GatesFailure != "A gate fails: web: it is down" || m.GatesFailing != "g1" {
		t.Errorf("got %q of %q", m.GatesFailure, m.GatesFailing)
	}
}
