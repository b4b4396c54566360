// Package install is the contract between hotspare and the executors that create clusters.
//
// It is the contract of openshift-install, made idempotent: metadata comes first, so that whatever
// a create leaves behind can be destroyed from metadata alone.
package install

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// ClusterTarget identifies a cluster independently of the attempt. It contains what the cluster's
// destruction also needs.
type ClusterTarget struct {
	// Cluster is the ClusterDeployment.
	Cluster types.NamespacedName
	UID     types.UID
	// PoolNamespace is the namespace of the cluster's pool; empty for a cluster without a pool.
	PoolNamespace string
	// Deleting is true while the ClusterDeployment is being deleted.
	Deleting bool
	// Platform is the platform of the cluster; it names the credentials.
	Platform hivev1.Platform
	// Provisioning is spec.provisioning; zero for a cluster that hotspare did not create.
	Provisioning hivev1.Provisioning
	// PullSecret names the Secret for pulling images; empty if there is none.
	PullSecret string
	// ReleaseImage is the release image of the image set; empty when it is no longer known.
	ReleaseImage string
}

// Request is a request for one attempt to create a cluster. Requests with the same Attempt of the
// same cluster are the same attempt, even when repeated.
type Request struct {
	ClusterTarget
	// Attempt counts from 0. Name is the name of its ClusterProvision.
	Attempt int
	Name    string
	// Config is the install-config.yaml, complete and valid. It contains secrets.
	Config []byte
	// ManifestPatches are patches for the manifests that the installer creates, as encoded by package
	// config; nil for none. An executor whose installer creates no manifests ignores them.
	ManifestPatches []byte
	// Version is the version of the image set, or empty.
	Version string
}

// NotLaunchedError is the error that an executor returns while the installer cannot start, for
// example because its pod cannot be scheduled or its image cannot be pulled.
type NotLaunchedError struct{ Err error }

// Error returns why the installer cannot start, and what to do about it.
func (e *NotLaunchedError) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error, whose fault.Kind says when to retry.
func (e *NotLaunchedError) Unwrap() error { return e.Err }

// UnauthorizedError is the error that an executor returns while the platform rejects its
// credentials.
type UnauthorizedError struct{ Err error }

// Error returns the platform's answer, and what to do about it.
func (e *UnauthorizedError) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error, whose fault.Kind says when to retry.
func (e *UnauthorizedError) Unwrap() error { return e.Err }

// PrepareFailedError is the error that Prepare returns when the installer has failed to prepare an attempt,
// until the installer succeeds.
type PrepareFailedError struct{ Err error }

// Error returns why the installer has failed.
func (e *PrepareFailedError) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error, whose fault.Kind says when to retry.
func (e *PrepareFailedError) Unwrap() error { return e.Err }

// Metadata identifies what an attempt creates, as metadata.json does. Raw is that file.
type Metadata struct {
	ClusterID string
	InfraID   string
	Raw       []byte
}

// Phase is the progress of an attempt or a destruction.
type Phase string

// An attempt is Running until it has Succeeded or Failed.
const (
	Running   Phase = "Running"
	Succeeded Phase = "Succeeded"
	Failed    Phase = "Failed"
)

// Result is the result of an attempt so far.
type Result struct {
	Phase Phase
	// Log is the end of the installer's log, without secrets; set when Failed.
	Log string
	// Reason is a one-word reason for a condition; set when Failed.
	Reason string

	// InstallerImage and CLIImage are set as soon as an executor that uses them knows them.
	InstallerImage, CLIImage string

	// The remaining fields are set when Succeeded.
	Kubeconfig    []byte
	Password      string
	APIURL        string
	WebConsoleURL string
	Version       string
}

// Executor creates and destroys clusters on some platforms. Calls return immediately and may be
// repeated; the work continues in the background and survives a restart of hotspare without
// creating a second cluster.
type Executor interface {
	// Prepare validates the install-config and names what Install will create. It creates nothing that
	// could leak. It returns fault.Wait while the names are not known yet. If it is repeated for an
	// attempt whose metadata was not recorded, it may return other names. An invalid config is
	// fault.Denied, and the message names the path.
	Prepare(ctx context.Context, req Request) (Metadata, error)
	// Install starts the attempt, or returns its progress.
	Install(ctx context.Context, req Request, md Metadata) (Result, error)
	// Destroy starts to destroy whatever carries md's infraID, or returns the progress: Running,
	// Succeeded (nothing is left), or Failed with a Log. It needs neither the request nor what the
	// attempt has left on the hub.
	Destroy(ctx context.Context, place ClusterTarget, md Metadata) (Result, error)
}

// Registry maps a platform's key in spec.platform to its executor.
type Registry map[string]Executor
