// Package pod is what runs in an installer's pod: it drives openshift-install and
// tells the state Secret how that goes.
//
// A pod may die anywhere, and there may be two. What keeps them from making two
// clusters is one rule: `create cluster` is run only by the process that has put
// the attempt from Prepared to Creating, which one write can do, once. Whoever
// finds it Creating does not create: see next.
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

// Options say what a pod works with.
type Options struct {
	// Store is the attempt's state, or the destruction's.
	Store state.Store
	// Pod names this pod to people.
	Pod string
	// Installer is openshift-install. Empty: from the search path.
	Installer string
	// Work is an empty folder of the pod's own.
	Work string
	// Manifests are folders with manifests to add. Those that are not there are left out.
	Manifests []string
	// Credentials is the folder with the platform's credentials, if there are any.
	Credentials string
	// SSHKey is the private key for the bootstrap machine, if there is one.
	SSHKey string
	// Env is the installer's environment.
	Env []string
	// Out gets the installer's log, scrubbed.
	Out io.Writer
	// Limit is how long the installer may take; 0: for ever.
	Limit time.Duration
	// Grace is how long an installer that is told to stop may take.
	Grace time.Duration
	// Beat is how often a pod that works says so; Lapse is after how much silence
	// another is taken for dead.
	Beat, Lapse time.Duration
	// Clock is that of this computer, unless a test has another.
	Clock clock.PassiveClock
}

// Times of a pod that is told none.
const (
	DefaultGrace = 20 * time.Second
	DefaultBeat  = 30 * time.Second
	DefaultLapse = 3 * time.Minute
)

// finalWriteTimeout bounds the writes of a process that has been told to stop.
const finalWriteTimeout = 15 * time.Second

// installerRun is one run.
type installerRun struct {
	Options
	holder string
	log    *journal
}

func newInstallerRun(o Options) (*installerRun, error) {
	if o.Grace == 0 {
		o.Grace = DefaultGrace
	}
	if o.Beat == 0 {
		o.Beat = DefaultBeat
	}
	if o.Lapse == 0 {
		o.Lapse = DefaultLapse
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
			return nil, fmt.Errorf("making a folder to work in: %w", err)
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

// clusterDir is the installer's folder.
func (p *installerRun) clusterDir() string { return filepath.Join(p.Work, "cluster") }
func (p *installerRun) homeDir() string    { return filepath.Join(p.Work, "home") }
func (p *installerRun) tempDir() string    { return filepath.Join(p.Work, "tmp") }

func (p *installerRun) clusterFilePath(name string) string {
	return filepath.Join(p.clusterDir(), name)
}

func (p *installerRun) writeClusterFile(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(p.clusterFilePath(name)), 0o700); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if err := os.WriteFile(p.clusterFilePath(name), content, 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

// contextEndReason reports why a run ended early, as a reason; "" if nobody ended it.
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

// withTimeLimit is ctx with the time that the installer may take.
func (p *installerRun) withTimeLimit(ctx context.Context) (context.Context, context.CancelFunc) {
	if p.Limit == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, p.Limit, fmt.Errorf("not done after %s: %w", p.Limit, context.DeadlineExceeded))
}

// recordOutcome writes the outcome, also when ctx has ended: nobody else knows it.
func (p *installerRun) recordOutcome(ctx context.Context, edit func(*state.State) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finalWriteTimeout)
	defer cancel()
	_, err := p.Store.EditState(ctx, edit)
	return err
}
