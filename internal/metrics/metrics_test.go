package metrics_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/metrics"
	"hotspare.io/hotspare/internal/pool"
)

func newMetrics() (*metrics.Metrics, *prometheus.Registry) {
	reg := prometheus.NewPedanticRegistry()
	return metrics.New(reg, clocktesting.NewFakePassiveClock(noon)), reg
}

func at(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(d)) }

func ptrAt(d time.Duration) *metav1.Time { t := at(d); return &t }

func TestStepsOfAPool(t *testing.T) {
	m, reg := newMetrics()
	for _, st := range []pool.Step{
		{Verb: pool.Create},
		{Verb: pool.Create},
		{Verb: pool.Start},
		{Verb: pool.Hibernate},
		{Verb: pool.Delete},
		{Verb: pool.Delete, Cause: pool.Stale},
		{Verb: pool.Delete, Cause: pool.Unreachable},
	} {
		m.RecordPoolStep(dev, st)
	}
	same(t, series(t, reg), `
hotspare_pool_steps_total{clusterpool_name="dev",clusterpool_namespace="ci",verb="create"} 2
hotspare_pool_steps_total{clusterpool_name="dev",clusterpool_namespace="ci",verb="delete"} 3
hotspare_pool_steps_total{clusterpool_name="dev",clusterpool_namespace="ci",verb="hibernate"} 1
hotspare_pool_steps_total{clusterpool_name="dev",clusterpool_namespace="ci",verb="start"} 1
hive_clusterpool_stale_clusterdeployments_deleted{clusterpool_name="dev",clusterpool_namespace="ci"} 1
hotspare_pool_broken_clusters_replaced_total{clusterpool_name="dev",clusterpool_namespace="ci",reason="unreachable"} 1
`)
}

func newClaim() *hivev1.ClusterClaim {
	return &hivev1.ClusterClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ci", Name: "x", CreationTimestamp: at(0)},
		Spec:       hivev1.ClusterClaimSpec{ClusterPoolName: "dev", Namespace: "dev-1"},
	}
}

func TestAssignmentDelay(t *testing.T) {
	m, reg := newMetrics()
	m.RecordAssignment(newClaim(), noon.Add(40*time.Second))
	m.RecordAssignment(newClaim(), noon.Add(-time.Hour)) // clocks differ
	same(t, series(t, reg), `
hive_clusterclaim_assignment_delay_seconds_count{clusterpool_name="dev",clusterpool_namespace="ci"} 2
hive_clusterclaim_assignment_delay_seconds_sum{clusterpool_name="dev",clusterpool_namespace="ci"} 40
hotspare_pool_steps_total{clusterpool_name="dev",clusterpool_namespace="ci",verb="bind"} 2
`)
	text := scrape(t, reg)
	for _, le := range []string{"1", "30", "120", "600", "1800", "3000", "7200"} {
		if !strings.Contains(text, `le="`+le+`"`) {
			t.Errorf("Hive's bucket of %s s is missing: its dashboards name it", le)
		}
	}
}

