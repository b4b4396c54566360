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

// holder names this process; another one of the same pod gets another name.
func holder(pod string) string { return pod + "/" + rand.Text()[:8] }

// Create makes the cluster of a prepared attempt, or does for one that another pod
// has begun what next says. It returns nil when the outcome, also a bad one, is in
// the state.
func Create(ctx context.Context, o Options) error {
	p, err := start(o)
	if err != nil {
		return err
	}
	seen, err := p.Store.Read(ctx)
	if err != nil {
		return err
	}
	heard, silent := p.Clock.Now(), false
	for {
		step := next(seen, silent)
		err := p.do(ctx, step, seen)
		if !errors.Is(err, errOvertaken) && (err != nil || step != watch) {
			return err
		}
		now, err := p.Store.Read(ctx)
		if err != nil {
			return err
		}
		// What counts is our clock: that of another computer may be wrong.
		if now.Beat != seen.Beat || now.Holder != seen.Holder {
			heard = p.Clock.Now()
		}
		seen, silent = now, p.Clock.Since(heard) >= p.Lapse
	}
}

// do does one step. The error is errOvertaken if the attempt is no longer as seen.
func (p *pod) do(ctx context.Context, s step, seen state.State) error {
	switch s {
	case claim:
		return p.create(ctx, seen)
	case adopt:
		return p.adopt(ctx, seen)
	case giveUp:
		return p.giveUp(ctx, seen)
	case watch:
		fmt.Fprintf(p.Out, "pod %s has begun the install: waiting whether it lives\n", seen.Holder)
		return pause(ctx, min(p.Beat, glance))
	default:
		fmt.Fprintf(p.Out, "the attempt is %s: nothing is left to do\n", seen.Phase)
		return nil
	}
}

// glance is how often a pod that watches another one looks: hotspare may tell it that
// the other has ended.
const glance = 5 * time.Second

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// errOvertaken: somebody else has written what makes this pod's step wrong.
var errOvertaken = errors.New("another pod was faster")

// take makes this process the holder, if the attempt is still as it was seen.
func (p *pod) take(ctx context.Context, seen state.State) error {
	_, err := p.Store.Edit(ctx, func(s *state.State) error {
		if s.Phase != seen.Phase || s.Holder != seen.Holder || s.Beat != seen.Beat {
			return errOvertaken
		}
		s.Phase, s.Holder, s.Beat = state.Creating, p.holder, p.stamp()
		return nil
	})
	return err
}

func (p *pod) stamp() string { return p.Clock.Now().UTC().Format(time.RFC3339Nano) }

func (p *pod) giveUp(ctx context.Context, seen state.State) error {
	return p.record(ctx, func(s *state.State) error {
		if s.Phase != seen.Phase || s.Holder != seen.Holder || s.Beat != seen.Beat {
			return errOvertaken
		}
		if s.Phase == state.New {
			return errors.New("the attempt is not prepared")
		}
		s.Fail(state.ReasonInterrupted, "Pod "+seen.Holder+" ended while it created the cluster, before the bootstrap machine had done its work: what it made is destroyed.")
		return nil
	})
}

func (p *pod) create(ctx context.Context, seen state.State) error {
	if err := p.restore(ctx, seen); err != nil {
		if !errors.Is(err, state.ErrDamaged) {
			return err
		}
		return p.record(ctx, func(s *state.State) error {
			if s.Phase != state.Prepared {
				return errOvertaken
			}
			s.Fail(state.ReasonDamaged, err.Error())
			return nil
		})
	}
	if err := p.take(ctx, seen); err != nil {
		return err
	}
	// From here on no other process may create.
	return p.drive(ctx, seen, "create", "cluster")
}

func (p *pod) adopt(ctx context.Context, seen state.State) error {
	if err := p.restore(ctx, seen); err != nil {
		return err
	}
	if err := p.take(ctx, seen); err != nil {
		return err
	}
	return p.drive(ctx, seen, "wait-for", "install-complete")
}

// restore unpacks what prepare has packed.
func (p *pod) restore(ctx context.Context, seen state.State) error {
	packed, err := p.Store.Load(ctx, seen)
	if err != nil {
		return err
	}
	p.log.hide(seen.InstallConfig)
	if err := state.Unpack(packed, p.dir()); err != nil {
		return err
	}
	if err := p.readPassword(); err != nil {
		return err
	}
	return p.placeSSHKey()
}

