package metrics_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/metrics"
	"hotspare.io/hotspare/internal/pool"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

var dev = types.NamespacedName{Namespace: "ci", Name: "dev"}

// busy is a pool with a cluster in each phase, including stale ones, and a claim in each state.
func busy() pool.Snapshot {
	limit := 9
	running := pool.Member{Installed: true, Running: true, Wanted: pool.Running, Version: "v1"}
	member := func(name string, change func(*pool.Member)) pool.Member {
		m := running
		m.Name = name
		change(&m)
		return m
	}
	return pool.Snapshot{
		Now:      noon,
		Settings: pool.Settings{Size: 5, RunningCount: 2, MaxSize: &limit, Version: "v1"},
		Members: []pool.Member{
			member("a", func(*pool.Member) {}),
			member("b", func(m *pool.Member) { m.Running = false }),
			member("c", func(m *pool.Member) { m.Running, m.Version = false, "v0" }),
			member("d", func(m *pool.Member) { m.Installed, m.Version = false, "" }),
			member("e", func(m *pool.Member) { m.GaveUp = true }),
			member("f", func(m *pool.Member) { m.Claim = "x" }),
			member("g", func(m *pool.Member) { m.Claim, m.Deleting = "y", true }),
			member("h", func(m *pool.Member) { m.Marked = true }),
		},
		Claims: []pool.Claim{
			{Name: "x", Cluster: "f", Created: noon.Add(-time.Hour)},
			{Name: "y", Cluster: "g", Created: noon.Add(-time.Hour), Deleting: true},
			{Name: "old", Created: noon.Add(-90 * time.Second)},
			{Name: "new", Created: noon.Add(-time.Second)},
		},
	}
}

const busyText = `
hive_clusterpool_clusterdeployments_assignable{clusterpool_name="dev",clusterpool_namespace="ci"} 1
hive_clusterpool_clusterdeployments_standby{clusterpool_name="dev",clusterpool_namespace="ci"} 2
hive_clusterpool_clusterdeployments_installing{clusterpool_name="dev",clusterpool_namespace="ci"} 1
hive_clusterpool_clusterdeployments_broken{clusterpool_name="dev",clusterpool_namespace="ci"} 1
hive_clusterpool_clusterdeployments_deleting{clusterpool_name="dev",clusterpool_namespace="ci"} 1
hive_clusterpool_clusterdeployments_claimed{clusterpool_name="dev",clusterpool_namespace="ci"} 2
hive_clusterpool_clusterdeployments_unclaimed{clusterpool_name="dev",clusterpool_namespace="ci"} 4
hive_clusterpool_clusterdeployments_stale{clusterpool_name="dev",clusterpool_namespace="ci"} 2
hotspare_pool_members{clusterpool_name="dev",clusterpool_namespace="ci",phase="assignable"} 1
hotspare_pool_members{clusterpool_name="dev",clusterpool_namespace="ci",phase="broken"} 1
hotspare_pool_members{clusterpool_name="dev",clusterpool_namespace="ci",phase="claimed"} 1
hotspare_pool_members{clusterpool_name="dev",clusterpool_namespace="ci",phase="deleting"} 1
hotspare_pool_members{clusterpool_name="dev",clusterpool_namespace="ci",phase="installing"} 1
hotspare_pool_members{clusterpool_name="dev",clusterpool_namespace="ci",phase="marked"} 1
hotspare_pool_members{clusterpool_name="dev",clusterpool_namespace="ci",phase="standby"} 2
hotspare_pool_members{clusterpool_name="dev",clusterpool_namespace="ci",phase="unreadable"} 0
hotspare_pool_clusters{clusterpool_name="dev",clusterpool_namespace="ci",power="failing"} 0
hotspare_pool_clusters{clusterpool_name="dev",clusterpool_namespace="ci",power="hibernating"} 0
hotspare_pool_clusters{clusterpool_name="dev",clusterpool_namespace="ci",power="running"} 4
hotspare_pool_clusters{clusterpool_name="dev",clusterpool_namespace="ci",power="starting"} 2
hotspare_pool_claims{clusterpool_name="dev",clusterpool_namespace="ci",state="deleting"} 1
hotspare_pool_claims{clusterpool_name="dev",clusterpool_namespace="ci",state="held"} 0
hotspare_pool_claims{clusterpool_name="dev",clusterpool_namespace="ci",state="served"} 1
hotspare_pool_claims{clusterpool_name="dev",clusterpool_namespace="ci",state="waiting"} 2
hotspare_pool_oldest_waiting_claim_seconds{clusterpool_name="dev",clusterpool_namespace="ci"} 90
hotspare_pool_size{clusterpool_name="dev",clusterpool_namespace="ci"} 5
hotspare_pool_running_target{clusterpool_name="dev",clusterpool_namespace="ci"} 2
hotspare_pool_max_size{clusterpool_name="dev",clusterpool_namespace="ci"} 9
`

