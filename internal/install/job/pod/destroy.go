package pod

import (
	"context"
	"errors"
	"fmt"

	"hotspare.io/hotspare/internal/install/job/state"
)

// Destroy has the installer destroy what the metadata in the state names. It may be
// repeated, and run twice at once. It returns nil when the outcome is in the state.
func Destroy(ctx context.Context, o Options) error {
	p, err := start(o)
	if err != nil {
		return err
	}
	seen, err := p.Store.Read(ctx)
	if err != nil {
		return err
	}
	if seen.Phase.Over() {
		fmt.Fprintf(p.Out, "the destruction has %s: nothing is left to do\n", seen.Phase)
		return nil
	}
	raw, err := withCredentials(seen.Metadata, p.Credentials)
	if err != nil {
		return err
	}
	if err := p.write("metadata.json", raw); err != nil {
		return err
	}
	limited, cancel := p.limited(ctx)
	defer cancel()
	err = p.run(limited, "destroy", "cluster")
	if why := told(limited); why == state.ReasonInterrupted {
		return errors.Join(errors.New("stopped while destroying, and the next pod goes on"), err)
	}
	return p.record(ctx, func(s *state.State) error {
		if s.Phase.Over() {
			return state.ErrNoChange
		}
		if err == nil {
			s.End(state.Succeeded)
			return nil
		}
		log := p.log.excerpt(err)
		if told(limited) == state.ReasonTimeout {
			log += "The installer was stopped: " + sentence(state.ReasonTimeout, p.Limit) + "\n"
		}
		s.Fail(state.ReasonDestroy, log)
		return nil
	})
}
