// Package install is the contract between hotspare and what makes clusters.
//
// It is the contract of openshift-install, made idempotent: metadata first, so
// that whatever a create leaves behind can be destroyed from metadata alone.
package install

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// Place is what does not change from one attempt at a cluster to the next, and what
// its destruction needs as well.
type Place struct {
	// Cluster is the ClusterDeployment.
	Cluster types.NamespacedName
	UID     types.UID
	// Deleting is whether the ClusterDeployment is being deleted.
	Deleting bool
	// Platform is where the cluster is, and names the credentials for it.
	Platform hivev1.Platform
	// Provisioning is spec.provisioning; zero for a cluster that was not made here.
	Provisioning hivev1.Provisioning
	// PullSecret names the Secret that images are pulled with; empty if there is none.
	PullSecret string
	// ReleaseImage is that of the image set; empty when it is not known any more.
	ReleaseImage string
}

// Request asks for one attempt at making a cluster. An equal Attempt of the
// same cluster is the same attempt, however often it is asked for.
type Request struct {
	Place
	// Attempt counts from 0. Name is that of its ClusterProvision.
	Attempt int
	Name    string
	// Config is the install-config.yaml, complete and valid. It holds secrets.
	Config []byte
	// ManifestPatches are for the manifests that the installer makes, as package config
	// encodes them; nil for none. An executor whose installer makes none ignores them.
	ManifestPatches []byte
	// Version is that of the image set, or empty.
	Version string
}

// NotLaunchedError is the error of an executor while the installer cannot begin: its pod
// finds no node, say, or its image cannot be pulled.
type NotLaunchedError struct{ Err error }

// Error is what keeps the installer from beginning, and what to do about it.
func (e *NotLaunchedError) Error() string { return e.Err.Error() }

// Unwrap returns the error, whose fault.Kind says when to ask again.
func (e *NotLaunchedError) Unwrap() error { return e.Err }

// UnauthorizedError is the error of an executor while the platform refuses its credentials.
type UnauthorizedError struct{ Err error }

// Error is what the platform answered, and what to do about it.
func (e *UnauthorizedError) Error() string { return e.Err.Error() }

// Unwrap returns the error, whose fault.Kind says when to ask again.
func (e *UnauthorizedError) Unwrap() error { return e.Err }

// Metadata names what an attempt makes, as metadata.json does. Raw is that file.
type Metadata struct {
	ClusterID string
	InfraID   string
	Raw       []byte
}

// Phase is how far an attempt, or a destruction, is.
type Phase string

// An attempt is Running until it has Succeeded or Failed.
const (
	Running   Phase = "Running"
	Succeeded Phase = "Succeeded"
	Failed    Phase = "Failed"
)

// Result is what an attempt has come to.
type Result struct {
	Phase Phase
	// Log is the end of the installer's log, secrets scrubbed; set when Failed.
	Log string
	// Reason is one word for a condition, set when Failed.
	Reason string

	// InstallerImage and CLIImage are set as soon as an executor that uses them knows them.
	InstallerImage, CLIImage string

	// The rest is set when Succeeded.
	Kubeconfig    []byte
	Password      string
	APIURL        string
	WebConsoleURL string
	Version       string
}

// Executor makes and destroys clusters of some platforms. Calls return at once
// and may be repeated; the work goes on in the background and survives a
// restart of hotspare without making a second cluster.
type Executor interface {
	// Prepare validates the install-config and names what Install will make. It
	// makes nothing that could leak. It is fault.Wait while that is not known yet. Repeated for an attempt whose metadata was
	// not recorded it may return other names. An invalid config is fault.Denied
	// and its message names the path.
	Prepare(ctx context.Context, req Request) (Metadata, error)
	// Install begins the attempt, or tells how far it is.
	Install(ctx context.Context, req Request, md Metadata) (Result, error)
	// Destroy begins to undo whatever carries md's infraID, or tells how far
	// that is: Running, Succeeded (nothing is left), or Failed with a Log.
	// It needs neither the request nor what the attempt has left on the hub.
	Destroy(ctx context.Context, place Place, md Metadata) (Result, error)
}

// Registry finds the executor for a platform by its key in spec.platform.
type Registry map[string]Executor
