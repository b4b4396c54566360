// Package job creates and destroys clusters with the installer of their release, in Jobs on the
// hub.
//
// An attempt is a state Secret (package state) and up to three Jobs: one that looks up the
// installer's image in the release image, one that runs the installer to name what it will create,
// and one that creates it. A destruction is another state Secret and its Job. The Jobs run package
// pod. Names are derived from the cluster and the attempt, so repeated calls create nothing twice.
//
// A destruction begins when no pod of the attempt can create anything any more: the attempt's state
// is Abandoned, its Job is deleted and its pods have ended.
package job

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cabundle"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/hubjob"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/install/job/state"
	"hotspare.io/hotspare/internal/redact"
)

// SupportedPlatforms returns the platforms on which an installer of OpenShift creates clusters.
func SupportedPlatforms() []string {
	return []string{"aws", "azure", "baremetal", "gcp", "ibmcloud", "none", "nutanix", "openstack", "vsphere"}
}

// Options configures an Executor.
type Options struct {
	// Image is hotspare's own image. The Jobs copy the program from it, from the path Program; the
	// program must have the command install-manager. Empty Program: /hotspare.
	Image, Program string
	// InstallerImage contains the installer for all clusters. Empty: each cluster uses the installer
	// of its release.
	InstallerImage string
	// RunAsUser is the user of the pods. Nil works where the hub assigns a user, as OpenShift does,
	// and where the images set one.
	RunAsUser *int64
	// CertificateAuthorities has CA certificates that all installers trust in addition to those of
	// their image; nil has none.
	CertificateAuthorities *cabundle.Source
	// Time limits; 0 selects the default of each.
	PrepareLimit, InstallLimit, DestroyLimit time.Duration
	// Retry is how long after a failure a preparation is retried.
	Retry time.Duration
	Clock clock.PassiveClock
}

const (
	defaultPrepareLimit = 15 * time.Minute
	defaultInstallLimit = 2 * time.Hour
	defaultDestroyLimit = time.Hour
	defaultRetry        = 10 * time.Minute
)

// Executor creates and destroys clusters in Jobs.
type Executor struct {
	Options
	hub client.Client
}

var _ install.Executor = (*Executor)(nil)

