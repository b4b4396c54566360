package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"hotspare.io/hotspare/internal/pool"
)

// PoolReader returns the current state of every pool. With an error it returns the pools that it
// could read.
type PoolReader func() (map[types.NamespacedName]pool.Snapshot, error)

// PoolGauges measures pools at each scrape.
type PoolGauges struct {
	readPools PoolReader
}

// NewPoolGauges returns gauges of the pools that readPools returns.
func NewPoolGauges(readPools PoolReader) *PoolGauges { return &PoolGauges{readPools} }

// NewLeaderGauge returns a gauge of whether this process runs the controllers. Without leader
// election it always does.
func NewLeaderGauge(isLeader func() bool) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hotspare_leader", Help: "1 if this process is the leader and runs the controllers, 0 if it is on standby.",
	}, func() float64 {
		if isLeader() {
			return 1
		}
		return 0
	})
}

// newPoolDesc returns the description of a gauge that every pool has.
func newPoolDesc(name, help string, more ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, append([]string{poolNamespace, poolName}, more...), nil)
}

// newHivePoolDesc returns the description of one of Hive's gauges.
func newHivePoolDesc(name, help string) *prometheus.Desc {
	return newPoolDesc("hive_clusterpool_clusterdeployments_"+name, "Clusters of the pool "+help+".")
}

var (
	// phaseDescs are Hive's gauges that correspond to exactly one phase.
	phaseDescs = map[pool.Phase]*prometheus.Desc{
		pool.Assignable: newHivePoolDesc("assignable", "that are unclaimed and running"),
		pool.Standby:    newHivePoolDesc("standby", "that are unclaimed, installed and not running"),
		pool.Installing: newHivePoolDesc("installing", "that are unclaimed and not installed yet"),
		pool.Broken:     newHivePoolDesc("broken", "that are unclaimed and broken"),
		pool.Deleting:   newHivePoolDesc("deleting", "that are being deleted"),
	}
	claimedDesc   = newHivePoolDesc("claimed", "that are assigned to a claim, including those being deleted")
	unclaimedDesc = newHivePoolDesc("unclaimed", "that are unclaimed and not broken: installing, standby or assignable")
	staleDesc     = newHivePoolDesc("stale", "that are unclaimed and do not match the pool's current settings, or do not record which settings they were created from")

	membersDesc = newPoolDesc("hotspare_pool_members", "Clusters of the pool, by phase.", "phase")
	claimsDesc  = newPoolDesc("hotspare_pool_claims", "Claims on the pool, by state.", "state")
	powerDesc   = newPoolDesc("hotspare_pool_clusters", "Installed clusters of the pool, claimed or not, by power state.", "power")
	oldestDesc  = newPoolDesc("hotspare_pool_oldest_waiting_claim_seconds", "Age of the oldest waiting claim; 0 when no claim waits.")

	sizeDesc          = newPoolDesc("hotspare_pool_size", "The pool's spec.size.")
	runningDesc       = newPoolDesc("hotspare_pool_running_target", "The pool's spec.runningCount.")
	maxSizeDesc       = newPoolDesc("hotspare_pool_max_size", "The pool's spec.maxSize; absent when it is not set.")
	maxConcurrentDesc = newPoolDesc("hotspare_pool_max_concurrent", "The pool's spec.maxConcurrent; absent when it is not set.")
)

// phases lists all phases: gauges whose value is zero are reported, too.
var phases = []pool.Phase{pool.Deleting, pool.Removed, pool.Claimed, pool.Broken, pool.Installing, pool.Standby, pool.Assignable, pool.Unreadable}

var powers = []pool.PowerCondition{pool.PowerUp, pool.PowerStarting, pool.PowerDown, pool.PowerFailing}

// Describe implements prometheus.Collector.
func (g *PoolGauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range phaseDescs {
		ch <- d
	}
	for _, d := range []*prometheus.Desc{
		claimedDesc, unclaimedDesc, staleDesc, membersDesc, powerDesc, claimsDesc, oldestDesc,
		sizeDesc, runningDesc, maxSizeDesc, maxConcurrentDesc,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector: it reads the current state and reports it.
func (g *PoolGauges) Collect(ch chan<- prometheus.Metric) {
	pools, err := g.readPools()
	if err != nil {
		ch <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(err), err)
	}
	for p, s := range pools {
		reportPoolGauges(s, func(d *prometheus.Desc, value float64, more ...string) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{p.Namespace, p.Name}, more...)...)
		})
	}
}

func reportPoolGauges(s pool.Snapshot, set func(d *prometheus.Desc, value float64, more ...string)) {
	c := s.CountMembersAndClaims()
	for phase, d := range phaseDescs {
		set(d, float64(c.Members[phase]))
	}
	set(claimedDesc, float64(c.Given))
	set(unclaimedDesc, float64(c.ClaimableCount()))
	set(staleDesc, float64(c.Stale))
	for _, phase := range phases {
		set(membersDesc, float64(c.Members[phase]), string(phase))
	}
	power := s.CountInstalledByPower()
	for _, p := range powers {
		set(powerDesc, float64(power[p]), string(p))
	}
	set(claimsDesc, float64(c.Waiting), "waiting")
	set(claimsDesc, float64(c.Held), "held")
	set(claimsDesc, float64(c.Served), "served")
	set(claimsDesc, float64(c.Leaving), "deleting")
	set(oldestDesc, c.LongestWait.Seconds())
	set(sizeDesc, float64(s.Settings.Size))
	set(runningDesc, float64(s.Settings.RunningCount))
	if n := s.Settings.MaxSize; n != nil {
		set(maxSizeDesc, float64(*n))
	}
	if n := s.Settings.MaxConcurrent; n != nil {
		set(maxConcurrentDesc, float64(*n))
	}
}
