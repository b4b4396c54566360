package facts

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/bootstrap"
	"hotspare.io/hotspare/internal/gate"
	"hotspare.io/hotspare/internal/inventory"
	"hotspare.io/hotspare/internal/pool"
)

func TestTheRecordOfABootstrapDecidesWhetherAClusterIsUsable(t *testing.T) {
	resumed, deadline := metav1.NewTime(noon.Add(-time.Minute)), metav1.NewTime(noon)
	record := func(r hivev1.BootstrapRecord) func(*hivev1.ClusterDeployment) {
		return func(cd *hivev1.ClusterDeployment) {
			cd.Status.PowerTransition = &hivev1.PowerTransition{Target: hivev1.PowerRunning, StartedAt: resumed, FinishedAt: &resumed}
			cd.Status.Bootstrap = &r
		}
	}
	done := record(hivev1.BootstrapRecord{Version: "s1", FinishedAt: &resumed})
	late := hivev1.BootstrapRecord{Version: "s1", Step: "a", RunStartedAt: &resumed, StepStartedAt: &resumed, Deadline: &deadline}
	early := late
	early.RunStartedAt = &metav1.Time{Time: noon.Add(-time.Hour)}
	s1 := &bootstrap.Requirement{Version: "s1"}
	for name, tc := range map[string]struct {
		cd       *hivev1.ClusterDeployment
		required *bootstrap.Requirement
		want     pool.Phase
	}{
		"it has taken the steps":             {running(done), s1, pool.Assignable},
		"it has taken others":                {running(done), &bootstrap.Requirement{Version: "s2"}, pool.Assignable},
		"it has taken none":                  {running(), s1, pool.Standby},
		"a step takes too long":              {running(record(late)), s1, pool.Broken},
		"it began in an earlier run":         {running(record(early)), s1, pool.Standby},
		"the pool has no steps":              {running(), &bootstrap.Requirement{}, pool.Assignable},
		"it has begun, and the pool has not": {running(record(early)), &bootstrap.Requirement{}, pool.Standby},
		"nobody knows the steps of the pool": {running(record(late)), nil, pool.Broken},
		"it has begun none, nobody knows":    {running(), nil, pool.Assignable},
	} {
		t.Run(name, func(t *testing.T) {
			p := &hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}}
			o := Objects{Pool: p, Clusters: map[string]*hivev1.ClusterDeployment{"a": tc.cd}}
			if tc.required != nil {
				o.Gates, o.Steps = &gate.Requirement{}, *tc.required
			}
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
