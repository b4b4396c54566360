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

	"hotspare.io/hotspare/internal/controller/clusterpool"
	"hotspare.io/hotspare/internal/controller/serviceinstance"
	"hotspare.io/hotspare/internal/loopback"
	"hotspare.io/hotspare/internal/metrics"
	"hotspare.io/hotspare/internal/pool"
)

// LeaseName is the Lease by which replicas agree on their leader.
const LeaseName = "hotspare-manager"

// Times of the election. A leader that has been silent for leaseDuration has lost the
// Lease to another; it has given up itself before that, after renewDeadline.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// Replica says how a manager gets on with others on its hub, and with those who watch
// it. The zero value is alone and unwatched.
type Replica struct {
	// LeaseNamespace has the Lease that the leader holds: the controllers of the others
	// wait. Empty: there are no others.
	LeaseNamespace string
	// Scrapes is where metrics are served; nil serves none. A replica that does not lead
	// serves those of its process only, so that nothing is counted twice.
	Scrapes net.Listener
	// Guard stands before the metrics and keeps out who may not see them; nil lets
	// everybody in who asks by a name of this computer.
	Guard func(http.Handler) (http.Handler, error)
}

// withLeaderElection adds the election to the options of a manager. A leader that ends lets go of
// the Lease: its program must end, too, for writes may still be under way.
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

// serveMetrics has the metrics of this manager served, with those that controller-runtime
// gathers from all of its process. controller-runtime's own server knows only
// those, and does not tell its port.
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
	for _, gauges := range []prometheus.Collector{
		metrics.NewLeaderGauge(func() bool { return isLeader(mgr) }),
		metrics.NewGauges(look), metrics.NewFleetGauges(fleet), metrics.NewInventoryGauges(inventories),
	} {
		if err := registry.Register(gauges); err != nil {
			return err
		}
	}
	handler := loopback.RequireLocalHost(metrics.NewHandler(registry, runtimemetrics.Registry))
	if r.Guard != nil {
		handler = metrics.NewHandler(registry, runtimemetrics.Registry)
		var err error
		if handler, err = r.Guard(handler); err != nil {
			return fmt.Errorf("putting a guard before the metrics: %w", err)
		}
	}
	return mgr.Add(metrics.NewServer(r.Scrapes, handler))
}

// isLeader reports whether mgr runs the controllers. The gauges are the leader's to tell.
func isLeader(mgr ctrl.Manager) bool {
	select {
	case <-mgr.Elected():
		return true
	default:
		return false
	}
}
