package pod

import (
	"context"
	"errors"
	"fmt"

	"hotspare.io/hotspare/internal/install/job/state"
)

// DestroyCluster runs the installer to destroy what the metadata in the state names. It may be
// repeated, and may run twice at the same time. It returns nil when the outcome is in the state.
func DestroyCluster(ctx context.Context, o Options) error {
	p, err := newInstallerRun(o)
	if err != nil {
		return err
	}
	seen, err := p.Store.ReadState(ctx)
	if err != nil {
		return err
	}
	if seen.Phase.IsFinal() {
		fmt.Fprintf(p.Out, "the destruction has already %s\n", seen.Phase)
		return nil
	}
	raw, err := withCredentials(seen.Metadata, p.Credentials)
	if err != nil {
		return err
	}
	if err := p.writeClusterFile("metadata.json", raw); err != nil {
		return err
	}
	limited, cancel := p.withTimeLimit(ctx)
	defer cancel()
	err = p.runInstaller(limited, "destroy", "cluster")
	if why := contextEndReason(limited); why == state.ReasonInterrupted {
		return errors.Join(errors.New("stopped while destroying; the next pod continues"), err)
	}
	return p.recordOutcome(ctx, func(s *state.State) error {
		if s.Phase.IsFinal() {
			return state.ErrNoChange
		}
		if err == nil {
			s.MarkEnded(state.Succeeded)
			return nil
		}
		log := p.log.logExcerpt(err)
		if contextEndReason(limited) == state.ReasonTimeout {
			log += "The installer was stopped: " + explainStopReason(state.ReasonTimeout, p.Limit) + "\n"
		}
		s.MarkFailed(state.ReasonDestroy, log)
		return nil
	})
}
