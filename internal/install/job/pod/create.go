package pod

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"hotspare.io/hotspare/internal/install/job/state"
)

// newHolderName returns a name for this process; another process of the same pod gets a different
// name.
func newHolderName(pod string) string { return pod + "/" + rand.Text()[:8] }

// CreateCluster creates the cluster of a prepared attempt. If another pod has already begun it,
// CreateCluster follows decideStep. It returns nil when the outcome, success or failure, is in the
// state.
func CreateCluster(ctx context.Context, o Options) error {
	p, err := newInstallerRun(o)
	if err != nil {
		return err
	}
	seen, err := p.Store.ReadState(ctx)
	if err != nil {
		return err
	}
	heard, silent := p.Clock.Now(), false
	for {
		step := decideStep(seen, silent)
		err := p.executeStep(ctx, step, seen)
		if !errors.Is(err, errOvertaken) && (err != nil || step != watch) {
			return err
		}
		now, err := p.Store.ReadState(ctx)
		if err != nil {
			return err
		}
		// Only the local clock counts: the clock of another computer may be wrong.
		if now.Heartbeat != seen.Heartbeat || now.Holder != seen.Holder {
			heard = p.Clock.Now()
		}
		seen, silent = now, p.Clock.Since(heard) >= p.HeartbeatTimeout
	}
}

// executeStep executes one step. The error is errOvertaken if the attempt is no longer in the state
// in which it was seen.
func (r *installerRun) executeStep(ctx context.Context, s step, seen state.State) error {
	switch s {
	case claim:
		return r.createCluster(ctx, seen)
	case adopt:
		return r.adoptInstall(ctx, seen)
	case giveUp:
		return r.giveUpAttempt(ctx, seen)
	case watch:
		fmt.Fprintf(r.Out, "pod %s has started the install: waiting to see whether it is still alive\n", seen.Holder)
		return waitDuration(ctx, min(r.HeartbeatInterval, holderPollInterval))
	default:
		fmt.Fprintf(r.Out, "the attempt is already %s\n", seen.Phase)
		return nil
	}
}

// holderPollInterval is how often a pod that watches another one reads the state: hotspare may
// record there that the other has ended.
const holderPollInterval = 5 * time.Second

