// Package job makes and destroys clusters with the installer of their release, in
// Jobs on the hub.
//
// An attempt is a state Secret (package state) and up to three Jobs: one that looks
// up the installer's image in the release image, one that has the installer name what
// it will make, one that makes it. A destruction is another such Secret and its Job.
// What runs in them is package pod. The names follow from the cluster and the
// attempt, so nothing is made twice, whoever asks how often.
//
// A destruction begins when no pod of the attempt can make anything any more: its
// state says Abandoned, its Job is deleted and its pods have ended.
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
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/install/job/state"
	"hotspare.io/hotspare/internal/install/scrub"
)

// Platforms are those that an installer of OpenShift makes clusters on.
func Platforms() []string {
	return []string{"aws", "azure", "baremetal", "gcp", "ibmcloud", "none", "nutanix", "openstack", "vsphere"}
}

// Options say how an Executor works.
type Options struct {
	// Image is hotspare's own: the Jobs take its program from there, which is at
	// Program, and has the command install-manager. Empty: /hotspare.
	Image, Program string
	// InstallerImage has the installer of all clusters. Empty: each is made with that
	// of its release.
	InstallerImage string
	// RunAsUser is the user of the pods. Nil is good where the hub chooses one, as
	// OpenShift does, and where images do.
	RunAsUser *int64
	// CertificateAuthorities has CA certificates that all installers trust in addition to
	// those of their image; nil has none.
	CertificateAuthorities *cabundle.Source
	// Limits; 0 is the default of each.
	PrepareLimit, InstallLimit, DestroyLimit time.Duration
	// Retry is how long after a failure something is prepared again.
	Retry time.Duration
	Clock clock.PassiveClock
}

const (
	defaultPrepareLimit = 15 * time.Minute
	defaultInstallLimit = 2 * time.Hour
	defaultDestroyLimit = time.Hour
	defaultRetry        = 10 * time.Minute

	// poll is how often a Job is looked at. The state wakes us when something has come
	// of it; a Job that comes to nothing does not.
	poll = 10 * time.Second
)

// Executor makes and destroys clusters in Jobs.
type Executor struct {
	Options
	hub client.Client
}

var _ install.Executor = (*Executor)(nil)

// New returns an executor on the hub that c reads and writes, past any cache.
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

// Prepare has the installer say what it will make. Until it has, the error is
// fault.Wait and tells what is waited for.
func (e *Executor) Prepare(ctx context.Context, req install.Request) (install.Metadata, error) {
	w := e.attempt(req)
	st, err := w.Read(ctx)
	if apierrors.IsNotFound(err) {
		st, err = e.beginAttempt(ctx, w, req)
	}
	if err != nil {
		return install.Metadata{}, err
	}
	// One that was prepared keeps its names: whoever asks again may not know that
	// they have been recorded.
	if len(st.Metadata) > 0 {
		return named(st.Metadata)
	}
	if st.Phase != state.New {
		return install.Metadata{}, e.again(ctx, w, req, st)
	}
	if !current(st, req) {
		return install.Metadata{}, e.restart(ctx, w, req)
	}
	image, err := e.image(ctx, w, st)
	if err != nil {
		return install.Metadata{}, err
	}
	return install.Metadata{}, e.awaitPrepared(ctx, w, image)
}

// beginAttempt makes the state of an attempt, if its cluster has what it needs.
func (e *Executor) beginAttempt(ctx context.Context, w work, req install.Request) (state.State, error) {
	if err := e.checkSecrets(ctx, w.place); err != nil {
		return state.State{}, err
	}
	if err := w.begin(ctx, state.State{InstallConfig: req.Config, ManifestPatches: req.ManifestPatches}); err != nil {
		return state.State{}, err
	}
	return w.Read(ctx)
}

// current reports whether an attempt is of what is asked for.
func current(st state.State, req install.Request) bool {
	return bytes.Equal(st.InstallConfig, req.Config) && bytes.Equal(st.ManifestPatches, req.ManifestPatches)
}

// again tells why an attempt could not be prepared, and after a while, or with
// another install-config, prepares it again.
func (e *Executor) again(ctx context.Context, w work, req install.Request, st state.State) error {
	seen, err := w.look(ctx, prepare)
	if err != nil {
		return err
	}
	left := e.Retry
	if seen.ended { // a pod that has told how it went may take a moment to end
		left -= e.Clock.Since(seen.endedAt)
	}
	if !seen.exists || left <= 0 || !current(st, req) {
		return e.restart(ctx, w, req)
	}
	if st.Reason == state.ReasonInvalid {
		return fault.Denying("%s", said(st.Log))
	}
	err = fault.Waiting(left, "the installer could not be asked what it will make, and is asked again: %s", said(st.Log))
	if st.Reason == hivev1.ReasonInvalidCredentials {
		return &install.UnauthorizedError{Err: err}
	}
	return err
}

