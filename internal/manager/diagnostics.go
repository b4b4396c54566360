package manager

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	diagnosticscontroller "hotspare.io/hotspare/internal/controller/diagnostics"
	"hotspare.io/hotspare/internal/diagnostics"
	"hotspare.io/hotspare/internal/diagnostics/bucket"
	"hotspare.io/hotspare/internal/diagnostics/collect"
	"hotspare.io/hotspare/internal/diagnostics/folder"
	"hotspare.io/hotspare/internal/diagnostics/retention"
	"hotspare.io/hotspare/internal/metrics"
	"hotspare.io/hotspare/internal/remote"
)

// Diagnostics says where bundles about failed clusters are stored, and what they hold in addition.
type Diagnostics struct {
	Store diagnosticscontroller.Store
	// FindLogs returns logs of a cluster that are files of this computer; nil finds none.
	FindLogs func(ctx context.Context, cd *hivev1.ClusterDeployment) ([]collect.Log, error)
}

// DiagnosticsPlace is where bundles are stored: a folder, or a bucket.
type DiagnosticsPlace struct {
	// Folder is an absolute path; empty for a bucket.
	Folder string
	Bucket bucket.Location
}

// ParseDiagnosticsPlace parses the path of a folder, or the URL of a bucket such as s3://bucket/prefix. The text must
// not be empty. Errors do not quote a URL, which may contain a password.
func ParseDiagnosticsPlace(text string) (DiagnosticsPlace, error) {
	if strings.HasPrefix(text, bucket.Scheme) {
		l, err := bucket.ParseLocation(text)
		return DiagnosticsPlace{Bucket: l}, err
	}
	if scheme, _, found := strings.Cut(text, "://"); found {
		return DiagnosticsPlace{}, fmt.Errorf("the scheme %.20q is unknown: specify a folder, or a bucket such as s3://bucket/prefix?region=eu-west-1", scheme)
	}
	path, err := filepath.Abs(text)
	if err != nil {
		return DiagnosticsPlace{}, fmt.Errorf("the folder has no absolute path: %w", err)
	}
	return DiagnosticsPlace{Folder: path}, nil
}

// Open returns the store at the place, which keeps bundles within the default limits. It creates nothing.
func (p DiagnosticsPlace) Open(ctx context.Context) (diagnosticscontroller.Store, error) {
	if p.Folder != "" {
		return folder.Folder{Dir: p.Folder, Limits: retention.DefaultLimits}, nil
	}
	return bucket.Open(ctx, p.Bucket, retention.DefaultLimits)
}

// setUpDiagnostics adds the controller that collects diagnostics, and what deletes old ones, if they are stored anywhere.
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
	if err := r.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("setting up the controller of diagnostics: %w", err)
	}
	if err := mgr.Add(&diagnosticscontroller.Pruner{Store: d.Store, Clock: clock.RealClock{}}); err != nil {
		return fmt.Errorf("adding the deletion of old diagnostics: %w", err)
	}
	return nil
}