func waitDuration(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// errOvertaken means that another process has changed the state, so that this pod's step is no
// longer valid.
var errOvertaken = errors.New("another pod has taken over the attempt")

// acquireAttempt makes this process the holder if the attempt is unchanged since it was seen.
func (r *installerRun) acquireAttempt(ctx context.Context, seen state.State) error {
	_, err := r.Store.EditState(ctx, func(s *state.State) error {
		if s.Phase != seen.Phase || s.Holder != seen.Holder || s.Heartbeat != seen.Heartbeat {
			return errOvertaken
		}
		s.Phase, s.Holder, s.Heartbeat = state.Creating, r.holder, r.currentTimestamp()
		return nil
	})
	return err
}

func (r *installerRun) currentTimestamp() string { return r.Clock.Now().UTC().Format(time.RFC3339Nano) }

func (r *installerRun) giveUpAttempt(ctx context.Context, seen state.State) error {
	return r.recordOutcome(ctx, func(s *state.State) error {
		if s.Phase != seen.Phase || s.Holder != seen.Holder || s.Heartbeat != seen.Heartbeat {
			return errOvertaken
		}
		if s.Phase == state.New {
			return errors.New("the attempt is not prepared")
		}
		s.MarkFailed(state.ReasonInterrupted, "Pod "+seen.Holder+" ended while it created the cluster, before bootstrapping was complete: the resources of the attempt are destroyed.")
		return nil
	})
}

func (r *installerRun) createCluster(ctx context.Context, seen state.State) error {
	if err := r.restoreFolder(ctx, seen); err != nil {
		if !errors.Is(err, state.ErrDamaged) {
			return err
		}
		return r.recordOutcome(ctx, func(s *state.State) error {
			if s.Phase != state.Prepared {
				return errOvertaken
			}
			s.MarkFailed(state.ReasonDamaged, err.Error())
			return nil
		})
	}
	if err := r.acquireAttempt(ctx, seen); err != nil {
		return err
	}
	// From here on no other process may create the cluster.
	return r.finishInstall(ctx, seen, "create", "cluster")
}

func (r *installerRun) adoptInstall(ctx context.Context, seen state.State) error {
	if err := r.restoreFolder(ctx, seen); err != nil {
		return err
	}
	if err := r.acquireAttempt(ctx, seen); err != nil {
		return err
	}
	return r.finishInstall(ctx, seen, "wait-for", "install-complete")
}

// restoreFolder unpacks the folder that prepare packed.
func (r *installerRun) restoreFolder(ctx context.Context, seen state.State) error {
	packed, err := r.Store.LoadFolder(ctx, seen)
	if err != nil {
		return err
	}
	r.log.setInstallConfig(seen.InstallConfig)
	if err := state.UnpackFolder(packed, r.clusterDir()); err != nil {
		return err
	}
	if err := r.readPassword(); err != nil {
		return err
	}
	return r.placeSSHKey()
}

func (r *installerRun) readPassword() error {
	raw, err := os.ReadFile(r.clusterFilePath("auth/kubeadmin-password"))
	if err != nil {
		return fmt.Errorf("reading the prepared install: %w", err)
	}
	r.log.addKnownSecret(string(raw))
	return nil
}

// finishInstall runs the installer to the end of the install and records the outcome.
func (r *installerRun) finishInstall(ctx context.Context, seen state.State, args ...string) error {
	ctx, cancel := r.withTimeLimit(ctx)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	beats := make(chan struct{})
	go func() {
		defer close(beats)
		r.sendHeartbeats(ctx, stop)
	}()
	err := r.runInstaller(ctx, args...)
	why := contextEndReason(ctx)
	stop(nil)
	<-beats
	if err == nil {
		return r.recordSuccess(ctx, seen)
	}
	return r.recordFailure(ctx, seen, why, err)
}

// recordFailure records a failure. If an install is interrupted after the point from which waiting
// suffices, the next pod continues it.
func (r *installerRun) recordFailure(ctx context.Context, seen state.State, why string, err error) error {
	excerpt, reason := r.log.logExcerpt(err), r.log.failureReason()
	if why != "" {
		reason = why
		excerpt += "The installer was stopped: " + explainStopReason(why, r.Limit) + "\n"
	}
	handOver := false
	recorded := r.recordOutcome(ctx, func(s *state.State) error {
		if s.Holder != r.holder {
			return state.ErrNoChange // this process no longer owns the attempt
		}
		s.Bootstrapped = s.Bootstrapped || isChannelClosed(r.log.initializing)
		if why == state.ReasonInterrupted && s.Bootstrapped {
			handOver, s.Holder = true, ""
			return nil
		}
		s.MarkFailed(reason, excerpt)
		return nil
	})
	if recorded != nil {
		return errors.Join(err, recorded)
	}
	if handOver {
		return fmt.Errorf("stopped while waiting for the cluster; the next pod continues: %w", err)
	}
	return r.Store.DiscardFolder(context.WithoutCancel(ctx), seen.Parts)
}

func explainStopReason(why string, limit time.Duration) string {
	if why == state.ReasonTimeout {
		return fmt.Sprintf("it did not finish within %s.", limit)
	}
	return "its pod was asked to stop."
}

// sendHeartbeats records that this process is alive, until ctx ends. It also records immediately
// that the install can be completed by waiting. It stops the install when this process no longer
// owns it.
func (r *installerRun) sendHeartbeats(ctx context.Context, stop context.CancelCauseFunc) {
	turn := r.log.initializing
	for r.waitForHeartbeat(ctx, turn) {
		initializing := isChannelClosed(r.log.initializing)
		_, err := r.Store.EditState(ctx, func(s *state.State) error {
			if s.Phase != state.Creating || s.Holder != r.holder {
				return errOvertaken
			}
			s.Heartbeat, s.Bootstrapped = r.currentTimestamp(), s.Bootstrapped || initializing
			return nil
		})
		switch {
		case errors.Is(err, errOvertaken):
			fmt.Fprintf(r.Out, "stopping the installer: another pod has taken over the attempt, or it has ended\n")
			stop(err)
		case err != nil && ctx.Err() == nil:
			fmt.Fprintf(r.Out, "recording the heartbeat of this pod: %v\n", err) // the next heartbeat may succeed
		case initializing:
			turn = nil // it has been recorded
		}
	}
}

// waitForHeartbeat waits until the next heartbeat is due or turn is closed; it returns false when
// ctx has ended.
func (r *installerRun) waitForHeartbeat(ctx context.Context, turn <-chan struct{}) bool {
	timer := time.NewTimer(r.HeartbeatInterval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-turn:
	case <-timer.C:
	}
	return true
}

// consoleURLPattern matches the installer's message with the URL of the cluster's console.
var consoleURLPattern = regexp.MustCompile(`web-console here: (https://[^\s"\\]+)`)

func (r *installerRun) recordSuccess(ctx context.Context, seen state.State) error {
	kubeconfig, err := os.ReadFile(r.clusterFilePath("auth/kubeconfig"))
	if err != nil {
		return r.recordFailure(ctx, seen, "", fmt.Errorf("reading the kubeconfig that the installer should have written: %w", err))
	}
	password, err := os.ReadFile(r.clusterFilePath("auth/kubeadmin-password"))
	if err != nil {
		return r.recordFailure(ctx, seen, "", fmt.Errorf("reading the password that the installer should have written: %w", err))
	}
	err = r.recordOutcome(ctx, func(s *state.State) error {
		if s.Holder != r.holder {
			return state.ErrNoChange
		}
		s.MarkEnded(state.Succeeded)
		s.Kubeconfig, s.Password = kubeconfig, string(password)
		s.APIURL, s.WebConsoleURL = apiServerURL(kubeconfig), r.log.findPatternMatch(consoleURLPattern)
		return nil
	})
	if err != nil {
		return err
	}
	return r.Store.DiscardFolder(context.WithoutCancel(ctx), seen.Parts)
}

// apiServerURL returns the API URL in a kubeconfig; "" if it contains none.
func apiServerURL(kubeconfig []byte) string {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return ""
	}
	return config.Host
}