// restart prepares an attempt anew of which nothing was recorded.
func (e *Executor) restart(ctx context.Context, w work, req install.Request) error {
	_, err := w.Edit(ctx, func(s *state.State) error {
		if len(s.Metadata) > 0 {
			return state.ErrNoChange
		}
		*s = state.State{InstallConfig: req.Config, ManifestPatches: req.ManifestPatches, InstallerImage: s.InstallerImage, CLIImage: s.CLIImage}
		return nil
	})
	if err == nil {
		err = w.drop(ctx, prepare)
	}
	if err != nil {
		return err
	}
	return fault.Waiting(time.Second, "the installer is asked again what it will make")
}

func (e *Executor) awaitPrepared(ctx context.Context, w work, image string) error {
	seen, err := w.look(ctx, prepare)
	switch {
	case err != nil:
		return err
	case !seen.exists && seen.living == 0:
		if err := e.run(ctx, w, prepare, image, ""); err != nil {
			return err
		}
		return seen.wait("asks the installer what it will make")
	case !seen.ended:
		return seen.wait("asks the installer what it will make")
	}
	_, err = w.Edit(ctx, func(s *state.State) error {
		if s.Phase != state.New {
			return state.ErrNoChange
		}
		s.Phase, s.Reason, s.Log = state.Failed, state.ReasonPrepare, seen.why()
		return nil
	})
	if err != nil {
		return err
	}
	return fault.Waiting(time.Second, "%s", seen.why())
}

// Install has the installer make what md names.
func (e *Executor) Install(ctx context.Context, req install.Request, md install.Metadata) (install.Result, error) {
	w := e.attempt(req)
	st, err := w.Read(ctx)
	if apierrors.IsNotFound(err) {
		return lost(fmt.Sprintf("Secret %s, the state of the attempt, is gone: what it made is destroyed, and another attempt follows.", w.Key.Name)), nil
	}
	if err != nil {
		return install.Result{}, err
	}
	if have := infraIDOf(st.Metadata); have != md.InfraID {
		return lost(fmt.Sprintf("Secret %s, the state of the attempt, names %q and not %s: what that made is destroyed, and another attempt follows.",
			w.Key.Name, have, md.InfraID)), nil
	}
	if !st.Phase.Over() {
		st, err = e.create(ctx, w, md, st)
	}
	return result(st, req.Version), err
}

func lost(why string) install.Result {
	return install.Result{Phase: install.Failed, Reason: state.ReasonLost, Log: why}
}

// create sees to it that the Job runs, and judges one that has ended without a word.
func (e *Executor) create(ctx context.Context, w work, md install.Metadata, st state.State) (state.State, error) {
	seen, err := w.look(ctx, create)
	switch {
	case err != nil:
		return st, err
	case !seen.exists && seen.living > 0:
		return st, fault.Waiting(poll, "Job %s is gone, and a pod of it has not ended yet", seen.name)
	case !seen.exists && (st.Phase == state.Prepared || st.Bootstrapped):
		image, err := e.image(ctx, w, st)
		if err != nil {
			return st, err
		}
		return st, e.run(ctx, w, create, image, md.InfraID)
	case seen.exists && !seen.ended:
		return st, errors.Join(release(ctx, w, st, seen), seen.trouble)
	}
	why, reason := seen.why(), state.ReasonInterrupted
	switch {
	case !seen.exists:
		why = fmt.Sprintf("Job %s was deleted while it created the cluster: what it made is destroyed.", seen.name)
	case st.Phase == state.Prepared:
		reason = "InstallerNotStarted"
	case seen.late:
		reason = state.ReasonTimeout
	}
	return w.Edit(ctx, func(s *state.State) error {
		if s.Phase.Over() || s.Holder != st.Holder {
			return state.ErrNoChange // its pod has had the last word
		}
		s.Fail(reason, why)
		return nil
	})
}

// release tells the pods of an attempt that its holder has ended, if that is known:
// they would have to wait for its silence.
func release(ctx context.Context, w work, st state.State, s seen) error {
	pod, _, _ := strings.Cut(st.Holder, "/")
	if pod == "" || slices.Contains(s.alive, pod) {
		return nil
	}
	_, err := w.Edit(ctx, func(now *state.State) error {
		if now.Holder != st.Holder {
			return state.ErrNoChange
		}
		now.Holder = ""
		return nil
	})
	return err
}

// result is a State as the controller wants to hear it.
func result(st state.State, version string) install.Result {
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
		r.Phase, r.Reason, r.Log = install.Failed, st.Reason, scrub.Text(st.Log)
		if st.Phase == state.Abandoned {
			r.Reason, r.Log = state.ReasonInterrupted, "The attempt was given up to be destroyed."
		}
	}
	return r
}

// infraIDOf is the infraID that a metadata.json names; "" if it names none.
func infraIDOf(raw []byte) string {
	md, err := named(raw)
	if err != nil {
		return ""
	}
	return md.InfraID
}

// named reads the names out of a metadata.json.
func named(raw []byte) (install.Metadata, error) {
	var names struct{ ClusterID, InfraID string }
	if err := json.Unmarshal(raw, &names); err != nil {
		return install.Metadata{}, fmt.Errorf("reading metadata.json: %w", err)
	}
	return install.Metadata{ClusterID: names.ClusterID, InfraID: names.InfraID, Raw: raw}, nil
}
