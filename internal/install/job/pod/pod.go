// Package pod runs in an installer's pod: it drives openshift-install and records the progress and
// the outcome in the state Secret.
//
// A pod may die at any point, and two may run at the same time. One rule keeps them from creating
// two clusters: only the process that has changed the attempt from Prepared to Creating runs
// `create cluster`, and only one write can make that change, once. A process that finds the attempt
// Creating does not create: see decideStep.
package pod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"k8s.io/utils/clock"

	"hotspare.io/hotspare/internal/install/job/state"
)

// Options configures a run.
type Options struct {
	// Store is the state of the attempt or of the destruction.
	Store state.Store
	// Pod is the pod's name, for people.
	Pod string
	// Installer is the path of openshift-install. Empty: look it up in PATH.
	Installer string
	// Work is an empty folder that only this pod uses.
	Work string
	// Manifests are folders with manifests to add. Missing folders are ignored.
	Manifests []string
	// Credentials is the folder with the platform's credentials, if there are any.
	Credentials string
	// SSHKey is the private key for the bootstrap machine, if there is one.
	SSHKey string
	// Env is the installer's environment.
	Env []string
	// Out receives the installer's log, scrubbed.
	Out io.Writer
	// Limit is how long the installer may take; 0: no limit.
	Limit time.Duration
	// Grace is how long an installer may take to stop after SIGTERM.
	Grace time.Duration
	// HeartbeatInterval is the interval of a working pod's heartbeats; Lapse is the time without a heartbeat after
	// which another pod counts as dead.
	HeartbeatInterval, HeartbeatTimeout time.Duration
	// Clock is this computer's clock; tests set another one.
	Clock clock.PassiveClock
}

// Default times.
const (
	DefaultGrace = 20 * time.Second
	DefaultBeat  = 30 * time.Second
	DefaultLapse = 3 * time.Minute
)

// finalWriteTimeout bounds the writes of a process that has been stopped.
const finalWriteTimeout = 15 * time.Second

// installerRun is one run of the installer.
type installerRun struct {
	Options
	holder string
	log    *journal
}

func newInstallerRun(o Options) (*installerRun, error) {
	if o.Grace == 0 {
		o.Grace = DefaultGrace
	}
	if o.HeartbeatInterval == 0 {
		o.HeartbeatInterval = DefaultBeat
	}
	if o.HeartbeatTimeout == 0 {
		o.HeartbeatTimeout = DefaultLapse
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Installer == "" {
		o.Installer = "openshift-install"
	}
	p := &installerRun{Options: o, holder: newHolderName(o.Pod)}
	for _, dir := range []string{p.clusterDir(), p.homeDir(), p.tempDir()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("creating a working folder: %w", err)
		}
	}
	secrets, err := collectSecrets(o.Env, o.Credentials)
	if err != nil {
		return nil, err
	}
	p.log = newJournal(o.Out, secrets)
	p.Env, err = credentialsEnv(o.Env, o.Credentials)
	return p, err
}

// clusterDir returns the installer's folder.
func (r *installerRun) clusterDir() string { return filepath.Join(r.Work, "cluster") }
func (r *installerRun) homeDir() string    { return filepath.Join(r.Work, "home") }
func (r *installerRun) tempDir() string    { return filepath.Join(r.Work, "tmp") }

func (r *installerRun) clusterFilePath(name string) string {
	return filepath.Join(r.clusterDir(), name)
}

func (r *installerRun) writeClusterFile(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(r.clusterFilePath(name)), 0o700); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if err := os.WriteFile(r.clusterFilePath(name), content, 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

// contextEndReason returns the reason why a run ended early; "" if nothing ended it.
func contextEndReason(ctx context.Context) string {
	switch {
	case ctx.Err() == nil:
		return ""
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return state.ReasonTimeout
	default:
		return state.ReasonInterrupted
	}
}

// withTimeLimit returns ctx limited to the time that the installer may take.
func (r *installerRun) withTimeLimit(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.Limit == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, r.Limit, fmt.Errorf("not finished within %s: %w", r.Limit, context.DeadlineExceeded))
}

// recordOutcome writes the outcome even if ctx has ended: no other process knows it.
func (r *installerRun) recordOutcome(ctx context.Context, edit func(*state.State) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finalWriteTimeout)
	defer cancel()
	_, err := r.Store.EditState(ctx, edit)
	return err
}