func TestClaimWait(t *testing.T) {
	up := func(from, to time.Duration) *hivev1.PowerTransition {
		return &hivev1.PowerTransition{Target: hivev1.PowerRunning, StartedAt: at(from), FinishedAt: ptrAt(to)}
	}
	tests := map[string]struct {
		status hivev1.ClusterDeploymentStatus
		want   string
	}{
		"a cluster that ran before":                 {hivev1.ClusterDeploymentStatus{InstalledTimestamp: ptrAt(-time.Hour), PowerTransition: up(-time.Hour, -time.Minute)}, "running"},
		"one that has told nothing of its past":     {hivev1.ClusterDeploymentStatus{}, "running"},
		"one that came up in the same second":       {hivev1.ClusterDeploymentStatus{InstalledTimestamp: ptrAt(-time.Hour), PowerTransition: up(-time.Minute, 0)}, "running"},
		"one that was woken meanwhile":              {hivev1.ClusterDeploymentStatus{InstalledTimestamp: ptrAt(-time.Hour), PowerTransition: up(time.Second, time.Minute)}, "resumed"},
		"one whose resume had begun before":         {hivev1.ClusterDeploymentStatus{InstalledTimestamp: ptrAt(-time.Hour), PowerTransition: up(-time.Second, time.Minute)}, "resumed"},
		"one that was installed meanwhile":          {hivev1.ClusterDeploymentStatus{InstalledTimestamp: ptrAt(time.Minute), PowerTransition: up(time.Minute, 2*time.Minute)}, "installed"},
		"one that was installed and then woken":     {hivev1.ClusterDeploymentStatus{InstalledTimestamp: ptrAt(time.Minute), PowerTransition: up(3*time.Minute, 4*time.Minute)}, "installed"},
		"one installed before, on its way up since": {hivev1.ClusterDeploymentStatus{InstalledTimestamp: ptrAt(-time.Second), PowerTransition: up(-time.Second, time.Minute)}, "installed"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m, reg := newMetrics()
			before, after := newClaim(), newClaim()
			told(after, hivev1.ClaimClusterRunning, "True", 0)
			m.RecordClaimWait(before, after, &hivev1.ClusterDeployment{Status: tc.status}, noon.Add(5*time.Minute))
			same(t, series(t, reg), `
hotspare_claim_wait_seconds_count{clusterpool_name="dev",clusterpool_namespace="ci",source="`+tc.want+`"} 1
hotspare_claim_wait_seconds_sum{clusterpool_name="dev",clusterpool_namespace="ci",source="`+tc.want+`"} 300
`)
		})
	}
}

func told(c *hivev1.ClusterClaim, typ, status string, when time.Duration) {
	condition.Set(&c.Status.Conditions, typ, corev1.ConditionStatus(status), "R", "", noon.Add(when))
}

func TestClaimWaitsOnce(t *testing.T) {
	tests := map[string]struct {
		before, after func(*hivev1.ClusterClaim)
		want          int
	}{
		"when nothing was told before": {func(*hivev1.ClusterClaim) {}, runs, 1},
		"when it has been told to wait": {func(c *hivev1.ClusterClaim) {
			told(c, hivev1.ClaimPending, "True", time.Second)
		}, runs, 1},
		"when its cluster was not running at first": {func(c *hivev1.ClusterClaim) {
			told(c, hivev1.ClaimPending, "False", time.Second)
			told(c, hivev1.ClaimClusterRunning, "False", time.Second)
		}, runs, 1},
		"not when its cluster hibernated and runs again": {func(c *hivev1.ClusterClaim) {
			told(c, hivev1.ClaimPending, "False", time.Second)
			told(c, hivev1.ClaimClusterRunning, "True", time.Second)
			told(c, hivev1.ClaimClusterRunning, "False", time.Hour)
		}, runs, 0},
		"not when it is told again": {runs, runs, 0},
		"not before its cluster runs": {func(*hivev1.ClusterClaim) {}, func(c *hivev1.ClusterClaim) {
			told(c, hivev1.ClaimClusterRunning, "False", time.Second)
		}, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m, reg := newMetrics()
			before, after := newClaim(), newClaim()
			tc.before(before)
			tc.after(after)
			m.RecordClaimWait(before, after, &hivev1.ClusterDeployment{}, noon)
			if got := len(series(t, reg, "hotspare_claim_wait_seconds_count")); got != tc.want {
				t.Errorf("measured %d times, want %d", got, tc.want)
			}
		})
	}
}

func runs(c *hivev1.ClusterClaim) {
	told(c, hivev1.ClaimPending, "False", time.Second)
	told(c, hivev1.ClaimClusterRunning, "True", time.Second)
}

func newCluster(change func(*hivev1.ClusterDeployment)) *hivev1.ClusterDeployment {
	version := "4.18.20"
	cd := &hivev1.ClusterDeployment{
		Spec: hivev1.ClusterDeploymentSpec{
			Platform:       hivev1.Platform{Local: &hivev1.LocalPlatform{}},
			ClusterPoolRef: &hivev1.ClusterPoolReference{Namespace: "ci", PoolName: "dev"},
		},
		Status: hivev1.ClusterDeploymentStatus{
			InstallVersion:          &version,
			InstallStartedTimestamp: ptrAt(-time.Hour), InstalledTimestamp: ptrAt(-10 * time.Minute),
		},
	}
	change(cd)
	return cd
}

