// Package metrics counts what the controllers do, and measures pools and the fleet.
//
// Metrics whose names begin with hive_ are Hive's and have Hive's labels and meanings; those that
// begin with hotspare_ have no counterpart in Hive. docs/operate/metrics.md lists all of them.
// Gauges are computed from the caches at each scrape (PoolGauges), so that none is stale and those of a
// deleted pool disappear. Controllers update counters and histograms (Metrics) after the write that
// they count has succeeded.
//
// Every label has a bounded set of values: a closed list, or names of pools and regions, whose
// series are deleted with them (DeletePoolSeries, DeleteRegionSeries).
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"hotspare.io/hotspare/internal/pool"
)

// Label names. Hive has three ways to name a pool.
const (
	poolNamespace = "clusterpool_namespace"
	poolName      = "clusterpool_name"

	powerPoolNamespace = "cluster_pool_namespace"
	powerPoolName      = "cluster_pool_name"

	poolBoth = "clusterpool_namespacedname"
)

// Buckets in seconds. Hive's buckets are kept, so that its dashboards continue to work; finer ones
// are added where hotspare is faster.
var (
	// A claim's age has a resolution of one second, so buckets below one are useless.
	claimBuckets      = []float64{1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3000, 7200}
	resumeBuckets     = []float64{1, 2, 5, 10, 30, 60, 90, 180, 300, 600, 1200}
	hibernateBuckets  = []float64{1, 2, 5, 10, 30, 60, 180, 300, 600}
	installBuckets    = []float64{5, 10, 30, 60, 120, 300, 600, 1200, 1800, 2400, 3000, 3600, 5400, 7200}
	reconcilerBuckets = []float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 10, 30, 60, 120}
)

// Metrics contains the counters and histograms. Its methods may be called on nil, and then count
// nothing.
type Metrics struct {
	clock clock.PassiveClock

	steps, broken, stale     *prometheus.CounterVec
	assignment, wait         *prometheus.HistogramVec
	resume, hibernate        *prometheus.HistogramVec
	install                  *prometheus.HistogramVec
	terminal                 *prometheus.CounterVec
	gates, bootstrapSteps    *prometheus.CounterVec
	certificates             *prometheus.CounterVec
	fleet                    *prometheus.CounterVec
	passes                   *prometheus.HistogramVec
	requests                 *prometheus.CounterVec
	installReasons, versions *boundedLabel
}

// New creates the metrics and registers them with reg. It must be called at most once per registry.
func New(reg prometheus.Registerer, now clock.PassiveClock) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return promauto.With(reg).NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return promauto.With(reg).NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	return &Metrics{
		clock: now,

		steps: counter("hotspare_pool_steps_total",
			"Steps that were executed for the pool, by verb.", poolNamespace, poolName, "verb"),
		broken: counter("hotspare_pool_broken_clusters_replaced_total",
			"Broken clusters that were deleted to be replaced, by reason.", poolNamespace, poolName, "reason"),
		stale: counter("hive_clusterpool_stale_clusterdeployments_deleted",
			"Unclaimed clusters that were deleted because they did not match the pool's current settings.", poolNamespace, poolName),
		assignment: histogram("hive_clusterclaim_assignment_delay_seconds",
			"Time from the creation of a claim until a cluster was assigned to it.", claimBuckets, poolNamespace, poolName),
		wait: histogram("hotspare_claim_wait_seconds",
			"Time from the creation of a claim until its cluster was running, by source: the cluster was already running, was resumed, or was installed.",
			claimBuckets, poolNamespace, poolName, "source"),

		resume: histogram("hive_cluster_deployments_running_transition_seconds",
			"Time that a cluster took to resume from hibernation.", resumeBuckets, powerLabels...),
		hibernate: histogram("hive_cluster_deployments_hibernation_transition_seconds",
			"Time that a cluster took to hibernate.", hibernateBuckets, powerLabels...),
		install: histogram("hotspare_cluster_install_seconds",
			"Time from the start of the first install attempt until the cluster was installed.",
			installBuckets, poolNamespace, poolName, "platform"),
		terminal: counter("hive_cluster_deployments_provision_failed_terminal_total",
			"Clusters whose installation was abandoned, by the reason of the last failed attempt.", poolBoth, "failure_reason"),

		gates: counter("hotspare_pool_gate_verdicts_total",
			"Changes of the verdict of the gates about a spare cluster, by the new verdict: passed or failed.", poolNamespace, poolName, "verdict"),
		bootstrapSteps: counter("hotspare_pool_bootstrap_steps_total",
			"Steps of bootstraps in spare clusters, by outcome: done, or failed each time when a step begins to fail.", poolNamespace, poolName, "outcome"),

		certificates: counter("hotspare_cluster_csrs_approved_total",
			"Approved CertificateSigningRequests of nodes of resumed clusters, by signer.", "signer"),

		fleet: counter("hotspare_fleet_steps_total",
			"Steps that were executed for the FleetRegion, by verb and reason.", fleetNamespace, fleetRegion, "verb", "reason"),

		passes: histogram("hive_controller_reconcile_seconds",
			"Duration of reconciles, by controller and outcome.", reconcilerBuckets, "controller", "outcome"),
		requests: counter("hive_kube_client_requests_total",
			"Requests to the hub's API, by the controller that sent them; empty for watches, events and other background requests.",
			"controller", "method", "verb", "resource", "status"),

		installReasons: newBoundedLabel(), versions: newBoundedLabel(),
	}
}

var powerLabels = []string{"cluster_version", "platform", powerPoolNamespace, powerPoolName}

// RecordPoolStep counts a step that was executed for a pool.
func (m *Metrics) RecordPoolStep(p types.NamespacedName, st pool.Step) {
	if m == nil {
		return
	}
	m.steps.WithLabelValues(p.Namespace, p.Name, string(st.Verb)).Inc()
	switch {
	case st.Cause == pool.Stale:
		m.stale.WithLabelValues(p.Namespace, p.Name).Inc()
	case st.Cause.IsDefect():
		m.broken.WithLabelValues(p.Namespace, p.Name, string(st.Cause)).Inc()
	}
}

// DeletePoolSeries deletes the series of a deleted pool.
func (m *Metrics) DeletePoolSeries(p types.NamespacedName) {
	if m == nil {
		return
	}
	mine := prometheus.Labels{poolNamespace: p.Namespace, poolName: p.Name}
	for _, c := range []*prometheus.CounterVec{m.steps, m.broken, m.stale, m.gates, m.bootstrapSteps} {
		c.DeletePartialMatch(mine)
	}
	for _, h := range []*prometheus.HistogramVec{m.assignment, m.wait, m.install} {
		h.DeletePartialMatch(mine)
	}
	for _, h := range []*prometheus.HistogramVec{m.resume, m.hibernate} {
		h.DeletePartialMatch(prometheus.Labels{powerPoolNamespace: p.Namespace, powerPoolName: p.Name})
	}
	m.terminal.DeletePartialMatch(prometheus.Labels{poolBoth: p.String()})
}
