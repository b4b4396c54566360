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
func (p *installerRun) executeStep(ctx context.Context, s step, seen state.State) error {
	switch s {
	case claim:
		return p.createCluster(ctx, seen)
	case adopt:
		return p.adoptInstall(ctx, seen)
	case giveUp:
		return p.giveUpAttempt(ctx, seen)
	case watch:
		fmt.Fprintf(p.Out, "pod %s has started the install: waiting to see whether it is still alive\n", seen.Holder)
		return waitDuration(ctx, min(p.HeartbeatInterval, holderPollInterval))
	default:
		fmt.Fprintf(p.Out, "the attempt is already %s\n", seen.Phase)
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
func (p *installerRun) acquireAttempt(ctx context.Context, seen state.State) error {
	_, err := p.Store.EditState(ctx, func(s *state.State) error {
		if s.Phase != seen.Phase || s.Holder != seen.Holder || s.Heartbeat != seen.Heartbeat {
			return errOvertaken
		}
		s.Phase, s.Holder, s.Heartbeat = state.Creating, p.holder, p.currentTimestamp()
		return nil
	})
	return err
}

func (p *installerRun) currentTimestamp() string { return p.Clock.Now().UTC().Format(time.RFC3339Nano) }

func (p *installerRun) giveUpAttempt(ctx context.Context, seen state.State) error {
	return p.recordOutcome(ctx, func(s *state.State) error {
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

func (p *installerRun) createCluster(ctx context.Context, seen state.State) error {
	if err := p.restoreFolder(ctx, seen); err != nil {
		if !errors.Is(err, state.ErrDamaged) {
			return err
		}
		return p.recordOutcome(ctx, func(s *state.State) error {
			if s.Phase != state.Prepared {
				return errOvertaken
			}
			s.MarkFailed(state.ReasonDamaged, err.Error())
			return nil
		})
	}
	if err := p.acquireAttempt(ctx, seen); err != nil {
		return err
	}
	// From here on no other process may create the cluster.
	return p.finishInstall(ctx, seen, "create", "cluster")
}

func (p *installerRun) adoptInstall(ctx context.Context, seen state.State) error {
	if err := p.restoreFolder(ctx, seen); err != nil {
		return err
	}
	if err := p.acquireAttempt(ctx, seen); err != nil {
		return err
	}
	return p.finishInstall(ctx, seen, "wait-for", "install-complete")
}

// restoreFolder unpacks the folder that prepare packed.
func (p *installerRun) restoreFolder(ctx context.Context, seen state.State) error {
	packed, err := p.Store.LoadFolder(ctx, seen)
	if err != nil {
		return err
	}
	p.log.setInstallConfig(seen.InstallConfig)
	if err := state.UnpackFolder(packed, p.clusterDir()); err != nil {
		return err
	}
	if err := p.readPassword(); err != nil {
		return err
	}
	return p.placeSSHKey()
}

func (p *installerRun) readPassword() error {
	raw, err := os.ReadFile(p.clusterFilePath("auth/kubeadmin-password"))
	if err != nil {
		return fmt.Errorf("reading the prepared install: %w", err)
	}
	p.log.addKnownSecret(string(raw))
	return nil
}

// finishInstall runs the installer to the end of the install and records the outcome.
func (p *installerRun) finishInstall(ctx context.Context, seen state.State, args ...string) error {
	ctx, cancel := p.withTimeLimit(ctx)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	beats := make(chan struct{})
	go func() {
		defer close(beats)
		p.sendHeartbeats(ctx, stop)
	}()
	err := p.runInstaller(ctx, args...)
	why := contextEndReason(ctx)
	stop(nil)
	<-beats
	if err == nil {
		return p.recordSuccess(ctx, seen)
	}
	return p.recordFailure(ctx, seen, why, err)
}

// recordFailure records a failure. If an install is interrupted after the point from which waiting
// suffices, the next pod continues it.
func (p *installerRun) recordFailure(ctx context.Context, seen state.State, why string, err error) error {
	excerpt, reason := p.log.logExcerpt(err), p.log.failureReason()
	if why != "" {
		reason = why
		excerpt += "The installer was stopped: " + explainStopReason(why, p.Limit) + "\n"
	}
	handOver := false
	recorded := p.recordOutcome(ctx, func(s *state.State) error {
		if s.Holder != p.holder {
			return state.ErrNoChange // this process no longer owns the attempt
		}
		s.Bootstrapped = s.Bootstrapped || isChannelClosed(p.log.initializing)
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
	return p.Store.DiscardFolder(context.WithoutCancel(ctx), seen.Parts)
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
func (p *installerRun) sendHeartbeats(ctx context.Context, stop context.CancelCauseFunc) {
	turn := p.log.initializing
	for p.waitForHeartbeat(ctx, turn) {
		initializing := isChannelClosed(p.log.initializing)
		_, err := p.Store.EditState(ctx, func(s *state.State) error {
			if s.Phase != state.Creating || s.Holder != p.holder {
				return errOvertaken
			}
			s.Heartbeat, s.Bootstrapped = p.currentTimestamp(), s.Bootstrapped || initializing
			return nil
		})
		switch {
		case errors.Is(err, errOvertaken):
			fmt.Fprintf(p.Out, "stopping the installer: another pod has taken over the attempt, or it has ended\n")
			stop(err)
		case err != nil && ctx.Err() == nil:
			fmt.Fprintf(p.Out, "recording the heartbeat of this pod: %v\n", err) // the next heartbeat may succeed
		case initializing:
			turn = nil // it has been recorded
		}
	}
}

// waitForHeartbeat waits until the next heartbeat is due or turn is closed; it returns false when
// ctx has ended.
func (p *installerRun) waitForHeartbeat(ctx context.Context, turn <-chan struct{}) bool {
	timer := time.NewTimer(p.HeartbeatInterval)
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

func (p *installerRun) recordSuccess(ctx context.Context, seen state.State) error {
	kubeconfig, err := os.ReadFile(p.clusterFilePath("auth/kubeconfig"))
	if err != nil {
		return p.recordFailure(ctx, seen, "", fmt.Errorf("reading the kubeconfig that the installer should have written: %w", err))
	}
	password, err := os.ReadFile(p.clusterFilePath("auth/kubeadmin-password"))
	if err != nil {
		return p.recordFailure(ctx, seen, "", fmt.Errorf("reading the password that the installer should have written: %w", err))
	}
	err = p.recordOutcome(ctx, func(s *state.State) error {
		if s.Holder != p.holder {
			return state.ErrNoChange
		}
		s.MarkEnded(state.Succeeded)
		s.Kubeconfig, s.Password = kubeconfig, string(password)
		s.APIURL, s.WebConsoleURL = apiServerURL(kubeconfig), p.log.findPatternMatch(consoleURLPattern)
		return nil
	})
	if err != nil {
		return err
	}
	return p.Store.DiscardFolder(context.WithoutCancel(ctx), seen.Parts)
}

// apiServerURL returns the API URL in a kubeconfig; "" if it contains none.
func apiServerURL(kubeconfig []byte) string {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return ""
	}
	return config.Host
}
