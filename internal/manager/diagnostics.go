package manager

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	diagnosticscontroller "hotspare.io/hotspare/internal/controller/diagnostics"
	"hotspare.io/hotspare/internal/diagnostics"
	"hotspare.io/hotspare/internal/diagnostics/collect"
	"hotspare.io/hotspare/internal/metrics"
	"hotspare.io/hotspare/internal/remote"
)

// Diagnostics says where bundles about failed clusters are stored, and what they hold in addition.
type Diagnostics struct {
	Store diagnosticscontroller.Store
	// FindLogs returns logs of a cluster that are files of this computer; nil finds none.
	FindLogs func(ctx context.Context, cd *hivev1.ClusterDeployment) ([]collect.Log, error)
}

// setUpDiagnostics adds the controller that collects diagnostics, if they are stored anywhere.
func setUpDiagnostics(mgr ctrl.Manager, d *Diagnostics, spokes *remote.Connector, recorder events.EventRecorder, counts *metrics.Metrics) error {
	if d == nil {
		return nil
	}
	collector := &collect.Collector{
		Hub: mgr.GetAPIReader(), FindLogs: d.FindLogs, Limits: diagnostics.DefaultLimits,
		Connect: func(ctx context.Context, cd *hivev1.ClusterDeployment) (collect.Spoke, func(), string, error) {
			secret := types.NamespacedName{Namespace: cd.Namespace, Name: cd.Spec.ClusterMetadata.AdminKubeconfigSecretRef.Name}
			r, trouble, err := spokes.Reader(ctx, secret)
			if err != nil || trouble != "" {
				return nil, nil, trouble, err
			}
			return r, r.Close, "", nil
		},
	}
	r := &diagnosticscontroller.Reconciler{
		Client: newFieldOwnerClient(mgr), Collect: collector.Bundle, Store: d.Store,
		Clock: clock.RealClock{}, Events: recorder, Metrics: counts,
	}
	return r.SetupWithManager(mgr)
}
