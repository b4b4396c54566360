package manager

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	runtimemetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/controller/clusterpool"
	"hotspare.io/hotspare/internal/controller/poolpolicy"
	"hotspare.io/hotspare/internal/controller/serviceinstance"
	"hotspare.io/hotspare/internal/listen"
	"hotspare.io/hotspare/internal/metrics"
	"hotspare.io/hotspare/internal/pool"
)

// LeaseName is the name of the Lease that replicas use for leader election.
const LeaseName = "hotspare-manager"

// Timing of the leader election. A leader that has not renewed the Lease for leaseDuration loses it
// to another replica; the leader itself gives up before that, after renewDeadline.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// Replica configures how a manager coexists with other replicas on its hub, and how it serves
// metrics. The zero value has no other replicas and serves no metrics.
type Replica struct {
	// LeaseNamespace is the namespace of the Lease that the leader holds: the controllers of the
	// other replicas wait. If it is empty, there are no other replicas.
	LeaseNamespace string
	// Scrapes is where metrics are served; nil serves none. A replica that is not the leader serves
	// only the metrics of its process, so that nothing is counted twice.
	Scrapes net.Listener
	// Guard wraps the metrics handler and rejects users without permission; nil admits every
	// request for a local name of this computer.
	Guard func(http.Handler) (http.Handler, error)
}

// withLeaderElection adds the leader election to the options of a manager. A leader that stops
// releases the Lease: its program must then exit, too, because writes may still be in flight.
func (r Replica) withLeaderElection(o ctrl.Options) ctrl.Options {
	if r.LeaseNamespace == "" {
		return o
	}
	lease, renew, retry := leaseDuration, renewDeadline, retryPeriod
	o.LeaderElection, o.LeaderElectionReleaseOnCancel = true, true
	o.LeaderElectionNamespace, o.LeaderElectionID = r.LeaseNamespace, LeaseName
	o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = &lease, &renew, &retry
	return o
}

// serveMetrics serves the metrics of this manager, together with the metrics that
// controller-runtime collects for its whole process. controller-runtime's own server serves only
// the latter, and does not report its port.
func (r Replica) serveMetrics(ctx context.Context, mgr ctrl.Manager, registry *prometheus.Registry) error {
	if r.Scrapes == nil {
		return nil
	}
	look := func() (map[types.NamespacedName]pool.Snapshot, error) {
		if !isLeader(mgr) {
			return nil, nil
		}
		return clusterpool.ListSnapshots(ctx, mgr.GetClient(), clock.RealClock{}.Now())
	}
	fleet := func() (map[types.NamespacedName]metrics.Fleet, error) {
		if !isLeader(mgr) {
			return nil, nil
		}
		return serviceinstance.CountFleets(ctx, mgr.GetClient())
	}
	inventories := func() (map[types.NamespacedName]metrics.Inventory, error) {
		if !isLeader(mgr) {
			return nil, nil
		}
		return clusterpool.CountInventories(ctx, mgr.GetClient())
	}
	policies := func() (map[types.NamespacedName]v1alpha1.PoolPolicyStatus, error) {
		if !isLeader(mgr) {
			return nil, nil
		}
		return poolpolicy.ListPolicies(ctx, mgr.GetClient())
	}
	for _, gauges := range []prometheus.Collector{
		metrics.NewLeaderGauge(func() bool { return isLeader(mgr) }),
		metrics.NewPoolGauges(look), metrics.NewFleetGauges(fleet), metrics.NewInventoryGauges(inventories),
		metrics.NewPolicyGauges(policies),
	} {
		if err := registry.Register(gauges); err != nil {
			return err
		}
	}
	handler := listen.RequireLocalHost(metrics.NewHandler(registry, runtimemetrics.Registry))
	if r.Guard != nil {
		handler = metrics.NewHandler(registry, runtimemetrics.Registry)
		var err error
		if handler, err = r.Guard(handler); err != nil {
			return fmt.Errorf("protecting the metrics: %w", err)
		}
	}
	return mgr.Add(metrics.NewServer(r.Scrapes, handler))
}

// isLeader reports whether mgr runs the controllers. Only the leader reports the gauges.
func isLeader(mgr ctrl.Manager) bool {
	select {
	case <-mgr.Elected():
		return true
	default:
		return false
	}
}