func (p *pod) readPassword() error {
	raw, err := os.ReadFile(p.file("auth/kubeadmin-password"))
	if err != nil {
		return fmt.Errorf("reading what the installer has prepared: %w", err)
	}
	p.log.secret(string(raw))
	return nil
}

// drive runs the installer to the end of the install and records what came of it.
func (p *pod) drive(ctx context.Context, seen state.State, args ...string) error {
	ctx, cancel := p.limited(ctx)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	beats := make(chan struct{})
	go func() {
		defer close(beats)
		p.beat(ctx, stop)
	}()
	err := p.run(ctx, args...)
	why := told(ctx)
	stop(nil)
	<-beats
	if err == nil {
		return p.succeed(ctx, seen)
	}
	return p.end(ctx, seen, why, err)
}

// end records a failure. An install that was interrupted when it could only be
// waited for is left to the next pod.
func (p *pod) end(ctx context.Context, seen state.State, why string, err error) error {
	excerpt, reason := p.log.excerpt(err), p.log.reason()
	if why != "" {
		reason = why
		excerpt += "The installer was stopped: " + sentence(why, p.Limit) + "\n"
	}
	handOver := false
	recorded := p.record(ctx, func(s *state.State) error {
		if s.Holder != p.holder {
			return state.ErrNoChange // the attempt is no longer ours to judge
		}
		s.Bootstrapped = s.Bootstrapped || isClosed(p.log.initializing)
		if why == state.ReasonInterrupted && s.Bootstrapped {
			handOver, s.Holder = true, ""
			return nil
		}
		s.Fail(reason, excerpt)
		return nil
	})
	if recorded != nil {
		return errors.Join(err, recorded)
	}
	if handOver {
		return fmt.Errorf("stopped while waiting for the cluster, and the next pod goes on: %w", err)
	}
	return p.Store.Discard(context.WithoutCancel(ctx), seen.Parts)
}

func sentence(why string, limit time.Duration) string {
	if why == state.ReasonTimeout {
		return fmt.Sprintf("it was not done after %s.", limit)
	}
	return "its pod was told to end."
}

// beat says that this process lives, until ctx ends, and at once that the cluster can
// be waited for. It stops the install when it is no longer this process's.
func (p *pod) beat(ctx context.Context, stop context.CancelCauseFunc) {
	turn := p.log.initializing
	for p.nextBeat(ctx, turn) {
		initializing := isClosed(p.log.initializing)
		_, err := p.Store.Edit(ctx, func(s *state.State) error {
			if s.Phase != state.Creating || s.Holder != p.holder {
				return errOvertaken
			}
			s.Beat, s.Bootstrapped = p.stamp(), s.Bootstrapped || initializing
			return nil
		})
		switch {
		case errors.Is(err, errOvertaken):
			fmt.Fprintf(p.Out, "stopping the installer: the attempt is another's, or over\n")
			stop(err)
		case err != nil && ctx.Err() == nil:
			fmt.Fprintf(p.Out, "telling that this pod lives: %v\n", err) // the next beat may get through
		case initializing:
			turn = nil // it has been told
		}
	}
}

// nextBeat waits until it is time, or turn is closed; false when ctx has ended.
func (p *pod) nextBeat(ctx context.Context, turn <-chan struct{}) bool {
	timer := time.NewTimer(p.Beat)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-turn:
	case <-timer.C:
	}
	return true
}

// console is where the installer says what it has made.
var console = regexp.MustCompile(`web-console here: (https://[^\s"\\]+)`)

func (p *pod) succeed(ctx context.Context, seen state.State) error {
	kubeconfig, err := os.ReadFile(p.file("auth/kubeconfig"))
	if err != nil {
		return p.end(ctx, seen, "", fmt.Errorf("reading the kubeconfig that the installer should have made: %w", err))
	}
	password, err := os.ReadFile(p.file("auth/kubeadmin-password"))
	if err != nil {
		return p.end(ctx, seen, "", fmt.Errorf("reading the password that the installer should have made: %w", err))
	}
	err = p.record(ctx, func(s *state.State) error {
		if s.Holder != p.holder {
			return state.ErrNoChange
		}
		s.End(state.Succeeded)
		s.Kubeconfig, s.Password = kubeconfig, string(password)
		s.APIURL, s.WebConsoleURL = server(kubeconfig), p.log.find(console)
		return nil
	})
	if err != nil {
		return err
	}
	return p.Store.Discard(context.WithoutCancel(ctx), seen.Parts)
}

// server is the API of a kubeconfig; "" if it names none.
func server(kubeconfig []byte) string {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return ""
	}
	return config.Host
}