func TestInstall(t *testing.T) {
	m, reg := newMetrics()
	m.RecordInstall(newCluster(func(*hivev1.ClusterDeployment) {}))
	m.RecordInstall(newCluster(func(cd *hivev1.ClusterDeployment) { cd.Spec.ClusterPoolRef = nil }))
	m.RecordInstall(newCluster(func(cd *hivev1.ClusterDeployment) { cd.Status.InstallStartedTimestamp = nil })) // adopted
	same(t, series(t, reg), `
hotspare_cluster_install_seconds_count{clusterpool_name="dev",clusterpool_namespace="ci",platform="local"} 1
hotspare_cluster_install_seconds_sum{clusterpool_name="dev",clusterpool_namespace="ci",platform="local"} 3000
hotspare_cluster_install_seconds_count{clusterpool_name="",clusterpool_namespace="",platform="local"} 1
hotspare_cluster_install_seconds_sum{clusterpool_name="",clusterpool_namespace="",platform="local"} 3000
`)
}

func TestInstallsThatWereGivenUp(t *testing.T) {
	stopped := func(status, reason string) func(*hivev1.ClusterDeployment) {
		return func(cd *hivev1.ClusterDeployment) {
			condition.Set(&cd.Status.Conditions, hivev1.ClusterProvisionStopped, corev1.ConditionStatus(status), "X", "", noon)
			if reason != "" {
				condition.Set(&cd.Status.Conditions, hivev1.ClusterProvisionFailed, "True", reason, "", noon)
			}
		}
	}
	m, reg := newMetrics()
	going, gone := newCluster(stopped("False", "")), newCluster(stopped("True", "MachineFailed"))
	m.RecordProvisionFailure(going, gone)
	m.RecordProvisionFailure(gone, gone)
	m.RecordProvisionFailure(going, going)
	m.RecordProvisionFailure(newCluster(func(*hivev1.ClusterDeployment) {}), newCluster(stopped("True", "")))
	same(t, series(t, reg), `
hive_cluster_deployments_provision_failed_terminal_total{clusterpool_namespacedname="ci/dev",failure_reason="MachineFailed"} 1
hive_cluster_deployments_provision_failed_terminal_total{clusterpool_namespacedname="ci/dev",failure_reason="unknown"} 1
`)
	for i := range 1000 {
		m.RecordProvisionFailure(going, newCluster(stopped("True", "Reason"+strings.Repeat("x", i))))
	}
	if n := len(series(t, reg)); n > 60 {
		t.Errorf("%d series for 1000 reasons: installers choose them, so they must be limited", n)
	}
}

func TestPowerTransitions(t *testing.T) {
	became := func(target hivev1.PowerState, from, to time.Duration) func(*hivev1.ClusterDeployment) {
		return func(cd *hivev1.ClusterDeployment) {
			cd.Status.PowerTransition = &hivev1.PowerTransition{Target: target, StartedAt: at(from)}
			if to != 0 {
				cd.Status.PowerTransition.FinishedAt = ptrAt(to)
			}
		}
	}
	never := func(*hivev1.ClusterDeployment) {}
	resumes := became(hivev1.PowerRunning, time.Minute, 0)
	runs := became(hivev1.PowerRunning, time.Minute, 3*time.Minute)
	sleeps := became(hivev1.PowerHibernating, time.Hour, time.Hour+30*time.Second)

	m, reg := newMetrics()
	for _, step := range [][2]func(*hivev1.ClusterDeployment){
		{never, resumes},
		{resumes, runs}, // counted
		{runs, runs},
		{runs, sleeps}, // counted, although its start was not observed
		{sleeps, sleeps},
		{never, became(hivev1.PowerRunning, -10*time.Minute, time.Minute)}, // it has been running since its installation
		{became(hivev1.PowerRunning, -10*time.Minute, 0), became(hivev1.PowerRunning, -10*time.Minute, time.Minute)},
		// Counted: it hibernated and resumed in the second of its installation, as fake clusters
		// do.
		{became(hivev1.PowerHibernating, -10*time.Minute, -10*time.Minute), became(hivev1.PowerRunning, -10*time.Minute, -10*time.Minute)},
	} {
		m.RecordPowerTransition(newCluster(step[0]), newCluster(step[1]))
	}
	const of = `{cluster_pool_name="dev",cluster_pool_namespace="ci",cluster_version="4.18.20",platform="local"}`
	same(t, series(t, reg), `
hive_cluster_deployments_running_transition_seconds_count`+of+` 2
hive_cluster_deployments_running_transition_seconds_sum`+of+` 120
hive_cluster_deployments_hibernation_transition_seconds_count`+of+` 1
hive_cluster_deployments_hibernation_transition_seconds_sum`+of+` 30
`)
}

