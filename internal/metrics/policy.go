package metrics

import (
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// PolicyGauges measures PoolPolicies at each scrape, from their status.
type PolicyGauges struct {
	readPolicies func() (map[types.NamespacedName]v1alpha1.PoolPolicyStatus, error)
}

// NewPolicyGauges returns gauges of the PoolPolicies that readPolicies returns, by their pool.
func NewPolicyGauges(readPolicies func() (map[types.NamespacedName]v1alpha1.PoolPolicyStatus, error)) *PolicyGauges {
	return &PolicyGauges{readPolicies}
}

var (
	recommendedDesc = newPoolDesc("hotspare_pool_recommended", "The count that the pool's PoolPolicy recommends: running or size.", "count")
	appliedDesc     = newPoolDesc("hotspare_pool_applied", "The count that the pool's PoolPolicy has set last: running or size; absent if it has set none.", "count")
	autoDesc        = newPoolDesc("hotspare_pool_sized_by_policy", "1 while the pool's PoolPolicy sets the counts, 0 while a person does.")
	expectedDesc    = newPoolDesc("hotspare_pool_expected_claims_per_hour", "Claims that are expected within the next hour; absent while nothing is computed.")
	promisedDesc    = newPoolDesc("hotspare_pool_coverage_promised_ratio", "Share of the claims that the pool's PoolPolicy promises to serve in time.")
	bandDesc        = newPoolDesc("hotspare_pool_expected_claims_band",
		"Ends of the band in which the number of claims within the next hour should be nine times of ten: low or high.", "bound")
	withinDesc       = newPoolDesc("hotspare_pool_forecast_within_band_ratio", "Share of the forecasts of the last eight days whose band had the number of claims.")
	monthSecondsDesc = newPoolDesc("hotspare_pool_month_cluster_seconds",
		"Cluster-seconds of unclaimed clusters since the calendar month began in UTC, by state: running (all that do not hibernate) or hibernating.", "state")
	monthCostDesc = newPoolDesc("hotspare_pool_month_cost",
		"What the unclaimed clusters have cost since the calendar month began in UTC, in the currency of the prices; absent without prices.")
	estimatedDesc = newPoolDesc("hotspare_pool_prices_estimated",
		"1 while the costs of the pool are computed from prices that hotspare has estimated, 0 while from spec.prices of its PoolPolicy; absent without prices.")
	monthSavedDesc = newPoolDesc("hotspare_pool_month_saved",
		"What was saved since the calendar month began: by hibernating or by the counts of the policy, or what the recommendation would have saved.", "by")
	seenDesc = newPoolDesc("hotspare_pool_coverage_seen_ratio", "Share of the last claims that were served in time.")
)

// Describe implements prometheus.Collector.
func (g *PolicyGauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		recommendedDesc, appliedDesc, autoDesc, expectedDesc, promisedDesc, seenDesc, bandDesc, withinDesc, monthSecondsDesc, monthCostDesc, monthSavedDesc,
		estimatedDesc,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector: it reads the current state and reports it.
func (g *PolicyGauges) Collect(ch chan<- prometheus.Metric) {
	policies, err := g.readPolicies()
	if err != nil {
		ch <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(err), err)
	}
	for p, st := range policies {
		reportPolicyGauges(&st, func(d *prometheus.Desc, value float64, more ...string) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{p.Namespace, p.Name}, more...)...)
		})
	}
}

// Values of the label count.
const (
	runningCount = "running"
	sizeCount    = "size"
)

func reportPolicyGauges(st *v1alpha1.PoolPolicyStatus, set func(d *prometheus.Desc, value float64, more ...string)) {
	if rec := st.Recommended; rec != nil {
		set(recommendedDesc, float64(rec.Running.Count), runningCount)
		set(recommendedDesc, float64(rec.Size.Count), sizeCount)
	}
	if a := st.Applied; a != nil {
		set(appliedDesc, float64(a.Running), runningCount)
		set(appliedDesc, float64(a.Size), sizeCount)
	}
	byPolicy := 0.0
	if st.CountsSetBy == v1alpha1.CountsSetByPolicy {
		byPolicy = 1
	}
	set(autoDesc, byPolicy)
	if n, err := strconv.ParseFloat(st.ExpectedClaimsPerHour, 64); err == nil {
		set(expectedDesc, n)
	}
	if c := st.Coverage; c != nil {
		setRatio(set, promisedDesc, c.Promised)
		setRatio(set, seenDesc, c.Seen)
	}
	reportForecast(st.Forecast, set)
	reportMonth(st.Month, set)
	switch {
	case st.Month == nil || st.Month.Cost == "":
	case st.EstimatedPrices != nil:
		set(estimatedDesc, 1)
	default:
		set(estimatedDesc, 0)
	}
}

// reportForecast sets the gauges of forecasts.
func reportForecast(f *v1alpha1.PolicyForecast, set func(d *prometheus.Desc, value float64, more ...string)) {
	if f == nil {
		return
	}
	set(bandDesc, float64(f.Low), "low")
	set(bandDesc, float64(f.High), "high")
	setRatio(set, withinDesc, f.Within)
}

// reportMonth sets the gauges of a month.
func reportMonth(m *v1alpha1.PolicyMonth, set func(d *prometheus.Desc, value float64, more ...string)) {
	if m == nil {
		return
	}
	for _, v := range []struct {
		desc *prometheus.Desc
		text string
		unit float64
		more []string
	}{
		{monthSecondsDesc, m.RunningHours, time.Hour.Seconds(), []string{"running"}},
		{monthSecondsDesc, m.HibernatingHours, time.Hour.Seconds(), []string{"hibernating"}},
		{monthCostDesc, m.Cost, 1, nil},
		{monthSavedDesc, m.SavedByHibernating, 1, []string{"hibernating"}},
		{monthSavedDesc, m.SavedByPolicy, 1, []string{"policy"}},
		{monthSavedDesc, m.CouldSave, 1, []string{"recommendation"}},
	} {
		if n, err := strconv.ParseFloat(v.text, 64); err == nil {
			set(v.desc, n*v.unit, v.more...)
		}
	}
}

// setRatio sets a gauge to a percentage, unless the text is none.
func setRatio(set func(d *prometheus.Desc, value float64, more ...string), d *prometheus.Desc, percent string) {
	if n, err := strconv.ParseFloat(strings.TrimSuffix(percent, "%"), 64); err == nil {
		set(d, n/100)
	}
}