// New returns an executor for the hub that c reads and writes. c must not read from a cache.
func New(c client.Client, o Options) *Executor {
	for limit, byDefault := range map[*time.Duration]time.Duration{
		&o.PrepareLimit: defaultPrepareLimit, &o.InstallLimit: defaultInstallLimit,
		&o.DestroyLimit: defaultDestroyLimit, &o.Retry: defaultRetry,
	} {
		if *limit == 0 {
			*limit = byDefault
		}
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Program == "" {
		o.Program = "/hotspare"
	}
	return &Executor{Options: o, hub: c}
}

// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;create;patch;delete
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=create
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;create;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;rolebindings,verbs=create

// Prepare runs the installer to name what it will create. Until the names are known, the error is
// fault.Wait and says what the executor waits for.
func (e *Executor) Prepare(ctx context.Context, req install.Request) (install.Metadata, error) {
	w := e.installOperation(req)
	st, err := w.ReadState(ctx)
	if apierrors.IsNotFound(err) {
		st, err = e.createAttempt(ctx, w, req)
	}
	if err != nil {
		return install.Metadata{}, err
	}
	// A prepared attempt keeps its names: the caller may not know that they have been recorded.
	if len(st.Metadata) > 0 {
		return parseMetadata(st.Metadata)
	}
	if st.Phase != state.New {
		return install.Metadata{}, e.retryFailedPrepare(ctx, w, req, st)
	}
	if !matchesRequest(st, req) {
		return install.Metadata{}, e.restartPrepare(ctx, w, req)
	}
	image, err := e.resolveInstallerImage(ctx, w, st)
	if err != nil {
		return install.Metadata{}, err
	}
	return install.Metadata{}, e.reconcilePrepareJob(ctx, w, image)
}

// createAttempt creates the state of an attempt if its cluster has what it needs.
func (e *Executor) createAttempt(ctx context.Context, w operation, req install.Request) (state.State, error) {
	if err := e.checkSecrets(ctx, w.target); err != nil {
		return state.State{}, err
	}
	if err := w.createStateSecret(ctx, state.State{InstallConfig: req.Config, ManifestPatches: req.ManifestPatches}); err != nil {
		return state.State{}, err
	}
	return w.ReadState(ctx)
}

// matchesRequest reports whether the state of an attempt belongs to the request.
func matchesRequest(st state.State, req install.Request) bool {
	return bytes.Equal(st.InstallConfig, req.Config) && bytes.Equal(st.ManifestPatches, req.ManifestPatches)
}

// retryFailedPrepare returns an error with the reason why an attempt could not be prepared. After a
// delay, or with another install-config, it prepares the attempt again.
func (e *Executor) retryFailedPrepare(ctx context.Context, w operation, req install.Request, st state.State) error {
	seen, err := w.observeJob(ctx, prepare)
	if err != nil {
		return err
	}
	left := e.Retry
	if seen.Ended { // a pod that has recorded its outcome may take a moment to end
		left -= e.Clock.Since(seen.EndedAt)
	}
	if !seen.Exists || left <= 0 || !matchesRequest(st, req) {
		return e.restartPrepare(ctx, w, req)
	}
	if st.Reason == state.ReasonInvalid {
		return fault.NewDenied("%s", hubjob.LastLogMessage(st.Log))
	}
	err = fault.NewWait(left, "preparing the install failed and is retried: %s", hubjob.LastLogMessage(st.Log))
	if st.Reason == hivev1.ReasonInvalidCredentials {
		return &install.UnauthorizedError{Err: err}
	}
	return err
}

// restartPrepare prepares an attempt again if nothing of it was recorded.
func (e *Executor) restartPrepare(ctx context.Context, w operation, req install.Request) error {
	_, err := w.EditState(ctx, func(s *state.State) error {
		if len(s.Metadata) > 0 {
			return state.ErrNoChange
		}
		*s = state.State{InstallConfig: req.Config, ManifestPatches: req.ManifestPatches, InstallerImage: s.InstallerImage, CLIImage: s.CLIImage}
		return nil
	})
	if err == nil {
		err = w.deleteJob(ctx, prepare)
	}
	if err != nil {
		return err
	}
	return fault.NewWait(time.Second, "the install is prepared again")
}

func (e *Executor) reconcilePrepareJob(ctx context.Context, w operation, image string) error {
	seen, err := w.observeJob(ctx, prepare)
	switch {
	case err != nil:
		return err
	case !seen.Exists && len(seen.LivePods) == 0:
		if err := e.runJob(ctx, w, prepare, image, ""); err != nil {
			return err
		}
		return seen.NewWaitingError("is preparing the install")
	case !seen.Ended:
		return seen.NewWaitingError("is preparing the install")
	}
	_, err = w.EditState(ctx, func(s *state.State) error {
		if s.Phase != state.New {
			return state.ErrNoChange
		}
		s.Phase, s.Reason, s.Log = state.Failed, state.ReasonPrepare, seen.FailureMessage()
		return nil
	})
	if err != nil {
		return err
	}
	return fault.NewWait(time.Second, "%s", seen.FailureMessage())
}

// Install runs the installer to create what md names.
func (e *Executor) Install(ctx context.Context, req install.Request, md install.Metadata) (install.Result, error) {
	w := e.installOperation(req)
	st, err := w.ReadState(ctx)
	if apierrors.IsNotFound(err) {
		return lostResult(fmt.Sprintf("Secret %s with the state of the attempt was deleted: the resources of the attempt are destroyed, and another attempt follows.", w.Key.Name)), nil
	}
	if err != nil {
		return install.Result{}, err
	}
	if have := parseInfraID(st.Metadata); have != md.InfraID {
		return lostResult(fmt.Sprintf("Secret %s with the state of the attempt has infraID %q instead of %s: the resources of the attempt are destroyed, and another attempt follows.",
			w.Key.Name, have, md.InfraID)), nil
	}
	if !st.Phase.IsFinal() {
		st, err = e.reconcileCreateJob(ctx, w, md, st)
	}
	return installResult(st, req.Version), err
}

func lostResult(why string) install.Result {
	return install.Result{Phase: install.Failed, Reason: state.ReasonLost, Log: why}
}

// reconcileCreateJob ensures that the Job runs, and records a failure for a Job that has ended
// without an outcome in the state.
func (e *Executor) reconcileCreateJob(ctx context.Context, w operation, md install.Metadata, st state.State) (state.State, error) {
	seen, err := w.observeJob(ctx, create)
	switch {
	case err != nil:
		return st, err
	case !seen.Exists && len(seen.LivePods) > 0:
		return st, fault.NewWait(hubjob.PollInterval, "Job %s was deleted, and one of its pods has not ended yet", seen.Name)
	case !seen.Exists && (st.Phase == state.Prepared || st.Bootstrapped):
		image, err := e.resolveInstallerImage(ctx, w, st)
		if err != nil {
			return st, err
		}
		return st, e.runJob(ctx, w, create, image, md.InfraID)
	case seen.Exists && !seen.Ended:
		return st, errors.Join(clearEndedHolder(ctx, w, st, seen), seen.LaunchError)
	}
	why, reason := seen.FailureMessage(), state.ReasonInterrupted
	switch {
	case !seen.Exists:
		why = fmt.Sprintf("Job %s was deleted while it created the cluster: the resources of the attempt are destroyed.", seen.Name)
	case st.Phase == state.Prepared:
		reason = "InstallerNotStarted"
	case seen.TimedOut:
		reason = state.ReasonTimeout
	}
	return w.EditState(ctx, func(s *state.State) error {
		if s.Phase.IsFinal() || s.Holder != st.Holder {
			return state.ErrNoChange // its pod has already written the outcome
		}
		s.MarkFailed(reason, why)
		return nil
	})
}

// clearEndedHolder records in the state that the holder has ended, if that is known. Otherwise the
// other pods of the attempt would have to wait until its heartbeat expires.
func clearEndedHolder(ctx context.Context, w operation, st state.State, s hubjob.Status) error {
	pod, _, _ := strings.Cut(st.Holder, "/")
	if pod == "" || slices.Contains(s.LivePods, pod) {
		return nil
	}
	_, err := w.EditState(ctx, func(now *state.State) error {
		if now.Holder != st.Holder {
			return state.ErrNoChange
		}
		now.Holder = ""
		return nil
	})
	return err
}

// installResult converts a State to the result for the controller.
func installResult(st state.State, version string) install.Result {
	r := install.Result{Phase: install.Running, InstallerImage: st.InstallerImage, CLIImage: st.CLIImage}
	switch st.Phase {
	case state.Succeeded:
		r.Phase = install.Succeeded
		r.Kubeconfig, r.Password = st.Kubeconfig, st.Password
		r.APIURL, r.WebConsoleURL, r.Version = st.APIURL, st.WebConsoleURL, st.Version
		if version != "" {
			r.Version = version
		}
	case state.Failed, state.Abandoned:
		r.Phase, r.Reason, r.Log = install.Failed, st.Reason, redact.Text(st.Log)
		if st.Phase == state.Abandoned {
			r.Reason, r.Log = state.ReasonInterrupted, "The attempt was abandoned because its resources must be destroyed."
		}
	}
	return r
}

// parseInfraID returns the infraID that a metadata.json names; "" if it names none.
func parseInfraID(raw []byte) string {
	md, err := parseMetadata(raw)
	if err != nil {
		return ""
	}
	return md.InfraID
}

// parseMetadata reads the names out of a metadata.json.
func parseMetadata(raw []byte) (install.Metadata, error) {
	var names struct{ ClusterID, InfraID string }
	if err := json.Unmarshal(raw, &names); err != nil {
		return install.Metadata{}, fmt.Errorf("reading metadata.json: %w", err)
	}
	return install.Metadata{ClusterID: names.ClusterID, InfraID: names.InfraID, Raw: raw}, nil
}