// all updates every counter and histogram, for two pools and for no pool.
func all(m *metrics.Metrics) {
	stopped := newCluster(func(cd *hivev1.ClusterDeployment) {
		condition.Set(&cd.Status.Conditions, hivev1.ClusterProvisionStopped, "True", "X", "", noon)
	})
	for _, ref := range []*hivev1.ClusterPoolReference{{Namespace: "ci", PoolName: "dev"}, {Namespace: "ci", PoolName: "dev2"}, nil} {
		of := func(cd *hivev1.ClusterDeployment) { cd.Spec.ClusterPoolRef = ref }
		m.RecordInstall(newCluster(of))
		of(stopped)
		m.RecordProvisionFailure(newCluster(of), stopped)
		for _, target := range []hivev1.PowerState{hivev1.PowerRunning, hivev1.PowerHibernating} {
			m.RecordPowerTransition(newCluster(of), newCluster(func(cd *hivev1.ClusterDeployment) {
				of(cd)
				cd.Status.PowerTransition = &hivev1.PowerTransition{Target: target, StartedAt: at(0), FinishedAt: ptrAt(time.Minute)}
			}))
		}
		if ref == nil {
			continue
		}
		p := types.NamespacedName{Namespace: ref.Namespace, Name: ref.PoolName}
		m.RecordPoolStep(p, pool.Step{Verb: pool.Delete, Cause: pool.Stale})
		m.RecordPoolStep(p, pool.Step{Verb: pool.Delete, Cause: pool.InstallFailed})
		claim := newClaim()
		claim.Spec.ClusterPoolName = p.Name
		m.RecordAssignment(claim, noon)
		served := claim.DeepCopy()
		runs(served)
		m.RecordClaimWait(claim, served, newCluster(of), noon)
	}
}

func TestB25CountersGoWithTheirPool(t *testing.T) {
	m, reg := newMetrics()
	all(m)
	if n := len(series(t, reg)); n != 37 {
		t.Fatalf("%d series to begin with, want 37", n)
	}
	m.DeletePoolSeries(dev)
	left := series(t, reg)
	for _, line := range left {
		if strings.Contains(line, `"dev"`) || strings.Contains(line, `"ci/dev"`) {
			t.Errorf("left of a pool that is gone: %s", line)
		}
	}
	if len(left) != 22 {
		t.Errorf("%d series are left, want the 22 of the other pool and of clusters in no pool", len(left))
	}
}

func TestNilCountsNothing(t *testing.T) {
	var m *metrics.Metrics
	all(m)
	m.DeletePoolSeries(dev)
	if m.WrapTransport(nil) != nil || m.WrapReconciler("x", nil) != nil {
		t.Error("nil metrics wrap something")
	}
}

// Names must pass the Prometheus linter, except for one of Hive's.
func TestNamesArePrometheus(t *testing.T) {
	m, reg := newMetrics()
	all(m)
	reg.MustRegister(metrics.NewPoolGauges(func() (map[types.NamespacedName]pool.Snapshot, error) {
		return map[types.NamespacedName]pool.Snapshot{dev: busy()}, nil
	}))
	problems, err := promlint.New(strings.NewReader(scrape(t, reg))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if p.Metric != "hive_clusterpool_stale_clusterdeployments_deleted" {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}