func TestGaugesOfAPool(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	pools := map[types.NamespacedName]pool.Snapshot{dev: busy()}
	reg.MustRegister(metrics.NewPoolGauges(func() (map[types.NamespacedName]pool.Snapshot, error) { return pools, nil }))
	same(t, series(t, reg), busyText)

	t.Run("no limit, no series of it", func(t *testing.T) {
		pools[dev] = pool.Snapshot{Now: noon}
		for _, line := range series(t, reg) {
			if strings.HasPrefix(line, "hotspare_pool_max") {
				t.Errorf("%s, but there is no limit", line)
			}
			if !strings.HasSuffix(line, " 0") {
				t.Errorf("%s, but the pool is empty", line)
			}
		}
		if len(series(t, reg)) != 27 {
			t.Errorf("an empty pool has %d series, want 27: zero is a value", len(series(t, reg)))
		}
	})
	t.Run("B25: a pool that is gone has no gauges", func(t *testing.T) {
		delete(pools, dev)
		if left := series(t, reg); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}

func TestPoolsThatCannotBeReadDoNotHideOthers(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(metrics.NewPoolGauges(func() (map[types.NamespacedName]pool.Snapshot, error) {
		return map[types.NamespacedName]pool.Snapshot{dev: busy()}, errors.New("reading pool ci/odd: no such thing")
	}))
	families, err := reg.Gather()
	if err == nil || !strings.Contains(err.Error(), "ci/odd") {
		t.Errorf("the error is %v, want the pool's", err)
	}
	if len(families) != 15 {
		t.Errorf("%d metrics, want the 15 of the other pool", len(families))
	}
}

func TestGaugesOfAnInventory(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(metrics.NewInventoryGauges(func() (map[types.NamespacedName]metrics.Inventory, error) {
		return map[types.NamespacedName]metrics.Inventory{dev: {hivev1.InventoryMissing: 2}}, nil
	}))
	const labels = `hotspare_pool_inventory{clusterpool_name="dev",clusterpool_namespace="ci",status=`
	got := series(t, reg)
	if len(got) != 8 || !slices.Contains(got, labels+`"Missing"} 2`) || !slices.Contains(got, labels+`"Available"} 0`) {
		t.Errorf("got %v, want each of the 8 statuses once", got)
	}
}

func TestGaugesOfAPolicy(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	policies := map[types.NamespacedName]v1alpha1.PoolPolicyStatus{dev: {
		CountsSetBy:           v1alpha1.CountsSetByPolicy,
		Recommended:           &v1alpha1.RecommendedCounts{Running: v1alpha1.RecommendedCount{Count: 2}, Size: v1alpha1.RecommendedCount{Count: 6}},
		Applied:               &v1alpha1.PoolCounts{Running: 2, Size: 7},
		ExpectedClaimsPerHour: "0.25", Coverage: &v1alpha1.PolicyCoverage{Promised: "99%", Seen: "98.5%"},
		Forecast: &v1alpha1.PolicyForecast{Low: 0, High: 4, Compared: 7, Within: "92.5%"},
		Month: &v1alpha1.PolicyMonth{
			Month: "2026-03", RunningHours: "2", HibernatingHours: "0.5", Cost: "2.05", SavedByHibernating: "0.45", CouldSave: "-1", SavedByPolicy: "3",
		},
	}}
	reg.MustRegister(metrics.NewPolicyGauges(func() (map[types.NamespacedName]v1alpha1.PoolPolicyStatus, error) { return policies, nil }))
	const of = `{clusterpool_name="dev",clusterpool_namespace="ci"`
	same(t, series(t, reg), "hotspare_pool_recommended"+of+`,count="running"} 2
hotspare_pool_recommended`+of+`,count="size"} 6
hotspare_pool_applied`+of+`,count="running"} 2
hotspare_pool_applied`+of+`,count="size"} 7
hotspare_pool_sized_by_policy`+of+`} 1
hotspare_pool_expected_claims_per_hour`+of+`} 0.25
hotspare_pool_coverage_promised_ratio`+of+`} 0.99
hotspare_pool_coverage_seen_ratio`+of+`} 0.985
hotspare_pool_expected_claims_band{bound="low",clusterpool_name="dev",clusterpool_namespace="ci"} 0
hotspare_pool_expected_claims_band{bound="high",clusterpool_name="dev",clusterpool_namespace="ci"} 4
hotspare_pool_forecast_within_band_ratio`+of+`} 0.925
hotspare_pool_month_cluster_seconds`+of+`,state="running"} 7200
hotspare_pool_month_cluster_seconds`+of+`,state="hibernating"} 1800
hotspare_pool_month_cost`+of+`} 2.05
hotspare_pool_month_saved{by="hibernating",clusterpool_name="dev",clusterpool_namespace="ci"} 0.45
hotspare_pool_month_saved{by="policy",clusterpool_name="dev",clusterpool_namespace="ci"} 3
hotspare_pool_month_saved{by="recommendation",clusterpool_name="dev",clusterpool_namespace="ci"} -1
hotspare_pool_prices_estimated`+of+`} 0
`)
	estimated := policies[dev]
	estimated.EstimatedPrices = &v1alpha1.EstimatedPrices{Running: "1", Hibernating: "0.1", Currency: "USD", Basis: "an estimate"}
	policies[dev] = estimated
	if got := series(t, reg); !slices.Contains(got, "hotspare_pool_prices_estimated"+of+"} 1") {
		t.Errorf("with estimated prices: %v", got)
	}
	policies[dev].Month.Cost, policies[dev].Month.SavedByHibernating, policies[dev].Month.CouldSave, policies[dev].Month.SavedByPolicy = "", "", "", "many"
	if got := strings.Join(series(t, reg), "\n"); strings.Contains(got, "month_cost") || strings.Contains(got, "month_saved") || strings.Contains(got, "estimated") {
		t.Errorf("without prices: %s", got)
	}
	policies[dev] = v1alpha1.PoolPolicyStatus{}
	same(t, series(t, reg), "hotspare_pool_sized_by_policy"+of+"} 0\n")
}
